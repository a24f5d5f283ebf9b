"""CITATION.cff: what version 1.2.0 of the Citation File Format requires, and what must agree with the package."""

import configparser
import pathlib

import yaml

import t2t_lite

ROOT = pathlib.Path(__file__).parents[1]
# Of the format's schema: what each object must have, and what else it may have here.
REQUIRED = {"cff-version", "message", "title", "authors"}
OPTIONAL = {"type", "abstract", "version", "license", "keywords", "references"}
REFERENCE_REQUIRED = {"type", "title", "authors"}
REFERENCE_OPTIONAL = {"collection-title", "year", "url"}
PERSON, ENTITY = {"family-names", "given-names"}, {"name"}

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_is_valid():
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"
    assert REQUIRED <= {*CITATION} <= REQUIRED | OPTIONAL
    assert all(isinstance(CITATION[name], str) for name in {*CITATION} - {"authors", "keywords", "references"})
    for reference in CITATION["references"]:
        assert REFERENCE_REQUIRED <= {*reference} <= REFERENCE_REQUIRED | REFERENCE_OPTIONAL
        assert isinstance(reference["year"], int) and reference["type"] == "conference-paper"
    for authors in (CITATION["authors"], *(reference["authors"] for reference in CITATION["references"])):
        assert authors and all({*author} in (PERSON, ENTITY) for author in authors)
        assert all(isinstance(name, str) for author in authors for name in author.values())


def test_agrees_with_the_package():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert CITATION["version"] == t2t_lite.__version__
    for name, other in {"name": "title", "license": "license", "description": "abstract"}.items():
        assert setup["metadata"][name].rstrip(".") == CITATION[other].rstrip(".")
    assert setup["metadata"]["keywords"].split(", ") == CITATION["keywords"]
    urls = [line.split(" = ")[1] for line in setup["metadata"]["project_urls"].split("\n") if line]
    assert urls == [reference["url"] for reference in CITATION["references"]]


def test_cites_the_papers_of_the_readme():
    for reference in CITATION["references"]:
        assert reference["title"] in (ROOT / "README.md").read_text(encoding="utf-8")
