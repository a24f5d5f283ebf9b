"""Repeats the paper's Table 2 at a small scale: the BLEU that systems of similar size reach in equal training time.

python -m benchmarks.table2 --train_files=train.en.gz,train.de.gz --dev_files=val.en.gz,val.de.gz \
    --test_files=test_2016_flickr.en.gz,test_2016_flickr.de.gz
python -m benchmarks.table2 … --seeds=1,2,3 --repeated=transformer,conv_seq2seq --minutes=20

Each side trains for as many steps as it can run in `--minutes` on this machine. This number is estimated from a first
run of a few steps. The learning rate falls to 0 at the end. With `--jobs`, each run gets an equal share of the cores.
Texts are decoded with beam 4 and the value of --alphas with which the side's first run has the best BLEU on the
development set; BLEU is sacreBLEU's. The operations are those of training (counted as three forward passes), as
in `t2t-trainer --describe`. If a run was interrupted, the next call with the same --bench_dir continues the run.
"""

import itertools
import pathlib
import sys
from typing import NamedTuple

from benchmarks.harness.command import chosen, main
from benchmarks.harness.work import add_training_flags, at_once, logged, once, steps_within, write_lines
from t2t_lite.corpora.plain_text import read_lines
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
SHARED = "batch_size=2048,eval_decode_examples=0,learning_rate_schedule=constant*linear_warmup*single_cycle_cos_decay"


class System(NamedTuple):
    """A side's hparams set, the changes to it, and the learning rate. Each side has about 2.3 million weights."""

    hparams_set: str
    hparams: str
    rate: float


PAPERS_DROPOUT = "attention_dropout=0,relu_dropout=0"  # the paper's Transformer has dropout only on residual branches
SYSTEMS = {
    "transformer": System("transformer_tiny", f"num_hidden_layers=4,filter_size=256,{PAPERS_DROPOUT}", 3e-3),
    "conv_seq2seq": System("conv_seq2seq_tiny", "num_encoder_layers=5,num_decoder_layers=4", 2e-3),
    "lstm_seq2seq_attention": System("lstm_attention_tiny", "num_hidden_layers=3", 3e-3),
    "bytenet": System("bytenet_tiny", "num_block_repeat=3", 2e-3),
    "transformer_moe": System("transformer_moe_tiny", f"moe_num_experts=4,{PAPERS_DROPOUT}", 3e-3),
}


def add_flags(parser):
    """Adds this benchmark's flags."""
    for split, meaning in (("train", "to train on"), ("dev", "to evaluate on"), ("test", "to translate at the end")):
        parser.add_argument(f"--{split}_files", help=f"source and target texts {meaning}, separated by a comma")
    parser.add_argument(
        "--repeated", help="the sides that run with every seed, while other sides run only with the first; default: all"
    )
    parser.add_argument("--alphas", default="0.6,0.8,1.0,1.2,1.4", help="values of alpha to select from")
    add_training_flags(parser, minutes=20)


def measure(result, flags):
    """Trains each side with its seeds, and translates the test set."""
    if not (flags.train_files and flags.dev_files and flags.test_files):
        raise UserError("--train_files, --dev_files or --test_files is missing. Expected the paths of two texts each.")
    seeds = flags.seeds.split(",")
    repeated = flags.sides if flags.repeated is None else chosen("--repeated", flags.repeated, SIDES)
    folder = pathlib.Path(flags.bench_dir, "table2")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    splits = [f"--{split}_files={getattr(flags, f'{split}_files')}" for split in ("train", "dev", "test")]
    once(data, "t2t-datagen", "--problem=translate_own", f"--data_dir={data}", "--vocab_size=8000", *splits)
    runs = [(side, seed) for side in flags.sides for seed in (seeds if side in repeated else seeds[:1])]
    steps = steps_within(flags, runs, lambda run, count: _trained(*run, count, folder, flags), lambda run: run[:1])
    trained = at_once(flags, lambda run: _trained(*run, steps[run[:1]], folder, flags), runs)
    alphas = _alphas({side: run for (side, seed), run in zip(runs, trained, strict=True) if seed == seeds[0]}, flags)
    scored = [(alphas[side], run) for (side, _), run in zip(runs, trained, strict=True)]
    scores = at_once(flags, lambda one: [_bleu(one[1], split, one[0], flags) for split in ("test", "dev")], scored)
    rows = {}
    for (side, _), (alpha, run), (of_test, of_dev) in zip(runs, scored, scores, strict=True):
        figures = {"bleu": of_test, "dev_bleu": of_dev, "alpha": float(alpha), **_figures(run)}
        for figure, number in figures.items():
            rows.setdefault(figure, {}).setdefault(side, []).append(number)
    case = f"{', '.join(map(str, flags.steps))} steps" if flags.steps else f"{flags.minutes:g} minutes"
    for figure, sides in rows.items():
        result.add(case, figure, sides)


def _trained(side, seed, steps, folder, flags):
    """Trains a run and evaluates it at its end, unless an earlier call did; returns its folder."""
    system, run, data = SYSTEMS[side], folder / f"{side}-{steps}-{seed}", folder / "data"
    warmup = "learning_rate_warmup_steps=2" if steps < 1000 else "learning_rate_warmup_steps=200"
    hparams = f"{system.hparams},{SHARED},learning_rate_constant={system.rate},{warmup}"
    once(
        run, "t2t-trainer", "--problem=translate_own", f"--data_dir={data}", f"--output_dir={run}", f"--model={side}",
        f"--hparams_set={system.hparams_set}", f"--hparams={hparams}", f"--train_steps={steps}",
        f"--local_eval_frequency={steps}", f"--random_seed={seed}", "--log_step_count_steps=50", *flags.trainer_flags,
    )  # fmt: skip
    return run


def _alphas(trained, flags):
    """Returns {side: length penalty with which the side's run has the best BLEU on the development set}."""
    alphas = flags.alphas.split(",")
    tried = [*itertools.product(trained, alphas)]
    scores = at_once(flags, lambda one: _bleu(trained[one[0]], "dev", one[1], flags), tried)
    by_alpha = dict(zip(tried, scores, strict=True))
    return {side: max(alphas, key=lambda alpha: by_alpha[side, alpha]) for side in trained}


def _bleu(run, split, alpha, flags):
    """Translates a split with a run; returns the BLEU of the translations."""
    import sacrebleu

    sources, references = ([*read_lines(path)] for path in getattr(flags, f"{split}_files").split(","))
    given, made = run / f"{split}-{alpha}.txt", run / f"{split}-{alpha}-translation.txt"
    write_lines(given, sources)
    once(
        made, "t2t-decoder", f"--output_dir={run}", f"--decode_from_file={given}", f"--decode_to_file={made}",
        f"--decode_hparams=beam_size=4,alpha={alpha},batch_size=128",
    )  # fmt: skip
    return sacrebleu.corpus_bleu([*read_lines(str(made))], [references]).score


def _figures(run):
    """Returns {figure: number} from a run's log, with the numbers of weights and of training operations."""
    from t2t_lite.extras.describe.describe import Description
    from t2t_lite.runs import open_run

    evaluation, opened = logged(run, "evaluation")[-1], open_run(str(run))
    description = Description(opened.model, opened.hparams)
    tokens = [line["target_tokens_per_step"] for line in logged(run, "progress")]
    steps = evaluation["step"]
    flops = description.flops.training(steps * sum(tokens) / len(tokens)) if description.flops else 0.0
    return {
        "nats_per_piece": evaluation["loss"],
        "parameters": description.parameters,
        "steps": steps,
        "training_flops": flops,
    }


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
