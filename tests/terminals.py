"""A terminal in place of stderr."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios


class Terminal:
    """A pseudo-terminal of so many columns.

    Attributes:
        file: to be put in place of `sys.stderr`.
    """

    def __init__(self, columns):
        self._control, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.set_blocking(self._control, False)
        self.file = open(inside, "w")  # noqa: SIM115  (see `close`)

    def written(self):
        """Returns what was written since the last call: a list of the texts between returns, without control codes."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self._control, 2**16):
                data += part
        texts = (re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text) for text in re.split(r"[\r\n]+", data.decode()))
        return [text for text in texts if text]

    def close(self):
        self.file.close()
        os.close(self._control)
