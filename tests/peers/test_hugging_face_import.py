"""Marian models of Hugging Face, brought here: the same pieces, ids and text as `generate` gives.

The model is laid out as OPUS-MT's are: EOS 0, unknown 1, padding last; a SentencePiece model for either language, whose
pieces are in one vocab.json, though not all of them; swish, a bias of the logits, padding forbidden by bad_words_ids.
"""

import io
import json
import os
import pathlib

import numpy as np
import pytest
import sentencepiece
import torch
import transformers

from t2t_lite import registry
from t2t_lite.bin import t2t_importer
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import export_hugging_face, import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from t2t_lite.training.trainer import Trainer
from tests.extras.hugging_face.folders import config_of, configure, tensors_of
from tests.peers.searches import EXTRA, generate, load

ENGLISH = "the red house is old and a green tree was new . small birds sing in old trees while houses stand"
GERMAN = "das rote Haus ist alt und ein grüner Baum war neu . kleine Vögel singen in alten Bäumen und Häuser stehen"


def sentences(words, count=120):
    words = words.split()
    return [" ".join(words[(i * k + k * k) % len(words)] for k in range(1, 3 + i % 9)) for i in range(count)]


def train_spm(path, lines, **options):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=path, minloglevel=2, bos_id=-1, hard_vocab_limit=False, **options
    )
    os.rename(f"{path}.model", path)


def make_marian(folder, kind, codes=(), shared_spm=False, **settings):
    """Writes a random model; returns (its folder, pieces that texts are cut into, but vocab.json has not)."""
    os.makedirs(folder)
    pieces = []
    for name, text in (("source.spm", ENGLISH), ("target.spm", ENGLISH + " " + GERMAN if shared_spm else GERMAN)):
        lines = sentences(ENGLISH + " " + GERMAN) if shared_spm else sentences(text)
        train_spm(f"{folder}/{name}", lines, vocab_size=80, model_type=kind)
        processor = sentencepiece.SentencePieceProcessor(f"{folder}/{name}")
        ids = range(processor.vocab_size())
        pieces += [processor.id_to_piece(i) for i in ids if not processor.is_control(i) and not processor.is_unknown(i)]
    pieces = sorted(set(pieces))
    missing = [] if shared_spm else pieces[::9]
    kept = [piece for piece in pieces if piece not in missing]
    names = ["</s>", "<unk>", *codes, *kept, "<pad>"]
    pathlib.Path(folder, "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    configure(folder, "tokenizer_config.json", source_lang="en", target_lang="de", tokenizer_class="MarianTokenizer")
    pad = len(names) - 1
    special = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad, "forced_eos_token_id": None}
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in
             (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))}  # fmt: skip
    config = transformers.MarianConfig(
        vocab_size=len(names), d_model=32, scale_embedding=True, max_position_embeddings=128, **special, **sizes,
        **{"activation_function": "swish", **settings},
    )  # fmt: skip
    torch.manual_seed(4)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:
                torch.nn.init.normal_(weight, 1.0 if name.endswith("layer_norm.weight") else 0.0, 0.25)
        for embedding in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
            embedding.weight[pad] = 0
        model.final_logits_bias.normal_()
    model.generation_config = transformers.GenerationConfig(num_beams=4, bad_words_ids=[[pad]], **special)
    model.save_pretrained(folder)
    return str(folder), missing


CASES = {
    "opus": {"kind": "unigram"},
    "bpe": {"kind": "bpe"},
    "many_languages": {"kind": "unigram", "codes": (">>deu<<", ">>nld<<")},
    "one_spm": {"kind": "unigram", "shared_spm": True, "activation_function": "gelu"},
    "untied": {"kind": "bpe", "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def imported(request, tmp_path_factory):
    """(model there, tokenizer, Translator, pieces that are not in vocab.json, whether there are codes)."""
    folder = tmp_path_factory.mktemp("marian")
    path, missing = make_marian(folder / "hf", **request.param)
    import_hugging_face(path, str(folder / "run"))
    codes = request.param.get("codes")
    return *load(path), Translator.load(str(folder / "run")), missing, codes


def texts_of(codes):
    texts = [*sentences(ENGLISH, 80), "Unseen Wörter! zßß 😀", "a  b ", "</s> <unk> <pad>"]
    return [f"{codes[at % 2]} {text}" for at, text in enumerate(texts)] if codes else texts


def test_the_same_pieces(imported):
    _, tokenizer, translator, missing, codes = imported
    seen = set()
    for text in texts_of(codes):
        theirs = tokenizer.convert_ids_to_tokens(tokenizer(text, split_special_tokens=True).input_ids)[:-1]
        encoder = translator.encoders["inputs"]
        pieces = encoder.pieces(encoder.encode(text))
        seen |= set(pieces)
        if codes:
            assert pieces[0] == "\u2581" + theirs[0]
            pieces, theirs = pieces[1:], theirs[1:]
        assert [piece if piece not in missing else "<unk>" for piece in pieces] == theirs, text
    assert not missing or seen & set(missing), "no text has a piece that vocab.json has not"


def test_the_same_ids_and_text(imported):
    model, tokenizer, translator, _, codes = imported
    texts = texts_of(codes)[:-1]
    found = generate(model, tokenizer, texts, length_penalty=0.7, early_stopping="never")
    options = {"alpha": 0.7, "length_penalty": "power", "ends": "top", "extra_length": EXTRA}
    ours = translator.translate(texts, split_sentences="never", **options)
    same = 0
    for ids, translation in zip(found, ours, strict=True):
        names = [piece.removeprefix("\u2581") if ">>" in piece else piece for piece in translation.tokens]
        is_same = names == tokenizer.convert_ids_to_tokens(ids)
        same += is_same
        if is_same and "<unk>" not in names and not codes:
            assert tokenizer.decode(ids, skip_special_tokens=True) == translation.text.strip()
    assert same == len(texts)
    assert len({translation.text for translation in ours}) > 10


def test_a_trained_model_under_other_ids(trained, texts, tmp_path):
    """Its sentences end. Ids are laid out as OPUS-MT's are, rows of embeddings and bias with them."""
    path = export_hugging_face(trained, str(tmp_path / "hf"))
    ids = config_of(path, "vocab.json")
    order = [1, 2, *range(len(ids) - 1, 2, -1), 0]  # EOS, unknown, the pieces backwards, padding
    pathlib.Path(path, "vocab.json").write_text(json.dumps({piece: order.index(i) for piece, i in ids.items()}))
    tensors = tensors_of(path)
    tensors["model.shared.weight"] = tensors["model.shared.weight"][order]
    tensors["final_logits_bias"] = tensors["final_logits_bias"][:, order]
    write_tensors(f"{path}/model.safetensors", tensors)
    pad = len(order) - 1
    for name in ("config.json", "generation_config.json"):
        configure(path, name, pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0)
    import_hugging_face(path, str(tmp_path / "run"), languages=("en", "de"))
    again = Translator.load(str(tmp_path / "run"))
    model, tokenizer = load(path)
    for penalty in (0.0, 0.7):
        found = generate(model, tokenizer, texts, num_beams=4, length_penalty=penalty, early_stopping="never")
        search = {"alpha": penalty, "length_penalty": "power", "ends": "top", "extra_length": EXTRA}
        ours, before = again.translate(texts, **search), trained.translate(texts, **search)
        same = [tokenizer.convert_ids_to_tokens(ids) == t.tokens for ids, t in zip(found, ours, strict=True)]
        assert sum(same) >= 0.995 * len(texts)
        assert sum(t.tokens == b.tokens for t, b in zip(ours, before, strict=True)) >= 0.995 * len(texts)
    assert sum(translation.hypotheses[0].ended for translation in ours) > 0.9 * len(texts)


def test_it_goes_out_again(imported, tmp_path):
    model, tokenizer, translator, _, codes = imported
    again, new_tokenizer = load(export_hugging_face(translator, str(tmp_path / "hf")))
    texts = texts_of(codes)[:20]
    before = generate(model, tokenizer, texts, length_penalty=0.0)
    after = generate(again, new_tokenizer, texts, length_penalty=0.0, num_beams=4)
    for old, new in zip(before, after, strict=True):
        assert tokenizer.convert_ids_to_tokens(old) == new_tokenizer.convert_ids_to_tokens(new)


def test_older_files_are_read_as_tensors_alone(tmp_path):
    path, _ = make_marian(tmp_path / "hf", "unigram")
    expected = Translator.load(os.path.dirname(import_hugging_face(path, str(tmp_path / "new"))))
    torch.save(transformers.MarianMTModel.from_pretrained(path).state_dict(), f"{path}/pytorch_model.bin")
    os.remove(f"{path}/model.safetensors")
    assert t2t_importer.main(["--from=hugging_face", f"--path={path}", f"--output_dir={tmp_path}/old"]) == 0
    found = Translator.load(str(tmp_path / "old"))
    for old, new in zip(found.model.weights, expected.model.weights, strict=True):
        np.testing.assert_array_equal(old.numpy(), new.numpy())

    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    data = io.BytesIO()
    torch.save({"model.shared.weight": Harm()}, data)
    for content in (data.getvalue(), data.getvalue()[:100], b""):
        pathlib.Path(path, "pytorch_model.bin").write_bytes(content)
        with pytest.raises(UserError, match="more than tensors"):
            import_hugging_face(path, str(tmp_path / "third"))
    assert not os.path.exists(tmp_path / "harm") and not os.path.exists(tmp_path / "third")


def test_it_can_be_fine_tuned(tmp_path):
    path, _ = make_marian(tmp_path / "hf", "unigram")
    import_hugging_face(path, str(tmp_path / "run"))
    for name, text in (("a.en", ENGLISH), ("a.de", GERMAN)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sentences(text, 40)), encoding="utf-8")
    pair = [str(tmp_path / "a.en"), str(tmp_path / "a.de")]
    problem = registry.problem("translate_own")
    problem.configure(train_files=pair, dev_files=pair, vocab_from=[str(tmp_path / "run")])
    problem.generate_data(str(tmp_path / "data"), str(tmp_path))
    run = Translator.load(str(tmp_path / "run"))
    settings = "batch_size=256,learning_rate_schedule=constant,learning_rate_constant=0.003,eval_decode_examples=0"

    def train(steps):
        return Trainer(
            problem="translate_own",
            hparams=run.hparams.parse(settings),
            data_dir=str(tmp_path / "data"),
            output_dir=str(tmp_path / "tuned"),
            warm_start_from=str(tmp_path / "run"),
        ).train(steps)

    before, after = train(0), train(40)
    assert np.isfinite(before["loss"]) and after["loss"] < 0.9 * before["loss"]
    tuned = Translator.load(str(tmp_path / "tuned")).model.softmax.bias.numpy()
    assert (tuned != run.model.softmax.bias.numpy()).any(), "the bias of the logits learns, too"
