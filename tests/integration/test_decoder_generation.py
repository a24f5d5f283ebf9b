"""t2t-decoder with a language model, against Generator."""
# Nearest tests of: t2t_lite/decoding/command/lines.py

import json

import pytest

from t2t_lite.decoding.generator import Generator
from tests.decoding.runs import make_language_model_run

PROMPTS = ["the red", "", "a green tree was new", "der"]
SHORT = "--decode_hparams=extra_length=6"
SAMPLES = f"{SHORT},sampling_method=random,num_samples=3,sampling_seed=2"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_language_model_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def generator(made):
    return Generator.load(str(made))


@pytest.fixture
def loaded(generator, monkeypatch):
    """The command finds its model loaded, and what was traced before."""
    monkeypatch.setattr(Generator, "load", lambda *args, **options: generator)


@pytest.fixture
def decode(call_command, made, tmp_path):
    (tmp_path / "in").write_text("".join(f"{prompt}\n" for prompt in PROMPTS))
    return lambda *flags: call_command("t2t-decoder", f"--output_dir={made}", *flags)


def field(text):
    return "".join(character if character.isprintable() else " " for character in text)


@pytest.mark.slow
def test_a_file_gets_its_continuations_in_order(eager, decode, made, tmp_path):
    decode("--decode_from_file=in", "--decode_to_file=out", f"{SHORT},beam_size=1,no_repeat_ngram_size=2")
    expected = Generator.load(str(made)).generate(PROMPTS, max_new_tokens=6, beam_size=1, no_repeat_ngram_size=2)
    assert (tmp_path / "out").read_text().splitlines() == [field(one.text) for one in expected]


@pytest.mark.slow
def test_samples_are_those_of_their_seed_in_a_file_and_from_standard_input(
    eager, decode, loaded, generator, standard_input, tmp_path
):
    decode("--decode_from_file=in", "--decode_to_file=out", SAMPLES, "--n_best_format=json")
    expected = generator.generate(PROMPTS, max_new_tokens=6, sampling=True, n_best=3, seed=2)
    texts = [[one.text for one in generation.hypotheses] for generation in expected]
    rows = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [[one["text"] for one in row["hypotheses"]] for row in rows] == texts
    assert all(one["token_scores"] for row in rows for one in row["hypotheses"])
    standard_input("".join(f"{prompt}\n" for prompt in PROMPTS).encode())
    assert decode(SAMPLES).stdout == "".join("\t".join(map(field, row)) + "\n" for row in texts)


@pytest.mark.slow
def test_what_is_typed_is_continued(eager, decode, loaded, generator, standard_input):
    typed = b"the red\nns=1\nder\nns=0\ndl=2\nthe red\nq\n"
    options = "--decode_hparams=beam_size=1,extra_length=6,sampling_seed=4"
    standard_input(typed)
    result = decode("--decode_interactive", options)
    texts = [
        generator.generate(["the red"], beam_size=1, max_new_tokens=6)[0].text,
        generator.generate(["der"], sampling=True, seed=4, max_new_tokens=6)[0].text,
        generator.generate(["the red"], beam_size=1, max_new_tokens=2)[0].text,
    ]
    assert result.status == 0 and result.stdout == "".join(f"{text}\n" for text in texts)
    assert "INTERACTIVE MODE" in result.stderr


@pytest.mark.slow
def test_texts_are_scored(decode, made, tmp_path):
    decode("--score_file=in", "--decode_to_file=out")
    expected = [
        f"{one.per_token:.6f}" if one.token_log_probs else "" for one in Generator.load(str(made)).score(PROMPTS)
    ]
    assert (tmp_path / "out").read_text().splitlines() == expected


@pytest.mark.slow
def test_a_refused_line_is_no_empty_prompt(decode, loaded, tmp_path):
    """Of which a language model would make a text of its own."""
    (tmp_path / "in").write_bytes(b"the red\n\xff\n")
    flags = ["--decode_from_file=in", "--decode_to_file=out", f"{SHORT},beam_size=1", "--on_error=skip"]
    assert "1 line skipped" in decode(*flags).stderr
    first, second = (tmp_path / "out").read_text().splitlines()
    assert first and not second
    decode(*flags, "--n_best_format=json")
    row = json.loads((tmp_path / "out").read_text().splitlines()[1])
    assert (row["input"], row["skipped"]) == (None, True)


@pytest.mark.slow
def test_lines_that_are_too_long(decode, loaded, assert_user_error, tmp_path):
    """The model has 32 positions."""
    (tmp_path / "in").write_text("the red\n" + "the red " * 40 + "\n")
    flags = ["--decode_from_file=in", "--decode_to_file=out", f"{SHORT},beam_size=1"]
    result = decode(*flags)
    assert_user_error(result, "in, line 2: ", "more than 31", "--long_input=truncate", "--on_error=skip")
    assert "1 line skipped" in decode(*flags, "--on_error=skip").stderr
    assert (tmp_path / "out").read_text().splitlines()[1] == ""
    result = decode(*flags, "--long_input=truncate")
    assert "longer than 31 pieces: line 2" in result.stderr
    assert (tmp_path / "out").read_text().splitlines()[1] != ""
    assert_user_error(decode("--score_file=in"), "in, line 2: ", "at most 32. ")
    assert_user_error(decode(*flags[:2], "--decode_hparams=max_input_size=32"), "max_input_size=32", "from 1 to 31")


@pytest.mark.slow
def test_an_export_needs_sampling_for_what_is_of_samples(call_command, assert_user_error, made, tmp_path):
    command = ["t2t-exporter", f"--output_dir={made}", f"--export_dir={tmp_path}/export"]
    refused = call_command(*command, "--decode_hparams=sampling_temp=0.5")
    assert_user_error(refused, "sampling_temp: ", "sampling_method=random")
