"""A server's command as it is installed, on a free port."""

import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request


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
        with self._log.open("wb") as log:
            program = pathlib.Path(sys.executable).with_name(command)
            self.process = subprocess.Popen([program, "--port=0", *flags], stdout=log, stderr=log)
        end = time.monotonic() + 200
        while not (found := re.search(r"http://(127\.0\.0\.1:\d+)/", self.log)):
            assert self.process.poll() is None and time.monotonic() < end, self.log
            time.sleep(0.1)
        self.address = found[1]

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

    def predict(self, inputs, which="", **others):
        """Returns the "outputs" or the "error" of a request to t2t-server's model `translate`."""
        body = json.dumps({"inputs": inputs, **others}).encode()
        status, answer = self.get(f"/v1/models/translate{which}:predict", body)
        return json.loads(answer)["outputs" if status == 200 else "error"]

    def stop(self):
        """Sends SIGTERM; returns the exit status."""
        self.process.terminate()
        return self.process.wait(100)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
