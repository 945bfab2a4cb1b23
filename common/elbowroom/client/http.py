"""A small synchronous HTTPS client for the Kubernetes API, from a kubeconfig: tests, stories and benchmarks are its users."""

import base64
import http.client
import select
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import yaml

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. ``document`` is the JSON body; ``{}`` if there is none."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        if not self.body:
            return {}
        try:
            return msgspec.json.decode(self.body)
        except msgspec.MsgspecError:
            return {"message": self.body.decode(errors="replace")}


class HttpClient:
    """A keep-alive connection to the server of a kubeconfig's current context. Used by one thread at a time.

    Paths are those of the API (``/api/v1/namespaces/default/pods``), bodies are documents or bytes. A connection that breaks raises
    ``ConnectionError``: nobody knows what became of the request. Only a request whose idle connection the server had closed
    before is sent over a new one.
    """

    def __init__(self, kubeconfig: str | Path, *, timeout: float = 30.0) -> None:
        context = context_of(Path(kubeconfig))
        self._server, self._headers, self._tls = context.server, context.headers, context.tls
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str, query: Mapping[str, str] | None = None, *, accept: str = _JSON) -> Answer:
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path, accept=accept)

    def post(self, path: str, body: Any) -> Answer:
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Answer:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, content_type: str = "application/strategic-merge-patch+json") -> Answer:
        return self.request("PATCH", path, body, content_type=content_type)

    def delete(self, path: str, options: Any = None) -> Answer:
        return self.request("DELETE", path, options)

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = _JSON, accept: str = _JSON) -> Answer:
        """One request and its answer, whatever its status is."""
        connection = self._open()
        try:
            connection.request(method, path, _raw(body), self._with(content_type, accept))
            response = connection.getresponse()
            answer = Answer(response.status, dict(response.headers), response.read())
        except http.client.HTTPException as why:
            self.close()
            raise ConnectionError(f"{method} {path}: {why!r}") from why
        except OSError:
            self.close()
            raise
        if response.will_close:
            self.close()
        return answer

    def watch(
        self, path: str, *, resource_version: str = "", timeout: float | None = None, query: Mapping[str, str] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """The events of a collection as (type, object), over a connection of its own, until the server ends the stream or nothing
        came for ``timeout`` seconds. A refusal is one ``ERROR`` event with the Status."""
        wanted = {"watch": "true", "allowWatchBookmarks": "true", **(query or {})}
        if resource_version:
            wanted["resourceVersion"] = resource_version
        connection = self._connect(timeout)
        try:
            connection.request("GET", f"{path}?{urlencode(wanted)}", headers=self._with(_JSON, _JSON))
            response = connection.getresponse()
            if response.status != 200:
                yield "ERROR", Answer(response.status, {}, response.read()).document
                return
            while line := response.readline():
                event = msgspec.json.decode(line)
                yield event["type"], event["object"]
        except TimeoutError:
            return
        except http.client.HTTPException as why:
            raise ConnectionError(f"watch {path}: {why!r}") from why
        finally:
            connection.close()

    def _with(self, content_type: str, accept: str) -> dict[str, str]:
        return {**self._headers, "Content-Type": content_type, "Accept": accept}

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is not None and self._connection.sock is not None:
            readable, _, _ = select.select([self._connection.sock], [], [], 0)
            if not readable:
                return self._connection
            self.close()  # the server has closed it: nothing else is said on an idle connection
        self._connection = self._connect(self._timeout)
        return self._connection

    def _connect(self, timeout: float | None) -> http.client.HTTPConnection:
        address = urlsplit(self._server)
        host = address.hostname or "localhost"
        if address.scheme == "https":
            return http.client.HTTPSConnection(host, address.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(host, address.port, timeout=timeout)


@dataclass(frozen=True, slots=True)
class Context:
    """Where a kubeconfig's current context leads, and what proves who asks."""

    server: str
    headers: dict[str, str]
    tls: ssl.SSLContext | None


def context_of(kubeconfig: Path) -> Context:
    """The server, credentials and trust of the current context; ``KeyError`` or ``StopIteration`` for a kubeconfig without one."""
    config, folder = yaml.safe_load(kubeconfig.read_text()), kubeconfig.parent

    def named(kind: str, name: str) -> dict[str, Any]:
        return next(entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name)

    context = named("context", config["current-context"])
    cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    tls = ssl.create_default_context(cadata=_text(cluster, "certificate-authority", folder))
    if "client-certificate" in user or "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:  # OpenSSL reads certificates with keys from files only
            pem.write(f"{_text(user, 'client-certificate', folder)}\n{_text(user, 'client-key', folder)}")
            pem.flush()
            tls.load_cert_chain(pem.name)
    return Context(cluster["server"], headers, tls)


def _text(entry: Mapping[str, Any], name: str, folder: Path) -> str | None:
    if f"{name}-data" in entry:
        return base64.b64decode(entry[f"{name}-data"]).decode()
    return (folder / entry[name]).read_text() if name in entry else None


def _raw(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
