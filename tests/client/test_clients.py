"""The two clients against a real API server: the bus's with watches that survive it, the HTTPS one from a kubeconfig."""

import asyncio
import queue
import select
import socket
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop
import yaml

from elbowroom.api.gates import profile_of
from elbowroom.api.objects import Object
from elbowroom.apiserver.drivers.certificates import make_credentials, write_kubeconfig
from elbowroom.client import ApiError, BusClient, HttpClient
from elbowroom.host.process import Host
from elbowroom.host.spec import DriverSpec, HostSpec, MachineSpec, RestartMachine
from elbowroom.rpc import MERGE_PATCH, create, get, listing


class ApiServer:
    """An API server with its facade, in a thread of its own, on a disk in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"ipc://{folder}/apiserver.sock"
        self.kubeconfig = folder / "kubeconfig"
        self._loop = uvloop.new_event_loop()
        self._ready: queue.Queue[Mapping[str, Any]] = queue.Queue()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        credentials = make_credentials(folder / "pki")
        write_kubeconfig(self.kubeconfig, credentials, f"https://127.0.0.1:{self.port}")
        facade = DriverSpec(
            "elbowroom.apiserver.drivers.facade:build",
            {"port": self.port, "credentials": str(folder / "pki"), "tokens": credentials.identities},
        )
        config = {"profile": profile_of("v1.37").as_config(), "store": "memory"}
        self._machine = MachineSpec("apiserver", "elbowroom.apiserver.machine:build", config, bind=self.address, drivers=[facade])
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self._ready.get(timeout=20)

    def _serve(self) -> None:
        async def serve() -> None:
            self.host = Host(HostSpec("p", [self._machine, MachineSpec("idle", "test_clients:idle")]), self._loop)
            told = self.host.report

            def report(what: Any) -> None:
                told(what)
                if type(what).__name__ == "Ready" and what.machine == "apiserver":
                    self._ready.put(what.facts)

            self.host.report = report  # type: ignore[method-assign]
            await self.host.serve()

        self._loop.run_until_complete(serve())

    def restart(self) -> None:
        self._loop.call_soon_threadsafe(self.host.obey, RestartMachine("apiserver"))
        self._ready.get(timeout=20)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.host.shut_down)
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._loop.close()


class _Idle:
    """Makes the process a shared one, whose machines can be restarted."""

    def start(self, now: int, disk: Mapping[str, bytes]) -> list[Any]:
        return []

    def step(self, now: int, happened: Any) -> list[Any]:
        return []


def idle(config: Mapping[str, Any], rng: object) -> _Idle:
    return _Idle()


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with tempfile.TemporaryDirectory(prefix="eb") as folder:
        made = ApiServer(Path(folder))
        yield made
        made.close()


def on_bus(test: Callable[[ApiServer, BusClient], Coroutine[Any, Any, None]]) -> Callable[[ApiServer], None]:
    """Run a test with a connected client."""

    def wrapped(server: ApiServer) -> None:
        async def run() -> None:
            async with asyncio.timeout(20), BusClient("", server.address) as client:
                await test(server, client)

        uvloop.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# ---------------------------------------------------------------- on the bus


@on_bus
async def test_objects_are_made_read_listed_changed_and_removed(server: ApiServer, client: BusClient) -> None:
    made = await client.create("configmaps", config_map("crud", a="1"), namespace="default")
    assert made["metadata"]["uid"]
    assert (await client.get("configmaps", "crud", namespace="default"))["data"] == {"a": "1"}
    changed = await client.patch("configmaps", "crud", {"data": {"b": "2"}}, namespace="default", kind=MERGE_PATCH)
    assert changed["data"] == {"a": "1", "b": "2"}
    replaced = await client.update("configmaps", "crud", {**changed, "data": {}}, namespace="default")
    assert "data" not in replaced or replaced["data"] == {}
    names = [item["metadata"]["name"] for item in (await client.list("configmaps", namespace="default"))["items"]]
    assert "crud" in names
    await client.delete("configmaps", "crud", namespace="default")
    with pytest.raises(ApiError) as refused:
        await client.get("configmaps", "crud", namespace="default")
    assert (refused.value.status, refused.value.reason) == (404, "NotFound")
    assert str(refused.value) == '404 NotFound: configmaps "crud" not found'


@on_bus
async def test_a_watch_gives_the_state_and_then_every_change_over_a_restart(server: ApiServer, client: BusClient) -> None:
    await client.create("configmaps", config_map("w0"), namespace="kube-system")
    seen: list[tuple[str, bool]] = []
    watch = client.watch("configmaps", Object, namespace="kube-system", query={"fieldSelector": "metadata.name!=kube-root-ca.crt"})

    async def until(name: str, gone: bool) -> None:
        async for change in watch:
            seen.append((change.key.partition("/")[2], change.new is None))
            if seen[-1] == (name, gone):
                return

    await until("w0", False)
    await client.create("configmaps", config_map("w1"), namespace="kube-system")
    await until("w1", False)
    await asyncio.to_thread(server.restart)
    while (await client.api(create("configmaps", config_map("w2"), namespace="kube-system"))).status not in (201, 409):
        pass
    await until("w2", False)
    while (await client.api(get("configmaps", "w2", namespace="kube-system"))).status != 200:
        pass
    await client.delete("configmaps", "w2", namespace="kube-system")
    await until("w2", True)
    assert seen == [("w0", False), ("w1", False), ("w2", False), ("w2", True)]
    await watch.aclose()  # type: ignore[attr-defined]


@on_bus
async def test_a_client_that_closes_ends_its_requests_and_watches(server: ApiServer, client: BusClient) -> None:
    other = BusClient("", f"ipc://{server.folder}/nobody", peer="apiserver")
    await other.start()
    asked = asyncio.ensure_future(other.api(listing("nodes"), timeout=60))
    watch = other.watch("nodes", Object)
    waiting = asyncio.ensure_future(anext(watch, None))
    await asyncio.sleep(0)
    await other.close()
    assert (await asked).status == 0
    assert await waiting is None


@on_bus
async def test_a_server_that_is_away_means_nobody_knows(server: ApiServer, client: BusClient) -> None:
    notes: list[tuple[str, Mapping[str, Any]]] = []
    async with BusClient("", f"ipc://{server.folder}/nobody", note=lambda kind, facts: notes.append((kind, facts))) as lonely:
        with pytest.raises(ApiError, match="deadline exceeded") as unknown:
            await lonely.document(create("nodes", {"metadata": {"name": "n"}}), timeout=0.05)
    assert unknown.value.status == 0
    assert [kind for kind, _ in notes] == ["api.invoke", "api.info"]
    assert {facts["op"] for _, facts in notes} == {notes[0][1]["op"]}


@on_bus
async def test_a_client_whose_history_matters_says_how_each_request_ended(server: ApiServer, client: BusClient) -> None:
    notes: list[tuple[str, Mapping[str, Any]]] = []
    async with BusClient("client/noted", server.address, note=lambda kind, facts: notes.append((kind, facts))) as noted:
        made = await noted.create("configmaps", config_map("noted"), namespace="default")
        await noted.api(create("configmaps", config_map("noted"), namespace="default"))
    kinds = [kind for kind, facts in notes if kind.startswith("api.")]
    assert kinds == ["api.invoke", "api.ok", "api.invoke", "api.fail"]
    assert str(notes[1][1]["rev"]) == made["metadata"]["resourceVersion"]
    assert notes[1][1]["key"] == "configmaps/default/noted"


@on_bus
async def test_many_requests_can_be_under_way(server: ApiServer, client: BusClient) -> None:
    answers = await asyncio.gather(
        *(client.api(create("configmaps", config_map(f"m{n}"), namespace="default")) for n in range(200))
    )
    assert {answer.status for answer in answers} == {201}
    assert len({answer.revision for answer in answers}) == 200


@on_bus
async def test_a_request_that_is_given_up_is_forgotten(server: ApiServer, client: BusClient) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.call("nothing answers this", timeout=60), 0.0)
    assert (await client.api(listing("nodes"))).status == 200
    assert len(client._calls) == 0


# ---------------------------------------------------------------- over HTTPS


@pytest.fixture
def http(server: ApiServer) -> Iterator[HttpClient]:
    client = HttpClient(server.kubeconfig)
    yield client
    client.close()


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_requests_over_https_reach_the_same_registry(http: HttpClient) -> None:
    assert http.post(CONFIG_MAPS, config_map("h", a="1")).status == 201
    assert http.patch(f"{CONFIG_MAPS}/h", {"data": {"a": "2"}}).document["data"] == {"a": "2"}
    found = http.get(f"{CONFIG_MAPS}/h")
    assert (found.status, found.document["data"]) == (200, {"a": "2"})
    assert http.put(f"{CONFIG_MAPS}/h", {**found.document, "data": {"a": "3"}}).document["data"] == {"a": "3"}
    listed = http.get(CONFIG_MAPS, {"fieldSelector": "metadata.name=h"}).document
    assert [item["metadata"]["name"] for item in listed["items"]] == ["h"]
    assert http.delete(f"{CONFIG_MAPS}/h", {"gracePeriodSeconds": 0}).status == 200
    assert http.get(f"{CONFIG_MAPS}/h").document["reason"] == "NotFound"


def test_one_connection_serves_many_requests_and_a_new_one_a_restarted_server(server: ApiServer, http: HttpClient) -> None:
    assert http.get("/version").status == 200
    before = http._connection
    assert http.get("/version").status == 200
    assert http._connection is before
    server.restart()
    assert http.post(CONFIG_MAPS, config_map("after-restart")).status == 201
    assert http._connection is not before


def test_a_watch_gives_lines_until_nothing_comes(http: HttpClient) -> None:
    start = http.get(CONFIG_MAPS, {"limit": "1"}).document["metadata"]["resourceVersion"]
    http.post(CONFIG_MAPS, config_map("lines"))
    http.delete(f"{CONFIG_MAPS}/lines")
    events = http.watch(CONFIG_MAPS, resource_version=start, timeout=5.0)
    told = [(kind, found["metadata"]["name"]) for kind, found in (next(events), next(events))]
    assert told == [("ADDED", "lines"), ("DELETED", "lines")]
    events.close()  # type: ignore[attr-defined]
    quiet = http.watch(CONFIG_MAPS, resource_version=http.get(CONFIG_MAPS).document["metadata"]["resourceVersion"], timeout=0.1)
    assert [kind for kind, _ in quiet if kind != "BOOKMARK"] == []


def test_a_watch_that_is_refused_is_one_error_event(http: HttpClient) -> None:
    assert [(kind, status["code"]) for kind, status in http.watch("/api/v1/nonsense", timeout=5.0)] == [("ERROR", 404)]


def test_a_wrong_token_is_401_and_an_unknown_authority_is_refused(server: ApiServer, tmp_path: Path) -> None:
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "wrong"}
    (tmp_path / "wrong").write_text(yaml.safe_dump(config))
    assert HttpClient(tmp_path / "wrong").get(CONFIG_MAPS).status == 401
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "stranger").write_text(yaml.safe_dump(config))
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        HttpClient(tmp_path / "stranger").get("/version")


# ---------------------------------------------------------------- a server that misbehaves


class Scripted:
    """A plain HTTP server that says the same thing to each connection, then closes it."""

    def __init__(self, says: bytes, folder: Path) -> None:
        self._says = says
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.kubeconfig = folder / "kubeconfig"
        name = {"name": "x"}
        config = {
            "current-context": "x",
            "contexts": [{**name, "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{**name, "cluster": {"server": f"http://127.0.0.1:{self._socket.getsockname()[1]}"}}],
            "users": [{**name, "user": {}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.connections += 1
                connection.recv(65536)
                connection.sendall(self._says)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.mark.parametrize(
    "says", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", b"nonsense\r\n\r\n"], ids=["nothing", "half", "nonsense"]
)
def test_an_answer_that_breaks_off_is_a_connection_error_and_the_request_is_not_sent_twice(says: bytes, tmp_path: Path) -> None:
    server = Scripted(says, tmp_path)
    with pytest.raises(ConnectionError):
        HttpClient(server.kubeconfig, timeout=5).post("/api/v1/things", {})
    server.close()
    assert server.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_replaced_unnoticed(tmp_path: Path) -> None:
    server = Scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", tmp_path)
    client = HttpClient(server.kubeconfig, timeout=5)
    for count in range(1, 4):
        assert client.post("/api/v1/things", {}).status == 200
        assert server.connections == count
        assert client._connection is not None
        assert select.select([client._connection.sock], [], [], 5)[0], "the server has closed it"
    client.close()
    server.close()


def test_a_body_that_is_no_json_is_a_message(tmp_path: Path) -> None:
    server = Scripted(b"HTTP/1.1 502 Bad\r\nContent-Length: 4\r\n\r\noops", tmp_path)
    answer = HttpClient(server.kubeconfig, timeout=5).get("/x")
    server.close()
    assert (answer.status, answer.document) == (502, {"message": "oops"})
