import pytest

from t2t_lite.decoding.decode_hparams import DecodeHParams
from t2t_lite.errors import UserError


def test_values_have_types():
    found = DecodeHParams.parse("beam_size=2, alpha=1,return_beams=true,batch_size=0")
    assert (found.beam_size, found.alpha, found.return_beams, found.extra_length) == (2, 1.0, True, 50)
    options = found.search_options()
    assert (options.n_best, options.batch_size, options.ends) == (2, 32, "any")
    assert DecodeHParams.parse("ends=top").search_options().ends == "top"


@pytest.mark.parametrize(
    "text, words",
    [
        ("beam_sze=4", ["beam_sze", "Nearest: beam_size"]),
        ("beam_size=four", ["beam_size", "int", "four"]),
        ("beam_size=0", ["beam_size=0", "at least 1"]),
        ("alpha=-1", ["alpha=-1", "at least 0"]),
        ("alpha=nan", ["alpha=nan"]),
        ("batch_size=-3", ["batch_size=-3"]),
        ("extra_length=-1", ["extra_length=-1"]),
        ("max_input_size=0", ["max_input_size=0"]),
        ("length_penalty=hf", ["gnmt or power"]),
        ("ends=all", ["ends=all", "any or top"]),
        ("force_decode_length=true", ["force_decode_length", "not available"]),
        ("sampling_method=beam", ["sampling_method=beam", "argmax or random"]),
        ("sampling_method=random,sampling_temp=-1", ["temperature=-1"]),
        ("num_samples=0", ["num_samples=0", "at least 1"]),
        ("shards=2,shard_id=2", ["shard_id=2", "from 0 to 1"]),
        ("n_best=5", ["n_best=5", "beam_size=4"]),
        ("delimiter=", ["delimiter"]),
        ("beam_size", ["name=value"]),
    ],
)
def test_mistakes_are_named(text, words):
    with pytest.raises(UserError) as caught:
        DecodeHParams.parse(text)
    message = str(caught.value)
    assert message.startswith("--decode_hparams: ") and "\n" not in message
    assert all(word in message for word in words), message


def test_defaults_of_tensor2tensor_that_mean_nothing_else_are_accepted(caplog):
    assert DecodeHParams.parse("num_samples=-1,shards=1,block_size=0") == DecodeHParams()
    assert "block_size has no effect" in caplog.text
