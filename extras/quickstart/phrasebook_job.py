"""The quickstart on the embedded phrasebook, from generating data to calling a SavedModel."""

import json
import os
import shlex
import subprocess
import sys

from t2t_lite import registry
from t2t_lite.errors import Failure
from t2t_lite.extras.quickstart import commands

_PROBLEM = "translate_ende_phrasebook"
_AVERAGED = 5  # number of checkpoints to average, as in the paper's section 6.1
_ASK = """\
import tensorflow as tf
import tensorflow_text  # provides the SentencePiece op of the export; TensorFlow Serving includes it

translate = tf.saved_model.load("{export}").signatures["serving_default"]
answer = translate(inputs=tf.constant(["{text}"]))
print(answer["outputs"].numpy()[0].decode(), answer["scores"].numpy()[0])
"""
_NEXT = """\
== What next
your own corpus   t2t-quickstart --train_files=a.en,a.de --minutes=30
try it yourself   t2t-decoder --output_dir={average} --decode_interactive
curves            t2t-trainer --summary={train}
the paper's data  t2t-datagen --problem=translate_ende_wmt37k --data_dir=data --tmp_dir=downloads   # 4.5 million pairs
(the commands are in {scripts})
"""


def run_phrasebook(output_dir, train_steps, steps_between):
    """Runs all steps in a folder, reusing existing results.

    Args:
        output_dir: str.
        train_steps: int, number of training steps.
        steps_between: int, number of steps between checkpoints; the last five checkpoints are averaged.

    Raises:
        UserError, Failure: a command stopped: see `commands.run`.
    """
    data, train, average = (os.path.join(output_dir, name) for name in ("data", "train", "train/avg"))
    commands.step("1. Generating English-German sentence pairs, learning a vocabulary, and writing records")
    commands.run("t2t-datagen", f"--problem={_PROBLEM}", f"--data_dir={data}")

    commands.step("2. Training a small Transformer")
    commands.run(
        "t2t-trainer", f"--problem={_PROBLEM}", f"--data_dir={data}", f"--output_dir={train}", "--model=transformer",
        "--hparams_set=transformer_quickstart", f"--train_steps={train_steps}",
        f"--local_eval_frequency={steps_between}",
    )  # fmt: skip

    commands.step("3. Averaging the last five checkpoints (paper, section 6.1)")
    averaged = os.path.join(average, f"model.ckpt-{train_steps}.index")
    if not os.path.exists(averaged):
        count = min(_AVERAGED, -(-train_steps // steps_between))
        first = max(0, train_steps - (_AVERAGED - 1) * steps_between)
        commands.run(
            "t2t-avg-all", f"--model_dir={train}", f"--output_dir={average}", f"--n={count}", f"--min_steps={first}"
        )

    # The test set has combinations of words that are new to the model.
    score = commands.translate_and_export(registry.problem(_PROBLEM), output_dir, "test", average, averaged)
    _ask(output_dir)
    print(_NEXT.format(average=shlex.quote(average), train=shlex.quote(train), scripts=commands.SCRIPTS))
    commands.print_score("test", score)


def _ask(output_dir):
    """Translates one line with a script that loads the SavedModel in a new process, and prints the script."""
    commands.step("Asking the SavedModel, in a process without t2t_lite")
    with open(os.path.join(output_dir, "test.en"), encoding="utf-8") as file:
        values = {"export": os.path.join(output_dir, "export", "1"), "text": file.readline().rstrip("\n")}
    code = _ASK.format(**{name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()})
    path = os.path.join(output_dir, "ask.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(code)
    print(f"{code}$ python {shlex.quote(path)}", flush=True)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{path} failed: {done.stderr.strip().splitlines()[-1:]}")
    print(done.stdout)
