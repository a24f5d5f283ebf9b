"""A damaged file is refused in one line, which begins with its path."""

import re

import pytest

from t2t_lite.errors import UserError


def check_damage(read, folder, content, words, name="a"):
    """Writes `content`, str or bytes, and reads it; `words` are a regular expression of the message behind the path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        read(str(path))
    assert re.match(re.escape(str(path)) + words, str(caught.value)), caught.value
    assert str(caught.value).isprintable()
