"""CITATION.cff: what version 1.2.0 of the Citation File Format requires, and what must agree with the package."""

import configparser
import pathlib

import pytest
import yaml

import t2t_lite
from tests.release import faults

ROOT = pathlib.Path(__file__).parents[1]
# Of the format's schema: what each object must have, and what else it may have here.
REQUIRED = {"cff-version", "message", "title", "authors"}
OPTIONAL = {"type", "abstract", "version", "date-released", "license", "keywords", "references"}
REFERENCE_REQUIRED = {"type", "title", "authors"}
REFERENCE_OPTIONAL = {"collection-title", "year", "url"}
PERSON, ENTITY = {"family-names", "given-names"}, {"name"}

TEXT, CHANGELOG = ((ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md"))
CITATION = yaml.safe_load(TEXT)


def test_is_valid():
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"
    assert REQUIRED <= {*CITATION} <= REQUIRED | OPTIONAL
    assert all(
        isinstance(CITATION[name], str) for name in {*CITATION} - {"authors", "date-released", "keywords", "references"}
    )
    for reference in CITATION["references"]:
        assert REFERENCE_REQUIRED <= {*reference} <= REFERENCE_REQUIRED | REFERENCE_OPTIONAL
        assert isinstance(reference["year"], int) and reference["type"] == "conference-paper"
    for authors in (CITATION["authors"], *(reference["authors"] for reference in CITATION["references"])):
        assert authors and all({*author} in (PERSON, ENTITY) for author in authors)
        assert all(isinstance(name, str) for author in authors for name in author.values())


def test_agrees_with_the_package():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert faults(t2t_lite.__version__, CHANGELOG, TEXT) == []
    for name, other in {"name": "title", "license": "license", "description": "abstract"}.items():
        assert setup["metadata"][name].rstrip(".") == CITATION[other].rstrip(".")
    assert setup["metadata"]["keywords"].split(", ") == CITATION["keywords"]
    urls = [line.split(" = ")[1] for line in setup["metadata"]["project_urls"].split("\n") if line]
    assert urls == [reference["url"] for reference in CITATION["references"]]


@pytest.mark.parametrize(
    ("changelog", "citation", "found"),
    [
        ("## 1.2.0 (2027-01-02)\n", "version: 1.2.0\ndate-released: 2027-01-02\n", []),
        ("## 1.2.0 (unreleased)\n", "version: 1.2.0\n", ["has no line '## 1.2.0 "]),
        ("## 1.2.0 (2027-01-02)\n", "version: 1.1.0\ndate-released: 2027-01-02\n", ["is of version 1.1.0"]),
        ("## 1.2.0 (2027-01-02)\n", "version: 1.2.0\ndate-released: 2026-01-02\n", ["date-released is 2026-01-02"]),
    ],
)
def test_a_release_is_refused_whose_files_disagree(changelog, citation, found):
    wrong = faults("1.2.0", f"# Changelog\n\n{changelog}", citation)
    assert len(wrong) == len(found) and all(part in text for part, text in zip(found, wrong, strict=True))


def test_cites_the_papers_of_the_readme():
    for reference in CITATION["references"]:
        assert reference["title"] in (ROOT / "README.md").read_text(encoding="utf-8")
