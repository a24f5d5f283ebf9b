"""Generates README's table from the stored results. It shows scores on public data, and speed relative to peers."""

import re

from benchmarks.harness import record
from t2t_lite.errors import UserError

# The rows on speed: benchmark, case, {side: how the peer ran, "" if there is only one way}, measured work, peer.
SPEED_ROWS = (
    ("training", "base, float32", {"torch": ""}, "training", "PyTorch `nn.Transformer`"),
    ("training", "base, float32", {"marian": ""}, "training", "Hugging Face Marian"),
    ("decoding", "base, batch 32", {"hf": ""}, "beam search (beam 4, batch 32)", "Hugging Face `generate`"),
    (
        "decoding",
        "base, batch 32",
        {"ct2": "one batch at a time, its default", "ct2_async": "two batches at a time, as t2t_lite"},
        "beam search (beam 4, batch 32)",
        "CTranslate2",
    ),
)
# Results that the table omits: those of the quickstart, which README describes, and those of a small treebank.
_NOT_SHOWN = {"phrasebook", "parsing_gum"}
_HEAD = "| measured | model | on | result |"
_SIGNATURE = re.compile(r" `(nrefs:[^`]*)`")
_FIGURES = "tokens_per_second", "sentences_per_second"
# The same work on a GPU: {benchmark, case and side of a row: benchmark "gpu", its case and side}.
_ON_A_CARD = {
    ("training", "base, float32", "torch"): ("gpu", "train base, 782 x 32 tokens, bfloat16", "peer"),
    ("decoding", "base, batch 32", "hf"): ("gpu", "beam 4 of base, batch 32, bfloat16", "peer"),
}
# The same work in bfloat16 on a CPU that has instructions for it: (benchmark, case and side, as above), and the dtypes.
_TRAINING = "base, bfloat16; t2t_lite also in float32"
_IN_BFLOAT16 = {
    ("training", "base, float32", "torch"): (("training_bfloat16", _TRAINING, "torch_bf16"), "bfloat16"),
    ("training", "base, float32", "marian"): (("training_bfloat16", _TRAINING, "marian_bf16"), "bfloat16"),
    ("decoding", "base, batch 32", "hf"): (("decoding_bfloat16", "base, batch 32", "hf_bf16"), "bfloat16"),
    ("decoding", "base, batch 32", "ct2_async"): (
        ("decoding_bfloat16", "base, batch 32", "ct2_int8_async"), "bfloat16 against int8"
    ),
}  # fmt: skip


def with_table(text, results):
    """Returns README's text with a newly generated table; the old table is found by its heading.

    Args:
        text: str.
        results: list of (Path of the folder, Result), the newest result of each name first.

    Raises:
        UserError: the text does not have the table or the signature of a score.
    """
    table = "\n".join([_HEAD, "|---|---|---|---|", *quality_rows(results), *speed_rows(results)]) + "\n"
    text, count = re.subn(rf"(?m)^{re.escape(_HEAD)}\n(\|.*\n)+", lambda _: table, text, count=1)
    if not count:
        raise UserError(f"README.md: has no table that begins with {_HEAD!r}.")
    scores = " ".join(result.quality["score"] for _, result in results if result.quality)
    for signature in {found.replace("\\|", "|") for found in _SIGNATURE.findall(scores)}:
        if signature not in text:
            raise UserError(f"README.md: does not show the signature of a score, {signature}.")
    return text


def quality_rows(results):
    """Returns the rows of scores: for each benchmark with a score, one row for its newest result."""
    rows, names = [], set()
    for path, result in results:
        if result.quality and result.name not in {*names, *_NOT_SHOWN}:
            names.add(result.name)
            q = result.quality
            data = f"[{q['data']}](benchmarks/results/{path.name}) {q['part']}"
            on = f"{result.machine['cores']} CPU cores, {q['time']}"
            score = _SIGNATURE.sub("", q["score"]).replace(", same signature", "")  # too long for a cell
            rows.append(f"| {data} | {q['model']} | {on} | {score} |")
    return rows


def speed_rows(results):
    """Returns a row for each entry of `SPEED_ROWS`: our speed divided by the peer's, on each hardware measured."""
    newest = {}
    for path, result in results:
        for measurement in result.measurements:
            if measurement["figure"] in _FIGURES:
                for side, ratio in measurement["ratios"].items():
                    key = result.name, measurement["case"], side
                    newest.setdefault(key, {}).setdefault(_hardware(result), (path.name, result, ratio["median"]))
    rows = []
    for benchmark, case, sides, text, peer in SPEED_ROWS:
        on, times = set(), []
        for side, way in sides.items():
            key = benchmark, case, side
            key_in_bfloat16, dtypes = _IN_BFLOAT16.get(key, (None, None))
            on_cores, in_bfloat16, on_card = (
                newest.get(name, {}) for name in (key, key_in_bfloat16, _ON_A_CARD.get(key))
            )
            in_bfloat16 = {f"{hardware}, {dtypes}": found for hardware, found in in_bfloat16.items()}
            measured = [*sorted(on_cores.items()), *sorted(in_bfloat16.items()), *sorted(on_card.items())]
            on |= {_kind(result) for _, (_, result, _) in measured}
            figures = ", ".join(
                f"{ratio:.2f} ([{hardware}](benchmarks/results/{folder}))" for hardware, (folder, _, ratio) in measured
            )
            times += [f"{way}: {figures}" if way else figures] if measured else []
        if times:
            result = "; ".join(times)
            rows.append(f"| speed of {text}, relative to {peer} | base | {'; '.join(sorted(on))} | {result} |")
    return rows


def _hardware(result):
    """Returns the name of the GPU or of the processor."""
    return result.machine.get("card") or record.cpu_name(result)


def _kind(result):
    """Returns the kind of hardware, and the dtype of the measurements whose dtype the result does not state."""
    cpu = f"{result.machine['cores']} CPU cores, float32 unless stated"
    return "a GPU, bfloat16" if result.machine.get("card") else cpu
