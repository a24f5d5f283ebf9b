"""Labelled texts under tensor2tensor's names, on small archives with the published names."""

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data.packing import write_archive
from tests.data.stored import read_examples
from tests.problems.own import parts_of
from tests.problems.published import generated

FILES = {
    "aclImdb_v1.tar.gz": {
        f"aclImdb/{split}/{folder}/{n}_7.txt": f"A {word} film, {split}.<br />See it\n"
        for split in ("train", "test")
        for folder, word in (("pos", "fine"), ("neg", "dull"), ("unsup", "long"))
        for n in range(3)
    },
    "SST-2.zip": {f"SST-2/{split}.tsv": f'x\tlabel\nfine " {split} \t1\ndull\t0\n' for split in ("train", "dev")},
    "CoLA.zip": {f"CoLA/{split}.tsv": f"gj04\t1\t\tHe sings.\ngj04\t0\t*\tHe {split}.\n" for split in ("train", "dev")},
    "MNLI.zip": {
        f"MNLI/{split}.tsv": "index\t…\n"
        + "".join(
            "\t".join([*"01234567", text, f"{text} so", "first annotator", label]) + "\n"
            for text, label in ((f"{split} a", "neutral"), ("b", "entailment"), ("c", "contradiction"))
        )
        for split in ("train", "dev_matched", "dev_mismatched")
    },
    "snli_1.0.zip": {
        f"snli_1.0/snli_1.0_{split}.txt": "gold_label\tx\n"
        + "".join(f"{label}\tb\tb\tp\tp\tone {label}\t{split}\tid\n" for label in ("neutral", "-", "entailment"))
        for split in ("train", "dev", "test")
    },
    "RTE.zip": {
        f"RTE/{split}.tsv": f"index\tx\ty\tlabel\n0\ta b\tc\tnot_entailment\n1\td\t{split}\tentailment\n"
        for split in ("train", "dev")
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("downloads")
    for name, members in FILES.items():
        write_archive(folder / name, members)
    return folder


@pytest.mark.parametrize(
    "name, splits, expected",
    [
        ("sentiment_imdb", 2, {("A fine film, test.<br />See it", "pos"), ("A dull film, test.<br />See it", "neg")}),
        ("sentiment_sst_binary", 2, {('fine " dev', "pos"), ("dull", "neg")}),
        ("cola", 2, {("He sings.", "acceptable"), ("He dev.", "unacceptable")}),
        ("multi_nli", 3, {("dev_matched a", "dev_matched a so", "neutral"), ("b", "b so", "entailment"),
                          ("c", "c so", "contradiction")}),
        ("stanford_nli", 3, {("one neutral", "dev", "neutral"), ("one entailment", "dev", "entailment")}),
        ("rte", 2, {("a b", "c", "not_entailment"), ("d", "dev", "entailment")}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_texts_and_their_classes(name, splits, expected, tmp_path, downloads):
    problem = generated(f"{name}_characters", tmp_path, downloads)
    assert registry.problem(name).class_labels(None) == problem.class_labels(None)
    assert len(find_manifest(problem, str(tmp_path))["splits"]) == splits
    encoders = problem.get_feature_encoders(str(tmp_path))
    found = set()
    for row in read_examples(Records(problem, str(tmp_path), DatasetSplit.EVAL).paths):
        texts = [encoders["inputs"].decode(part) for part in parts_of(row["inputs"])]
        found.add((*texts, encoders["targets"].decode(row["targets"])))
    assert found == expected


# tensor2tensor's data_generators: pieces of the vocabulary and shards of training. Addresses of the archives: theirs
# of IMDb and SNLI, and those of GLUE's own site (gluebenchmark.com) for the others.
GLUE = "https://dl.fbaipublicfiles.com/glue/data/{}.zip"
PUBLISHED = {
    "sentiment_imdb": (8192, 10, "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"),
    "sentiment_sst_binary": (16384, 10, GLUE.format("SST-2")), "cola": (8192, 10, GLUE.format("CoLA")),
    "multi_nli": (32768, 100, GLUE.format("MNLI")), "rte": (8192, 1, GLUE.format("RTE")),
    "stanford_nli": (32768, 100, "https://nlp.stanford.edu/projects/snli/snli_1.0.zip"),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_and_addresses_are_as_published(name):
    problem = registry.problem(name)
    shards = {split["split"]: split["shards"] for split in problem.dataset_splits}["train"]
    assert (problem.approx_vocab_size, shards, problem.url) == PUBLISHED[name]
    assert registry.problem(f"{name}_characters").url == problem.url


def test_the_test_set_of_snli_and_pairs_on_which_annotators_do_not_agree(tmp_path, downloads):
    problem = generated("stanford_nli_characters", tmp_path, downloads)
    encoder = problem.get_feature_encoders(str(tmp_path))["inputs"]
    rows = read_examples(Records(problem, str(tmp_path), DatasetSplit.TEST).paths)
    assert {encoder.decode(parts_of(row["inputs"])[1]) for row in rows} == {"test"}
    assert find_manifest(problem, str(tmp_path))["splits"]["train"]["removed"] == {"no label": 1}


@pytest.mark.parametrize(
    "line, message",
    [
        ("a b\tc\tentailment\n", r"RTE\.zip, member RTE/train\.tsv, line 2: found 3 columns.* 4\b"),
        ("0\ta\tb\tperhaps\n", "line 2: .*'perhaps'.* not_entailment, entailment"),
    ],
    ids=["columns", "label"],
)
def test_other_files_are_refused(line, message, tmp_path):
    name = "RTE/{}.tsv"
    write_archive(
        tmp_path / "RTE.zip", {name.format(s): f"index\t\n{line}1\ta\tb\tentailment\n" for s in ("train", "dev")}
    )
    with pytest.raises(UserError, match=message):
        generated("rte_characters", tmp_path / "data", tmp_path)
    problem = registry.problem("rte_characters")
    problem.skip_bad_lines = True
    problem.generate_data(str(tmp_path / "data"), str(tmp_path))
    assert find_manifest(problem, str(tmp_path / "data"))["splits"]["train"]["removed"] == {"bad lines": 1}
