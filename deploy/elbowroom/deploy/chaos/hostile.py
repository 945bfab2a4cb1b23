"""A client that sends what no client should, again and again, over connections of its own."""

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from elbowroom.client import context_of
from elbowroom.deploy.chaos.background import Background

PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json"
PATIENCE_SECONDS = 5.0
OUR_FAULT = (500, 502, 504)
"""What a server answers that has failed. (503 it may say while it is about to end.)"""


def _a_pod(**odd: str) -> str:
    facts = {"name": '"odd"', "memory": '"1Mi"', "more": "", **odd}
    resources = f'{{"requests":{{"memory":{facts["memory"]}}}}}'
    container = f'{{"name":"c","image":"i","resources":{resources}}}'
    head = f'"apiVersion":"v1","kind":"Pod","metadata":{{"name":{facts["name"]}}}'
    return f'{{{head},"spec":{{"containers":[{container}]{facts["more"]}}}}}'


BODIES: Mapping[str, str] = {
    "too deep": "[" * 5000 + "]" * 5000,
    "a number that is none": _a_pod(memory="NaN"),
    "a number without end": _a_pod(memory="9" * 5000),
    "an amount without end": _a_pod(memory='"1e3000000"'),
    "digits of another script": _a_pod(memory='"\uff11\uff12"'),
    "half a character": _a_pod(name='"\\ud800"'),
    "a name that is a path": _a_pod(name='"../../etc"'),
    "a field told twice": _a_pod(more=',"nodeName":"a","nodeName":"b"'),
    "half a document": _a_pod()[:40],
    "no document": "\x00\x01\x02",
}
PATHS = (
    f"{PODS}/..%2f..%2fsecrets",
    f"{PODS}/%2e%2e/x",
    f"//{PODS}",
    f"{PODS}/a%00b",
    f"{PODS}?limit=-1",
    f"{PODS}?labelSelector=%28",
)


class HostileClient(Background):
    """It works in a thread until ``end``. ``sent`` counts what it sent; ``failures`` are answers that say the server had failed."""

    def __init__(self, kubeconfig: Path, rng: Random) -> None:
        context = context_of(kubeconfig)
        server = urlsplit(context.server)
        assert context.tls is not None and server.hostname and server.port
        self._tls, self._host, self._port = context.tls, server.hostname, server.port
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in context.headers.items())
        self._rng = rng
        self.sent = 0
        self.failures: list[str] = []
        super().__init__(self._work)

    def _work(self, over: threading.Event) -> None:
        while not over.wait(0.01):
            what, raw = self._something()
            with suppress(OSError):  # it hung up on us, or is not there
                status = self._answer(raw)
                self.sent += 1
                if status in OUR_FAULT:
                    self.failures.append(f"{status} to {what}")

    def _something(self) -> tuple[str, bytes]:
        """What is sent next, in words and in bytes."""
        match self._rng.randrange(6):
            case 0:
                path = self._rng.choice(PATHS)
                return path, self._head("GET", path, self._headers)
            case 1:
                return "a made-up token", self._head("GET", PODS, "Authorization: Bearer made-up\r\n")
            case 2:
                two = f"{self._headers}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"
                return "two lengths", self._head("POST", PODS, two) + b"0\r\n\r\n"
            case 3:
                size = f"{self._headers}Content-Type: {JSON}\r\nContent-Length: 1000000000\r\n"
                return "a body of a gigabyte", self._head("POST", PODS, size) + b"{"
            case 4:
                operations = '{"op":"add","path":"/metadata/labels/a","value":"b"}'
                body = f"[{','.join([operations] * 2000)}]"
                return "two thousand operations", self._whole("PATCH", f"{PODS}/web-1", body, "application/json-patch+json")
            case _:
                what = self._rng.choice(sorted(BODIES))
                return what, self._whole("POST", PODS, BODIES[what], JSON)

    def _whole(self, method: str, path: str, body: str, kind: str) -> bytes:
        raw = body.encode("utf-8", "surrogatepass")
        return self._head(method, path, f"{self._headers}Content-Type: {kind}\r\nContent-Length: {len(raw)}\r\n") + raw

    def _head(self, method: str, path: str, headers: str) -> bytes:
        return f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n".encode()

    def _answer(self, raw: bytes) -> int:
        """The status of the answer, 0 if there was none."""
        bare = socket.create_connection((self._host, self._port), timeout=PATIENCE_SECONDS)
        with bare, self._tls.wrap_socket(bare, server_hostname=self._host) as secured:
            secured.sendall(raw)
            return _status(secured)


def _status(secured: ssl.SSLSocket) -> int:
    told = secured.recv(64).split(b" ", 2)
    return int(told[1]) if len(told) > 1 and told[1].isdigit() else 0
