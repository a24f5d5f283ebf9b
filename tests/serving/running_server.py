"""t2t-server as it is installed, on a free port."""

import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request


class RunningServer:
    """A process of t2t-server; a context manager, which stops it.

    Attributes:
        process: subprocess.Popen.
        address: str, 127.0.0.1:port.
    """

    def __init__(self, export_dir, folder, *flags):
        self._log = folder / "server.log"
        words = [f"--export_dir={export_dir}", "--port=0", "--poll_secs=0.1", *flags]
        with self._log.open("wb") as log:
            program = pathlib.Path(sys.executable).with_name("t2t-server")
            self.process = subprocess.Popen([program, *words], stdout=log, stderr=log)
        end = time.monotonic() + 200
        while not (found := re.search(r"http://(127\.0\.0\.1:\d+)/v1/models/(\S+)", self.log)):
            assert self.process.poll() is None and time.monotonic() < end, self.log
            time.sleep(0.1)
        self.address, self._name = found.groups()

    @property
    def log(self):
        """What the process has written."""
        return self._log.read_text()

    def resident_bytes(self):
        """Returns the process's resident memory in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def get(self, path, body=None):
        """Returns (status, text) for a path; `body`, bytes or None, is sent by POST."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", body, 200) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def predict(self, inputs, which="", **others):
        """Returns the "outputs" or the "error" of a request."""
        body = json.dumps({"inputs": inputs, **others}).encode()
        status, answer = self.get(f"/v1/models/{self._name}{which}:predict", body)
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
