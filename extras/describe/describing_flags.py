"""The flags of `t2t-trainer --describe`."""

from t2t_lite.settings.ranges import GIGABYTES, VOCAB_SIZE

FLAGS = ("plot", "vocab_size", "target_vocab_size", "gpu_memory")


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_bool("describe", False, "Print layers, parameters, FLOPs, memory and possible exports, and stop.")
    flags.DEFINE_path("plot", None, "Of --describe: draw the learning rate and the positional encoding into this file.")
    flags.DEFINE_integer("vocab_size", None, "Of --describe: ids; default: the data's, or 37000.", limits=VOCAB_SIZE)
    flags.DEFINE_integer(
        "target_vocab_size", None, "Of --describe: the targets' ids; default: shared.", limits=VOCAB_SIZE
    )
    flags.DEFINE_float(
        "gpu_memory", None, "Of --describe: GB of one GPU: prints the largest batch_size for it.", limits=GIGABYTES
    )
