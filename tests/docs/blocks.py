"""The code blocks of the pages, and the list of what no test runs."""

import functools
import pathlib
import re
import textwrap
import tomllib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
NOT_RUN = "tests/docs/not_run.toml"
REASONS = {
    "network": "downloads something",
    "docker": "needs Docker",
    "gpu": "needs a GPU",
    "extra": "needs a package that is installed for its own tests alone",
    "cluster": "needs the machines of a cluster",
    "hours": "takes long, and nothing shorter says the same",
    "server": "runs until it is stopped",
    "served": "asks for a model that the pages' stand-in for a server does not have",
    "fragment": "goes into code that the page does not show",
}
RUN = ("bash", "python", "console")
SHOWN = ("text", "json", "yaml", "toml", "ini", "tsv", "dockerfile", "c", "xml", "mermaid")
_BLOCK = re.compile(
    r"(?:^[ ]*<!-- file: (?P<file>\S+) -->\n)?^(?P<margin>[ ]*)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=margin)```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block.

    Attributes:
        page: str, path from the project's folder.
        line: int, where its text begins, from 1.
        language: str, "" where the page names none.
        text: str, without the margin of a list.
        file: str, the file that the block is, from a comment above it: <!-- file: NAME -->; or None.
    """

    page: str
    line: int
    language: str
    text: str
    file: str | None

    @property
    def place(self):
        """Where the block is, for messages."""
        return f"{self.page}:{self.line}"


class NotRun(NamedTuple):
    """An entry of the list: the commands, or the block of Python, that begin so.

    Attributes:
        page, starts, reason: str.
        test: str, the test that runs it with a stand-in for what is missing; "": none.
    """

    page: str
    starts: str
    reason: str
    test: str = ""


def pages():
    """Returns the paths of all pages that have code, from the project's folder."""
    paths = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/extras").glob("*.md")]
    found = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in paths)]
    return [page for page in found if blocks(page)]


def blocks(page):
    """Returns the `Block`s of a page in their order; directives of the site, such as {toctree}, are none."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line, language = 1 + text.count("\n", 0, match.start("text")), match["language"].strip()
        found.append(Block(page, line, language, textwrap.dedent(match["text"]), match["file"]))
    return [block for block in found if not block.language.startswith("{")]


def inline_commands(page):
    """Returns the t2t commands in the text of a page, such as `t2t-trainer --registry_help`."""
    text = _BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return re.findall(r"`(t2t-[a-z-]+ [^`]+)`", text)


def commands(script):
    """Returns the commands of a script, continued lines together with the first."""
    return re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n?", script)


@functools.cache
def not_run():
    """Returns the list, [NotRun], without what is of extras that are not there."""
    with open(ROOT / NOT_RUN, "rb") as file:
        every = [NotRun(**entry) for entry in tomllib.load(file)["not_run"]]
    return [entry for entry in every if is_there(entry.page) and is_there(entry.test)]


def is_there(path):
    """Returns whether a page or test is there, unless it is of an extra that is not."""
    return not re.match(r"(docs|tests)/extras/", path) or (ROOT / path).exists()


def entries_of(block):
    """Returns the entries of the list that name the block, or one of its commands."""
    starts = [block.text, *(commands(block.text) if block.language == "bash" else [])]
    return [e for e in not_run() if e.page == block.page and any(s.strip().startswith(e.starts) for s in starts)]


def to_run(block):
    """Returns what of a block is to be run: its text without the commands that are on the list; "" for nothing."""
    starts = tuple(entry.starts for entry in entries_of(block))
    if not starts:
        return block.text
    if block.language != "bash" or block.text.startswith("#!"):  # a script is run as a whole or not at all
        return ""
    return "".join(command for command in commands(block.text) if not command.strip().startswith(starts))
