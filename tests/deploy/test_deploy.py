"""deploy/: what TensorFlow Serving and docker compose would read, parsed by the same rules; the health check, run."""

import http.server
import pathlib
import re
import shutil
import subprocess
import threading

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf import wrappers_pb2 as wrappers
from tensorflow_serving.config import model_server_config_pb2

ROOT = pathlib.Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TYPES = descriptor_pb2.FieldDescriptorProto

# Not in the package tensorflow-serving-api: {message: {field: (number, type)}} of TensorFlow Serving's
# servables/tensorflow/session_bundle_config.proto and config/monitoring_config.proto, config/ssl_config.proto.
MESSAGES = {
    "BatchingParameters": {
        "max_batch_size": (1, wrappers.Int64Value),
        "batch_timeout_micros": (2, wrappers.Int64Value),
        "max_enqueued_batches": (3, wrappers.Int64Value),
        "num_batch_threads": (4, wrappers.Int64Value),
        "thread_pool_name": (5, wrappers.StringValue),
        "allowed_batch_sizes": (6, [TYPES.TYPE_INT64]),
        "pad_variable_length_inputs": (7, TYPES.TYPE_BOOL),
        "enable_large_batch_splitting": (8, wrappers.BoolValue),
        "max_execution_batch_size": (9, wrappers.Int64Value),
    },
    "PrometheusConfig": {"enable": (1, TYPES.TYPE_BOOL), "path": (2, TYPES.TYPE_STRING)},
    "SSLConfig": {
        "server_key": (1, TYPES.TYPE_STRING),
        "server_cert": (2, TYPES.TYPE_STRING),
        "custom_ca": (3, TYPES.TYPE_STRING),
        "client_verify": (4, TYPES.TYPE_BOOL),
    },
    "MonitoringConfig": {"prometheus_config": (1, "PrometheusConfig")},
}


def message(name):
    """An empty message of `MESSAGES`."""
    file = descriptor_pb2.FileDescriptorProto(name="serving.proto", package="t", syntax="proto3")
    file.dependency.append(wrappers.DESCRIPTOR.name)
    for message_name, fields in MESSAGES.items():
        proto = file.message_type.add(name=message_name)
        for field_name, (number, kind) in fields.items():
            field = proto.field.add(name=field_name, number=number, label=TYPES.LABEL_OPTIONAL)
            if isinstance(kind, list):
                (kind,), field.label = kind, TYPES.LABEL_REPEATED
            if isinstance(kind, int):
                field.type = kind
            else:
                field.type = TYPES.TYPE_MESSAGE
                field.type_name = f".t.{kind}" if isinstance(kind, str) else f".{kind.DESCRIPTOR.full_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}"))()


def parsed(name, empty):
    """Raises `text_format.ParseError` for a field that the message does not have."""
    return text_format.Parse((DEPLOY / name).read_text(), empty)


def model_config():
    (config,) = parsed("models.config", model_server_config_pb2.ModelServerConfig()).model_config_list.config
    return config


@pytest.fixture
def compose():
    return yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())["services"]["serving"]


def flags(service):
    return dict(word.removeprefix("--").split("=", 1) for word in service["command"])


def test_it_serves_the_first_export_as_it_is():
    """A version that is named and not there would keep the server from starting; t2t-exporter begins with 1."""
    config = model_config()
    assert (config.name, config.model_platform) == ("translate", "tensorflow")
    assert list(config.model_version_policy.specific.versions) == [1]
    assert dict(config.version_labels) == {"stable": 1}


def test_two_versions_have_labels():
    """The page's file, which differs from ours in them alone."""
    page = (DEPLOY / "README.md").read_text()
    text = re.search(r"<!-- file: models.config -->\n```\n(.*?)```", page, re.DOTALL)[1]
    (config,) = text_format.Parse(text, model_server_config_pb2.ModelServerConfig()).model_config_list.config
    assert list(config.model_version_policy.specific.versions) == [1, 2]
    assert dict(config.version_labels) == {"stable": 1, "canary": 2}
    ours = model_config()
    for one in (config, ours):
        one.ClearField("model_version_policy")
        one.ClearField("version_labels")
    assert config == ours


def test_the_page_names_every_file_and_asks_for_labels_that_are_there():
    page = (DEPLOY / "README.md").read_text()
    for file in DEPLOY.iterdir():
        assert file.name == "README.md" or f"| `{file.name}` |" in page
    first = page.partition("## ")[0]
    assert set(re.findall(r"--version_label=(\w+)|/labels/(\w+):", first)) == {("stable", ""), ("", "stable")}
    assert all(
        f"--servable_name={model_config().name} " in line for line in first.splitlines() if "query-server" in line
    )


@pytest.mark.whole
def test_the_clients_defaults_fit_the_servers():
    from t2t_lite.bin import _app
    from t2t_lite.extras.query_client import t2t_query_server

    flags = _app.Flags()
    t2t_query_server.define_flags(flags)
    found = parsed("batching_parameters.txt", message("BatchingParameters"))
    assert flags.values["batch_size"].default <= found.max_execution_batch_size.value
    assert found.batch_timeout_micros.value < 1e6 * flags.values["timeout_secs"].default / 100


def test_batching():
    found = parsed("batching_parameters.txt", message("BatchingParameters"))
    assert found.enable_large_batch_splitting.value, "longer requests would be refused"
    assert 1 < found.max_execution_batch_size.value <= found.max_batch_size.value
    # A client's batches fit the queue: otherwise a lone user's file would be refused.
    assert found.max_enqueued_batches.value * found.max_execution_batch_size.value > found.max_batch_size.value
    assert found.num_batch_threads.value >= 1
    assert not found.allowed_batch_sizes, "its last one would have to be max_batch_size"


def test_monitoring():
    found = parsed("monitoring.config", message("MonitoringConfig")).prometheus_config
    assert found.enable and found.path in (DEPLOY / "README.md").read_text()


def test_encryption(tmp_path):
    """The page's script, with invented keys."""
    page = (DEPLOY / "README.md").read_text()
    script = re.search(r"<!-- file: ssl.sh -->\n```bash\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "deploy").mkdir()
    files = {
        name: f"-----BEGIN {name}-----\nab+/=\n-----END {name}-----\n"
        for name in ("server.key", "server.pem", "ca.pem")
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["bash", "-eu", "-c", script], cwd=tmp_path, check=True, timeout=300)
    path = tmp_path / "deploy" / "ssl.config"
    found = text_format.Parse(path.read_text(), message("SSLConfig"))
    assert (found.server_key, found.server_cert, found.custom_ca) == tuple(files.values())
    assert found.client_verify and path.stat().st_mode & 0o077 == 0


def test_a_wrong_field_would_be_found():
    with pytest.raises(text_format.ParseError, match="max_batch"):
        text_format.Parse("max_batch { value: 8 }", message("BatchingParameters"))
    with pytest.raises(text_format.ParseError, match="enabled"):
        text_format.Parse("prometheus_config { enabled: true }", message("MonitoringConfig"))


def test_compose_mounts_what_the_flags_name(compose):
    mounts = dict(reversed(volume.removesuffix(":ro").rsplit(":", 1)) for volume in compose["volumes"])
    assert mounts == {"/models/translate": "${EXPORT_DIR:-../export}", "/config": "."}
    assert all(volume.endswith(":ro") for volume in compose["volumes"])
    assert model_config().base_path in mounts
    for name, value in flags(compose).items():
        if name.endswith("_file"):
            folder, _, file = value.rpartition("/")
            assert mounts[folder] == "." and (DEPLOY / file).is_file(), value
    assert flags(compose)["allow_version_labels_for_unavailable_models"] == "true", "labels are there from the start"


def test_compose_is_of_this_machine_only(compose):
    assert [port.split(":", 1)[0] for port in compose["ports"]] == ["${SERVING_HOST"] * 2
    assert all(port.startswith("${SERVING_HOST:-127.0.0.1}:") for port in compose["ports"])


class Rest(http.server.BaseHTTPRequestHandler):
    """Answers for a server whose label "stable" is loaded."""

    asked = ()

    def do_GET(self):
        type(self).asked += ((self.path, self.headers["Host"]),)
        data = b'{"model_spec": {}, "metadata": {}}'
        self.send_response(200 if "/labels/stable/" in self.path else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def test_health_check(compose):
    """Its own words, with another port: 0 for a loaded label; not for one that is not loaded, nor without a server."""
    kind, *words = compose["healthcheck"]["test"]
    assert kind == "CMD"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Stable", (Rest,), {}))
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def check(old="", new=""):
        script = words[-1].replace("8501", str(server.server_port)).replace(old, new) if old else words[-1]
        return subprocess.run(
            [*words[:-1], script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300
        ).returncode

    assert check("8501", str(server.server_port)) == 0
    assert server.RequestHandlerClass.asked == (("/v1/models/translate/labels/stable/metadata", "localhost"),)
    assert check("stable", "canary") != 0
    server.shutdown()
    server.server_close()
    assert check("8501", str(server.server_port)) != 0
    config = model_config()
    assert f"/v1/models/{config.name}/labels/stable/" in words[-1] and "stable" in config.version_labels


def test_docker_compose_reads_it(tmp_path):
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "compose", "version"], capture_output=True, timeout=300).returncode != 0
    ):
        pytest.skip("no docker compose here")
    command = [docker, "compose", "-f", DEPLOY / "docker-compose.yml", "config"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "EXPORT_DIR": str(tmp_path)}, timeout=300
    )
    assert done.returncode == 0, done.stderr
    service = yaml.safe_load(done.stdout)["services"]["serving"]
    assert {volume["source"] for volume in service["volumes"]} == {str(tmp_path), str(DEPLOY)}
    assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}


def test_images_have_one_version():
    """The same everywhere, which docs/serving.md says is tested, and never whatever is newest."""
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *filter(pathlib.Path.is_file, DEPLOY.iterdir())]
    pages = {path: path.read_text() for path in paths}
    images = [tag for text in pages.values() for tag in re.findall(r"(?<![\w./])tensorflow/serving(:[\w.-]*)?", text)]
    assert len(images) >= 4 and {*images} == {":2.20.0"}
    assert not [path for path, text in pages.items() if ":latest" in text]
    tested = pages[ROOT / "docs" / "serving.md"].partition("## Tested versions")[2].partition("\n## ")[0]
    assert "| 2.20.0 |" in tested


def test_the_servers_own_flags(compose):
    program = shutil.which("tensorflow_model_server")
    if program is None:
        pytest.skip("no tensorflow_model_server on PATH")
    done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=300)
    known = set(re.findall(r"--(\w+)=", done.stdout + done.stderr))
    assert set(flags(compose)) <= known
