"""t2t-query-server over encrypted connections, with certificates made here."""
# Nearest tests of: extras/query_client/grpc_requests.py, extras/query_client/addresses.py

import contextlib
import shutil
import subprocess

import pytest

from tests.extras.query_client.servers import assert_failure, both, echo

pytest.importorskip("t2t_lite.extras.serving")

from tests.extras.serving.serving_double import ServingDouble


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Folder with ca, server (for 127.0.0.1), elsewhere (for another host), client and stranger: .pem and .key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on PATH")
    folder = tmp_path_factory.mktemp("certificates")

    def make(name, host, authority=None):
        words = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        words += ["-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        words += ["-addext", f"subjectAltName={host}"]
        if authority:
            words += ["-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-addext", "basicConstraints=CA:FALSE"]
        else:
            words += ["-addext", "keyUsage=keyCertSign"]  # Python 3.13 requires it of authorities
        subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300)

    for authority in ("ca", "other_ca"):
        make(authority, "DNS:authority")
    make("server", "IP:127.0.0.1", "ca")
    make("elsewhere", "DNS:elsewhere.example", "ca")
    make("client", "DNS:client", "ca")
    make("stranger", "DNS:client", "other_ca")
    return folder


@contextlib.contextmanager
def encrypted(folder, name="server", asks=False):
    files = (folder / f"{name}.pem", folder / f"{name}.key", folder / "ca.pem" if asks else None)
    with ServingDouble({"translate": {1: echo}}, tls=files) as double:
        yield double


@pytest.mark.slow
@both
def test_encrypted(ask, certificates, protocol):
    once, ca = "--inputs_once=red", f"--tls_ca_file={certificates}/ca.pem"
    with encrypted(certificates) as double:
        assert "RED" in ask(getattr(double, protocol), protocol, once, ca).stdout
        for flag in ("--tls", f"--tls_ca_file={certificates}/other_ca.pem"):
            result = ask(getattr(double, protocol), protocol, once, flag)
            assert_failure(result, "no encrypted connection", "Check the TLS files")
        assert_failure(ask(getattr(double, protocol), protocol, once), getattr(double, protocol))
    with encrypted(certificates, "elsewhere") as double:
        assert_failure(ask(getattr(double, protocol), protocol, once, ca), "no encrypted connection")


@both
def test_the_server_asks_who_it_is(ask, certificates, protocol):
    once, ca = "--inputs_once=red", f"--tls_ca_file={certificates}/ca.pem"

    def identity(name):
        return [f"--tls_cert_file={certificates}/{name}.pem", f"--tls_key_file={certificates}/{name}.key"]

    with encrypted(certificates, asks=True) as double:
        assert "RED" in ask(getattr(double, protocol), protocol, once, ca, *identity("client")).stdout
        for flags in ([], identity("stranger")):
            assert_failure(ask(getattr(double, protocol), protocol, once, ca, *flags), getattr(double, protocol))
