"""Mirrors tensor2tensor's data_generators/text_problems.py."""

from t2t_lite.data.problem import *  # noqa: F403
from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.text.vocabulary import EOS_ID

__getattr__ = names_elsewhere(__name__)


def text2text_generate_encoded(
    sample_generator, vocab, targets_vocab=None, has_inputs=True, inputs_prefix="", targets_prefix=""
):
    """Yields samples whose texts are replaced by ids that end in 1.

    Args:
        sample_generator: iterable of {"inputs": str, "targets": str}, or of {"targets": str} without `has_inputs`.
        vocab: TextEncoder for the inputs, and also for the targets if `targets_vocab` is None.
        targets_vocab: TextEncoder or None.
        has_inputs: bool.
        inputs_prefix, targets_prefix: strings that are prepended to the texts.
    """
    for sample in sample_generator:
        ids = {"targets": [*(targets_vocab or vocab).encode(targets_prefix + sample["targets"]), EOS_ID]}
        if has_inputs:
            ids["inputs"] = [*vocab.encode(inputs_prefix + sample["inputs"]), EOS_ID]
        yield {**sample, **ids}
