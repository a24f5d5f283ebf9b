"""docs/decoding.md: its tables name what there is, and its recipe of back-translation can be stopped and resumed."""

import json
import pathlib
import re
import shlex

import pytest

from t2t_lite.bin import _app, t2t_datagen, t2t_decoder
from t2t_lite.decoding.command.decode_hparams import _REFUSED, decode_settings
from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.files.resumable import ResumableFiles
from tests.decoding.runs import SENTENCES, make_run

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "decoding.md").read_text(encoding="utf-8")


def test_every_setting_and_flag_is_described():
    written = re.sub("<!-- generated .*<!-- end of what is generated -->", "", PAGE, flags=re.DOTALL)
    for name in (*decode_settings(), *_REFUSED):
        assert f"`{name}" in written or f"{name}=" in written, name
    flags = _app.Flags()
    t2t_decoder.define_flags(flags)
    common = _app.Flags()
    _app.define_common_flags(common)
    for flag in flags.shown():
        described = f"--{flag.name}" in PAGE
        assert described or flag.name in common or flag.name in ("logical_cpus", "helpfull"), flag.name


@pytest.mark.slow
def test_the_recipe_of_back_translation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "made")
    (tmp_path / "made" / "data").rename("data")
    config = json.loads((run / "hparams.json").read_text())
    (run / "hparams.json").write_text(json.dumps(config | {"problem": "translate_own_rev"}))
    run.rename("back")
    for name in ("train.en", "train.de", "dev.en", "dev.de"):
        pathlib.Path(name).write_text("".join(f"{line}\n" for line in SENTENCES))
    pathlib.Path("mono.de").write_text("\n" + "".join(f"{line}\n" for line in SENTENCES[:5]))

    recipe = re.search(r"<!-- recipe: back-translation -->\n```bash\n(.*?)```", PAGE, re.DOTALL)[1]
    decode, generate = [shlex.split(line) for line in recipe.replace("\\\n", " ").splitlines()]
    monkeypatch.setattr(DecodingJob, "chunk", 4)
    with monkeypatch.context() as patch:  # stopped in the middle
        patch.setattr(ResumableFiles, "finish", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            t2t_decoder.main(decode[1:])
    assert not pathlib.Path("mono.en").exists()
    assert t2t_decoder.main(decode[1:]) == 0
    lines = pathlib.Path("mono.en").read_bytes().decode().split("\n")
    assert len(lines) == 7 and lines[0] == "" and all(lines[1:6])
    pathlib.Path("mono.en").write_text(
        "\n" + "".join(f"{line}\n" for line in SENTENCES[5:10])
    )  # a model would pass filters
    assert t2t_datagen.main(generate[1:]) == 0
    assert list(pathlib.Path("data_more").glob("translate_own-train-*"))
