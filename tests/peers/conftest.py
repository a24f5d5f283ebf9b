"""A run that was briefly trained, for the exports."""

import pytest

from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.training.trainer import Trainer
from tests.decoding.runs import SENTENCES, make_run

# After 120 steps they copy the sentences of their corpus, and are unsure of all others.
_SETTINGS = (
    "num_hidden_layers=2,hidden_size=32,filter_size=64,num_heads=2,batch_size=512,layer_prepostprocess_dropout=0,"
    "attention_dropout=0,relu_dropout=0,learning_rate_schedule=constant,learning_rate_constant=0.003"
)
# The paper's layout; without it tensor2tensor's, which is the set's.
_PAPER = "layer_preprocess_sequence=none,layer_postprocess_sequence=dan,norm_epsilon=1e-5,position_layout=interleaved"
HOSTILE = ["Grün \U0001f600 neu", "</s> <pad> <unk>", "a \u2581 b", "der <0x0A> Baum", "  two  blanks  ", "“x”…"]


def train(folder, settings):
    """Returns the Translator of a trained run."""
    make_run(folder)
    Trainer(
        problem="translate_own",
        hparams=registry.hparams("transformer_tiny").parse(settings),
        data_dir=str(folder / "data"),
        output_dir=str(folder / "trained"),
        evaluation=None,
    ).train(120)
    return Translator.load(str(folder / "trained"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Translator of a trained run, post-norm."""
    return train(tmp_path_factory.mktemp("trained"), f"{_SETTINGS},{_PAPER}")


@pytest.fixture(scope="session")
def pre_norm(tmp_path_factory):
    """Translator of a trained run, pre-norm as tensor2tensor's own sets."""
    return train(tmp_path_factory.mktemp("pre_norm"), _SETTINGS)


@pytest.fixture(scope="session")
def texts():
    """Sentences of the corpus, others of its words, and characters that only bytes can spell."""
    words = sorted({word.strip(".") for sentence in SENTENCES for word in sentence.split()})
    others = [" ".join(words[(i * k * k + i) % len(words)] for k in range(1, 2 + i % 11)) for i in range(140)]
    return [*SENTENCES, *others, *HOSTILE]
