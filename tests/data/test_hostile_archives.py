"""Archives come from elsewhere: reading one ends in lines or in a one-line error, and writes nothing."""
# Nearest tests of: t2t_lite/corpora/archives.py

import gzip
import random
import resource
import sys
import tarfile
import time
import zipfile

import pytest

from t2t_lite.corpora.archives import Member, matching_members
from t2t_lite.corpora.plain_text import read_lines
from t2t_lite.errors import Failure, UserError
from tests.data.packing import lines, write_tar, write_zip

TRIES, SECONDS = 1500, 5
TEXT = lines(f"line {i} of a text that is not all the same {i * i}" for i in range(60))


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def changed(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        kind, at = rng.randrange(4), rng.randrange(len(content))
        if kind == 0:
            del content[at : at + rng.choice([1, 8, 512])]
        elif kind == 1:
            content[at:at] = rng.randbytes(rng.choice([1, 8, 512]))
        else:
            content[at] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        content = content or bytearray(b"x")
    return bytes(content)


@pytest.mark.slow
def test_changed_archives(tmp_path, capsys):
    rng, outcomes = random.Random(1), {"read": 0, "refused": 0}
    members = {"data/a.en": TEXT, "data/b.en.gz": gzip.compress(TEXT)}
    makers = {"x.tar": write_tar, "x.tgz": write_tar, "x.tar.bz2": write_tar, "x.tar.xz": write_tar, "x.zip": write_zip}
    folder = tmp_path / "in"
    folder.mkdir()
    archives = {name: make(folder / name, members) for name, make in makers.items()}
    good = {name: (folder / name).read_bytes() for name in archives}
    list(read_lines(Member(archives["x.tar"], "data/a.en")))  # imports TensorFlow
    before, began = peak_mib(), time.monotonic()
    for number in range(TRIES):
        if time.monotonic() - began > SECONDS:
            break
        name = rng.choice([*good])
        (folder / name).write_bytes(changed(rng, good[name]))
        try:
            if rng.random() < 0.5:
                list(read_lines(Member(archives[name], rng.choice([*members]))))
            else:
                for member in matching_members(archives[name], "data/*"):
                    list(read_lines(member))
            outcomes["read"] += 1
        except (UserError, Failure) as error:
            assert "\n" not in str(error) and len(str(error)) < 2000, (number, name)
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"try {number}, {name}") from error
    with capsys.disabled():
        print(f" [{sum(outcomes.values())} changed archives: {outcomes}]", end="", file=sys.stderr)
    assert sum(outcomes.values()) >= 200 and min(outcomes.values()) > 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["in", *good]), "nothing was unpacked"
    assert peak_mib() - before < 300


@pytest.mark.slow
@pytest.mark.few("x.zip", instead="test_changed_archives")
@pytest.mark.parametrize("name", ["x.tgz", "x.zip"])
def test_a_line_as_large_as_the_memory(tmp_path, name):
    """Gigabytes without an end of line could be in an archive of megabytes; here it is less, for time."""
    with open(tmp_path / "a.en", "wb") as file:
        file.write(b"ok\n")
        file.truncate(2**28)
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            packed.write(tmp_path / "a.en", "a.en")
    else:
        with tarfile.open(tmp_path / name, "w:gz", compresslevel=1) as tar:
            tar.add(tmp_path / "a.en", "a.en")
    before = peak_mib()
    found = read_lines(Member(str(tmp_path / name), "a.en"))
    assert next(found) == "ok"
    with pytest.raises(UserError, match=r"line 2: more than 16,777,216 bytes"):
        next(found)
    assert peak_mib() - before < 220


def test_sizes_that_a_header_only_claims(tmp_path):
    """A tar's header that says more bytes than there are is damage, not memory."""
    path = tmp_path / "x.tar"
    write_tar(path, {"a.en": TEXT})
    content = bytearray(path.read_bytes())
    content[124:136] = b"77777777777\0"  # 8 GiB
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged or truncated"):
        list(read_lines(Member(str(path), "a.en")))
