"""Rows of embeddings go by piece from one vocabulary to another; all other weights as they are."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.problem import Text2TextProblem
from t2t_lite.errors import UserError
from t2t_lite.runs.run_config import build_model, hparams_of, write_run_config
from t2t_lite.runs.warm_start import warm_start
from t2t_lite.runs.weights import named_weights, trackable_weights
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder, TokenTextEncoder

pytestmark = pytest.mark.slow  # each builds two models

OLD = {"inputs": "red green blue sky", "targets": "rot grün blau sky"}
NEW = {"inputs": "sky cold blue", "targets": "kalt sky blau cold rot"}
SIDES = ("inputs", "targets")


@registry.register_problem("warm_start_colours")
class Colours(Text2TextProblem):
    """Its vocabularies are the files `inputs` and `targets` in a folder."""

    def feature_encoders(self, data_dir):
        return {side: TokenTextEncoder(f"{data_dir}/{side}") for side in SIDES}


def vocabulary(folder, words, is_shared):
    """Writes the files; returns the encoders."""
    folder.mkdir(exist_ok=True)
    both = " ".join(dict.fromkeys(" ".join(words.values()).split()))
    for side in SIDES:
        text = both if is_shared else words[side]
        (folder / side).write_text("\n".join(["<pad>", "<EOS>", *text.split()]) + "\n")
    return {side: TokenTextEncoder(f"{folder}/{side}") for side in SIDES}


def config(encoders, hparams=""):
    small = registry.hparams("transformer_tiny").parse("num_hidden_layers=1,hidden_size=8,filter_size=16,num_heads=2")
    prints = {side: encoder.fingerprint for side, encoder in encoders.items()}
    is_shared = len(set(prints.values())) == 1
    return {
        "problem": "warm_start_colours",
        "model": "transformer",
        "hparams_set": "transformer_tiny",
        "usr_dir": "",
        "vocab_size": encoders["inputs"].vocab_size,
        "target_vocab_size": None if is_shared else encoders["targets"].vocab_size,
        "vocabulary_sha256": prints,
        "hparams": small.parse(hparams).values(),
    }


def run_of(folder, encoders, hparams=""):
    """Writes a run; returns its weights by name."""
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    model = build_model(config(encoders, hparams))
    write_run_config(str(folder), config(encoders, hparams))
    tf.train.Checkpoint(model=trackable_weights(model)).write(str(folder / "model.ckpt-7"))
    return values(model)


def values(model):
    return {name: weight.numpy() for name, weight in named_weights(model).items()}


def rows(weights, name, encoder):
    """The rows of a matrix, by piece."""
    matrix = weights[f"{name}/embeddings"]
    return dict(zip(encoder.pieces(range(len(matrix))), matrix, strict=True))


def assert_by_piece(new, drawn, old):
    """Rows by piece are those of `old` where it has the piece, else the drawn ones; returns the pieces taken over."""
    for piece, row in new.items():
        np.testing.assert_array_equal(row, old.get(piece, drawn[piece]), err_msg=piece)
    return new.keys() & old.keys()


@pytest.mark.few("to one-from two", "to two-from one")
@pytest.mark.parametrize("was_shared", [True, False], ids=["from one", "from two"])
@pytest.mark.parametrize("is_shared", [True, False], ids=["to one", "to two"])
def test_pieces_that_both_have_keep_their_rows(tmp_path, was_shared, is_shared):
    old_encoders = vocabulary(tmp_path / "run", OLD, was_shared)
    new_encoders = vocabulary(tmp_path / "data", NEW, is_shared)
    old = run_of(tmp_path / "run", old_encoders)
    model = build_model(config(new_encoders))
    drawn = values(model)
    facts = warm_start(str(tmp_path / "run"), model, new_encoders)
    new = values(model)
    assert facts["warm_start_from"] == str(tmp_path / "run" / "model.ckpt-7")
    taken = facts["warm_start_rows"]

    there = {
        side: rows(old, "embedding" if was_shared else f"{side.removesuffix('s')}_embedding", old_encoders[side])
        for side in SIDES
    }
    if is_shared:
        found = assert_by_piece(
            rows(new, "embedding", new_encoders["inputs"]),
            rows(drawn, "embedding", new_encoders["inputs"]),
            {**there["inputs"], **there["targets"]},  # "sky" is in both: the softmax's row
        )
        assert found == {"<pad>", "</s>", "sky", "blue", "blau", "rot"}
        assert taken == {"embedding/embeddings": [6, 8]}
    else:
        counts = {}
        for side in SIDES:
            name = f"{side.removesuffix('s')}_embedding"
            found = assert_by_piece(
                rows(new, name, new_encoders[side]), rows(drawn, name, new_encoders[side]), there[side]
            )
            counts[f"{name}/embeddings"] = [len(found), new_encoders[side].vocab_size]
        assert taken == counts == {"input_embedding/embeddings": [4, 5], "target_embedding/embeddings": [5, 7]}
    others = [name for name in new if "embedding" not in name]
    assert len(others) > 20
    for name in others:
        np.testing.assert_array_equal(new[name], old[name], err_msg=name)


def test_an_untied_softmax_goes_by_piece_too(tmp_path):
    untied = "shared_embedding_and_softmax_weights=false"
    old_encoders = vocabulary(tmp_path / "run", OLD, is_shared=True)
    new_encoders = vocabulary(tmp_path / "data", NEW, is_shared=False)
    old = run_of(tmp_path / "run", old_encoders, untied)
    model = build_model(config(new_encoders, untied))
    drawn = values(model)
    warm_start(str(tmp_path / "run"), model, new_encoders)
    for name, side in (
        ("input_embedding", "inputs"),
        ("target_embedding", "targets"),
        ("softmax_embedding", "targets"),
    ):
        assert_by_piece(
            rows(values(model), name, new_encoders[side]),
            rows(drawn, name, new_encoders[side]),
            rows(old, name, old_encoders[side]),
        )
    tied = build_model(config(new_encoders))
    words = r"model.ckpt-7: does not match this model: softmax_embedding/embeddings .* missing in"
    with pytest.raises(UserError, match=words):
        warm_start(str(tmp_path / "run"), tied, new_encoders)


def test_bytes_and_special_ids_go_by_their_piece(tmp_path, monkeypatch):
    """From ids of bytes (byte + 2) to SentencePiece's (byte + 3), whose unknown id is new."""
    from t2t_lite.text import subwords

    subwords.train_sentencepiece(["the red house is old"] * 20, str(tmp_path / "spm"), 280)
    bytes_, pieces = ByteTextEncoder(), SentencePieceEncoder(str(tmp_path / "spm.model"))
    old_encoders, new_encoders = dict.fromkeys(SIDES, bytes_), dict.fromkeys(SIDES, pieces)
    monkeypatch.setattr("t2t_lite.runs.warm_start.encoders_and_folder", lambda *_: (old_encoders, ""))
    old = run_of(tmp_path / "run", old_encoders)["embedding/embeddings"]
    model = build_model(config(new_encoders))
    drawn = values(model)["embedding/embeddings"]
    taken = warm_start(str(tmp_path / "run"), model, new_encoders)["warm_start_rows"]
    new = values(model)["embedding/embeddings"]
    assert taken == {"embedding/embeddings": [258, 280]}
    np.testing.assert_array_equal(new[[0, 1]], old[[0, 1]])
    np.testing.assert_array_equal(new[2], drawn[2])
    every = pieces.pieces(range(pieces.vocab_size))
    ids = [every.index(f"<0x{byte:02X}>") for byte in range(256)]
    np.testing.assert_array_equal(new[ids], old[2:])
    assert len(set(ids)) == 256 and ids[0] != 2


def classifier(encoders, count):
    """The config of a classifier of `count` classes, and a model of it."""
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    hparams = hparams.parse("num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=2,head=class")
    facts = config(encoders) | {"model": "transformer_encoder", "hparams": hparams.values()}
    facts |= {"target_vocab_size": 1 + count}
    return facts, build_model(facts)


@pytest.mark.parametrize(
    ("labels", "is_new"), [(["no", "yes"], False), (["aye", "no"], True), (["no", "yes", "maybe"], True)]
)
def test_a_head_of_other_classes_is_new_and_its_pooler_is_not(tmp_path, monkeypatch, caplog, labels, is_new):
    """Also of as many classes: columns of the head would go to the wrong classes by position."""
    encoders = vocabulary(tmp_path / "run", OLD, is_shared=True) | {"targets": ClassLabelEncoder(["no", "yes"])}
    monkeypatch.setattr("t2t_lite.runs.warm_start.encoders_and_folder", lambda *_: (encoders, ""))
    facts, old = classifier(encoders, 2)
    write_run_config(str(tmp_path / "run"), facts)
    tf.train.Checkpoint(model=trackable_weights(old)).write(str(tmp_path / "run" / "model.ckpt-7"))
    _, model = classifier(encoders, len(labels))
    drawn = values(model)
    with caplog.at_level("INFO", "t2t_lite"):
        found = warm_start(str(tmp_path / "run"), model, encoders | {"targets": ClassLabelEncoder(labels)})
    heads = sorted(name for name in drawn if name.startswith("class_head/dense/"))
    assert found.get("warm_start_new", []) == heads * is_new and heads
    assert (f"initial values: {', '.join(heads)}" in caplog.text) == is_new
    for name, value in values(model).items():
        np.testing.assert_array_equal(value, (drawn if name in heads and is_new else values(old))[name])


def test_a_head_of_another_size_is_new_even_if_its_classes_have_no_names(tmp_path):
    encoders = vocabulary(tmp_path / "run", OLD, is_shared=True)
    (facts, old), (_, model) = (classifier(encoders, count) for count in (2, 4))
    write_run_config(str(tmp_path / "run"), facts)
    tf.train.Checkpoint(model=trackable_weights(old)).write(str(tmp_path / "run" / "model.ckpt-7"))
    heads = sorted(name for name in values(model) if name.startswith("class_head/dense/"))
    assert warm_start(str(tmp_path / "run"), model, encoders)["warm_start_new"] == heads != []


def test_what_does_not_fit_is_named(tmp_path):
    old_encoders = vocabulary(tmp_path / "run", OLD, is_shared=True)
    new_encoders = vocabulary(tmp_path / "data", NEW, is_shared=True)
    run_of(tmp_path / "run", old_encoders)
    for hparams, words in (
        ("filter_size=24", r"decoder/feed_forward\S+ is 16 there, but 24 in the model"),
        ("num_hidden_layers=2", r"decoder/\S+ is \S+ x \S+ there, but missing in the model"),
        ("hidden_size=16", r"\S+ is 8 .*there, but 16 "),
    ):
        facts, (name, value) = config(new_encoders, hparams), hparams.split("=")
        differs = rf"{words}.* The settings differ: {name}: \d+ -> {value}\.$"
        with pytest.raises(UserError, match=rf"model.ckpt-7: does not match this model: .*{differs}"):
            warm_start(str(tmp_path / "run"), build_model(facts), new_encoders, hparams_of(facts))
    facts = config(new_encoders, "num_heads=4")
    with pytest.raises(UserError, match=r"model\.ckpt-7: num_heads is 2 there but 4 in the new model"):
        warm_start(str(tmp_path / "run"), build_model(facts), new_encoders, hparams_of(facts))
    (tmp_path / "run" / "targets").unlink()
    with pytest.raises(UserError, match="targets"):
        warm_start(str(tmp_path / "run"), build_model(config(new_encoders)), new_encoders)


@pytest.mark.parametrize("is_new", [True, False], ids=["another vocabulary", "the same"])
def test_other_settings_that_leave_the_shapes_are_named(tmp_path, caplog, is_new):
    old_encoders = vocabulary(tmp_path / "run", OLD, is_shared=True)
    encoders = vocabulary(tmp_path / "data", NEW, is_shared=True) if is_new else old_encoders
    run_of(tmp_path / "run", old_encoders)
    words = f"{tmp_path}/run/model.ckpt-7: its settings differ from the new model's: "
    for changes, expected in (("pos=none", [f"{words}pos: timing -> none"]), ("", [])):
        caplog.clear()
        facts = config(encoders, changes)
        warm_start(str(tmp_path / "run"), build_model(facts), encoders, hparams_of(facts))
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == expected
