"""Addresses of servers, names of models, files of encrypted connections, and what errors say of them."""

import re

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.addresses import server_error


@pytest.mark.parametrize(
    ("server", "found"),
    {
        "localhost:8500": ("grpc", "localhost", 8500, "", False),
        "http://Host.Example.org/v2/": ("rest", "host.example.org", 80, "/v2", False),
        "https://host": ("rest", "host", 443, "", True),
        "HTTP://host:1": ("rest", "host", 1, "", False),
        "127.0.0.1:65535": ("grpc", "127.0.0.1", 65535, "", False),
        "[::1]:8500": ("grpc", "::1", 8500, "", False),
        "http://[::1]/a": ("rest", "::1", 80, "/a", False),
        "http://bücher.example:80/ü%20": ("rest", "xn--bcher-kva.example", 80, "/%C3%BC%20", False),
        "my_service:8500": ("grpc", "my_service", 8500, "", False),
    }.items(),
)
def test_addresses(server, found):
    address = query.Address.parse(server)
    assert (address.protocol, address.host, address.port, address.path, address.encrypted) == found


@pytest.mark.parametrize(
    "server",
    ["", " ", "localhost", "localhost:", ":8500", "localhost:0", "localhost:70000", "localhost:999999", "localhost:abc",
     "localhost:-1", "localhost:8500 ", " localhost:8500", "local host:8500", "localhost:8500\n", "http://a\nb:1",
     "http://", "http:///path", "https://:443", "http://localhost:0", "http://localhost:65536", "http://user:pw@host",
     "user@host:8500", "http://host?x=1", "http://host/a#b", "http://host/a b", "http://host\\a", "ftp://host:21",
     "file:///etc/passwd", "://host:1", "http:host:1", "[::1", "::1", "[::1]", "[::g]:1", "::1:8500", "http://[::1",
     "http://[]:1", "[]:8500", "[1.2.3.4]:1", "a..b:1", f"{'a' * 64}:1", "http://\u2603\ud800:1", "host:\u0661",
     "host:8500/path", "\0:1", "dns:///host:1", "a" * 5000, "-:1"],
    ids=lambda server: repr(server)[:30],
)  # fmt: skip
def test_what_is_no_address(server):
    with pytest.raises(UserError) as raised:
        query.open_client(server, query.Servable("translate"))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
    assert "server '" in str(raised.value)


def test_protocols_and_encryption():
    found = [
        (one.protocol, one.encrypted)
        for one in (query.Address.parse("h:1", "rest"), query.Address.parse("https://h", "rest", True),
                    query.Address.parse("h:1", "grpc", True), query.Address.parse("h:1", "rest", True))
    ]  # fmt: skip
    assert found == [("rest", False), ("rest", True), ("grpc", True), ("rest", True)]
    for arguments, words in ((("http://h:1", "grpc"), "REST address"), (("http://h:1", None, True), "https://")):
        with pytest.raises(UserError, match=f"'http://h:1'.*{words}"):
            query.Address.parse(*arguments)


@pytest.mark.parametrize("name", ["", " ", "\ud800", None, 3])
def test_what_is_no_name_of_a_model(name):
    with pytest.raises(UserError, match="a model's name"):
        query.Servable(name)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("http://localhost:8501/v1/models/translate:predict", "http://localhost:8501 and --servable_name=translate."),
        ("https://a.org/v2/v1/models/x/versions/3:predict", "https://a.org/v2 and --servable_name=x."),
        ("http://localhost:8501/v1/models/x/labels/stable", "http://localhost:8501 and --servable_name=x."),
        ("localhost:8501/v1/models/x/metadata", "http://localhost:8501 and --servable_name=x."),
        ("http://localhost:8501/v1/models", "http://localhost:8501."),
        ("http://localhost:8501:predict", "http://localhost:8501."),
    ],
)
def test_the_address_of_a_request_is_not_that_of_a_server(server, expected):
    with pytest.raises(UserError, match=f"^server .*{re.escape(expected)}$"):
        query.Address.parse(server)
    assert query.Address.parse("https://a.org/api/v1").path == "/api/v1"


def test_names_of_a_model_in_messages():
    names = [str(query.Servable("a b", **which)) for which in ({}, {"version": 0}, {"label": "x"})]
    assert names == ["model 'a b'", "model 'a b', version 0", "model 'a b', label 'x'"]
    with pytest.raises(UserError, match="version 3 and label 'x'"):
        query.Servable("a", 3, "x")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"cert_file": "notes"}, "both a client certificate"),
        ({"key_file": "notes"}, "both a client certificate"),
        ({"cert_file": "notes", "key_file": "missing"}, "^missing: no such file"),
        ({"cert_file": "missing", "key_file": "notes"}, "^missing: no such file"),
        ({"ca_file": "missing"}, "^missing: no such file"),
        ({"ca_file": "notes"}, "^notes: not a certificate"),
        ({"cert_file": "notes", "key_file": "notes"}, "^notes, notes: not a certificate and its private key"),
    ],
    ids=str,
)
def test_files_of_an_encrypted_connection(tmp_path, monkeypatch, files, message):
    (tmp_path / "notes").write_text("mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        query.open_client("https://localhost:1", query.Servable("m"), tls=query.Tls(**files))


ERRORS = {  # what a message has to say of a code, beside the address
    "UNAVAILABLE": ["over REST", "some words", "8500", "8501"],
    "DEADLINE_EXCEEDED": ["model 'm', version 7", "within 2.5 s"],
    "NOT_FOUND": ["model 'm', version 7", "some words", "name and the version"],
    "UNIMPLEMENTED": ["REST port", "some words"],
    "CERTIFICATE": ["no encrypted connection", "some words", "TLS"],
    "INTERNAL": ["model 'm', version 7", "INTERNAL: some words."],
}


@pytest.mark.parametrize(("code", "words"), ERRORS.items(), ids=ERRORS)
def test_errors_of_a_server(code, words):
    where = query.Address.parse("http://[::1]:77"), query.Servable("m", 7)
    error = server_error(code, " some\n words.", *where, 2.5)
    assert error.code == code and str(error).startswith("[::1]:77: ") and all(word in str(error) for word in words)
    assert "client certificate" not in str(error)
    assert len(str(server_error(code, "x" * 999, *where, 2.5))) < 300 + 250
    closed = server_error("UNAVAILABLE", "the peer closed it", query.Address.parse("h:7"), where[1], 2.5)
    assert "over gRPC" in str(closed) and "client certificate" in str(closed)
