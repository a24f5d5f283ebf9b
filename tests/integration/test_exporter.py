import os

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from tests.decoding.runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200))


def test_exports_the_newest_checkpoint_with_its_settings(call_command, made, tmp_path):
    settings = "beam_size=2,alpha=1.0,extra_length=2,max_input_size=8"
    result = call_command("t2t-exporter", f"--output_dir={made}", "--export_dir=export", f"--decode_hparams={settings}")
    assert (result.status, result.stdout) == (0, "export/1\n")
    serve = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["serving_default"]
    texts = ["the red house.", "is " * 30]
    found = serve(inputs=tf.constant(texts))
    expected = Translator.load(str(made)).translate(texts, beam_size=2, alpha=1.0, extra_length=2, max_input_length=8)
    assert [text.decode() for text in found["outputs"].numpy()] == [t.text for t in expected]
    assert found["truncated"].numpy().tolist() == [False, True]


def test_by_default_beside_the_checkpoint(call_command, made, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "save", lambda module, path, signatures: os.makedirs(path))
    for number in (1, 2):
        result = call_command("t2t-exporter", f"--checkpoint_path={made}/model.ckpt-100", "--as_text")
        assert result.stdout == f"{made}/export/{number}\n" and "--as_text has no effect" in result.stderr


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--decode_hparams=beam=4"], ["beam"]),
        (["--export_as_tfhub"], ["not supported"]),
        (["--checkpoint_path=a/model.ckpt-1,b/model.ckpt-2"], ["--checkpoint_path", "not an ensemble"]),
        (["--problem=algorithmic_identity_decimal40"], ["--problem", "translate_own"]),
        (["--export_dir=file"], ["file", "folder"]),
        (["--output_dir=nowhere"], ["nowhere"]),
    ],
)
def test_mistakes(call_command, assert_user_error, made, tmp_path, flags, words):
    (tmp_path / "file").write_text("")
    args = {f.split("=")[0]: f for f in [f"--output_dir={made}", "--export_dir=export", *flags]}
    assert_user_error(call_command("t2t-exporter", *args.values()), *words)
    assert os.listdir(tmp_path) == ["file"]
