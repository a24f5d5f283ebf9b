"""What t2t-query-server hands on to the client, and what it prints of a state; what it reads is not overwritten."""
# Nearest tests of: extras/query_client/line_queries.py

import os
import types

import pytest

from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client import line_queries, t2t_query_server
from t2t_lite.extras.query_client.addresses import Servable, Tls

STATES = {
    "one that answers": ([(2, "AVAILABLE", ""), (1, "END", "")], 0, "1\tEND\n2\tAVAILABLE\n"),
    "none": ([(3, "LOADING", ""), (1, "END", "no file")], 1, "1\tEND\tno file\n3\tLOADING\n"),
}


@pytest.fixture
def handed(monkeypatch):
    """{what: its arguments}, of a command that does nothing else; `status` is the state of the model."""
    handed = {"status": []}

    class Client:
        def status(self):
            return handed["status"]

        def close(self):
            handed["closed"] = True

    def note(name, result):
        return lambda *arguments, **options: handed.setdefault(name, (arguments, options)) and result

    does_nothing = types.SimpleNamespace(
        **{name: note(name, None) for name in ("show", "translate_file", "translate_stdin", "run")}
    )
    monkeypatch.setattr(query, "open_client", note("client", Client()))
    for name in ("LineQueries", "StreamedQueries"):
        monkeypatch.setattr(line_queries, name, note(name, does_nothing))
    return handed


def run(*flags, server="host:77", status=0):
    assert t2t_query_server.main([f"--server={server}", "--servable_name=a b", *flags]) == status


def test_each_flag_reaches_its_part(handed, tmp_path):
    """Odd values, each of another flag."""
    (tmp_path / "in").touch()
    run(
        "--model_version=3", "--protocol=rest", "--timeout_secs=2.5", "--retries=7", "--batch_size=5",
        "--tls_ca_file=a", "--tls_cert_file=b", "--tls_key_file=c", "--split_sentences=never",
        "--decode_hparams=n_best=4", "--n_best_format=json", f"--inputs_file={tmp_path}/in",
        f"--outputs_file={tmp_path}/out",
    )  # fmt: skip
    expected = {"protocol": "rest", "tls": Tls("a", "b", "c"), "timeout": 2.5, "retries": 7}
    assert handed["client"] == (("host:77", Servable("a b", 3)), expected) and handed["closed"]
    arguments, options = handed["LineQueries"]
    assert arguments[1:] == ("n_best=4", 5, "never") and options == {"as_json": True, "signature": None}
    assert handed["translate_file"] == ((f"{tmp_path}/in", f"{tmp_path}/out"), {})


def test_defaults(handed, standard_input):
    standard_input(b"")
    run("--version_label=x", "--signature_name=score")
    expected = {"protocol": None, "tls": None, "timeout": 10, "retries": 3}
    assert handed["client"] == (("host:77", Servable("a b", label="x")), expected)
    assert handed["LineQueries"][0][1:] == ("", 32, None)
    assert handed["LineQueries"][1] == {"as_json": False, "signature": "score"}
    assert handed["translate_stdin"] == (("-",), {})


def test_other_ways(handed, tmp_path, monkeypatch):
    run("--tls", "--inputs_once=a\tb")
    assert handed["client"][1]["tls"] == Tls() and handed["show"] == (("a\tb",), {})
    handed.clear()
    run("--stream", "--inputs_once=a", "--decode_hparams=extra_length=9")
    assert handed["StreamedQueries"][0][1:] == ("extra_length=9",) and handed["run"] == (("a",), {})
    (tmp_path / "in").touch()
    run(f"--inputs_file={tmp_path}/in")
    assert handed["translate_file"] == ((f"{tmp_path}/in", "-"), {})
    monkeypatch.setattr(t2t_query_server.console, "is_terminal", lambda: True)
    run(f"--outputs_file={tmp_path}/out")
    assert handed["translate_stdin"] == ((f"{tmp_path}/out",), {})


MODES = {  # the flag of a mode; flags that it refuses, since it does not read them
    "--status": ("--outputs_file=o", "--inputs_file=in", "--inputs_once=a", "--stream"),
    "--stream": ("--outputs_file=o", "--inputs_file=in", "--batch_size=3", "--n_best_format=json",
                 "--split_sentences=never", "--signature_name=x"),
    "--inputs_once=a": ("--outputs_file=o",),
    "--inputs_file=in": ("--stream", "--status"),
}  # fmt: skip


@pytest.mark.parametrize(("mode", "refused"), MODES.items(), ids=MODES)
def test_flags_that_a_mode_does_not_read(handed, tmp_path, monkeypatch, capsys, mode, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").touch()
    for flag in refused:
        run(mode, flag, status=2)
        assert flag.partition("=")[0] in capsys.readouterr().err and "client" not in handed
    read = ["--decode_hparams=", "--timeout_secs=3", "--retries=0", "--tls"]
    more = [] if mode == "--stream" else ["--batch_size=3", "--split_sentences=never", "--signature_name=x"]
    handed["status"] = [(1, "AVAILABLE", "")]
    run(mode, *read, *more)


@pytest.mark.parametrize(("states", "status", "printed"), STATES.values(), ids=STATES)
def test_the_exit_status_says_whether_a_version_answers(handed, capsys, states, status, printed):
    handed["status"] = states
    run("--status", status=status)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("flags", [["--outputs_file=link"], ["--tls_ca_file=ref", "--outputs_file=ref"]])
def test_no_input_is_overwritten(tmp_path, call_command, assert_user_error, flags):
    for name in ("in", "ref"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("in")
    usual = ["--server=localhost:1", "--servable_name=x", "--inputs_file=in"]
    assert_user_error(call_command("t2t-query-server", *usual, *flags), "--outputs_file")
    assert [(tmp_path / name).read_text() for name in ("in", "ref", "link")] == ["in", "ref", "in"]


@pytest.mark.parametrize(
    ("flag", "words"), [("--outputs_file=out", ["latin1, line 2", "UTF-8"]), ("--outputs_file=.", [".", "is a folder"])]
)
def test_mistakes_leave_nothing_behind(call_command, assert_user_error, tmp_path, flag, words):
    (tmp_path / "latin1").write_bytes("red\ngr\u00fcn\n".encode("latin-1"))
    flags = ["--server=localhost:1", "--servable_name=translate", "--inputs_file=latin1", flag]
    assert_user_error(call_command("t2t-query-server", *flags), *words)
    assert os.listdir(tmp_path) == ["latin1"]
