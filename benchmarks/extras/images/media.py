"""Trains language models of images and chorales for up to half an hour on two cores (bits per pixel, nats per note).

python -m benchmarks.extras.images.media --tmp_dir=FOLDER
python -m benchmarks.extras.images.media --tmp_dir=FOLDER --sides=relative --kinds=images

FOLDER contains MNIST's four idx files and `Jsb16thSeparated.json`, each compressed or not. Without --tmp_dir, the files
are downloaded. All models are trained by t2t-trainer with the sets `image_transformer_small` and
`music_transformer_small`, and evaluated on the whole development set. If a run was interrupted, the next call with the
same --bench_dir continues the run. The reported seconds are those that the training steps took.
"""

import os
import pathlib
import sys

from benchmarks.harness.command import chosen, main
from benchmarks.harness.work import logged, once

TITLE = "Images and chorales"
SIDES = {"relative": "relative positions", "plain": "sinusoids"}
NEEDS = {}
PROBLEMS = {"images": "image_mnist", "music": "music_jsb16"}
SETS = {"images": "image_transformer_small", "music": "music_transformer_small"}
FIGURES = {"images": "bits_per_dim", "music": "nats_per_note"}
PLAIN = {
    "images": "self_attention_type=local_1d,max_relative_position=0",
    "music": "self_attention_type=dot_product,max_relative_position=0",
}


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--tmp_dir", help="folder with the files of MNIST and of the chorales")
    parser.add_argument("--kinds", default="images,music", help="kinds of data: images, music, or both")
    parser.add_argument(
        "--images_steps", type=int, default=2000, help="number of training steps, each on a batch of 5 images"
    )
    parser.add_argument("--music_steps", type=int, default=3000, help="number of training steps, each on 2,048 notes")


def measure(result, flags):
    """Trains each side on each kind of data, and evaluates it on the development set."""
    for kind in chosen("--kinds", flags.kinds, PROBLEMS):
        steps = 4 if flags.quick else getattr(flags, f"{kind}_steps")
        figures, seconds = {}, {}
        for side in flags.sides:
            run = trained_run(flags, kind, side, steps)
            figures[side] = [logged(run, "evaluation")[-1][FIGURES[kind]]]
            seconds[side] = [_training_seconds(logged(run, "progress"))]
        result.add(f"{PROBLEMS[kind]}, {steps:,} steps", FIGURES[kind], figures)
        result.add(f"{PROBLEMS[kind]}, {steps:,} steps", "seconds", seconds)


def trained_run(flags, kind, side, steps):
    """Trains and evaluates a run, unless an earlier call did; returns its folder."""
    folder = pathlib.Path(flags.bench_dir, "media")
    folder.mkdir(parents=True, exist_ok=True)
    data, run = folder / "data", folder / f"{kind}-{side}-{steps}"
    problem = f"--problem={PROBLEMS[kind]}"
    source = [f"--tmp_dir={os.path.abspath(flags.tmp_dir)}"] if flags.tmp_dir else []
    once(folder / kind, "t2t-datagen", problem, f"--data_dir={data}", *source)
    hparams = [f"--hparams={PLAIN[kind]}"] if side == "plain" else []
    once(
        run, "t2t-trainer", problem, f"--data_dir={data}", f"--output_dir={run}", "--model=transformer_lm",
        f"--hparams_set={SETS[kind]}", *hparams, f"--train_steps={steps}", f"--local_eval_frequency={steps}",
    )  # fmt: skip
    return run


def _training_seconds(lines):
    before = [0, *(line["step"] for line in lines)]
    return sum((line["step"] - last) * line["seconds_per_step"] for line, last in zip(lines, before, strict=False))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
