"""The texts of a split's records, as files for t2t-decoder and t2t-bleu."""

from t2t_lite import files
from t2t_lite.process.quiet_import import import_tensorflow


def write_texts(problem, data_dir, split, paths):
    """Writes the inputs and the targets of a split, one text per line, and says so.

    Args:
        problem: Problem of texts.
        data_dir: str, its data folder.
        split: "dev" or "test".
        paths: (path of the inputs, path of the targets).
    """
    import_tensorflow()
    from t2t_lite.data.records import Records
    from t2t_lite.data.splits import named_split
    from t2t_lite.settings.config import HParams

    print(f"(the {split} records of {data_dir} as text: {paths[0]} and {paths[1]})", flush=True)
    encoders = problem.feature_encoders(data_dir)
    examples = list(Records(problem, data_dir, named_split(split)).examples(HParams()))
    for side, path in zip(("inputs", "targets"), paths, strict=True):
        files.write_bytes(path, "".join(encoders[side].decode(example[side]) + "\n" for example in examples).encode())
