"""A server's command as it is installed, on a free port."""

import contextlib
import json
import pathlib
import re
import sys
import urllib.error
import urllib.request

from tests.processes import owned, wait_for

_LONGEST = 1800  # seconds that a server lives


class RunningServer:
    """A process; a context manager, which stops it.

    Args:
        folder: pathlib.Path, where it writes its log.
        command: str, such as t2t-server.
        *flags: str.

    Attributes:
        process: subprocess.Popen.
        address: str, 127.0.0.1:port.
    """

    def __init__(self, folder, command, *flags):
        self._log = folder / "server.log"
        program = pathlib.Path(sys.executable).with_name(command)
        with contextlib.ExitStack() as stack:
            with self._log.open("wb") as log:
                words = [program, "--port=0", *flags]
                self.process = stack.enter_context(owned(words, _LONGEST, stdout=log, stderr=log))
            self.address = wait_for(self._address, 200, lambda: self.log, pause=0.1)
            self._owned = stack.pop_all()

    @property
    def log(self):
        """What the process has written."""
        return self._log.read_text()

    def resident_bytes(self):
        """Returns the process's resident memory in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def get(self, path, body=None):
        """Returns (status, text) for a path; `body`, the bytes of a JSON text or None, is sent by POST."""
        request = urllib.request.Request(f"http://{self.address}{path}", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=200) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def predict(self, inputs, **others):
        """Returns the "outputs" or the "error" of a request to t2t-server's model `translate`."""
        body = json.dumps({"inputs": inputs, **others}).encode()
        status, answer = self.get("/v1/models/translate:predict", body)
        return json.loads(answer)["outputs" if status == 200 else "error"]

    def stop(self):
        """Sends SIGTERM; returns the exit status."""
        self.process.terminate()
        return self.process.wait(100)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._owned.close()

    def _address(self):
        found = re.search(r"http://(127\.0\.0\.1:\d+)/", self.log)
        assert found or self.process.poll() is None, self.log
        return found and found[1]
