"""Binding pods to the nodes chosen for them, beside the scheduling of other pods (SC-54, SC-60).

What is being written of a pod's status is waited for, so that it cannot come after the binding.

A lost reply says nothing: then the informer is looked at. A pod that it shows on a node is bound; for any other the call is made
again, which cannot bind twice, since the API server binds a pod only once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.api.objects import Pod
from elbowroom.machine import Effect, Instant, Note, Step, seconds
from elbowroom.rpc import Calls, Finished, create
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.queue import QueuedPod

RETRY_SECONDS = 0.5
CONFIRM_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BindCall:
    """The context of a call that binds."""

    uid: str


@dataclass(slots=True)
class Binding:
    """A binding under way."""

    entry: QueuedPod
    info: PodInfo
    node: str
    started: Instant
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is on its node."""

    binding: Binding


@dataclass(frozen=True, slots=True)
class NotBound:
    """The pod certainly is not bound by us: take the assumption back. ``gone``: it does not exist any more."""

    binding: Binding
    message: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The pod is bound, by us or by somebody else; the informer will tell where."""

    binding: Binding


Outcome = Bound | NotBound | Unconfirmed


class Binder:
    """The bindings under way. ``seen`` gives a pod by its key as the informer shows it; ``is_written`` tells whether the status of
    the pod with that uid is being written."""

    def __init__(self, calls: Calls, seen: Callable[[str], Pod | None], is_written: Callable[[str], bool]) -> None:
        self._calls = calls
        self._seen = seen
        self._is_written = is_written
        self._open: dict[str, Binding] = {}
        self._held: set[str] = set()
        """Those that wait for what is written of their pods."""
        self._again: dict[str, Instant] = {}
        """When the lost calls are looked into, by uid: few, while the open bindings may be thousands."""

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self, now: Instant, entry: QueuedPod, info: PodInfo, node: str, facts: Mapping[str, Any] | None = None
    ) -> list[Effect]:
        """Bind; ``facts`` go into the history, too."""
        binding = Binding(entry, info, node, now)
        self._again.pop(info.uid, None)  # what was left of an older one, whose pod went away meanwhile
        self._open[info.uid] = binding
        noted = {"pod": info.key, "uid": info.uid, "node": node, **(facts or {})}
        return [Note("sch.bind", noted), *self._first_post(now, binding)]

    def written(self, now: Instant, uid: str) -> list[Effect]:
        """A write of that pod's status ended: if it was the last one, and its binding waits for that, it goes on."""
        if uid not in self._held or self._is_written(uid):
            return []
        self._held.discard(uid)
        return self._first_post(now, self._open[uid]) if uid in self._open else []

    def due(self) -> Instant | None:
        """When a lost call is to be looked into."""
        return min(self._again.values()) if self._again else None

    def on_time(self, now: Instant) -> tuple[list[Effect], list[Outcome]]:
        """Look into the calls whose outcome is not known."""
        effects: list[Effect] = []
        outcomes: list[Outcome] = []
        for uid in [uid for uid, at in self._again.items() if at <= now]:
            del self._again[uid]
            binding = self._open[uid]
            pod = self._seen(binding.info.key)
            if pod is None or pod.uid != binding.info.uid:
                del self._open[binding.info.uid]
                outcomes.append(NotBound(binding, "the pod is gone", gone=True))
            elif pod.spec.node_name:
                del self._open[binding.info.uid]
                outcomes.append(Bound(binding) if pod.spec.node_name == binding.node else Unconfirmed(binding))
            else:
                effects += self._post(now, binding)
        return effects, outcomes

    def on_reply(self, now: Instant, call: BindCall, finished: Finished) -> tuple[list[Effect], list[Outcome]]:
        """A call that binds ended."""
        binding = self._open.get(call.uid)
        if binding is None:
            return [], []
        reply = finished.api()
        if (reply.status == 0 and not finished.code.definite) or reply.status >= 500 or reply.status == 429:
            binding.tries += 1
            self._again[call.uid] = Instant(now + seconds(RETRY_SECONDS * 2 ** min(binding.tries - 1, 4)))
            return [], []
        del self._open[call.uid]
        if 200 <= reply.status < 300:
            return [Step("S12")], [Bound(binding)]
        if reply.status == 404:
            return [Step("S12")], [NotBound(binding, _message(reply.body), gone=True)]
        if reply.status == 409 and binding.tries:
            return [Step("S12")], [Unconfirmed(binding)]
        return [Step("S12")], [NotBound(binding, _message(reply.body) or finished.message)]

    def _first_post(self, now: Instant, binding: Binding) -> list[Effect]:
        if self._is_written(binding.info.uid):
            self._held.add(binding.info.uid)
            return []
        return [*self._post(now, binding), Step("S11")]

    def _post(self, now: Instant, binding: Binding) -> list[Effect]:
        meta = binding.info.pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": binding.node},
        }
        request = create("pods", body, namespace=meta.namespace, name=meta.name, subresource="binding")
        return self._calls.api(now, request, context=BindCall(binding.info.uid))


class _Said(msgspec.Struct):
    message: str = ""


def _message(body: bytes) -> str:
    """What a Status says; empty if it is none."""
    try:
        return msgspec.json.decode(body, type=_Said).message
    except msgspec.MsgspecError:
        return ""
