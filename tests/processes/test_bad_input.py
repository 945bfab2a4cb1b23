"""Bad input costs who sends it, and nobody else: the API answers in Kubernetes' words, the command line in one line."""

import base64
import json
import shutil
import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from elbowroom.api.resources import actual_requests
from elbowroom.apiserver.drivers.certificates import client_certificate, make_credentials
from elbowroom.client import HttpClient
from elbowroom.testing.cluster import Cluster, Ran, running, until

PODS = "/api/v1/namespaces/default/pods"
QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
AS_A_POD = 'Pod in version "v1" cannot be handled as a Pod: '


class Heartbeat:
    """A client that asks ``/livez`` all the time."""

    def __init__(self, cluster: Cluster) -> None:
        self.seconds: list[float] = []
        self.failures: list[object] = []
        self._client, self._over = cluster.client(), threading.Event()
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def _beat(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            try:
                answer = self._client.get("/livez")
                if (answer.status, answer.body) != (200, b"ok"):
                    self.failures.append((answer.status, answer.body))
            except OSError as why:
                self.failures.append(why)
            self.seconds.append(time.monotonic() - began)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("bad"), "--nodes", "1") as cluster:
        cluster.ask("POST", PODS, a_pod("v", cpu="1"))
        yield cluster


@pytest.fixture(scope="module")
def heartbeat(cluster: Cluster) -> Iterator[Heartbeat]:
    """Beats while every bad request of this module is made."""
    heartbeat = Heartbeat(cluster)
    yield heartbeat
    heartbeat.close()


def a_pod(name: str, **requests: str) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def a_resize(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


def unrecognised(why: str) -> str:
    return f"the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: {why}"


def name_refused(name: str) -> str:
    return f'Pod "{name}" is invalid: metadata.name: Invalid value: "{name}": {SUBDOMAIN}'


def resize_refused(cpu: str, why: str) -> str:
    asked = f"map[spec:map[containers:[map[name:c resources:map[requests:map[cpu:{cpu}]]]]]]"
    return f' "" is invalid: patch: Invalid value: "{asked}": {why}'


NESTED = b'{"apiVersion":"v1","kind":"Pod","metadata":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"
TWICE = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","name":"y"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
STRICT = "?fieldValidation=Strict"

Refusal = tuple[str, str, Any, int, str, str]
REFUSALS: dict[str, Refusal] = {
    "no JSON": (
        "POST", PODS, b"hello",
        400, "BadRequest", unrecognised("invalid character 'h' looking for beginning of value (68656c6c6f)"),
    ),
    "half a document": (
        "POST", PODS, b'{"kind":"Pod"',
        400, "BadRequest", unrecognised('unexpected end of JSON input ({"kind":"Pod")'),
    ),
    "an unknown kind": (
        "POST", PODS, {"apiVersion": "v1", "kind": "Pud", "metadata": {"name": "x"}},
        400, "BadRequest", 'Pud in version "v1" cannot be handled as a Pod: no kind "Pud" is registered for version "v1" in ',
    ),
    "a spec that is a number": (
        "POST", PODS, {**a_pod("x"), "spec": 7},
        400, "BadRequest", AS_A_POD + "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec",
    ),
    "a quantity with two dots": ("POST", PODS, a_pod("x", memory="1.5.5"), 400, "BadRequest", AS_A_POD + QUANTITY),
    "a quantity beyond all bounds": (
        "POST", PODS, a_pod("x", memory="1e3000000"),
        400, "BadRequest", AS_A_POD + "unable to parse quantity's suffix",
    ),
    "a negative request": (
        "POST", PODS, a_pod("x", cpu="-1"),
        422, "Invalid",
        'Pod "x" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "a name that is no DNS name": ("POST", PODS, a_pod("Not_A_Name"), 422, "Invalid", name_refused("Not_A_Name")),
    "NUL in a name": ("POST", PODS, a_pod("a\0b"), 422, "Invalid", name_refused("a\0b")),
    "NUL in the path": ("GET", f"{PODS}/a%00b", None, 404, "NotFound", ""),
    "four megabytes": (
        "POST", PODS, b'{"metadata":{"name":"' + b"a" * (4 << 20) + b'"}}',
        413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728",
    ),
    "deep nesting": ("POST", PODS, NESTED, 400, "BadRequest", unrecognised("exceeded max depth")),
    "an unknown field": ("POST", PODS + STRICT, {**a_pod("x"), "nope": 1}, 400, "BadRequest",
        AS_A_POD + 'strict decoding error: unknown field "nope"',
    ),
    "a field told twice": ("POST", PODS + STRICT, TWICE, 400, "BadRequest",
        AS_A_POD + 'strict decoding error: duplicate field "metadata.name"',
    ),
    "a resize to no quantity": ("PATCH", f"{PODS}/v/resize", a_resize("1.5.5"), 422, "Invalid", resize_refused("1.5.5", QUANTITY)),
    "a resize beyond all bounds": (
        "PATCH", f"{PODS}/v/resize", a_resize("1e3000000"),
        422, "Invalid", resize_refused("1e3000000", "unable to parse quantity's suffix"),
    ),
    "a resize below nothing": (
        "PATCH", f"{PODS}/v/resize", a_resize("-1"),
        422, "Invalid",
        'Pod "v" is invalid: [spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "an unknown field in a resize": (
        "PATCH", f"{PODS}/v/resize{STRICT}", {"spec": {"nope": 1}},
        422, "Invalid",
        ' "" is invalid: patch: Invalid value: "map[spec:map[nope:1]]": strict decoding error: unknown field "spec.nope"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(REFUSALS))
def test_the_api_refuses(cluster: Cluster, heartbeat: Heartbeat, what: str) -> None:
    method, path, body, code, reason, message = REFUSALS[what]
    content_type = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
    before = len(heartbeat.seconds)
    answer = cluster.http.request(method, path, body, content_type=content_type)
    status = answer.document
    assert (answer.status, status["kind"], status["status"], status["code"], status["reason"]) == (
        (code, "Status", "Failure", code, reason)
    )
    assert status["message"].startswith(message)
    until("the server beats on", lambda: len(heartbeat.seconds) > before + 1)


def a_client(cluster: Cluster, folder: Path, user: str, *groups: str) -> HttpClient:
    """A client with a certificate of the cluster's authority, and no other proof of who it is."""
    certificate, key = client_certificate(make_credentials(cluster.home / "data" / "pki"), user, groups)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    proof = {"client-certificate-data": certificate, "client-key-data": key}
    config["users"][0]["user"] = {name: base64.b64encode(pem).decode() for name, pem in proof.items()}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return HttpClient(path)


def test_a_flood_costs_its_sender_alone(cluster: Cluster, heartbeat: Heartbeat, tmp_path: Path) -> None:
    binding = {
        "metadata": {"name": "noisy"},
        "roleRef": {"kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "noisy"}],
    }
    cluster.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    noisy = a_client(cluster, tmp_path, "noisy")
    try:
        said = [noisy.request("POST", PODS, b" " * 1_000_000).status for _ in range(4)]
        assert said[0] == 400 and set(said) <= {400, 429}  # how many are refused depends on how fast they come
    finally:
        noisy.close()
    resize = a_resize("2")
    cluster.ask("PATCH", f"{PODS}/v/resize", resize, kind="application/strategic-merge-patch+json")
    until("the node goes on", lambda: actual_requests(cluster.pods()["v"]).get("cpu") == 2000)


def test_a_kubelet_over_https_is_held_to_its_own_node(cluster: Cluster, tmp_path: Path) -> None:
    kubelet = a_client(cluster, tmp_path, "system:node:node-9", "system:nodes")
    try:
        assert kubelet.get(PODS).status == kubelet.get("/api/v1/nodes/node-1").status == kubelet.get(f"{PODS}/v").status == 403
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"
        assert kubelet.patch(lease, {"spec": {}}, "application/merge-patch+json").status == 403
    finally:
        kubelet.close()


def test_who_connects_and_says_nothing_keeps_nobody_out(cluster: Cluster, heartbeat: Heartbeat) -> None:
    address = cluster.status()["server"].removeprefix("https://").split(":")
    silent = [socket.create_connection((address[0], int(address[1]))) for _ in range(300)]
    try:
        with closing(cluster.client()) as client:
            assert client.get("/livez").status == 200
        before = len(heartbeat.seconds)
        until("the server beats on", lambda: len(heartbeat.seconds) > before + 1)
    finally:
        for one in silent:
            one.close()


def test_the_bus_is_in_a_folder_that_nobody_else_can_enter(cluster: Cluster) -> None:
    sockets = Path(json.loads((cluster.home / "state.json").read_text())["sockets"])
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700 and list(sockets.iterdir())


def test_no_token_is_written_down(cluster: Cluster) -> None:
    tokens = make_credentials(cluster.home / "data" / "pki").tokens.values()
    written = [path for path in cluster.home.rglob("*") if path.is_file() and path.name not in ("tokens.json", "kubeconfig")]
    assert any(path.suffix == ".log" for path in written)
    assert not [path for path in written for token in tokens if token.encode() in path.read_bytes()]


def test_nobody_else_noticed(cluster: Cluster, heartbeat: Heartbeat) -> None:
    assert heartbeat.failures == []
    assert len(heartbeat.seconds) > len(REFUSALS)
    assert sorted(heartbeat.seconds)[int(len(heartbeat.seconds) * 0.99)] < 0.5
    assert list(cluster.pods()) == ["v"]
    assert all(component["restarts"] == 0 for component in cluster.components().values())


# ---------------------------------------------------------------- the command line


def refused(ran: Ran, *words: str) -> None:
    """Exit code 2 and one line on stderr, with these words."""
    assert ran.returncode == 2, ran
    assert ran.stderr.startswith("elbowroom: ") and ran.stderr.count("\n") == 1, ran.stderr
    for word in words:
        assert word in ran.stderr


def a_file(spec: str, head: str = "apiVersion: elbowroom.dev/v1alpha1\nkind: Cluster\n") -> str:
    return f"{head}spec: {spec}\n"


FILES: dict[str, tuple[str, str]] = {
    "an unknown field": (a_file("{nods: []}"), "spec.nods: there is no such field"),
    "a wrong type": (a_file("{nodes: [{count: three}]}"), "spec.nodes[0].count: "),
    "an unknown gate": (a_file("{featureGates: {InPlaceMagic: true}}"), "InPlaceMagic"),
    "an unknown kubelet option": (a_file("{nodes: [{kubelet: {maxPodz: 3}}]}"), "maxPodz"),
    "another kind": (a_file("{}", "apiVersion: elbowroom.dev/v1alpha1\nkind: Pod\n"), "kind: must be 'Cluster', not 'Pod'"),
    "no YAML": ("{]", "not YAML"),
    "an alias bomb": (a_file("{}") + "metadata:\n  a: &a [x, x, x]\n  name: [*a, *a]\n", "line 6: aliases (*name) are not read"),
}


@pytest.mark.parametrize("what", list(FILES))
def test_up_refuses_a_file_with(what: str, tmp_path: Path) -> None:
    text, word = FILES[what]
    (tmp_path / "cluster.yaml").write_text(text)
    cluster = Cluster(tmp_path)
    refused(cluster.try_elbowroom("up", "--detach", "-f", str(tmp_path / "cluster.yaml")), word)
    assert not cluster.home.exists()


def test_up_refuses_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(Cluster(tmp_path).try_elbowroom("up", "--detach", "--port", str(port)), f"port {port} is in use")


def test_up_refuses_a_name_that_runs(cluster: Cluster) -> None:
    refused(cluster.try_elbowroom("up", "--detach"), "is up already", "elbowroom down")
    assert cluster.status()["nodes"] == {"total": 1, "ready": 1}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("kill", "apisrever"), "there is: apiserver, controllers, kubelet/node-1, runtime/node-1, scheduler"),
        (("kill", "kubelet/node-9"), "kubelet/node-9"),
        (("kill", "scheduler", "--signal", "NUDGE"), "NUDGE"),
        (("logs", "nobody"), "nobody"),
        (("demo", "romance"), "romance"),
        (("frobnicate",), "frobnicate"),
        (("check", "/nowhere"), "/nowhere"),
        (("up", "--node-memory", "lots", "--name", "other"), "'lots' is no quantity"),
        (("up", "--feature-gates", "A", "--name", "other"), "Gate=true"),
        (("up", "--name", "../other"), "cannot name a cluster"),
        (("down", "--name", "other"), "no cluster 'other' is running (running: default; "),
        (("status", "--name", "other"), "no cluster 'other' is running"),
        (("kubeconfig", "--name", "other"), "no cluster 'other' is running"),
    ],
    ids=lambda arguments: " ".join(arguments) if isinstance(arguments, tuple) else "",
)
def test_the_command_line_refuses(cluster: Cluster, arguments: tuple[str, ...], word: str) -> None:
    refused(cluster.try_elbowroom(*arguments), word)


def test_down_of_nothing_says_how_to_begin(tmp_path: Path) -> None:
    refused(Cluster(tmp_path).try_elbowroom("down"), "no cluster 'default' is running", "elbowroom up --detach")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A cluster that was up, and is down."""
    with running(tmp_path_factory.mktemp("used"), "--nodes", "0") as cluster:
        cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})
    return cluster


def of_another_version(store: Path) -> None:
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def no_database(store: Path) -> None:
    store.write_bytes(b"this is no database, " * 1000)


def a_bit_flipped(store: Path) -> None:
    with sqlite3.connect(store) as database:
        database.execute("UPDATE log SET value = x'00000000' || substr(value, 5) WHERE rev = (SELECT min(rev) FROM log)")
    database.close()


@pytest.mark.parametrize(
    ("spoil", "word"), [(of_another_version, "schema version 99"), (no_database, "not a database"), (a_bit_flipped, "")]
)
def test_up_refuses_a_store_that_is(used: Cluster, tmp_path: Path, spoil: Callable[[Path], None], word: str) -> None:
    shutil.copytree(used.home, tmp_path / "clusters" / "default", ignore=shutil.ignore_patterns("history"))
    cluster = Cluster(tmp_path)
    store = cluster.home / "data" / "apiserver.db"
    spoil(store)
    before = store.read_bytes()
    refused(cluster.try_elbowroom("up", "--detach", "--nodes", "0"), "apiserver cannot start", word)
    assert store.read_bytes() == before
    refused(cluster.try_elbowroom("down"), "no cluster 'default' is running")


def test_what_was_written_is_there_again(used: Cluster) -> None:
    try:
        used.elbowroom("up", "--detach", "--nodes", "0")
        assert used.ask("GET", "/api/v1/namespaces/kept")["metadata"]["name"] == "kept"
    finally:
        used.close()
        used.elbowroom("down")
