"""t2t-exporter --format=ctranslate2: what it says of a model that is no Transformer, and of its own flag."""

import pytest

from t2t_lite.export import formats
from t2t_lite.export.formats import destinations_text
from tests.decoding.runs import make_language_model_run
from tests.export.models import translator_of


@pytest.mark.slow
def test_a_language_model_is_refused(call_command, assert_user_error, tmp_path):
    run = make_language_model_run(tmp_path / "lm")
    result = call_command("t2t-exporter", f"--output_dir={run}", "--format=ctranslate2")
    assert_user_error(result, "CTranslate2 cannot hold this model", "TransformerLM")


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--quantization=int8"], ["--quantization: not with --format=saved_model, only with --format=ctranslate2"]),
        (["--format=ctranslate2", "--quantization=int4"], ["--quantization", "int8, int16"]),
    ],
)
def test_mistakes(call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-exporter", "--output_dir=run", *flags), *words)


def test_what_it_lacks_is_among_the_destinations():
    lines = {line.split()[0]: line for line in destinations_text(translator_of(activation="swiglu").model).splitlines()}
    assert lines["ctranslate2"].endswith("yes")
    options = {"self_attention": {"type": "restricted", "neighborhood": 9}, "activation": "swiglu"}
    (reason,) = formats.obstacles("ctranslate2", translator_of(**options).model)
    assert "self_attention=restricted(neighborhood=9) (hparam self_attention_type)" in reason
