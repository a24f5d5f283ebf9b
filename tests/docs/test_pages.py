"""Each page's code is run as it stands, in its order, in a folder of its own; pages.toml says what a page needs.

bash calls the commands in this process, and Python has one namespace per page. Of a console block, the output must be
what the page shows; … stands for anything.
"""

import contextlib
import gzip
import pathlib
import re
import shutil
import sys
import tempfile
import tomllib

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.cli import commands as all_commands
from tests.docs.blocks import (
    NOT_RUN,
    REASONS,
    ROOT,
    RUN,
    SHOWN,
    blocks,
    commands,
    entries_of,
    inline_commands,
    is_there,
    not_run,
    pages,
    to_run,
)
from tests.docs.files import TEXTS, Files
from tests.docs.shell import COMMANDS, Shell

SMALL = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,max_length=64,eval_decode_examples=0"
)
_EVERY = tomllib.loads((ROOT / "tests/docs/pages.toml").read_text(encoding="utf-8"))
NEEDS = {page: needs for page, needs in _EVERY.items() if is_there(page)}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def folder(tmp_path, files, request):
    """A folder with what the page takes as given."""
    for name, text in TEXTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        data = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for name, run in NEEDS.get(request.node.callspec.params["page"], {}).get("folders", {}).items():
        shutil.copytree(files.path(run), tmp_path / name)
    return tmp_path


@pytest.fixture
def shell(folder):
    with tempfile.TemporaryDirectory() as own, contextlib.closing(Shell(folder, pathlib.Path(own))) as shell:
        yield shell


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("t2t_lite.extras.serving")
    from tests.extras.serving.serving_double import ServingDouble

    with ServingDouble({"translate": {1: shout}}, {"translate": {"stable": 1, "canary": 1}}) as double:
        yield double


def shout(signature, inputs):
    """The model of the server: upper case."""
    texts = [text if isinstance(text, str) else text.decode() for text in np.array(inputs["inputs"], object).tolist()]
    answers = np.array([text.upper().encode() for text in texts], object)
    count = len(texts)
    return {"outputs": answers, "scores": np.full(count, -0.5, np.float32), "truncated": np.zeros(count, bool)}


@pytest.fixture
def registrations(folder):
    """Takes what a page registers, and the modules it imports from its folder, out again."""
    kinds = registry.Registries
    registers = [kinds.problems, kinds.models, kinds.hparams, kinds.ranged_hparams]
    before = [set(register.names()) for register in registers]
    yield
    for register, names in zip(registers, before, strict=True):
        for name in set(register.names()) - names:
            register.remove(name)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{folder}/"):
            del sys.modules[name]


def marked(page):
    return pytest.param(page, marks=pytest.mark.long if NEEDS.get(page, {}).get("long") else pytest.mark.slow)


@pytest.mark.whole
@pytest.mark.parametrize("page", [marked(page) for page in pages()])
def test_the_page_runs(page, folder, shell, registrations, capsys, request):
    needs, namespace, printed = NEEDS.get(page, {}), {"__name__": "__main__"}, []
    pairs = [[written, fill(instead, request)] for written, instead in needs.get("instead", [])]
    used = set()
    for block in blocks(page):
        code = to_run(block)
        for written, instead in pairs:
            used |= {written} if written in code else set()
            code = code.replace(written, instead)
        if block.language in RUN and code.strip():
            printed.append(run(block, code, shell, namespace, folder, capsys))
    assert used == {written for written, _ in pairs}, "each is on the page"
    for pattern in needs.get("makes", []):
        found = list(folder.glob(pattern))
        assert found and all(path.is_dir() or path.stat().st_size for path in found), pattern
    for text in needs.get("prints", []):
        assert text in "".join(printed)


def fill(text, request):
    """Returns what is run instead, with the addresses of the server."""
    for name in ("grpc", "rest"):
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", getattr(request.getfixturevalue("server"), name))
    return text.replace("{small}", SMALL)


def run(block, code, shell, namespace, folder, capsys):
    """Runs the code of a block; returns what it printed."""
    if block.file:
        path = folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
        return ""
    try:
        if block.language == "bash":
            return shell.run(code)
        if block.language == "console":
            return "".join(compare(*step, shell) for step in steps_of(code))
        with contextlib.chdir(shell.variables["PWD"]):
            exec(compile("\n" * (block.line - 1) + code, ROOT / block.page, "exec"), namespace)
        return capsys.readouterr().out
    except Exception as error:
        error.add_note(f"in the block at {block.place}")
        raise


def steps_of(code):
    """Returns [(command, the output that the page shows)] of a console block."""
    return re.findall(r"^\$ (.*(?:(?<=\\)\n.*)*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE)


def compare(command, shown, shell):
    """Runs a command; asserts that it prints what the page shows. Returns what it printed."""
    printed = shell.run(command)
    pattern = r"\A" + re.escape(shown).replace("…", ".*") + r"\Z"
    assert re.search(pattern, printed, re.DOTALL), f"{command} printed\n{printed}\nbut the page shows\n{shown}"
    return printed


def test_every_block_says_what_it_is():
    for page in pages():
        for block in blocks(page):
            assert block.language in RUN + SHOWN, f"{block.place}: a block of {block.language or 'no language'}"
            assert block.language != "console" or block.text.startswith("$ "), block.place


def test_the_list_is_short_and_true():
    found = [entry for page in pages() for block in blocks(page) for entry in entries_of(block)]
    for entry in not_run():
        assert entry.starts, "pages as a whole are not excepted"
        assert found.count(entry) > 0, f"{NOT_RUN}: {entry.page} has no code that starts with {entry.starts!r}"
        assert entry.reason in REASONS
        assert not entry.test or (ROOT / entry.test).is_file(), entry
    assert set(NEEDS) <= set(pages())


@pytest.mark.whole
@pytest.mark.parametrize("page", pages())
def test_every_command_has_flags_that_there_are(page):
    """Also the commands in the text, and those that are not run."""
    scripts = [block.text for block in blocks(page) if block.language == "bash"]
    for text in [*inline_commands(page), *(command for script in scripts for command in commands(script))]:
        if found := re.search(r"\b(t2t-[a-z-]+) (.*)", re.sub(r"(?:^|\s)#.*", "", text), re.DOTALL):
            name, words = found.groups()
            assert name in COMMANDS, f"{page}: {text}"
            flags = all_commands.flags_of(all_commands.module(name))
            for flag in re.findall(r"(?<!\S)--([\w-]+)", words):
                known = flag in flags or flag.removeprefix("no") in flags or flag == "help"
                assert known, f"{page}: --{flag} of {text}"
