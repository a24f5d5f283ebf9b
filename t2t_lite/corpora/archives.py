"""Files inside `.tar`, `.tgz`, `.tar.gz`, `.tar.bz2`, `.tar.xz` and `.zip` archives, read in a stream.

Nothing is written to disk, and no archive is held in memory: a tar is read from its beginning to the member, so two
members that are wanted side by side are two streams of one archive.
"""

import bz2
import concurrent.futures
import contextlib
import errno
import fnmatch
import functools
import io
import lzma
import operator
import os
import posixpath
import stat
import tarfile
import zipfile
import zlib

from t2t_lite import files
from t2t_lite.errors import Failure, UserError, counted, nearest

_BLOCK = 1 << 20
_DECOMPRESSORS = {  # 31: zlib, largest window, with gzip's header and check sum
    ".gz": lambda: zlib.decompressobj(31),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
_TAR_ENDINGS = {".tar": None, ".tgz": ".gz", ".tar.gz": ".gz", ".tar.bz2": ".bz2", ".tbz2": ".bz2", ".tar.xz": ".xz"}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile)


def is_archive(path):
    """Returns whether a name has the ending of an archive."""
    return path.endswith((".zip", *_TAR_ENDINGS))


class Member:
    """A file inside an archive, for `corpora.read_lines` and its like; opened anew at each reading.

    Args:
        archive: path of the archive; any file system that `tf.io.gfile` knows.
        name: of the member. One that ends in `.gz`, `.bz2` or `.xz` is unpacked while reading.
        url: where the archive comes from; named in errors.
    """

    def __init__(self, archive, name, url=""):
        self.archive, self.name, self.url = archive, name, url

    def __str__(self):
        return f"{self.archive}, member {self.name}"

    @contextlib.contextmanager
    def open(self):
        """Gives a buffered binary file.

        Raises:
            UserError: no such member (the nearest are named), one that is no plain file, an unsafe name in the archive,
                or the archive is damaged or cut short; also while reading, inside the `with`.
        """
        with _naming_damage(self, self.url):
            walk = _walk(self.archive, posixpath.normpath(self.name), self.url)
            with contextlib.closing(walk), next(walk).open() as file:
                yield file


class OpenMember:
    """A member that the walk through an archive has come to; to be read before the next one is asked for."""

    def __init__(self, archive, name, url, file):
        self.archive, self.name, self.url, self._file = archive, name, url, file

    def __str__(self):
        return f"{self.archive}, member {self.name}"

    @contextlib.contextmanager
    def open(self):
        """Gives the file; once only."""
        ending = os.path.splitext(self.name)[1]
        with _naming_damage(self, self.url), self._file as file, _plain(file, ending) as plain:
            yield plain


def matching_members(archive, pattern, url=""):
    """Yields an `OpenMember` for every member whose name matches a pattern such as `data/*train.gz`, in their order.

    Raises:
        UserError: as `Member.open`; or no member matches.
    """
    with _naming_damage(archive, url):
        yield from _walk(archive, posixpath.normpath(pattern), url, fnmatch.fnmatchcase)


def _plain(file, ending):
    """`unpacked` where the ending is one of a packing, else the file itself; to be closed, or left, by `with`.

    See `_Reader` for why it is not left to the garbage collector.
    """
    return unpacked(file, ending) if ending in _DECOMPRESSORS else contextlib.nullcontext(file)


def unpacked(file, ending):
    """Returns a buffered file of what a binary file holds, packed as `ending` says: ".gz", ".bz2" or ".xz".

    Reading raises `EOFError` where the packed data end too early; `zlib.error`, `lzma.LZMAError` or `OSError` where
    they are damaged.
    """
    return _Reader(_Unpacker(file, _DECOMPRESSORS[ending]), buffer_size=_BLOCK)


class _Reader(io.BufferedReader):
    """Is closed by those who use it, never by the garbage collector."""

    def __del__(self):
        # It would close the unpacker, which waits for a thread, in whatever thread and under whatever lock it runs.
        pass


class _Unpacker(io.RawIOBase):
    """Unpacks forward in large blocks, one block ahead in a thread: the two sides of a corpus use two cores."""

    def __init__(self, file, make_decompressor):
        self._file, self._make_decompressor = file, make_decompressor
        self._decompressor, self._packed, self._plain = make_decompressor(), b"", memoryview(b"")
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._next = self._thread.submit(self._unpack)

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._plain and self._next:
            block = self._next.result()
            self._plain = memoryview(block or b"")
            self._next = None if block is None else self._thread.submit(self._unpack)
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def _unpack(self):
        """Returns one more block, None at the end. Packed files may be several, one behind the other."""
        packed = self._packed or self._file.read(_BLOCK // 4)
        self._packed = b""
        if self._decompressor.eof:
            packed = packed.lstrip(b"\0")  # padding, as tapes have it
            if packed:
                self._decompressor = self._make_decompressor()
        if not packed:
            if not self._decompressor.eof:
                raise EOFError("it ends too early")
            return None
        plain = self._decompressor.decompress(packed)
        if self._decompressor.eof:
            self._packed = self._decompressor.unused_data
        return plain

    def close(self):
        if not self.closed:
            self._thread.shutdown(cancel_futures=True)
            self._file.close()
        super().close()

    def __del__(self):
        pass  # as `_Reader`; a pool that is collected ends its thread


def _walk(archive, wanted, url, matches=operator.eq):
    """Yields the wanted members, opened. Raises `UserError` where there is none."""
    seen, found = [], False
    for name, is_file, open_file in (_walk_zip if archive.endswith(".zip") else _walk_tar)(archive):
        clean = posixpath.normpath(name)
        if clean.startswith(("/", "../")) or clean == "..":
            raise UserError(
                f"{archive}: its member {name} points out of the archive. Expected names inside it; nothing was "
                f"written. {_again(url)}"
            )
        if matches(clean, wanted):
            if not is_file:
                raise UserError(f"{archive}, member {name}: is a folder or a link. Expected a file. {_again(url)}")
            found = True
            yield OpenMember(archive, name, url, open_file())
        elif is_file:
            seen.append(clean)
    if not found:
        close = (
            nearest(wanted, seen) or f"It holds {counted(len(seen), 'file')}{'' if not seen else f', first {seen[0]}'}."
        )
        raise UserError(f"{archive}: no member {wanted}. {close} {_again(url)}")


def _walk_tar(archive):
    """Yields (name, is a file, function that opens it) in the order of the tar."""
    packing = next(_TAR_ENDINGS[ending] for ending in _TAR_ENDINGS if archive.endswith(ending))
    with files.open_stream(archive) as raw, _plain(raw, packing) as file:
        plain = _Tail(file)
        with tarfile.open(fileobj=plain, mode="r|", bufsize=_BLOCK) as tar:
            for member in tar:
                # A buffer of our own: the one that tarfile gives asks it for 8 KiB at a time.
                yield (
                    member.name,
                    member.isfile(),
                    lambda m=member: io.BufferedReader(tar.extractfile(m).detach(), _BLOCK),
                )
            while plain.read(_BLOCK):
                pass
        if plain.tail.strip(b"\0"):  # tarfile takes an end between two members for the end of the archive
            raise EOFError("it ends too early")


class _Tail:
    """Passes reads on and keeps the last bytes of them."""

    def __init__(self, file):
        self._file, self.tail = file, b""

    def read(self, size):
        data = self._file.read(size)
        self.tail = data[-tarfile.BLOCKSIZE :] or self.tail
        return data


def _walk_zip(archive):
    """Yields (name, is a file, function that opens it) in the order of the zip's index."""
    with files.open_stream(archive) as raw, zipfile.ZipFile(raw) as packed:
        for entry in packed.infolist():
            is_link = stat.S_ISLNK(entry.external_attr >> 16)
            open_file = functools.partial(packed.open, entry)
            yield entry.filename, not (entry.is_dir() or is_link), lambda f=open_file: io.BufferedReader(f(), _BLOCK)


def _again(url):
    return f"Delete the archive and get it again{f' from {url}' if url else ''}."


@contextlib.contextmanager
def _naming_damage(source, url):
    """Turns what the readers raise about damaged archives into `UserError`s."""
    try:
        yield
    except (*_DAMAGE, OSError, RuntimeError) as error:
        # zipfile raises RuntimeError for a password, NotImplementedError for a packing it lacks; bz2 a bare OSError.
        # EINVAL: an index that points before the beginning of its file.
        if isinstance(error, Failure) or (isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)):
            raise
        cause = str(error) or type(error).__name__
        raise UserError(f"{source}: damaged or cut short ({cause}). {_again(url)}") from None
