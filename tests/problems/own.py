"""Small files for the problems on the user's own files, and the data that these write."""

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from tests.data.stored import read_examples

SINGLE = "".join(f"{'odd' if n % 2 else 'even'}\tthe number {n} is here\r\n\n" for n in range(60))
PAIRS = "".join(f"{'less' if n < 30 else 'more'}\tnumber {n}\tnumber 30 or 31\n" for n in range(60))
NUMBERS = "".join(f"{n / 4}\tthe number {n}\tor {n + 1}\n\n" for n in range(41))
CHARACTERS = "languagemodel_own_characters"


def files_of(folder, **contents):
    """Writes `<folder>/<name>.tsv` for each name and content; returns {"<name>_files": [path]}."""
    paths = {}
    for name, content in contents.items():
        path = folder / f"{name}.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[f"{name}_files"] = [str(path)]
    return paths


def configured(name, **arguments):
    """Returns a problem after `configure`."""
    problem = registry.problem(name)
    problem.configure(**arguments)
    return problem


def generated(name, folder, **arguments):
    """Returns a problem that has written its data into a folder."""
    problem = configured(name, **arguments)
    problem.generate_data(str(folder), str(folder))
    return problem


def rows_of(problem, folder, split=DatasetSplit.TRAIN):
    """Returns the records of a split, dicts of lists of ids."""
    return list(read_examples(Records(problem, str(folder), split).paths))


def parts_of(ids):
    """Returns the ids of each text of a row; each text ends in 1."""
    ends = [at for at, i in enumerate(ids) if i == 1]
    assert ends[-1] == len(ids) - 1
    return [ids[start:end] for start, end in zip([0, *(end + 1 for end in ends)], ends, strict=False)]


def removed_of(problem, folder, split="train"):
    """Returns {reason: samples left out of a split}."""
    return find_manifest(problem, str(folder))["splits"][split]["removed"]
