"""Logs of runs."""

import json


def write_log(folder, *lines, tail=""):
    folder.mkdir(exist_ok=True)
    (folder / "train.log").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return str(folder)


def progress(step, loss):
    return {"event": "progress", "step": step, "loss": loss, "learning_rate": 0.1, "target_tokens_per_second": 9.0}
