"""Masked language models of the user's own text files, alone and with pairs of sentences: what a batch holds."""

import random

import numpy as np
import pytest
import sentencepiece

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.evaluation.metrics import metric_names
from t2t_lite.tasks.masked_language_model import MaskedLanguageModelTask
from t2t_lite.text.encoder_parts import mask_of
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.problems import own

TEXT = "\n".join(f"{number} green bottles were standing on the wall" for number in range(400))
HPARAMS = "batch_size=128"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    (folder / "a.txt").write_text(TEXT)
    generated(str(folder))
    return str(folder)


def generated(folder, **flags):
    problem = registry.problem("masked_lm_own")
    paths = {"train_files": [f"{folder}/a.txt"], "dev_files": [f"{folder}/a.txt"]}
    problem.configure(**{**paths, "vocab_size": 320, "sequence_length": 24, "mask_rate": 0.3, **flags})
    problem.generate_data(folder, folder)


def rows(folder, split, hparams=HPARAMS, count=None):
    problem = registry.problem("masked_lm_own")
    found = []
    for batch in problem.dataset(folder, split, registry.hparams("bert_tiny").parse(hparams)):
        batch = batch[0] if isinstance(batch, tuple) else batch
        found += zip(*(batch[name].numpy().tolist() for name in ("inputs", "targets")), strict=True)
        if count and len(found) >= count:
            return found
    return found


@pytest.mark.parametrize("name", ["masked_lm_own", "next_sentence_own", "sentence_order_own"])
def test_the_loss_of_masked_ids_is_none_of_words_or_characters(name):
    """They are predicted from the ids around them, and most ids are not predicted at all."""
    names = metric_names(registry.problem(name), registry.hparams("bert_tiny"))
    assert names[:3] == ("loss", "perplexity", "token_accuracy") and not [one for one in names if "_per_" in one]


@pytest.mark.slow
def test_what_is_masked_is_to_be_guessed_and_the_rest_is_the_text(folder):
    encoder = registry.problem("masked_lm_own").get_feature_encoders(folder)["inputs"]
    mask_id, mask = mask_of(encoder)
    assert (mask_id, mask) == (3, "[MASK]")
    found = rows(folder, "eval")
    inputs, targets = (np.array(side) for side in zip(*[row for row in found if 0 not in row[0]], strict=True))
    chosen = targets != 0
    assert chosen.any(1).all() and 0.25 < chosen.mean() < 0.4
    assert 0.7 < (inputs[chosen] == mask_id).mean() < 0.9 and not (inputs[~chosen] == mask_id).any()
    text = encoder.decode([i for i in np.where(chosen, targets, inputs).ravel().tolist() if i != 1])
    assert all(line in text for line in TEXT.splitlines()[10:20])
    pieces = np.array(encoder.pieces(range(encoder.vocab_size)))
    continues = ~np.char.startswith(pieces[np.where(chosen, targets, inputs)], "\u2581")
    both = continues[:, 1:] & (np.where(chosen, targets, inputs)[:, :-1] > 3)
    assert (chosen[:, 1:] == chosen[:, :-1])[both].all(), "a word is masked in part"


@pytest.mark.parametrize(
    "text, word", [("9 green bottles.", "bottles"), ("on the wall, bottles", "wall"), ("green bottles", "green")]
)
def test_what_stands_beside_a_mask_is_read_as_in_training(folder, text, word):
    problem = registry.problem("masked_lm_own")
    encoders = problem.get_feature_encoders(folder)
    encoder, (mask_id, mask) = encoders["inputs"], mask_of(encoders["inputs"])
    ids, guessed = encoder.encode(text), encoder.encode(word)
    (at,) = (at for at in range(len(ids)) if ids[at : at + len(guessed)] == guessed)
    reader = MaskedLanguageModelTask(problem, encoders)
    (read,) = reader.read(text.replace(word, mask), 99).rows
    assert read == [*ids[:at], mask_id, *ids[at + len(guessed) :], 1]
    assert reader.encode("") == []


def test_a_mask_in_a_text_is_one_for_features_too(folder):
    """Of one text, of a pair, and of what is too long."""
    problem = registry.problem("masked_lm_own")
    encoders = problem.get_feature_encoders(folder)
    reader, text = MaskedLanguageModelTask(problem, encoders), "green [MASK] on the wall"
    (read,) = reader.read(text, 99).rows
    assert reader.whole(text, 99).rows == [read] and 3 in read
    assert reader.whole((text, "green"), 99).rows == [[*read, *encoders["inputs"].encode("green"), 1]]
    cut = reader.whole(text, 5)
    assert cut.rows == [[*read[:4], 1]] and cut.truncated


def test_masks_that_stand_in_a_corpus_are_said(tmp_path, caplog):
    (tmp_path / "a.txt").write_text(TEXT + "\na [MASK] and\nanother [MASK]\n")
    generated(str(tmp_path))
    assert "masked_lm_own: the text of the train set contains [MASK] (2 times)" in caplog.text


def test_a_text_with_a_mask_is_not_cut_but_refused(folder):
    problem = registry.problem("masked_lm_own")
    reader = MaskedLanguageModelTask(problem, problem.get_feature_encoders(folder))
    (row,) = reader.read("9 green [MASK].", 99).rows
    assert reader.read("9 green [MASK].", len(row)).rows == [row]
    with pytest.raises(UserError, match=rf"{len(row)} ids.* {len(row) - 1}"):
        reader.read("9 green [MASK].", len(row) - 1)


@pytest.mark.slow
def test_phrases_of_a_file_are_masked_as_a_whole(folder, tmp_path):
    (tmp_path / "phrases.txt").write_text("green bottles\n\non the wall\n")
    problem = registry.problem("masked_lm_own")
    paths = {"train_files": [f"{folder}/a.txt"], "dev_files": [f"{folder}/a.txt"], "vocab_from": [folder]}
    problem.configure(**paths, sequence_length=24, mask_unit="phrase", phrase_file=str(tmp_path / "phrases.txt"))
    problem.generate_data(str(tmp_path), str(tmp_path))
    encoder = registry.problem("masked_lm_own").get_feature_encoders(str(tmp_path))["inputs"]
    phrase, seen = encoder.encode("green bottles"), 0
    for inputs, targets in rows(str(tmp_path), "eval"):
        ids = [t or i for i, t in zip(inputs, targets, strict=True)]
        for at in range(len(ids) - len(phrase) + 1):
            if ids[at : at + len(phrase)] == phrase:
                masked = [t != 0 for t in targets[at : at + len(phrase)]]
                assert len({*masked}) == 1
                seen += masked[0]
    assert seen


@pytest.mark.slow
def test_an_evaluation_has_the_same_masks_in_any_batches_and_each_epoch_of_training_has_others(folder):
    evaluations = [rows(folder, "eval", f"batch_size={size}") for size in (64, 500)]
    without_padding = [sorted([i for i in row[0] if i] for row in found) for found in evaluations]
    assert without_padding[0] == without_padding[1]
    epochs = rows(folder, "train", count=3 * len(evaluations[0]))
    texts = {}
    for inputs, targets in epochs:
        text = tuple(t or i for i, t in zip(inputs, targets, strict=True))
        texts.setdefault(text, set()).add(tuple(inputs))
    seen_again = [len(masked) for masked in texts.values()]
    assert sum(count > 1 for count in seen_again) > len(seen_again) / 2


@pytest.mark.slow
def test_rows_that_bpe_dropout_makes_too_long_are_cut_anywhere(folder):
    """Each is a part of a record's text, as long as a row, and sooner or later all of the text is read."""
    problem = registry.problem("masked_lm_own")
    encoder = problem.get_feature_encoders(folder)["targets"]
    stored, seen = (
        [[t or i for i, t in zip(*row, strict=True) if i] for row in rows(folder, "train", f"{HPARAMS}{more}", 150)]
        for more in ("", ",bpe_dropout=0.5")
    )
    assert max(map(len, seen)) == problem.sequence_length
    assert sum(row in stored for row in seen) < len(seen) / 10
    texts = {encoder.decode([i for i in row if i != 1]) for row in stored}
    parts = [encoder.decode([i for i in row if i != 1]) for row in seen]
    assert all(any(part in text for text in texts) for part in parts)
    assert any(text.startswith(part) for text in texts for part in parts)
    assert any(text.endswith(part) for text in texts for part in parts)


def test_a_vocabulary_without_a_mask_is_refused(folder, tmp_path):
    with pytest.raises(UserError, match=r"neither \[MASK\] nor <mask>"):
        mask_of(ByteTextEncoder())
    train_sentencepiece(["a text"] * 9, str(tmp_path / "vocab"), 270)
    text = [f"{folder}/a.txt"]
    with pytest.raises(UserError, match=r"--vocab_from: .*vocab.model: The vocabulary .* \[MASK\]"):
        registry.problem("masked_lm_own").configure(text, text, vocab_from=[str(tmp_path / "vocab.model")])


def test_a_mask_is_found_in_a_sentencepiece_model_with_special_ids_of_its_own(folder, tmp_path):
    sentencepiece.SentencePieceTrainer.train(  # unknown, <s> and </s> are 0, 1 and 2, and there is no padding
        sentence_iterator=iter(TEXT.splitlines()), model_prefix=str(tmp_path / "own"), vocab_size=70,
        user_defined_symbols=["[MASK]"],
    )  # fmt: skip
    problem, text = registry.problem("masked_lm_own"), [f"{folder}/a.txt"]
    problem.configure(text, text, vocab_from=[str(tmp_path / "own.model")])
    problem.get_or_create_vocab(str(tmp_path), str(tmp_path))
    assert mask_of(problem.feature_encoders(str(tmp_path))["inputs"])[1] == "[MASK]"


def test_other_phrases_over_finished_data_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    phrases = {"mask_unit": "phrase", "phrase_file": str(tmp_path / "phrases.txt")}
    for text in ("green bottles\non the wall\n", "on the wall\n\ngreen bottles"):
        (tmp_path / "phrases.txt").write_text(text)
        generated(str(tmp_path), **phrases)
    (tmp_path / "phrases.txt").write_text("green bottles\n")
    with pytest.raises(UserError, match=r"with phrases = sha256: .*, but you requested phrases = sha256: "):
        generated(str(tmp_path), **phrases)


# Next sentences and the order of sentences: what the two texts are, and what draws one of the two rows.

LENGTH = 80
NAMES = ("next_sentence_own", "sentence_order_own")


def generated_from(text, name, folder, **settings):
    """Returns a problem that has written data of a text, which is its dev set, too."""
    settings = {"vocab_size": 310, "sequence_length": LENGTH, **settings}
    return own.generated(name, folder, **own.files_of(folder, train=text, dev=text), **settings)


def documents(count=30, sentences=20):
    """Texts in which each sentence says where it stands."""
    draw = random.Random(2)
    return [
        [
            f"d{document} s{number} {'so' * draw.randrange(1, 5)} it goes"
            for number in range(draw.randrange(2, sentences))
        ]
        for document in range(count)
    ]


@pytest.fixture(scope="module", params=NAMES)
def sentence_folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    text = "\n\n".join("\n".join(document) for document in documents())
    generated_from(f"\n\n{text}\n<|endoftext|>\nalone\n", request.param, folder)
    return request.param, str(folder)


def texts_of(name, folder, split="eval", batch_size=256, count=None):
    """Returns (first text, second text, number of the sentence class) of every row, without masks."""
    problem = registry.problem(name)
    encoder = problem.get_feature_encoders(folder)["targets"]
    hparams = registry.hparams("bert_tiny").parse(f"batch_size={batch_size}")
    found = []
    for batch in problem.dataset(folder, split, hparams):
        batch = batch[0] if isinstance(batch, tuple) else batch
        inputs, targets, sentence = (batch[feature].numpy() for feature in ("inputs", "targets", "sentence"))
        for seen, wanted, number in zip(inputs, targets, sentence, strict=True):
            ids = [int(t or i) for i, t in zip(seen, wanted, strict=True) if i]
            assert len(ids) <= LENGTH and ids.count(1) == 2 and ids[-1] == 1 and wanted.any()
            middle = ids.index(1)
            found.append((encoder.decode(ids[:middle]), encoder.decode(ids[middle + 1 : -1]), int(number)))
        if count and len(found) >= count:
            return found
    return found


@pytest.mark.slow
def test_the_second_text_follows_the_first_one_or_does_not(sentence_folder):
    name, path = sentence_folder
    texts = [" ".join(document) for document in documents()]
    found = texts_of(name, path)
    numbers = [number for _, _, number in found]
    assert 0.35 < numbers.count(1) / len(found) < 0.65 and {*numbers} == {1, 2}
    cut = 0
    for first, second, number in found:
        assert first and second
        follows = any(f"{first} {second}" in text for text in texts)
        assert follows == (number == 1)
        assert any(f"{first} " in f"{text} " for text in texts)
        cut += not second.endswith("goes")
        if number == 2 and name == "sentence_order_own":
            assert any(f"{second} {first}" in text for text in texts)
        elif number == 2:
            assert first.split()[0] not in second.split(), "the other text is of the same document"
    assert cut <= 0.05 * len(found)


@pytest.mark.long
@pytest.mark.few("next_sentence_own")
def test_an_evaluation_is_the_same_in_any_batches_and_epochs_of_training_differ(sentence_folder):
    once, again = (sorted(texts_of(*sentence_folder, batch_size=size)) for size in (256, 100))
    assert once == again
    classes = {}
    for first, second, number in texts_of(*sentence_folder, split="train", count=4 * len(once)):
        classes.setdefault(frozenset((first, second)) if "order" in sentence_folder[0] else first, set()).add(number)
    assert sum(len(numbers) == 2 for numbers in classes.values()) > len(classes) / 2


def test_new_pieces_would_tell_the_two_rows_apart(sentence_folder):
    name, path = sentence_folder
    hparams = registry.hparams("bert_tiny").parse("batch_size=256,bpe_dropout=0.1")
    with pytest.raises(UserError, match=rf"bpe_dropout=0\.1: .*{name}"):
        registry.problem(name).dataset(path, "train", hparams)


@pytest.mark.parametrize("name", NAMES)
def test_one_long_document_is_enough_and_long_sentences_are_cut(name, tmp_path):
    text = "\n".join(" ".join(f"w{i}" for i in range(at, at + 30)) for at in range(40))
    problem = generated_from(text, name, tmp_path, sequence_length=11)
    rows = [row[name] for row in own.rows_of(problem, tmp_path) for name in ("targets", "other")]
    assert max(map(len, rows)) in (10, 11) and all(row.count(1) == 2 and row[-1] == 1 for row in rows)


@pytest.mark.slow
def test_the_other_text_of_a_single_document_is_none_of_the_first(tmp_path):
    generated_from("\n".join(f"s{number} goes" for number in range(200)), NAMES[0], tmp_path)
    for first, second, number in texts_of(NAMES[0], str(tmp_path)):
        assert number == 1 or not {*first.split()} & {*second.split()} - {"goes"}


def test_a_row_has_both_sentences_as_they_stand_in_a_text_and_each_ends_in_1():
    """In bytes: each begins with a space. The document with one sentence has no row."""
    problem, encode = registry.problem(NAMES[1]), ByteTextEncoder().encode
    problem.remember({"sequence_length": 40})
    problem.feature_encoders = lambda data_dir: {"targets": ByteTextEncoder()}
    samples = [{"targets": text, "begins": begins} for text, begins in (("ab", True), ("cde", False), ("f", True))]
    one, other = [*encode(" ab"), 1], [*encode(" cde"), 1]
    assert problem.sample_encoder("")(samples) == [{"targets": one + other, "other": other + one}]


def test_before_the_first_text_the_other_ends_where_it_begins():
    document, seen = [[number] for number in range(10)], set()
    for seed in range(30):
        others = registry.problem(NAMES[0]).others([document], 0, (4, 6, 8), 10, random.Random(seed))
        assert others[0] == [[4], [5]]
        seen.add(tuple(number for (number,) in others[1]))
    assert seen == {(0, 1, 2, 3), (1, 2, 3), (2, 3), (3,), (9,)}


@pytest.mark.parametrize("number, firsts", [(0, {10, 11, 20, 21}), (1, {0, 1, 20, 21}), (2, {0, 1, 10, 11})])
def test_the_other_text_begins_at_any_sentence_of_any_other_document(number, firsts):
    texts = [[[10 * document], [10 * document + 1]] for document in range(3)]
    others = registry.problem(NAMES[0]).others
    drawn = [others(texts, number, (0, 1, 2), 4, random.Random(seed))[1][0][0] for seed in range(100)]
    assert {*drawn} == firsts and min(map(drawn.count, firsts)) >= 10


def test_documents_of_one_sentence_are_not_enough(tmp_path):
    text = "\n\n".join(f"sentence {i}, so it goes" for i in range(40))
    with pytest.raises(UserError, match=r"the train set .*\. Expected documents of at least two sentences"):
        generated_from(text, NAMES[0], tmp_path)
    assert not list(tmp_path.glob("*-of-*")) and not list(tmp_path.glob("*manifest.json"))


def test_the_model_has_a_head_for_it_and_rows_for_two_texts_are_needed(tmp_path):
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    assert registry.problem(NAMES[0]).model_hparams(hparams).sentence_classes == 2
    with pytest.raises(UserError, match=r"--sequence_length=3: too few ids for two texts\. Expected 4"):
        generated_from("one\ntwo", NAMES[0], tmp_path, sequence_length=3)
