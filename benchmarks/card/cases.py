"""The cases to measure on a GPU, each with its sizes, shapes and dtype; also the peak performance of GPUs."""

import dataclasses

VOCAB_SIZE, DROPOUT, SMOOTHING = 37_000, 0.1, 0.1
SIZES = {
    "base": {"hidden_size": 512, "filter_size": 2048, "num_heads": 8, "num_hidden_layers": 6},
    "big": {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16, "num_hidden_layers": 6},
    "gpt2_small": {"hidden_size": 768, "filter_size": 3072, "num_heads": 12, "num_hidden_layers": 12},
    "toy": {"hidden_size": 32, "filter_size": 64, "num_heads": 2, "num_hidden_layers": 1},
}
# Dense TFLOP/s from NVIDIA's data sheets: {part of the GPU's name: (bfloat16 and float16, TF32)}.
PEAKS = {
    "H200": (989.4, 494.7), "H100 PCIe": (756.0, 378.0), "H100": (989.4, 494.7), "A100": (312.0, 156.0),
    "L40S": (362.0, 183.0), "L4": (121.0, 60.0), "A10": (125.0, 62.5), "4090": (165.2, 82.6), "V100": (125.0, 15.7),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Training:
    """Training steps of a translation model or a language model, on rows of random ids without padding.

    Attributes:
        model: str, a key of `SIZES`.
        rows, length: int, the shape of a batch, which has rows x length tokens per side.
        dtype: "float32", "bfloat16" or "float16"; weights stay in float32. On a GPU, products in float32 are computed
            in TF32.
        steps: int, number of steps per turn.
        vocab_size: int.
        language_model: bool.
    """

    model: str
    rows: int
    length: int
    dtype: str = "bfloat16"
    steps: int = 20
    vocab_size: int = VOCAB_SIZE
    language_model: bool = False

    work = "train"

    @property
    def tokens(self):
        """The number of target tokens per step."""
        return self.rows * self.length

    @property
    def title(self):
        """The name of the case in tables."""
        return f"train {self.model}, {self.rows:,} x {self.length} tokens, {self.dtype}"


@dataclasses.dataclass(frozen=True)
class Translating:
    """Beam search with 4 beams on equally long sources. Outputs always reach the length limit, so the work is equal.

    Attributes:
        model: str, a key of `SIZES`.
        batch: int, number of sentences.
        dtype: dtype of weights and activations.
        length, new: int, number of ids of a source and of an output.
        vocab_size: int.
    """

    model: str
    batch: int
    dtype: str
    length: int = 32
    new: int = 40
    vocab_size: int = VOCAB_SIZE

    work, beam_size = "translate", 4

    @property
    def title(self):
        """The name of the case in tables."""
        return f"beam 4 of {self.model}, batch {self.batch}, {self.dtype}"


@dataclasses.dataclass(frozen=True)
class Generating:
    """Continues prompts of `length` ids greedily by `new` ids. It has the attributes of `Translating`."""

    model: str
    batch: int
    dtype: str
    length: int = 128
    new: int = 128
    vocab_size: int = 50_257

    work = "generate"

    @property
    def title(self):
        """The name of the case in tables."""
        return f"generate {self.new} ids after {self.length} of {self.model}, batch {self.batch}, {self.dtype}"


KINDS = {kind.work: kind for kind in (Training, Translating, Generating)}


def to_json(case):
    """Converts a case to a dict for `from_json`."""
    return {"work": case.work, **dataclasses.asdict(case)}


def from_json(fields):
    """Creates a case from the result of `to_json`."""
    fields = dict(fields)
    return KINDS[fields.pop("work")](**fields)


def waves(section, is_toy=False):
    """Returns the cases of a section, as lists of cases that warm up at the same time and together fit into 80 GB.

    Args:
        section: "train", "big" and "gpt2" (training), "translate", "generate", or "more" (less useful cases).
        is_toy: bool, whether to use sizes for two CPU cores.
    """
    if is_toy:
        toy = {
            "train": Training("toy", 4, 8, "float32", 2, 100),
            "translate": Translating("toy", 2, "float32", 6, 5, 100),
            "generate": Generating("toy", 2, "float32", 6, 5, 100),
        }
        return [[toy[section]]] if section in toy else []
    gpt2 = [Training("gpt2_small", rows, 1024, vocab_size=50_257, language_model=True) for rows in (24, 8)]
    if section == "train":
        return [[Training("base", 782, 32), Training("big", 250, 32)]]
    if section == "big":
        return [[Training("big", 782, 32), Training("base", 250, 32)]]
    if section == "gpt2":
        return [gpt2[:1]]
    if section == "translate":
        return [[Translating("base", batch, "bfloat16") for batch in (32, 128, 8)]]
    if section == "generate":
        return [[Generating("gpt2_small", batch, "bfloat16") for batch in (8, 1, 32)]]
    searches = [Translating("base", batch, "float32") for batch in (32, 128, 8)]
    return [searches, [gpt2[1], Training("base", 782, 32, "float32")]]


def random_ids(case, *shape):
    """Returns random ids, int64 [*shape, length], which are the same for all sides; each row ends in id 1."""
    import numpy as np

    ids = np.random.default_rng(0).integers(2, case.vocab_size, (*shape, case.length))
    ids[..., -1] = 1
    return ids


def peak_flops(card, dtype):
    """Returns a GPU's peak floating-point operations per second from its data sheet, or None if unknown.

    Args:
        card: str, the GPU's name.
        dtype: "float32" means TF32.
    """
    for name, (half, single) in PEAKS.items():
        if name in card:
            return 1e12 * (single if dtype == "float32" else half)
    return None
