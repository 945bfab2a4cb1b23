"""Brings the status of each pod in the API server to what the kubelet wants to say, one patch at a time; the newest wins.

What was sent is compared with what the kubelet sent before, as long as nobody else has touched it: an API server may drop an empty
field, and that is nobody's news.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.cache import Backoff
from elbowroom.kubelet.status import patches
from elbowroom.machine import Effect, Instant, Note, Step
from elbowroom.rpc import Calls, Finished, delete, patch
from elbowroom.wire import ApiResponse

FINAL = ("Succeeded", "Failed")
UNKNOWN = (0, 500, 504)
"""Answers after which a patch may have happened, or may still; 0 is none."""


class _Meta(msgspec.Struct, frozen=True):
    uid: str = ""
    resourceVersion: str = "0"


class _Answer(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    status: dict[str, Any] = {}


@dataclass(slots=True)
class Publication:
    """What is to be said of one pod, and what the API server is known to have."""

    namespace: str
    name: str
    uid: str
    target: str
    """The uid that the pod has in the API, where a static pod's mirror has another; empty: it is not there."""
    seen: dict[str, Any] = field(default_factory=dict)
    seen_revision: int = 0
    wanted: dict[str, Any] | None = None
    owned: tuple[str, ...] = ()
    sent: dict[str, Any] | None = None
    echo: dict[str, Any] | None = None
    """The kubelet's part of what the API server answered to ``sent``."""
    in_flight: dict[str, Any] | None = None
    doubtful: list[dict[str, Any]] = field(default_factory=list)
    """What was sent and may have happened, or may still: until a later patch is answered, each must put right all of it."""
    remove: bool = False
    """The pod may be removed once ``wanted`` is known."""
    removing: bool = False
    news: int = 0
    """So many states of the pod were seen since the patch in flight was sent; one of them may be its own doing."""
    owed: bool = False
    """Somebody else's was among them: what there is to say must be made anew."""

    def _known(self) -> Mapping[str, Any]:
        if self.sent is None or self.echo is None:
            return self.seen
        if patches.owned_part(self.seen, list(self.sent), self.owned) != self.echo:
            return self.seen
        return {**self.seen, **self.sent, "conditions": _overlaid(self.seen, self.sent)}

    def patch(self) -> dict[str, Any] | None:
        """What brings the API server to what is wanted, whichever of the doubtful patches happened; None if it is there."""
        wanted = self.wanted
        if wanted is None:
            return None
        known = self._known()
        if not (self.doubtful or patches.differs(wanted, known, self.owned)):
            return None
        made = patches.patch(self.target, wanted, known, self.owned)
        others = [c for c in self.seen.get("conditions") or () if c.get("type") not in self.owned]
        for sent in self.doubtful:
            if_done = {**self.seen, **sent, "conditions": [*others, *(sent.get("conditions") or ())]}
            made = patches.joined(made, patches.patch(self.target, wanted, if_done, self.owned))
        return made


def _overlaid(seen: Mapping[str, Any], sent: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    mine = {c["type"] for c in sent.get("conditions") or ()}
    return [*(c for c in seen.get("conditions") or () if c.get("type") not in mine), *(sent.get("conditions") or ())]


class Publisher:
    """The publications of one kubelet, by pod uid. Contexts of its calls are ``("status", uid)`` and ``("remove", uid)``."""

    def __init__(self, calls: Calls, retry_at: Callable[[str, Instant], None]) -> None:
        self._calls = calls
        self._retry_at = retry_at
        self._known: dict[str, Publication] = {}
        self._backoff = Backoff(0.2, 30.0)

    def add(self, namespace: str, name: str, uid: str, target: str | None = None) -> Publication:
        """There is something to say of this pod from now on; ``target`` as in ``Publication``, None if it is the ``uid``."""
        return self._known.setdefault(uid, Publication(namespace, name, uid, uid if target is None else target))

    def retarget(self, uid: str, target: str) -> None:
        """Another pod stands for it in the API now, or none (empty): nothing was said to that one yet."""
        old = self._known[uid]
        self._known[uid] = Publication(old.namespace, old.name, uid, target, wanted=old.wanted, owned=old.owned)

    def get(self, uid: str) -> Publication | None:
        """That of the pod; None if there is nothing to say of it any more."""
        return self._known.get(uid)

    def forget(self, uid: str) -> None:
        """Nothing is to be said of the pod any more."""
        self._known.pop(uid, None)
        self._backoff.reset(uid)

    def observe(self, uid: str, seen: dict[str, Any], revision: int) -> bool:
        """The API server has this status of the pod, as of that revision.

        True if that may be the doing of the patch in flight; its answer shows, and if it is not, the pod is then ``owed`` a word.
        """
        publication = self._known.get(uid)
        if publication is None:
            return False
        if revision >= publication.seen_revision:
            publication.seen, publication.seen_revision = seen, revision
        publication.news += 1
        return publication.in_flight is not None

    def owed(self, uid: str) -> bool:
        """Did somebody else change the pod while a patch was under way? Told once."""
        publication = self._known.get(uid)
        if publication is None or not publication.owed:
            return False
        publication.owed = False
        return True

    def say(self, now: Instant, uid: str, wanted: dict[str, Any] | None, owned: Sequence[str], *, remove: bool) -> list[Effect]:
        """Bring the API server to ``wanted`` (None: it is right as it is), and then, if so told, remove the pod."""
        publication = self._known.get(uid)
        if publication is None:
            return []
        publication.wanted, publication.owned, publication.remove = wanted, tuple(owned), remove
        return self._send(now, publication)

    def retry(self, now: Instant, uid: str) -> list[Effect]:
        """Send again what failed."""
        publication = self._known.get(uid)
        return [] if publication is None else self._send(now, publication)

    def _send(self, now: Instant, publication: Publication) -> list[Effect]:
        if publication.in_flight is not None or publication.removing or not publication.target:
            return []
        p = publication
        difference = p.patch()
        if difference is not None:
            p.in_flight, p.news, p.owed = p.wanted, 0, False
            request = patch("pods", p.name, difference, namespace=p.namespace, subresource="status")
            return [Step("K16 status patch sent"), *self._calls.api(now, request, context=("status", p.uid))]
        if p.remove:
            p.removing = True
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": p.target}}
            request = delete("pods", p.name, namespace=p.namespace, options=options)
            return self._calls.api(now, request, context=("remove", p.uid))
        return []

    def finished(self, now: Instant, end: Finished) -> list[Effect]:
        """What follows from the end of one of our calls."""
        kind, uid = end.context
        publication = self._known.get(uid)
        if publication is None:
            return []
        answer = end.api()
        if kind == "remove":
            if 200 <= answer.status < 300 or answer.status in (404, 409):
                return []  # the watch tells of its end; another uid is another pod
            publication.removing = False
            return self._failed(now, uid, kind, answer.status, answer.body)
        sent, publication.in_flight = publication.in_flight, None
        if sent is None:
            return []  # it was said to another mirror
        publication.owed = publication.news > 0
        if 200 <= answer.status < 300:
            self._backoff.reset(uid)
            publication.doubtful.clear()
            self._acknowledge(publication, sent, answer)
            return [Step("K17 status acknowledged"), *self._send(now, publication)]
        if answer.status == 404:
            return []
        if answer.status in UNKNOWN and sent not in publication.doubtful:
            publication.doubtful.append(sent)
        return self._failed(now, uid, kind, answer.status, answer.body)

    def _acknowledge(self, publication: Publication, sent: dict[str, Any], answer: ApiResponse) -> None:
        if answer.revision and answer.revision == publication.seen_revision:
            known = publication.seen  # the watch was quicker
            publication.owed = publication.news > 1
        else:
            try:
                decoded = msgspec.json.decode(answer.body, type=_Answer)
                revision = int(decoded.metadata.resourceVersion)
            except (msgspec.MsgspecError, ValueError):
                return
            known = decoded.status
            if revision >= publication.seen_revision:
                publication.seen, publication.seen_revision = known, revision
        publication.sent, publication.echo = sent, patches.owned_part(known, list(sent), publication.owned)

    def _failed(self, now: Instant, uid: str, what: str, code: int, body: bytes) -> list[Effect]:
        self._retry_at(uid, Instant(now + self._backoff.next(uid)))
        return [Note("kl.api.failed", {"what": what, "uid": uid, "status": code, "why": body[:300].decode(errors="replace")})]
