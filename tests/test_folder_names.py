"""No folder's name is read as a pattern: TensorFlow's globs have no way to quote."""

import pathlib
import re

import pytest

REPOSITORY = pathlib.Path(__file__).parents[1]
FOLDERS = ("t2t_lite", "extras", "bin", "problems", "hparams")
SOURCES = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py")]
# What takes a path for a pattern, and where it is called with `plain_path` or `plain_folder`.
GLOBS = {
    r"gfile\.glob|matching_files|Dataset\.list_files|\bi?glob\.i?glob|\.r?glob\(": "",
    r"tf\.train\.(load_checkpoint|list_variables|load_variable|NewCheckpointReader)\(": "plain_path(",
    r"tf\.train\.(latest_checkpoint|CheckpointManager|get_checkpoint_state|checkpoint_exists)\(": "plain_folder(",
    r"Checkpoint\(.*\)\.(read|restore)\(": "plain_path(",
    r"tf\.(compat\.v1\.)?saved_model\.load\((?!\")": "plain_folder(",
}


@pytest.mark.parametrize("pattern", GLOBS)
def test_no_path_of_the_user_s_is_a_pattern(pattern):
    assert len(SOURCES) > 100
    for path in SOURCES:
        text = re.sub(r"\(\s+", "(", path.read_text())  # a call's first argument may stand on the next line
        for call in re.finditer(pattern, text):
            rest = text[call.end() : call.end() + 120]
            allowed = GLOBS[pattern] and GLOBS[pattern] in rest
            assert allowed, f"{path}: {call[0]}: use files.list_files, or {GLOBS[pattern] or 'no glob'}"
