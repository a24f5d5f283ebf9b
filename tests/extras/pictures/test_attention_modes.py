"""t2t-attention --roles and --patterns."""
# ruff: noqa: F811

import pytest

from tests.integration.test_attention import COMMAND, TEXT, folder, run  # noqa: F401


@pytest.mark.slow
def test_roles(folder, call_command):
    result = call_command(COMMAND, "--output_dir=run", "--roles=text", "--output=roles.pdf")
    assert result.status == 0, result.stderr
    header, *rows, path = result.stdout.splitlines()
    assert header.split()[:3] == ["kind", "layer", "head"] and path == "roles.pdf"
    assert [row.split()[:3] for row in rows] == [
        [kind, layer, head] for kind in ("encoder", "decoder", "memory") for layer in "12" for head in "12"
    ]
    assert (folder / "roles.pdf").read_bytes()[:5] == b"%PDF-"


@pytest.mark.long
def test_patterns(folder, call_command):
    result = call_command(COMMAND, "--output_dir=run", "--patterns", "--length=9")
    assert (result.status, result.stdout) == (0, "patterns.svg\n"), result.stderr
    assert b"<svg" in (folder / "patterns.svg").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "words"),
    {
        "both": (["--output_dir=run", TEXT, "--roles=text"], ["--text: not with --roles"]),
        "a flag of the other": (
            ["--output_dir=run", "--roles=text", "--layer=1"],
            ["not with --roles, only with --text"],
        ),
        "a length of a text": (["--output_dir=run", TEXT, "--length=9"], ["not with --text, only with --patterns"]),
        "both of patterns": (["--output_dir=run", TEXT, "--patterns"], ["--text: not with --patterns"]),
        "roles not UTF-8": (["--output_dir=run", "--roles=not_utf8"], ["not_utf8, line 1", "not UTF-8"]),
        "roles missing": (["--output_dir=run", "--roles=missing"], ["--roles=missing: no such file"]),
    }.values(),
)
def test_mistakes(folder, call_command, assert_user_error, flags, words):
    assert_user_error(call_command(COMMAND, *flags), *words)
