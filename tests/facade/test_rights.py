"""Nobody without rights changes anything: each kind of caller, on every verb of everything that is served."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from elbowroom.apiserver import discovery
from elbowroom.apiserver.drivers.tokens import TokenKey
from elbowroom.apiserver.tokens import ISSUER

from .conftest import Connection
from .whole import JSON, Whole, bearer, play

METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
METHODS["deletecollection"] = "DELETE"
CALLERS = ("none", "bad", "expired", "other", "n1", "n2", "scheduler", "admin")
EVERYBODY = frozenset(
    f"create {what}"
    for what in (
        "selfsubjectreviews.authentication.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
    )
)
"""What upstream's default policy allows to all who are known."""
EVENTS = {f"{verb} {events}" for verb in ("create", "patch", "update") for events in ("events", "events.events.k8s.io")}
NODES = EVERYBODY | {
    *(f"{verb} services" for verb in ("get", "list", "watch")),
    *EVENTS,
    "create nodes",
    "create pods",
}
"""What the node authorizer allows to each node, whatever it is about; what is in the body is judged later."""
OWN = {
    *(f"{verb} nodes" for verb in ("get", "patch", "update")),
    *(f"{verb} nodes/status" for verb in ("patch", "update")),
    *(f"{verb} pods" for verb in ("get", "delete")),
    *(f"{verb} pods/status" for verb in ("patch", "update")),
    "create pods/eviction",
    "get serviceaccounts",
}
"""And what only to n1, where the pod is, whose node and account these are."""
SCHEDULER = EVERYBODY | {
    *EVENTS,
    *(f"{verb} leases.coordination.k8s.io" for verb in ("create", "update", "patch")),
    *(f"{verb} pods/status" for verb in ("patch", "update")),
    *("create pods/binding", "create bindings", "delete pods"),
    *("create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"),
}
READS = ("get", "list", "watch")
REFUSED_LATER = {
    "n1": {"create pods", "create nodes"},
    "n2": {"create pods", "create nodes"},
}
"""Where NodeRestriction refuses what the authorizer lets pass: pods that are no mirrors, nodes of other names."""


def everything() -> Iterator[tuple[str, str, str]]:
    """(what, method, path) of each verb of each resource and subresource, about the pod ``a``, the node ``n1`` and so on."""
    for resource in discovery.RESOURCES:
        base = f"/api/{resource.version}" if not resource.group else f"/apis/{resource.group}/{resource.version}"
        where = f"{base}/namespaces/default" if resource.namespaced else base
        name = {"nodes": "n1", "serviceaccounts": "default"}.get(resource.plural, "a")
        for verb in resource.verbs:
            single = "" if verb in ("list", "watch", "create", "deletecollection") else f"/{name}"
            query = "?watch=1&timeoutSeconds=1" if verb == "watch" else ""
            yield f"{verb} {resource.qualified}", METHODS[verb], f"{where}/{resource.plural}{single}{query}"
        for sub in resource.subresources:
            what = f"{resource.plural}/{sub.name}" + (f".{resource.group}" if resource.group else "")
            for verb in sub.verbs:
                yield f"{verb} {what}", METHODS[verb], f"{where}/{resource.plural}/{name}/{sub.name}"


def may(caller: str, what: str) -> bool:
    verb = what.partition(" ")[0]
    match caller:
        case "admin":
            return True
        case "other":
            return what in EVERYBODY
        case "n1":
            return what in (NODES | OWN) - REFUSED_LATER["n1"]
        case "n2":
            return what in NODES - REFUSED_LATER["n2"]
        case "scheduler":
            return what in SCHEDULER or verb in READS
        case _:
            return False


def test_every_verb_is_for_those_who_may(pki: Path, tmp_path: Path) -> None:
    async def scenario(it: Whole) -> None:
        await it.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        await it.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        pod = {"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
        await it.create("/api/v1/namespaces/default/pods", pod)
        private = {"namespace": "default", "serviceaccount": {"name": "default", "uid": "x"}}
        claims = {
            "aud": [ISSUER],
            "exp": 1,
            "iss": ISSUER,
            "sub": "system:serviceaccount:default:default",
            "kubernetes.io": private,
        }
        proofs = {"bad": bearer("wrong"), "expired": bearer(TokenKey(it.credentials.account_key).sign(claims))}
        users = {
            "other": ("ann", "ops"),
            "n1": ("system:node:n1", "system:nodes"),
            "n2": ("system:node:n2", "system:nodes"),
            "scheduler": ("system:kube-scheduler",),
        }
        all_of_it = list(everything())
        assert len(all_of_it) > 200
        before = (await it.ask("GET", "/api/v1/pods")).json()["metadata"]["resourceVersion"]
        it.mini.facade._buckets.wait = lambda now, who=None: 0.0  # type: ignore[method-assign,assignment]
        refused: dict[str, int] = {}
        for caller in CALLERS[:-1]:
            connection = await it.connect(*users.get(caller, ()))
            for what, method, path in all_of_it:
                if may(caller, what):
                    continue
                status = await _status(connection, method, path, proofs.get(caller, {}))
                assert status == (401 if caller in proofs else 403), f"{caller} {what}: {status}"
                refused[caller] = refused.get(caller, 0) + 1
        assert (await it.ask("GET", "/api/v1/pods")).json()["metadata"]["resourceVersion"] == before
        assert refused["none"] == len(all_of_it) and min(refused.values()) > 100
        for caller in ("n1", "scheduler", "admin"):
            connection = await it.connect(*users.get(caller, ()))
            for what, method, path in all_of_it:
                # There is no kubelet that would answer for the node.
                if may(caller, what) and method == "GET" and "watch" not in path and not path.endswith("/proxy"):
                    status = await _status(connection, method, path, it.admin if caller == "admin" else {})
                    assert status in (200, 400, 404), f"{caller} {what}: {status}"

    play(scenario, pki, tmp_path)


async def _status(connection: Connection, method: str, path: str, headers: dict[str, str]) -> int:
    kind = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else JSON
    body = b"" if method == "GET" else b"{}"
    async with asyncio.timeout(10):
        return (await connection.ask(method, path, {**headers, **kind}, body)).status
