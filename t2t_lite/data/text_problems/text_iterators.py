"""Samples of text files, line by line, for `generate_samples` (the iterators of tensor2tensor's text_problems.py).

Files may be compressed (`.gz`, `.bz2`, `.xz`). Lines lose control characters and surrounding spaces. All take
`on_bad_line`, a problem's `self.on_bad_line`, which makes t2t-datagen's `--skip_bad_lines` work. All raise `UserError`
if a file is missing or not UTF-8, two files differ in their numbers of lines, or a line is not of the form described.
"""

from t2t_lite.corpora import tables
from t2t_lite.corpora.plain_text import clean, read_lines, read_pairs
from t2t_lite.errors import UserError, shown


def txt_line_iterator(txt_path, on_bad_line=None):
    """Yields the lines of a file, str."""
    return (clean(line) for line in read_lines(txt_path, on_bad_line) if line is not None)


def text2text_txt_iterator(source_txt_path, target_txt_path, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} of two parallel files."""
    return read_pairs(source_txt_path, target_txt_path, on_bad_line)


def text2text_txt_tab_iterator(txt_path, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} of lines `inputs<TAB>targets`; blank ones are skipped."""
    return tables.read_pairs(txt_path, tables.Layout(("inputs", "targets"), header=False), on_bad_line)


def text2self_txt_iterator(txt_path, on_bad_line=None):
    """Yields {"targets": str} of the lines of a file."""
    return ({"targets": line} for line in txt_line_iterator(txt_path, on_bad_line))


def text2class_txt_iterator(source_txt_path, label_txt_path, class_strs=None, on_bad_line=None):
    """Yields {"inputs": str, "label": int} of two parallel files: texts, and the class of each.

    Args:
        source_txt_path, label_txt_path: paths.
        class_strs: list of str, the classes by label; None: the second file contains numbers.
        on_bad_line: see above.
    """
    labels = None if class_strs is None else {name: label for label, name in enumerate(class_strs)}
    for number, pair in enumerate(read_pairs(source_txt_path, label_txt_path, on_bad_line), 1):
        try:
            label = int(pair["targets"]) if labels is None else labels[pair["targets"]]
        except (ValueError, KeyError):
            expected = "a whole number" if labels is None else " or ".join(class_strs)
            raise UserError(
                f"{label_txt_path}, line {number}: {shown(pair['targets'])}. Expected {expected}."
            ) from None
        yield {"inputs": pair["inputs"], "label": label}


def text2real_txt_iterator(source_txt_path, target_txt_path, on_bad_line=None):
    """Yields {"inputs": str, "targets": list of float} of two parallel files: texts, and the number of each."""
    for number, pair in enumerate(read_pairs(source_txt_path, target_txt_path, on_bad_line), 1):
        try:
            yield {"inputs": pair["inputs"], "targets": [float(word) for word in pair["targets"].split()]}
        except ValueError:
            raise UserError(
                f"{target_txt_path}, line {number}: {shown(pair['targets'])}. Expected a number, such as 3.5."
            ) from None
