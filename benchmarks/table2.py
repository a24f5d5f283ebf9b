"""The paper's Table 2 at a small scale: BLEU of the systems it compares, after equal time and with about equal weights.

python -m benchmarks.table2 --train_files=train.en.gz,train.de.gz --dev_files=val.en.gz,val.de.gz \
    --test_files=test_2016_flickr.en.gz,test_2016_flickr.de.gz
python -m benchmarks.table2 … --sides=transformer,conv_seq2seq --seeds=1,2,3 --minutes=20

Each side trains for as many steps as it makes in `--minutes` by itself on this machine, which a first run of few steps
measures; its rate falls to 0 at the end. The test set is decoded with beam 4 and alpha 1.0, BLEU is sacreBLEU's.
Operations are those of training, three forward passes, as `t2t-trainer --describe` counts them. A run that stopped is
continued, where --bench_dir has it.
"""

import pathlib
import sys
from typing import NamedTuple

from benchmarks.harness.command import main
from benchmarks.harness.work import logged, once
from t2t_lite.errors import UserError

TITLE = "Table 2 of the paper at a small scale"
SIDES = {
    "transformer": "Transformer",
    "conv_seq2seq": "ConvS2S",
    "lstm_seq2seq_attention": "LSTM with attention",
    "bytenet": "ByteNet",
    "transformer_moe": "experts",
}
NEEDS = {}
SCHEDULE = "learning_rate_schedule=constant*linear_warmup*single_cycle_cos_decay"
PROBED = 60  # steps whose time says how many a side makes


class System(NamedTuple):
    """A side's set and what it changes, so that all have about 2.3 million weights with 8,000 pieces."""

    hparams_set: str
    hparams: str
    rate: float


SYSTEMS = {
    "transformer": System(
        "transformer_tiny", "num_hidden_layers=4,filter_size=256,layer_prepostprocess_dropout=0.2", 3e-3
    ),
    "conv_seq2seq": System("conv_seq2seq_tiny", "num_encoder_layers=5,num_decoder_layers=4", 2e-3),
    "lstm_seq2seq_attention": System(
        "lstm_attention_tiny", "num_hidden_layers=3,layer_prepostprocess_dropout=0.2", 3e-3
    ),
    "bytenet": System("bytenet_tiny", "num_block_repeat=3", 2e-3),
    "transformer_moe": System("transformer_moe_tiny", "layer_prepostprocess_dropout=0.2", 3e-3),
}


def add_flags(parser):
    """Adds this benchmark's flags."""
    for split, meaning in (("train", "to train on"), ("dev", "to evaluate on"), ("test", "to translate at the end")):
        parser.add_argument(f"--{split}_files", help=f"source and target texts {meaning}, with a comma between them")
    parser.add_argument("--minutes", type=float, default=20, help="of training")
    parser.add_argument("--seeds", default="1", help="of the runs, such as 1,2,3")


def measure(result, flags):
    """Trains each side with each seed, and translates the test set."""
    if not (flags.train_files and flags.dev_files and flags.test_files):
        raise UserError("--train_files, --dev_files, --test_files: missing. Expected the paths of two texts each.")
    folder = pathlib.Path(flags.bench_dir, "table2")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    splits = [f"--{split}_files={getattr(flags, f'{split}_files')}" for split in ("train", "dev", "test")]
    once(data, "t2t-datagen", "--problem=translate_own", f"--data_dir={data}", "--vocab_size=8000", *splits)
    rows = {figure: {} for figure in ("bleu", "nats_per_piece", "parameters", "steps", "training_flops")}
    for side in flags.sides:
        steps = 4 if flags.quick else _steps_within(60 * flags.minutes, side, folder, data)
        for figure, numbers in _figures(side, steps, folder, data, flags).items():
            rows[figure][side] = numbers
    for figure, sides in rows.items():
        result.add(f"{flags.minutes:g} minutes", figure, sides)


def _steps_within(seconds, side, folder, data):
    """Returns how many steps a side makes in so many seconds."""
    run = _trained(side, 1, PROBED, folder, data)
    return max(PROBED, int(seconds / logged(run, "progress")[-1]["seconds_per_step"]))


def _trained(side, seed, steps, folder, data):
    """Returns the folder of a trained run, evaluated at its end."""
    system, run = SYSTEMS[side], folder / f"{side}-{steps}-{seed}"
    warmup = "learning_rate_warmup_steps=2" if steps < 1000 else "learning_rate_warmup_steps=200"
    hparams = f"{system.hparams},batch_size=2048,learning_rate_constant={system.rate},{SCHEDULE},{warmup}"
    once(
        run, "t2t-trainer", "--problem=translate_own", f"--data_dir={data}", f"--output_dir={run}", f"--model={side}",
        f"--hparams_set={system.hparams_set}", f"--hparams={hparams}", "--t2t_usr_dir=t2t_lite.baselines",
        f"--train_steps={steps}", f"--local_eval_frequency={steps}", f"--random_seed={seed}",
    )  # fmt: skip
    return run


def _figures(side, steps, folder, data, flags):
    """Returns {figure: list, one number per seed} of a side."""
    import sacrebleu

    from t2t_lite.corpora import plain_text

    source, target = flags.test_files.split(",")
    texts, references = ([*plain_text.read_lines(path)] for path in (source, target))
    figures = {}
    for seed in flags.seeds.split(","):
        run = _trained(side, seed, steps, folder, data)
        given, made = run / "test.txt", run / "translation.txt"
        given.write_text("\n".join(texts) + "\n")
        once(
            made, "t2t-decoder", f"--output_dir={run}", f"--decode_from_file={given}", f"--decode_to_file={made}",
            "--decode_hparams=beam_size=4,alpha=1.0", "--t2t_usr_dir=t2t_lite.baselines",
        )  # fmt: skip
        own = {
            "bleu": sacrebleu.corpus_bleu(made.read_text().splitlines(), [references]).score,
            "nats_per_piece": logged(run, "evaluation")[-1]["loss"], "steps": steps, **_cost(run, steps),
        }  # fmt: skip
        for figure, number in own.items():
            figures.setdefault(figure, []).append(number)
    return figures


def _cost(run, steps):
    """Returns the number of weights, and of operations in training."""
    import t2t_lite.baselines  # noqa: F401  (registers its models)
    from t2t_lite.models.describe import describe
    from t2t_lite.runs import open_run

    opened = open_run(str(run))
    description = describe(opened.model, opened.hparams)
    tokens = [line["target_tokens_per_step"] for line in logged(run, "progress")]
    flops = description.flops.training(steps * sum(tokens) / len(tokens)) if description.flops else 0.0
    return {"parameters": description.parameters, "training_flops": flops}


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
