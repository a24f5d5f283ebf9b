"""The folder that `export_ctranslate2` writes, as its README uses it."""

import collections
import os

import pytest
import sentencepiece

ctranslate2 = pytest.importorskip("ctranslate2")
export_ctranslate2 = pytest.importorskip("t2t_lite.extras.ctranslate2.ctranslate2").export_ctranslate2
EXTRA = 20
POSITIONS = 2048 * 32 * 4  # bytes of the table, which both sides share


@pytest.fixture(scope="module")
def ours(trained, texts):
    found = trained.translate(texts, alpha=0.0, ends="top", extra_length=EXTRA)
    return [(translation.tokens, translation.text) for translation in found]


def translate(path, texts, compute_type="default"):
    """Beam search under our limits: an output's longest length depends on its own input's."""
    source, target = (sentencepiece.SentencePieceProcessor(f"{path}/{side}.spm") for side in ("source", "target"))
    translator = ctranslate2.Translator(str(path), compute_type=compute_type)
    by_length = collections.defaultdict(list)
    for at, text in enumerate(texts):
        by_length[len(source.encode(text))].append(at)
    found = {}
    for length, places in by_length.items():
        pieces = [source.encode(texts[at], out_type=str) for at in places]
        options = {"beam_size": 4, "length_penalty": 0, "max_decoding_length": length + 1 + EXTRA}
        for at, result in zip(places, translator.translate_batch(pieces, **options), strict=True):
            found[at] = result.hypotheses[0], target.decode(result.hypotheses[0])
    return [found[at] for at in range(len(texts))]


def test_the_same_tokens_and_text(trained, texts, ours, tmp_path):
    path = export_ctranslate2(trained, str(tmp_path / "ct2"))
    assert path == str(tmp_path / "ct2")
    assert os.listdir(tmp_path) == ["ct2"]  # nothing of the temporary name
    names = "README.md", "config.json", "model.bin", "shared_vocabulary.json", "source.spm", "target.spm"
    assert sorted(os.listdir(path)) == sorted(names)
    found = translate(path, texts)
    assert len(set(text for _, text in ours)) > 60  # it does not say the same to everything
    assert sum(a == b for a, b in zip(ours, found, strict=True)) >= 0.995 * len(texts)
    weights = sum(4 * weight.numpy().size for weight in trained.model.weights)
    assert os.path.getsize(f"{path}/model.bin") < weights + POSITIONS + 20_000  # the tied matrix is there once


@pytest.mark.parametrize(
    "quantization, smaller, at_least",
    [("int8", 0.5, 0.8), ("int16", 0.7, 0.9), ("float16", 0.55, 0.95), ("bfloat16", 0.55, 0.8)],
)
def test_quantizations(trained, texts, ours, tmp_path, quantization, smaller, at_least):
    sizes = {}
    for kind in ("float32", quantization):
        path = export_ctranslate2(trained, str(tmp_path / kind), kind)
        sizes[kind] = os.path.getsize(f"{path}/model.bin") - POSITIONS // (
            2 if "16" in kind[-2:] and "float" in kind else 1
        )
    assert sizes[quantization] < smaller * sizes["float32"]
    # Of the corpus the model is sure. Computed in float32: CTranslate2's int8 products depend on the processor.
    found = translate(tmp_path / quantization, texts[:60], "float32")
    assert sum(a == b for a, b in zip(ours, found, strict=False)) >= at_least * 60


def test_int8_products_are_those_of_weights_that_ctranslate2_quantizes(trained, texts, tmp_path):
    for kind in ("float32", "int8"):
        export_ctranslate2(trained, str(tmp_path / kind), kind)
    found = translate(tmp_path / "int8", texts)
    theirs = translate(tmp_path / "float32", texts, "int8")
    assert sum(a == b for a, b in zip(found, theirs, strict=True)) >= 0.95 * len(texts)
