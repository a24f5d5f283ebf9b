"""`t2t-trainer --describe`: what a model is made of, what its training costs and where it can be exported to."""

import contextlib

from t2t_lite.errors import UserError
from t2t_lite.ranges import GIGABYTES, SHARE, TERAFLOPS, VOCAB_SIZE


def define_flags(flags):
    """Declares --describe and the flags that are its alone."""
    flags.DEFINE_bool("describe", False, "Print layers, parameters, FLOPs, memory and possible exports, and stop.")
    flags.DEFINE_integer("vocab_size", None, "Of --describe: ids; default: the data's, or 37000.", limits=VOCAB_SIZE)
    flags.DEFINE_integer(
        "target_vocab_size", None, "Of --describe: the targets' ids; default: shared.", limits=VOCAB_SIZE
    )
    for name, of_what, limits in (
        ("gpu_memory", "GB of one GPU: prints the largest batch_size for it", GIGABYTES),
        ("gpu_tflops", "peak of one GPU in TFLOP/s; default: an A100's", TERAFLOPS),
        ("gpu_utilization", "share of that peak which training reaches; default: the paper's", SHARE),
        ("gpu_link", "GB/s between GPUs, each way; default: an A100's NVLink and PCIe", GIGABYTES),
    ):
        flags.DEFINE_float(name, None, f"Of --describe: {of_what}.", limits=limits)


def refuse_without_describe(flags):
    """Raises `UserError` for a flag that training has no use for."""
    for name in ("vocab_size", "target_vocab_size"):
        if flags[name].present:
            raise UserError(f"--{name}={flags[name].value}: only for --describe; training takes the vocabulary's size.")
    for name in ("gpu_memory", "gpu_tflops", "gpu_utilization", "gpu_link"):
        if flags[name].present:
            raise UserError(f"--{name}={flags[name].value:g}: only for --describe; add it, or leave this out.")


def describe(flags, before, hparams):
    """Prints the description.

    Args:
        flags: of t2t-trainer.
        before: dict, the `hparams.json` of the run in --output_dir; {}: there is none.
        hparams: HParams.

    Returns:
        The command's exit status.
    """
    from t2t_lite import registry
    from t2t_lite.export.formats import destinations_text
    from t2t_lite.models import describe as library
    from t2t_lite.models.scaling import UTILIZATION, Rates
    from t2t_lite.training.cluster import read_cluster
    from t2t_lite.training.distribution import hide_gpus

    hide_gpus()  # another run may fill them
    cluster = read_cluster()
    replicas = (flags.logical_cpus or flags.worker_gpu or 1) * (len(cluster.workers) if cluster else 1)
    rates = Rates(flags.gpu_tflops, flags.gpu_utilization or UTILIZATION, flags.gpu_link, flags.gpu_memory)
    name = flags.model or before.get("model") or "transformer"
    hparams_set = flags.hparams_set or before.get("hparams_set") or ""
    vocab_size, target_vocab_size, where = _vocabulary_sizes(flags, before)
    model = library.shapes_only(registry.model(name), hparams, vocab_size, target_vocab_size)
    both = f"{vocab_size:,} ids" + (f" and {target_vocab_size:,} of the targets" if target_vocab_size else "")
    print(f"model {name}, set {hparams_set or '(own)'}, vocabulary {both} ({where})\n")
    print(library.describe(model, hparams, hparams_set, flags.train_steps, replicas, rates).text())
    print(f"\n{destinations_text(model, _known_encoders(flags, before))}")
    return 0


def _known_encoders(flags, before):
    """Returns the problem's encoders, which decide where a model can go; None where there are none yet."""
    from t2t_lite import registry

    problem = flags.problem or before.get("problem")
    for folder in (flags.output_dir if before else None, flags.data_dir):
        if problem and folder:
            with contextlib.suppress(UserError):
                return registry.problem(problem).get_feature_encoders(folder)
    return None


def _vocabulary_sizes(flags, before):
    """Returns ids of the inputs, ids of the targets or None where they are shared, and where that is from."""
    from t2t_lite import registry
    from t2t_lite.text.vocabulary import vocabulary_sizes

    problem = flags.problem and registry.problem(flags.problem)  # an unknown name is a mistake in any case
    if flags.vocab_size:
        return flags.vocab_size, flags.target_vocab_size, "--vocab_size"
    if before:
        return before["vocab_size"], flags.target_vocab_size or before["target_vocab_size"], flags.output_dir
    if problem and flags.data_dir:
        with contextlib.suppress(UserError):  # no vocabulary yet
            vocab_size, target_vocab_size = vocabulary_sizes(problem.get_feature_encoders(flags.data_dir))
            return vocab_size, flags.target_vocab_size or target_vocab_size, flags.data_dir
    return 37_000, flags.target_vocab_size, "assumed; --vocab_size says another"
