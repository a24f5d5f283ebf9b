"""Decompresses zstd (`.zst`) as a stream, by pyarrow, which tensorflow-datasets requires."""

import io

from t2t_lite.errors import UserError


class ZstdStream(io.RawIOBase):
    """The decompressed bytes of a binary file, which it closes; frames that follow one another are read as one.

    Reading raises `OSError` if the data are truncated or damaged.

    Args:
        file: a binary file.
        name: its name, for errors.

    Raises:
        UserError: pyarrow is not installed.
    """

    def __init__(self, file, name):
        try:
            import pyarrow
        except ImportError:
            raise UserError(f"{name}: zstd needs pyarrow: pip install pyarrow. Or unpack it: zstd -d.") from None
        self._file = file
        self._stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")

    def readable(self):
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer):
        """See `io.RawIOBase`."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        """Closes the stream and its file."""
        if not self.closed:
            self._stream.close()
            self._file.close()
        super().close()
