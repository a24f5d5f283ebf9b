"""Writes an export's README.md, which describes the model, its origin and how to call it."""

import json
import os

import tensorflow as tf

import t2t_lite
from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.evaluation.metrics import metrics_of
from t2t_lite.runs.checkpoint_files import checkpoint_step
from t2t_lite.runs.locating import export_of
from t2t_lite.runs.log import lineage, read_lines
from t2t_lite.runs.weights import named_weights
from t2t_lite.training.monitor import BEST_FOLDER

_COSTS = {
    "bfloat16": "bfloat16, half the size on disk. Weights and matrix products have only 8 significant bits, so scores "
    "differ in the third digit and some translations may change. For GPUs, and for CPUs with AVX512-BF16 or AMX; other "
    "CPUs are slower than with float32",
}
_CALL = """\
TensorFlow Serving:

```bash
docker run -p 127.0.0.1:8501:8501 -v "$PWD/{base}:/models/{name}:ro" -e MODEL_NAME={name} tensorflow/serving:2.20.0
curl -d '{{"inputs": {{{columns}}}}}' localhost:8501/v1/models/{name}:predict
```

Python, with only tensorflow and tensorflow-text:

```python
import tensorflow as tf, tensorflow_text
serve = tf.saved_model.load("{path}").signatures["serving_default"]
print(serve({arguments})["{output}"])
```
"""


@registry.register_export_file("README.md")
def readme(answerer, **facts):
    """Returns the text of an export's README.md; for the arguments, see `added_files`."""
    return model_card(answerer, **facts) if "signatures" in facts else toolkit_card(answerer, **facts)


def model_card(answerer, signatures, *, path, weights_dtype, license="", command=""):
    """Returns the text of an export's README.md.

    Args:
        answerer: Translator, Generator or Predictor.
        signatures: the export's signatures, see `t2t_lite.export.by_task`.
        path: str, the numbered folder of the export.
        weights_dtype: str.
        license: str, the model's license, or "" if not stated.
        command: str, the command that made the export, or "".
    """
    problem = answerer.problem
    base, version = (os.path.basename(part) for part in (os.path.dirname(os.path.abspath(path)), path))
    settings, table = signatures.card()
    rows = {
        **_what_it_is(answerer, license),
        **settings,
        "weights": _COSTS.get(weights_dtype, f"{weights_dtype}, as trained"),
        "made by": f"t2t_lite {t2t_lite.__version__}, TensorFlow {tf.__version__}",
    }
    name = _problem_name(answerer)
    if problem and (any(map(problem.overrides, ("input_text", "output_text"))) or problem.chooses_output):
        rows["not in the graph"] = f"the code that {name} applies to inputs and outputs; t2t-decoder runs it"
    call = _CALL.format(
        base=base,
        path=os.path.join(base, version),
        name=answerer.task.export_name,
        columns=", ".join(f'"{name}": ["…"]' for name in answerer.task.inputs),
        arguments=", ".join(f'{name}=tf.constant(["…"])' for name in answerer.task.inputs),
        output=answerer.task.output,
    )
    body = f"## Signatures\n\n{table}\n## How to call it\n\n{call}"
    return _card(_head(answerer, "t2t_lite", license), f"{name}, version {version}", rows, command, body)


def toolkit_card(answerer, *, title, library, rows, body, license="", command=""):
    """Returns the text of README.md in an export for another toolkit, with a header for Hugging Face's Hub.

    Args:
        answerer: Translator, Generator or Predictor.
        title: str.
        library: str, the Hub's name for the toolkit.
        rows: {title: text}, further rows of the table.
        body: str, Markdown that explains how to call the model.
        license: str, the model's license, or "" if not stated.
        command: str, the command that made the export, or "".
    """
    rows = {**_what_it_is(answerer, license), **rows, "made by": f"t2t_lite {t2t_lite.__version__}"}
    return _card(_head(answerer, library, license), title, rows, command, f"## How to call it\n\n{body}")


def _card(head, title, rows, command, body):
    cells = {name: str(text).replace("|", r"\|") for name, text in rows.items()}  # sacreBLEU's signatures contain bars
    table = "".join(f"| {name} | {text} |\n" for name, text in cells.items())
    made_by = [f"Made by:\n\n```bash\n{command}\n```"] if command else []
    parts = [head, f"# {title}", f"| | |\n|---|---|\n{table}".rstrip(), *made_by, body.rstrip()]
    return "\n\n".join(parts) + "\n"


def _head(answerer, library, license):
    """Returns the YAML header. Strings are quoted as in JSON, because YAML would read the language `no` as false."""
    languages, tag = list(dict.fromkeys(_languages(answerer))), answerer.task.hub_task
    facts = {"license": _plain(license) or "unknown"}
    if languages:
        facts["language"] = languages
    facts |= {"library_name": library, "pipeline_tag": tag, "tags": list(dict.fromkeys([tag, library, "t2t_lite"]))}
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return "\n".join(["---", *lines, "---"])


def _what_it_is(answerer, license):
    languages = " → ".join(_languages(answerer)) or "not stated"
    rows = {"languages": languages, "license": _plain(license) or "not stated", **_origin(answerer)}
    title, scores_of = ("BLEU", _bleu) if isinstance(answerer, Translator) else ("scores", _metrics)
    return rows | {title: _scores(answerer.runs, scores_of)}


def _languages(answerer):
    return [str(language) for language in (answerer.problem and answerer.problem.languages) or ()]


def _problem_name(answerer):
    return answerer.runs[0].config["problem"] if answerer.runs else "a model"


def _origin(answerer):
    """Returns the table's rows about vocabulary, parameters and checkpoints."""
    kinds = {
        side: f"{_kind(e)}, {e.vocab_size:,} entries, SHA-256 {e.fingerprint[:12]}…"
        for side, e in answerer.encoders.items()
    }
    sides = [f"{'outputs' if side == 'targets' else side}: {kind}" for side, kind in kinds.items()]
    rows = {"vocabulary": "; ".join(sides) if len({*kinds.values()}) > 1 else kinds["targets"]}
    models = getattr(answerer.model, "models", [answerer.model])
    count = sum(int(tf.size(weight.value)) for model in models for weight in named_weights(model).values())
    rows["parameters"] = f"{count:,}" + (f" in the {len(models)} models of an ensemble" if len(models) > 1 else "")
    for number, run in enumerate(answerer.runs, 1):
        title = "model" if len(models) == 1 else f"model {number}"
        rows[title] = (
            f"{run.config['model']}, set {run.config['hparams_set'] or '(own)'}, step {run.step:,} "
            f"(`{_name_of(run.path)}`)"
        )
    return rows


def _kind(encoder):
    """Returns the name of an encoder's class, or of its first public base class if the class itself is private."""
    return next(kind.__name__ for kind in type(encoder).mro() if not kind.__name__.startswith("_"))


def _name_of(checkpoint):
    export = export_of(checkpoint)
    if export:
        return f"export {os.path.basename(export)}"
    return os.path.join(os.path.basename(os.path.dirname(checkpoint)), os.path.basename(checkpoint))


def _bleu(line):
    """Returns the BLEU in a line of a log, or "" if there is none."""
    if not isinstance(line.get("bleu"), int | float):
        return ""
    return f"{line['bleu']:.2f} ({line.get('bleu_signature') or 'sacreBLEU, cased, 13a'})"


def _metrics(line):
    """Returns all metrics in a line of a log."""
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics_of(line).items())


def _scores(runs, scores_of):
    """Returns the scores of exactly this checkpoint, from the logs of its run; `scores_of` formats those of a line."""
    if len(runs) != 1 or export_of(runs[0].path):
        return "not recorded"
    lines = _evaluations(runs[0].path, lambda line: scores_of(line) != "")
    return "; ".join(f"{scores_of(line)} on {data_set}" for data_set, line in lines) or "not recorded"


def _evaluations(checkpoint, has_scores):
    """Returns pairs (name of a data set, log line), one per data set for which a checkpoint's log has scores."""
    folder, step = os.path.dirname(checkpoint), checkpoint_step(checkpoint)
    saved_at = tf.io.gfile.stat(f"{checkpoint}.index").mtime_nsec // 10**9
    lines_by_data = {}
    # The copy in best/ is the run's model at that step, whereas an average is a different model.
    run = os.path.dirname(folder) if os.path.basename(folder) == BEST_FOLDER else folder
    for line in lineage(read_lines(os.path.join(run, "train.log"))):
        if line["event"] == "evaluation" and line["step"] == step and has_scores(line):
            lines_by_data[_part(line, "dev")] = line
    for line in read_lines(os.path.join(folder, "eval.log")):
        if line["step"] != step or line.get("checkpoint_time") != saved_at or not has_scores(line):
            continue
        if line["event"] == "evaluation" and line.get("split") in ("dev", "test"):
            lines_by_data[_part(line, line["split"])] = line
        elif line["event"] == "translation":  # written by t2t-translate-all
            lines_by_data[_plain(str(line.get("source")))] = line
    return lines_by_data.items()


def _part(line, split):
    is_sample = "bleu" in line or (line.get("settings") or {}).get("eval_steps")
    return f"a sample of the {split} set" if is_sample else f"the {split} set"


def _plain(text):
    """Returns a text as one line, without the bars of Markdown tables."""
    return " ".join(text.replace("|", "/").split())
