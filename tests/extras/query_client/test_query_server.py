"""t2t-query-server against servers of two exports: tensorflow_model_server where there is one, and a stand-in.

The stand-in (serving_double.py) shows that the command asks and reads rightly, not what TensorFlow Serving does. Its
REST is t2t-server's own application; test_server.py shows what else is t2t-server's.
"""
# Nearest tests of: extras/query_client/grpc_requests.py

import io
import json
import shutil
import sys

import pytest

from t2t_lite.extras.query_client import client as query
from tests.extras.query_client.servers import COMMAND, assert_failure, both, echo, free_ports
from tests.integration.conftest import EXPORTED
from tests.processes import owned, wait_for

pytest.importorskip("t2t_lite.extras.serving")

from tests.extras.serving.serving_double import ServingDouble

LINES = [
    "the red house.", "", "a green tree", " \u2003", "old", "Grün \U0001f600\u2028neu", "is " * 40, "a\x00b\x1b[1m"
]  # fmt: skip
LABELS = {"stable": 1, "canary": 2}
CONFIG = """model_config_list { config { name: 'translate' base_path: '%s' model_platform: 'tensorflow'
  model_version_policy { specific { versions: 1 versions: 2 } }
  version_labels { key: 'stable' value: 1 } version_labels { key: 'canary' value: 2 } } }"""


@pytest.fixture(scope="module")
def expected(translators):
    """{version: the Translations of LINES}."""
    return {v: t.translate(LINES, **EXPORTED) for v, t in translators.items()}


@pytest.fixture(scope="module", params=["stand-in", "tensorflow_model_server"])
def served(request, exports, tmp_path_factory):
    """{"grpc": host:port, "rest": host:port} of a server of both versions."""
    if request.param == "stand-in":
        models = {"translate": {version: exports / str(version) for version in (1, 2)}}
        with ServingDouble(models, {"translate": LABELS}) as double:
            yield {"grpc": double.grpc, "rest": double.rest}
        return
    program = shutil.which("tensorflow_model_server")
    if program is None:
        pytest.skip("no tensorflow_model_server on PATH")
    folder = tmp_path_factory.mktemp("server")
    (folder / "models.config").write_text(CONFIG % exports)
    ports = free_ports(2)
    flags = [f"--port={ports[0]}", f"--rest_api_port={ports[1]}", f"--model_config_file={folder / 'models.config'}"]
    flags += ["--allow_version_labels_for_unavailable_models=true"]
    with (folder / "log").open("wb") as log, owned([program, *flags], stdout=log, stderr=log) as process:
        client = query.open_client(f"127.0.0.1:{ports[1]}", query.Servable("translate"), protocol="rest", retries=8)

        def are_available():
            assert process.poll() is None, (folder / "log").read_text()
            return [state for _, state, _ in client.status()] == ["AVAILABLE"] * 2

        wait_for(are_available, 200, why=(folder / "log").read_text)
        yield {"grpc": f"127.0.0.1:{ports[0]}", "rest": f"127.0.0.1:{ports[1]}"}


@pytest.mark.few("stand-in-flags0-2-grpc", "stand-in-flags1-1-rest", "stand-in-flags2-1-grpc", "stand-in-flags3-2-rest")
@pytest.mark.slow
@both
@pytest.mark.parametrize(
    "flags, version",
    [([], 2), (["--model_version=1"], 1), (["--version_label=stable"], 1), (["--version_label=canary"], 2)],
)
def test_a_file_is_translated_line_by_line(ask, served, expected, tmp_path, protocol, flags, version):
    (tmp_path / "in").write_bytes("".join(f"{line}\n" for line in LINES).encode())
    given = ["--inputs_file=in", "--outputs_file=out", "--batch_size=3", "--decode_hparams=write_beam_scores=true"]
    result = ask(served[protocol], protocol, *flags, *given)
    assert result.status == 0, result.stderr
    found = [line.split("\t") for line in (tmp_path / "out").read_bytes().decode().split("\n")[:-1]]
    assert [text for text, _ in found] == [translation.text for translation in expected[version]]
    scores = [translation.score for translation in expected[version]]
    assert [float(score) for _, score in found] == pytest.approx(scores, abs=0.006)
    assert [translation.text for translation in expected[1]] != [translation.text for translation in expected[2]]
    assert result.stdout == "" and "written: out" in result.stderr
    assert f"line {LINES.index('is ' * 40) + 1}: longer than the export" in result.stderr


@pytest.mark.slow
@both
def test_the_best_outputs_are_those_of_translator(ask, served, translators, tmp_path, protocol):
    """In the JSON of t2t-decoder. A line of several sentences is sent in parts."""
    lines = [line for line in LINES if "\u2028" not in line]
    (tmp_path / "in").write_bytes("".join(f"{line}\n" for line in lines).encode())
    flags = ["--inputs_file=in", "--decode_hparams=return_beams=true", "--n_best_format=json", "--batch_size=3"]
    result = ask(served[protocol], protocol, *flags)
    assert result.status == 0, result.stderr
    expected = translators[2].translate(lines, n_best=EXPORTED["beam_size"], **EXPORTED)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["input"] for one in found] == lines and [one["line"] for one in found] == [*range(1, 1 + len(lines))]
    assert [one.get("skipped") for one in found] == [None if line.strip() else True for line in lines]
    for one, translation in zip(found, expected, strict=True):
        assert one.get("truncated", False) == translation.truncated
        assert [pair["text"] for pair in one["hypotheses"]] == [h.text for h in translation.hypotheses]
        scores = [h.score for h in translation.hypotheses]
        assert [pair["score"] for pair in one["hypotheses"]] == pytest.approx(scores, abs=1e-4)


@pytest.mark.slow
@both
def test_a_signature_by_its_name(ask, served, translators, tmp_path, protocol):
    pairs = [("the red house.", "das rote"), ("old", "alt"), ("is " * 5, "")]
    (tmp_path / "in").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
    flags = ["--inputs_file=in", "--signature_name=score"]
    result = ask(served[protocol], protocol, *flags)
    assert result.status == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    expected = translators[2].score(*map(list, zip(*pairs, strict=True)))
    for one, score in zip(found, expected, strict=True):
        assert one["scores"] == pytest.approx(score.log_prob, abs=1e-3)
        assert one["token_scores"] == pytest.approx(score.token_log_probs, abs=1e-3)
        assert len(str(one["scores"])) < 12, "no digits of a double"
    words = "no signature features. The export has n_best, score, sentences, serving_default, tokens, with_options."
    assert_failure(ask(served[protocol], protocol, "--inputs_file=in", "--signature_name=features"), words)


@pytest.mark.slow
@both
def test_standard_input_and_one_sentence(ask, served, expected, standard_input, protocol):
    standard_input(b"the red house.\r\n\na green tree")
    result = ask(served[protocol], protocol)
    texts = [translation.text for translation in expected[2]]
    assert result.stdout == "".join(f"{text}\n" for text in texts[:3])
    result = ask(served[protocol], protocol, f"--inputs_once={LINES[2]}")
    assert result.stdout == f"Input: {LINES[2]}\nOutput (score {expected[2][2].score:.3f}): {texts[2]}\n"


@pytest.mark.slow
@both
def test_what_the_server_does_not_have(ask, served, protocol):
    once, server = "--inputs_once=x", served[protocol]
    assert_failure(ask(server, protocol, once, name="other"), "model 'other'", "not on this server", "Latest(other)")
    assert_failure(ask(server, protocol, once, "--model_version=7"), "version 7", "not on this server")
    assert_failure(ask(server, protocol, once, "--version_label=beta"), "label 'beta'", "Unrecognized")
    wrong = served[{"grpc": "rest", "rest": "grpc"}[protocol]]
    assert_failure(ask(wrong, protocol, once), wrong)


@pytest.mark.slow
@both
def test_other_options_than_the_exports(ask, served, translators, tmp_path, protocol):
    (tmp_path / "in").write_bytes("".join(f"{line}\n" for line in LINES).encode())
    result = ask(served[protocol], protocol, "--inputs_file=in", "--decode_hparams=alpha=0,extra_length=2")
    assert result.status == 0, result.stderr
    options = EXPORTED | {"alpha": 0.0, "extra_length": 2}
    expected = translators[2].translate(LINES, **options)
    assert result.stdout == "".join(f"{translation.text}\n" for translation in expected)


@pytest.mark.slow
@both
def test_status(ask, served, protocol):
    assert ask(served[protocol], protocol, "--status")[:2] == (0, "1\tAVAILABLE\n2\tAVAILABLE\n")
    assert ask(served[protocol], protocol, "--status", "--model_version=1")[:2] == (0, "1\tAVAILABLE\n")
    assert_failure(ask(served[protocol], protocol, "--status", name="other"), "other")


@pytest.fixture
def double():
    with ServingDouble({"translate": {1: echo}}) as double:
        yield double


@both
def test_what_passes_is_asked_again(call_command, double, tmp_path, protocol, monkeypatch):
    monkeypatch.setattr(query.random, "uniform", lambda low, high: 0.01)
    flags = [f"--server={getattr(double, protocol)}", f"--protocol={protocol}", "--servable_name=translate"]
    double.faults = [("UNAVAILABLE", "queue is full"), ("DEADLINE_EXCEEDED", "late")]
    result = call_command(COMMAND, *flags, "--inputs_once=red", "--retries=2")
    assert result.stdout == "Input: red\nOutput (score 0.000): RED\n"
    assert [line.split(":")[2] for line in result.stderr.splitlines()] == [" UNAVAILABLE", " DEADLINE_EXCEEDED"]
    double.faults = [("INVALID_ARGUMENT", "bad shape")] * 2
    result = call_command(COMMAND, *flags, "--inputs_once=red", "--retries=2")
    assert_failure(result, "INVALID_ARGUMENT: bad shape")
    assert len(double.faults) == 1


@both
def test_a_slow_server(ask, double, protocol):
    double.delay = 0.5
    result = ask(getattr(double, protocol), protocol, "--inputs_once=red", "--timeout_secs=0.1")
    assert_failure(result, getattr(double, protocol), "no answer within 0.1 s")


@both
def test_no_server(ask, protocol):
    server = f"127.0.0.1:{free_ports(1)[0]}"
    assert_failure(ask(server, protocol, "--inputs_once=red"), server, "no answer over", "8500", "refused")


def test_prompt(ask, double, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    typed = iter(["red", "green", "", "old", " q "])
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed) if prompt == ">> " else None)
    double.faults = [("INTERNAL", "out of luck")]
    result = ask(double.grpc, "grpc")
    assert result.status == 0
    shown = [("green", "GREEN"), ("", ""), ("old", "OLD")]
    assert result.stdout == "".join(f"Input: {a}\nOutput (score 0.000): {b}\n" for a, b in shown)
    assert "out of luck" in result.stderr and result.stderr.count("\n") == 1


def test_without_the_package_rest_remains(call_command, assert_user_error, double, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tensorflow_serving")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "t2t_lite.extras.query_client.grpc_requests", raising=False)
    flags = ["--servable_name=translate", "--inputs_once=red"]
    assert_user_error(call_command(COMMAND, "--server=localhost:8500", *flags), "t2t_lite[serving]", "REST")
    assert call_command(COMMAND, f"--server=http://{double.rest}/", *flags).status == 0


def test_flags_of_tensor2tensor(call_command, double):
    given = ["--problem=translate_ende_wmt32k", "--data_dir=/no/such", "--t2t_usr_dir=/no/such"]
    result = call_command(COMMAND, f"--server={double.grpc}", "--servable_name=translate", "--inputs_once=a", *given)
    assert result.status == 0 and result.stderr.count("has no effect") == len(given)
