"""The documentation site: `make docs` builds it without a warning, its links lead somewhere, and nothing is loaded."""

import importlib
import inspect
import pathlib
import re
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.bin import t2t_trainer
from t2t_lite.cli import commands

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),  # Sphinx's own
]
pytest.importorskip("sphinx", reason="Sphinx is not installed (pip install 't2t_lite[docs]')")


class Page(HTMLParser):
    """The links and names of a page, and what a browser loads for it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.loaded = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        self.loaded += [attrs[name] for name in ("src", "srcset", "data") if attrs.get(name)]
        if tag == "link" and attrs.get("rel") not in ("canonical", "author"):
            self.loaded.append(attrs["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site: (folder, status, warnings), by a process of its own: Sphinx changes the functions' defaults."""
    folder = tmp_path_factory.mktemp("site")
    warnings = folder / "warnings.txt"
    options = ["-q", "-W", "--keep-going", "-w", str(warnings), "-c", str(DOCS)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(ROOT), str(folder)], stdout=subprocess.DEVNULL, timeout=1800
    )
    return folder, done.returncode, warnings.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(site):
    """{path: Page} of the site."""
    return {path: Page(path) for path in site[0].rglob("*.html")}


def test_the_site_is_built_without_a_warning(site):
    _, status, warnings = site
    assert (status, warnings) == (0, "")


def test_every_page_is_reached_from_the_index(site, pages):
    """By the links of the navigation alone, which the index's toctree makes."""
    folder = site[0]
    menu = (folder / "docs" / "index.html").read_text(encoding="utf-8").split("sidebar-tree")[1].split("</div>")[0]
    reached = {urllib.parse.unquote(link) for link in re.findall(r'href="([^"#]+)"', menu)}
    written = {f"{page.stem}.html" for page in DOCS.glob("*.md")} - {"index.html"}
    assert written <= reached
    assert "../README.html" in reached


def test_every_link_leads_to_a_page_and_a_place_in_it(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            place = urllib.parse.unquote(parts.fragment)
            if not target.is_file() or (place and target.suffix == ".html" and place not in pages[target].ids):
                broken.append(f"{path.relative_to(site[0])}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_another_place(site, pages):
    remote = re.compile(r"^(https?:)?//")
    assert [link for page in pages.values() for link in page.loaded if remote.match(link)] == []
    for style in site[0].rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.parametrize("module", ["layers", "models", "training", "export", "data.problem"])
def test_the_reference_has_all_public_names(site, module):
    objects = importlib.import_module("sphinx.util.inventory").InventoryFile.loads
    documented = objects((site[0] / "objects.inv").read_bytes(), uri="").data
    names = {name for kind, items in documented.items() if kind.startswith("py:") for name in items}
    of = importlib.import_module(f"t2t_lite.{module}")
    assert {f"t2t_lite.{module}.{name}" for name in of.__all__} <= names
    own = [name for name in t2t_lite.__all__ if not inspect.ismodule(getattr(t2t_lite, name))]
    assert {f"t2t_lite.{name}" for name in own} <= names
    assert {f"t2t_lite.registry.{name}" for name in dir(registry) if name.startswith(("register_", "list_"))} <= names
    assert {"t2t_lite.Translator.load", "t2t_lite.Predictor.fill_mask", "t2t_lite.HParams.parse"} <= names


def test_a_commands_page_has_its_flags(pages, site):
    flags = commands.flags_of(t2t_trainer)
    shown = {f"cmdoption-t2t-trainer-{flag.name}" for flag in flags.shown()}
    assert len(shown) > 40
    assert shown <= pages[site[0] / "docs/commands/t2t-trainer.html"].ids


def test_every_command_has_a_page(site):
    assert {path.stem for path in (site[0] / "docs/commands").glob("t2t-*.html")} == {*commands.paths()}
