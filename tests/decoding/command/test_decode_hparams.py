import dataclasses

import pytest

from t2t_lite.decoding.command.decode_hparams import DecodeHParams, evaluation_search
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions

DRAWS = "sampling_method=random,"


@pytest.mark.parametrize(
    "text, option, value",
    [
        ("beam_size=7", "beam_size", 7),
        ("alpha=0.3", "alpha", 0.3),
        ("extra_length=9", "extra_length", 9),
        ("batch_size=5", "batch_size", 5),
        ("length_penalty=power", "length_penalty", "power"),
        ("ends=top", "ends", "top"),
        ("no_repeat_ngram_size=3", "no_repeat_ngram_size", 3),
        ("repetition_penalty=1.2", "repetition_penalty", 1.2),
        ("stop=END", "stop", ("END",)),
        (r"stop=[END,\n\sa]", "stop", ("END", "\n a")),
        (r"banned_texts=[bad,\sworse]", "banned_texts", ("bad", " worse")),
        (r"banned_texts=[\,,a\,b]", "banned_texts", (",", "a,b")),
        ("n_best=3", "n_best", 3),
        ("return_beams=true", "n_best", 4),
        ("return_beams=true,n_best=2", "n_best", 2),
        (DRAWS + "sampling_temp=0.5", "temperature", 0.5),
        (DRAWS + "sampling_keep_top_k=6", "top_k", 6),
        (DRAWS + "sampling_keep_top_p=0.7", "top_p", 0.7),
        (DRAWS + "sampling_seed=8", "seed", 8),
        (DRAWS + "num_samples=9", "n_best", 9),
        ("sampling_method=random_per_example,num_samples=9", "n_best", 9),
    ],
)
def test_a_setting_reaches_its_option_and_no_other(text, option, value):
    before = SearchOptions(sampling=text.startswith("sampling_method"))
    found = DecodeHParams.parse(text).search_options()
    assert getattr(before, option) != value
    assert found == dataclasses.replace(before, **{option: value})


def test_a_problems_defaults_are_taken_where_nothing_is_given():
    defaults = {"beam_size": 21, "alpha": 0.3}
    found = DecodeHParams.parse("alpha=1", defaults=defaults)
    assert found.search == SearchOptions(beam_size=21, alpha=1.0)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ("", "out"),
        ("shards=12,shard_id=3", "out003"),
        ("shards=12,shard_id=3,shards_start_offset=5", "out008"),
        ("shards=12,shard_id=3,shards_start_offset=5,shard_google_format=true", "out-00008-of-00012"),
    ],
)
def test_the_name_of_a_part(settings, name):
    found = DecodeHParams.parse(settings)
    assert (found.shard_name("out"), found.shard_name("-"), found.shard_name("")) == (name, "-", "")
    assert [found.shard_name(path) for path in ("/dev/stdout", "/dev/null")] == ["/dev/stdout", "/dev/null"]


def test_characters_of_a_delimiter():
    found = [DecodeHParams.parse(f"delimiter={text}").delimiter for text in (r"\n", r"\t", r"\0", "|")]
    assert found == ["\n", "\t", "\0", "|"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("beam_sze=4", ["beam_sze", "Nearest: beam_size"]),
        ("beam_size=0", ["beam_size=0", "from 1 to 1,024"]),
        ("length_penalty=hf", ["gnmt, power"]),
        ("force_decode_length=true", ["force_decode_length", "not available"]),
        ("shards=2,shard_id=2", ["shard_id=2", "from 0 to 1"]),
        ("force_decode_length=[1]", ["force_decode_length=['1']", "not available"]),
        ("block_size=[1],beam_size=[1]", ["beam_size=['1']"]),
        ("delimiter=[1]", ["delimiter=['1']", "text"]),
        ("n_best=5", ["n_best=5", "beam_size=4"]),
        ("min_length=5", ["minimum length", "alpha", "--hparams=min_length"]),
        ("max_length=5", ["extra_length", "--hparams=max_length"]),
        ("num_beams=4", ["Use beam_size instead."]),
        ("temperature=2", ["Use sampling_temp instead."]),
        ("split_sentences=always", ["It is a flag: --split_sentences."]),
        ("delimiter=", ["delimiter"]),
        ("stop=", ["stop=['']", "1 to 100 characters"]),
        ("beam_size", ["name=value"]),
    ],
)
def test_mistakes_are_named(text, words):
    with pytest.raises(UserError) as caught:
        DecodeHParams.parse(text)
    message = str(caught.value)
    assert message.startswith("--decode_hparams: ") and "\n" not in message
    assert all(word in message for word in words), message


def test_evaluations_take_only_what_is_given():
    assert evaluation_search("") is None
    assert evaluation_search("alpha=0,batch_size=0") == {"alpha": 0.0, "batch_size": SearchOptions.batch_size}
    with pytest.raises(UserError, match=r"n_best .*in evaluations"):
        evaluation_search("n_best=2")


def test_defaults_of_tensor2tensor_that_mean_nothing_else_are_accepted(caplog):
    assert DecodeHParams.parse("num_samples=-1,shards=1,block_size=0") == DecodeHParams()
    assert "block_size has no effect" in caplog.text
