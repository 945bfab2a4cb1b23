"""The workload of a scenario: the objects that are there from the start, and what users do, request by request.

Nothing is sent here: real clients in threads and simulated ones in a virtual time do the same.
"""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count
from random import Random
from typing import Any

import msgspec

from elbowroom.deploy.chaos.scenario import Body, Pager, Pods, Replacer, ReplicaSet, Resizer, Rules, Template, Visitor
from elbowroom.rpc import create, get, patch
from elbowroom.rpc.requests import delete, listing
from elbowroom.wire import ApiRequest, ApiResponse

NAMESPACE = "default"
AGAIN = (0, 409, 429, 500, 503, 504)
"""Statuses after which a request is made again; 0 is no answer."""
WAIT_SECONDS = 0.02
"""Before it is made again."""
WORKLOAD = "elbowroom.dev/workload"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, made until it succeeds or is refused with a status that is ``allowed``."""

    request: ApiRequest
    allowed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """So many seconds in which nothing is done."""

    seconds: float


def is_write(request: ApiRequest) -> bool:
    return request.verb not in ("get", "list")


Doing = Generator[Ask | Wait, ApiResponse | None, None]
"""What somebody does: told the answer to each request, None after a wait."""


# ------------------------------------------------------------ what is there from the start


def priorities(body: Body) -> Iterator[dict[str, Any]]:
    for name, value in body.priorities.items():
        yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def pods(body: Body, nodes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The single pods, each bound to the next node."""
    for place, (name, of) in enumerate(named(body)):
        spec = {**_spec(of), "nodeSelector": {"kubernetes.io/hostname": nodes[place % len(nodes)]}}
        yield _pod(name, spec, of)


def named(body: Body) -> Iterator[tuple[str, Pods]]:
    """The names of the single pods, each with what it is one of."""
    for of in body.pods:
        for number in range(1, of.count + 1):
            yield f"{of.name}-{number}", of


def pods_wanted(body: Body) -> int:
    """How many pods there are before anybody does anything."""
    return sum(of.count for of in body.pods) + sum(replicas.replicas for replicas in body.replica_sets)


def replica_set(replicas: ReplicaSet) -> dict[str, Any]:
    labels = {"app": replicas.name}
    template = {"metadata": {"labels": labels, "annotations": _behaviour(replicas)}, "spec": _spec(replicas)}
    spec = {"replicas": replicas.replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": replicas.name}, "spec": spec}


def budget(replicas: ReplicaSet) -> dict[str, Any] | None:
    """Its PodDisruptionBudget, if it has one."""
    if replicas.min_available is None:
        return None
    spec = {"minAvailable": replicas.min_available, "selector": {"matchLabels": {"app": replicas.name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": replicas.name}, "spec": spec}


def _pod(name: str, spec: dict[str, Any], of: Template) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": _behaviour(of)}, "spec": spec}


def _spec(template: Template) -> dict[str, Any]:
    requests = {"cpu": template.cpu, "memory": template.memory}
    resources = {"requests": requests, **({"limits": requests} if template.guaranteed else {})}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": template.grace, "containers": [container]}
    return {**spec, "priorityClassName": template.priority} if template.priority else spec


def _behaviour(template: Template) -> dict[str, str]:
    return {WORKLOAD: json.dumps({"c": {"stopSeconds": template.stop_seconds}})}


# ------------------------------------------------------------ what users do


def users(body: Body, seed: int) -> Iterator[tuple[str, Doing]]:
    """Each client of each user by name, and what it does, without end."""
    for place, user in enumerate(body.users):
        clients = user.at_once if isinstance(user, Visitor | Replacer) else user.clients
        for client in range(clients):
            who = f"{place}-{client}"
            rng = Random(f"{seed}/{who}")
            match user:
                case Resizer():
                    yield who, _resizing(user, {name: of for name, of in named(body) if fnmatchcase(name, user.pods)}, rng)
                case Visitor():
                    yield who, _visiting(user, who, rng)
                case Replacer():
                    yield who, _replacing(user, who, rng)
                case Pager():
                    yield who, _paging(user, rng)


def _resizing(user: Resizer, names: Mapping[str, Template], rng: Random) -> Doing:
    while True:
        requests = {"cpu": rng.choice(user.cpu), "memory": rng.choice(user.memory)}
        name = rng.choice(list(names))
        resources = {"requests": requests, **({"limits": requests} if names[name].guaranteed else {})}
        body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        # 404 and 422: a pod that lost its node ended, and one that has ended is not resized.
        yield Ask(patch("pods", name, body, namespace=NAMESPACE, subresource="resize"), (403, 404, 422))
        yield Wait(rng.uniform(*user.pause))


def _visiting(user: Visitor, who: str, rng: Random) -> Doing:
    for number in count(1):
        name = f"{user.name}-{who}-{number}"
        # 409: an earlier attempt that was not answered has made it. 403: a rule is against it.
        yield Ask(create("pods", _pod(name, _spec(user), user), namespace=NAMESPACE), (403, 409))
        yield Wait(rng.uniform(*user.stays))
        yield Ask(delete("pods", name, namespace=NAMESPACE), (404,))
        yield Wait(rng.uniform(*user.pause))


def _replacing(user: Replacer, who: str, rng: Random) -> Doing:
    name, uid = f"{user.name}-{who}", ""
    while True:
        yield Ask(create("pods", _pod(name, _spec(user), user), namespace=NAMESPACE), (403, 409))
        found = yield Ask(get("pods", name, namespace=NAMESPACE), (404,))
        now = "" if found is None or found.status == 404 else _uid(found)
        if now in ("", uid):  # a rule is against it, or the one before is not gone yet
            yield Wait(rng.uniform(0.05, 0.2))
            continue
        uid = now
        yield Wait(rng.uniform(*user.stays))
        resources = {"requests": {"cpu": user.cpu, "memory": rng.choice(("128Mi", "384Mi", "768Mi", "1536Mi"))}}
        body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        yield Ask(patch("pods", name, body, namespace=NAMESPACE, subresource="resize"), (403, 404, 422))
        options = {"gracePeriodSeconds": 0} if rng.random() < user.force else None
        yield Ask(delete("pods", name, namespace=NAMESPACE, options=options), (404,))


def _uid(found: ApiResponse) -> str:
    return str(msgspec.json.decode(found.body)["metadata"]["uid"])


def behaving(pod: Mapping[str, Any], behaviour: Mapping[str, Any], *, begins: bool) -> dict[str, Any]:
    """The annotation that lets a pod's container behave so, or as if it never had; nothing else that was told of it is touched,
    since other faults may have begun and not ended."""
    before = (pod["metadata"].get("annotations") or {}).get(WORKLOAD)
    told: dict[str, Any] = json.loads(before) if before else {}
    kept = {name: value for name, value in told.get("c", {}).items() if name not in behaviour}
    told["c"] = {**kept, **behaviour} if begins else kept
    return {WORKLOAD: json.dumps(told)}


def rule(fault: Rules, name: str, rng: Random) -> tuple[str, dict[str, Any]]:
    """One of them: its resource, and the document to create."""
    memory, meta = rng.choice(fault.memory), {"name": name}
    match rng.choice(fault.of):
        case "quota":
            spec: dict[str, Any] = {"hard": {"requests.memory": memory}}
            return "resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}
        case "limitRange":
            spec = {"limits": [{"type": "Container", "max": {"memory": memory}}]}
            return "limitranges", {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": spec}
        case "budget":
            spec = {"minAvailable": 1000, "selector": {}}
            kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
            return "poddisruptionbudgets.policy", {**kind, "metadata": meta, "spec": spec}


def _paging(user: Pager, rng: Random) -> Doing:
    token = ""
    while True:
        query = {"limit": str(user.limit), **({"continue": token} if token else {})}
        # 410: its state is forgotten meanwhile, and the list begins anew.
        answer = yield Ask(listing("pods", namespace=NAMESPACE, query=query), (410,))
        token = "" if answer is None or answer.status == 410 else _more(answer)
        yield Wait(rng.uniform(*user.pause))


def _more(page: ApiResponse) -> str:
    """The token that goes on with the list; "" if that was all."""
    return str(msgspec.json.decode(page.body)["metadata"].get("continue", ""))
