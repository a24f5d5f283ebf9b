"""Exchanges requests and answers, one line of JSON each, between `benchmarks/gpu.py` and its side processes."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import traceback

from benchmarks.harness.turns import ROOT, last_line


class Side:
    """Starts a process that answers requests.

    Args:
        module: str, such as "benchmarks.card.ours", a module that calls `answer`.
        log: str, path of the file to which the process's standard error is written.
        environment: dict of str, environment variables in addition to those of this process.
    """

    def __init__(self, module, log, environment=None):
        self.log = log
        with open(log, "a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, cwd=ROOT, env={**os.environ, **(environment or {})},
            )  # fmt: skip

    def ask(self, do, **arguments):
        """Sends a request without waiting for the answer."""
        with contextlib.suppress(BrokenPipeError):  # `answer` reports that the process has ended
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()

    def answer(self, seconds):
        """Returns the answer, a dict. If it takes too long, kills the process and returns {"error": …}."""
        # Read the clock before starting the timer, so that a process killed by the timer counts as too late.
        started = time.monotonic()
        timer = threading.Timer(max(seconds, 0.1), self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
        finally:
            timer.cancel()
        if time.monotonic() - started >= seconds:
            return {"error": f"no answer within {seconds:.0f} s"}
        return {"error": f"its process ended: {last_line(self.log)}"}

    def end(self):
        """Ends the process; kills it if it does not respond."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def answer(handlers):
    """Answers requests from standard input until it ends.

    Args:
        handlers: {name of a request: function of the request's arguments that returns a dict}. If the function raises
            an exception, the answer is the exception's first line, and the traceback goes to standard error.
    """
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = handlers[request.pop("do")](**request)
        except Exception as error:
            traceback.print_exc()
            words = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
            reply = {"error": f"{type(error).__name__}: {words[:300]}"}
        print(json.dumps(reply), flush=True)
