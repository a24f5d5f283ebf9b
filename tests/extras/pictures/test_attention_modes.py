"""t2t-attention --roles and --patterns."""
# Nearest tests of: extras/pictures/in_t2t_attention.py

import pytest

COMMAND = "t2t-attention"


@pytest.mark.slow
def test_roles(attention_folder, call_command):
    result = call_command(COMMAND, "--output_dir=run", "--roles=text", "--output=roles.pdf")
    assert result.status == 0, result.stderr
    header, *rows, path = result.stdout.splitlines()
    assert header.split()[:3] == ["kind", "layer", "head"] and path == "roles.pdf"
    assert [row.split()[:3] for row in rows] == [
        [kind, layer, head] for kind in ("encoder", "decoder", "memory") for layer in "12" for head in "12"
    ]
    assert (attention_folder / "roles.pdf").read_bytes()[:5] == b"%PDF-"


@pytest.mark.long
def test_patterns(attention_folder, call_command):
    result = call_command(COMMAND, "--output_dir=run", "--patterns", "--length=9")
    assert (result.status, result.stdout) == (0, "patterns.svg\n"), result.stderr
    assert b"<svg" in (attention_folder / "patterns.svg").read_bytes()


@pytest.mark.slow
def test_a_text_that_is_not_utf_8(attention_folder, call_command, assert_user_error):
    assert_user_error(call_command(COMMAND, "--output_dir=run", "--roles=not_utf8"), "not_utf8, line 1", "UTF-8")
