"""Streams files from `.tar`, `.tgz`, `.tar.gz`, `.tar.bz2`, `.tar.xz`, `.tar.zst` and `.zip` archives.

Nothing is written to disk, and no archive is held in memory. A tar must be read from its beginning up to the wanted
member, so each of two members that are read in parallel needs its own stream.
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
from t2t_lite.corpora import encodings
from t2t_lite.errors import Failure, UserError, counted, nearest

_BLOCK = 1 << 20
_DECOMPRESSORS = {  # 31 tells zlib to use its largest window and to expect gzip's header and checksum
    ".gz": lambda: zlib.decompressobj(31),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
_TAR_ENDINGS = {
    ".tar": None, ".tgz": ".gz", ".tar.gz": ".gz", ".tar.bz2": ".bz2", ".tbz2": ".bz2", ".tar.xz": ".xz",
    ".tar.zst": ".zst",
}  # fmt: skip
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile)


def is_archive(path):
    """Returns whether a path has the extension of an archive."""
    return path.lower().endswith((".zip", *_TAR_ENDINGS))


class Member:
    """A file inside an archive. It can be opened several times and is read by functions like `plain_text.read_lines`.

    Args:
        archive: path of the archive, on any file system that `tf.io.gfile` supports.
        name: name of the member. The member is decompressed while reading if its name ends in `.gz`, `.bz2`, `.xz` or
            `.zst`.
        url: URL from which the archive comes, for error messages.
    """

    def __init__(self, archive, name, url=""):
        self.archive, self.name, self.url = archive, name, url

    def __str__(self):
        return f"{self.archive}, member {self.name}"

    @contextlib.contextmanager
    def open(self):
        """Opens the member as a buffered binary file (context manager).

        Raises:
            UserError: the member does not exist (similar names are suggested) or is not a regular file, or the archive
                is damaged, truncated or contains an unsafe name. Reading inside the `with` can also raise this error.
        """
        with _naming_damage(self, self.url):
            walk = _walk(self.archive, posixpath.normpath(self.name), self.url)
            with contextlib.closing(walk), next(walk).open() as file:
                yield file


class OpenMember(Member):
    """The current member in a pass through an archive; it must be read before the next member is requested."""

    def __init__(self, archive, name, url, file):
        super().__init__(archive, name, url)
        self._file = file

    @contextlib.contextmanager
    def open(self):
        """Opens the file (context manager). It can be called only once."""
        with _naming_damage(self, self.url), self._file as file, unpacked_if_packed(file, self.name) as plain:
            yield plain


def matching_members(archive, pattern, url=""):
    """Yields an `OpenMember` for every member whose name matches a pattern such as `data/*train.gz`, in archive order.

    Raises:
        UserError: see `Member.open`; also if no member matches.
    """
    with _naming_damage(archive, url):
        yield from _walk(archive, posixpath.normpath(pattern), url, fnmatch.fnmatchcase)


def member_names(archive):
    """Returns the names of the files in an archive, in archive order. Raises `UserError` if the archive is damaged."""
    with _naming_damage(archive, ""):
        return [name for name, is_file, _ in _entries(archive) if is_file]


def unpacked_if_packed(file, name):
    """Returns a buffered file, which is decompressed if its first bytes or its extension show that this is needed."""
    ending = encodings.packing(file.peek(16)) or os.path.splitext(name)[1].lower()
    return unpacked(file, ending) if ending in files.PACKERS else file


def unpacked(file, ending):
    """Returns a buffered file that decompresses the given file; `ending`, a key of `files.PACKERS`, says how.

    Reading raises `EOFError` if the compressed data are truncated, and `zlib.error`, `lzma.LZMAError` or `OSError` if
    they are damaged.
    """
    if ending == ".zst":
        import pyarrow  # slow, and seldom needed

        return _Reader(pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd"), buffer_size=_BLOCK)
    return _Reader(_Unpacker(file, _DECOMPRESSORS[ending]), buffer_size=_BLOCK)


class _Reader(io.BufferedReader):
    """A buffered reader that must be closed by its user, because the garbage collector does not close it."""

    def __del__(self):
        # Closing waits for a thread, but the garbage collector can run in any thread and while any lock is held.
        pass


class _Unpacker(io.RawIOBase):
    """Decompresses one large block ahead in its own thread, so that the two sides of a corpus use two cores."""

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
        """Returns the next block, or None at the end. The file may consist of several concatenated compressed files."""
        packed = self._packed
        while self._decompressor.eof:
            packed = packed.lstrip(b"\0")  # skips the zeros that pad files on tapes
            if packed:
                self._decompressor = self._make_decompressor()
            elif not (packed := self._file.read(_BLOCK // 4)):
                return None
        # only zlib's decompressor returns unread input
        holds_some = not getattr(self._decompressor, "needs_input", True)
        if not (packed or holds_some):
            packed = self._file.read(_BLOCK // 4)
        # the block size is limited, because a small file may decompress to more data than fit into memory
        plain = self._decompressor.decompress(packed, _BLOCK)
        if not (packed or holds_some or plain or self._decompressor.eof):
            raise EOFError("it ends too early")
        self._packed = self._decompressor.unused_data or getattr(self._decompressor, "unconsumed_tail", b"")
        return plain

    def close(self):
        if not self.closed:
            self._thread.shutdown(cancel_futures=True)
            self._file.close()
        super().close()

    def __del__(self):
        pass  # the file stays open, see `_Reader`; the pool's thread ends when the pool is garbage-collected


def _walk(archive, pattern, url, matches=operator.eq):
    """Yields the matching members as `OpenMember`. Raises `UserError` if no member matches."""
    names, has_match = [], False
    for name, is_file, open_file in _entries(archive):
        clean = posixpath.normpath(name)
        if clean.startswith(("/", "../")) or clean == "..":
            raise UserError(
                f"{archive}: its member {name} points outside of the archive. Expected names inside the archive; "
                f"nothing was written. {_again(url)}"
            )
        if matches(clean, pattern):
            if not is_file:
                raise UserError(f"{archive}, member {name}: is a folder or a link. Expected a file. {_again(url)}")
            has_match = True
            yield OpenMember(archive, name, url, open_file())
        elif is_file:
            names.append(clean)
    if not has_match:
        first = f", first {names[0]}" if names else ""
        close = nearest(pattern, names) or f"The archive contains {counted(len(names), 'file')}{first}."
        raise UserError(f"{archive}: no member {pattern}. {close} {_again(url)}")


def _entries(archive):
    return (_walk_zip if archive.lower().endswith(".zip") else _walk_tar)(archive)


def _walk_tar(archive):
    """Yields (name, whether it is a file, function that opens it) for each member of a tar, in order."""
    packing = next(_TAR_ENDINGS[ending] for ending in _TAR_ENDINGS if archive.lower().endswith(ending))
    with files.open_stream(archive) as raw, unpacked(raw, packing) if packing else contextlib.nullcontext(raw) as file:
        plain = _Tail(file)
        with tarfile.open(fileobj=plain, mode="r|", bufsize=_BLOCK) as tar:
            for member in tar:
                # A separate buffer is used, because tarfile's own buffer reads only 8 KiB at a time.
                yield (
                    member.name,
                    member.isfile(),
                    lambda m=member: io.BufferedReader(tar.extractfile(m).detach(), _BLOCK),
                )
            while plain.read(_BLOCK):
                pass
        if plain.tail.strip(b"\0"):  # tarfile does not notice if the archive is truncated between two members
            raise EOFError("it ends too early")


class _Tail:
    """Wraps a file for reading and remembers the last bytes that were read."""

    def __init__(self, file):
        self._file, self.tail = file, b""

    def read(self, size):
        data = self._file.read(size)
        self.tail = data[-tarfile.BLOCKSIZE :] or self.tail
        return data


def _walk_zip(archive):
    """Yields (name, whether it is a file, function that opens it) for each entry of a zip, in index order."""
    with files.open_stream(archive) as raw, zipfile.ZipFile(raw) as packed:
        for entry in packed.infolist():
            is_link = stat.S_ISLNK(entry.external_attr >> 16)
            open_file = functools.partial(packed.open, entry)
            yield entry.filename, not (entry.is_dir() or is_link), lambda f=open_file: io.BufferedReader(f(), _BLOCK)


def _again(url):
    return f"Delete the archive and download it again{f' from {url}' if url else ''}."


@contextlib.contextmanager
def _naming_damage(source, url):
    """Context manager that turns Python's errors about damaged archives into `UserError`s."""
    try:
        yield
    except (*_DAMAGE, OSError, RuntimeError) as error:
        # zipfile raises RuntimeError for a password and NotImplementedError for an unknown compression; bz2 raises a
        # bare OSError. EINVAL means that an index points before the beginning of its file.
        if isinstance(error, Failure) or (isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)):
            raise
        cause = str(error) or type(error).__name__
        raise UserError(f"{source}: damaged or truncated ({cause}). {_again(url)}") from None
