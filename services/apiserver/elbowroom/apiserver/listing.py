"""Lists: selectors, snapshots and pages.

A list is the state at one revision. Its pages are that one state, whatever is written meanwhile: the ``continue`` token holds the
revision and where to go on, and is good until compaction passes the revision.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api.fielderrors import FieldError, forbidden, not_supported
from elbowroom.api.selectors import EVERYTHING, FieldSelector, Selector, SelectorError, parse_fields, parse_labels
from elbowroom.apiserver import intake, schema, statuses
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.store import CompactedError, Record, Store
from elbowroom.apiserver.strategy import Document
from elbowroom.wire import ApiRequest, ApiResponse

NODE_FIELD = "spec.nodeName"
_NO_FIELDS = FieldSelector()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects of a resource are meant. ``namespace`` empty: of all."""

    row: Resource
    namespace: str
    labels: Selector
    fields: FieldSelector
    selects_all: bool = field(init=False)
    """Does it look at nothing but the namespace?"""
    node: str | None = field(init=False)
    """The node whose pods are meant, all of them, as a kubelet means them; None if anything else is asked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "selects_all", self.labels.is_empty and self.fields.is_empty)
        node = self.fields.exact(NODE_FIELD) if self.row.strategy.resource == "pods" else None
        is_all = self.labels.is_empty and not self.namespace and len(self.fields.terms) == 1
        object.__setattr__(self, "node", node if is_all else None)

    def matches(self, record: Record) -> bool:
        """Is it one of those? A document is looked into only where names do not tell: it may have to be parsed for that."""
        if self.node is not None:
            return self.node == node_of(record)
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.selects_all:
            return True
        if not self.labels.is_empty and not self.labels.matches(document_of(self.row, record)["metadata"].get("labels", {})):
            return False
        if self.fields.is_empty:
            return True
        readers = self.row.fields

        def read(name: str) -> str:
            if name == "metadata.name":
                return record.name
            if name == "metadata.namespace":
                return record.namespace
            return readers[name](document_of(self.row, record))

        return self.fields.matches(read)


def node_of(record: Record) -> str:
    """The node of a pod; empty before it is bound."""
    return str(record.document.get("spec", {}).get("nodeName", ""))


def filter_of(row: Resource, request: ApiRequest) -> Filter:
    """The request's selectors, or 400."""
    query, namespace = request.query, request.namespace if row.strategy.namespaced else ""
    try:
        labels = parse_labels(query["labelSelector"]) if query.get("labelSelector") else EVERYTHING
        fields = parse_fields(query["fieldSelector"]) if query.get("fieldSelector") else _NO_FIELDS
    except SelectorError as why:
        raise statuses.bad_request(str(why)) from why
    for name in fields.fields():
        if name not in row.fields and name not in ("metadata.name", "metadata.namespace"):
            if not row.fields:
                raise statuses.bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
            raise statuses.bad_request(f"field label not supported: {name}")
    if request.name and request.verb in ("list", "watch"):
        fields = FieldSelector((*fields.terms, ("metadata.name", True, request.name)))
    return Filter(row, namespace, labels, fields)


def _selected(store: Store, wanted: Filter) -> list[Record]:
    resource = wanted.row.strategy.resource
    node = wanted.fields.exact(NODE_FIELD) if resource == "pods" else None
    name = wanted.fields.exact("metadata.name")
    if name is not None and (wanted.namespace or not wanted.row.strategy.namespaced):
        record = store.get(resource, wanted.namespace, name)
        found = [] if record is None else [record]
    elif node is not None:
        found = store.having(resource, node)
    else:
        found = store.objects(resource, wanted.namespace)
    return found if wanted.selects_all else [record for record in found if wanted.matches(record)]


def snapshot(store: Store, wanted: Filter, revision: int) -> list[Record]:
    """What ``wanted`` selects of the state at ``revision``; ``CompactedError`` if that is no longer known."""
    if revision >= store.revision:
        return _selected(store, wanted)
    return [record for record in store.list_at(wanted.row.strategy.resource, wanted.namespace, revision) if wanted.matches(record)]


def answer(store: Store, row: Resource, request: ApiRequest) -> ApiResponse:
    """The answer to a list."""
    page = page_of(store, row, request)
    return ApiResponse(200, encode(row, page.records, page.meta["resourceVersion"], page.meta), revision=page.revision)


@dataclass(frozen=True, slots=True)
class Page:
    """What a list shows, of which state, and its metadata."""

    records: list[Record]
    revision: int
    meta: dict[str, Any]


def page_of(store: Store, row: Resource, request: ApiRequest) -> Page:
    """What a list shows, or who deletes a collection deletes."""
    query = request.query
    wanted = filter_of(row, request)
    if query.get("timeoutSeconds"):
        intake.parse_int(query["timeoutSeconds"])
    limit = intake.parse_int(query["limit"]) if query.get("limit") else 0
    _check_options(query)
    token = query.get("continue", "")
    start = ""
    if token:
        if query.get("resourceVersion") not in (None, "", "0"):
            raise statuses.bad_request("specifying resource version is not allowed when using continue")
        revision, start = _opened(token)
        if revision < 0:
            revision = store.revision
    else:
        revision = _revision(store, query)
        if query.get("resourceVersion") == "0":
            limit = 0  # "any state will do" is answered from upstream's cache, whole
    try:
        records = snapshot(store, wanted, revision)
    except CompactedError as why:
        if token:
            raise statuses.continue_too_old(_token(-1, start)) from why
        raise statuses.list_too_old() from why
    if start:
        records = [record for record in records if record.key >= start]
    meta: dict[str, Any] = {"resourceVersion": str(revision)}
    if 0 < limit < len(records):
        rest = len(records) - limit
        records = records[:limit]
        meta["continue"] = _token(revision, records[-1].key + "\0")
        if wanted.selects_all:
            meta["remainingItemCount"] = rest
    return Page(records, revision, meta)


def _check_options(query: Mapping[str, str]) -> None:
    """What goes not together in the options of a list is a 422."""
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    found: list[FieldError] = []
    if match:
        if not text:
            found.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if query.get("continue"):
            found.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            found.append(not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
        elif match == "Exact" and text == "0":
            found.append(forbidden("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        found.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if found:
        raise statuses.invalid("meta.k8s.io", "ListOptions", "", found)


def _revision(store: Store, query: Mapping[str, str]) -> int:
    """Which state the list is to show."""
    text = query.get("resourceVersion", "")
    revision = intake.parse_revision(text) if text else 0
    if revision > store.revision:
        raise statuses.too_large_revision(revision, store.revision)
    return revision if query.get("resourceVersionMatch") == "Exact" else store.revision


# ---------------------------------------------------------------- pages

_TOKEN_VERSION = "meta.k8s.io/v1"


def _token(revision: int, start: str) -> str:
    raw = msgspec.json.encode({"v": _TOKEN_VERSION, "rv": revision, "start": f"/{start}"})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _opened(token: str) -> tuple[int, str]:
    """Revision and first key of a token, or 400 in upstream's words."""
    try:
        value = schema.parse_json(_decoded(token)).value
    except ValueError as error:
        raise _no_token(f": {error}") from error
    if not isinstance(value, dict):
        raise _no_token(": json: cannot unmarshal into Go value of type storage.continueToken")
    version, revision, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
    if version != _TOKEN_VERSION:
        raise _no_token(f": server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or not revision:
        raise _no_token(f": incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    if not isinstance(start, str) or not start:
        raise _no_token(f": encoded start key empty (version {_TOKEN_VERSION})")
    key = start.removeprefix("/")
    if any(part in ("", ".", "..") for part in key.split("/")):
        raise _no_token(f": {start}")
    return revision, key


def _no_token(why: str) -> statuses.ApiError:
    return statuses.bad_request(f"invalid continue token: continue key is not valid{why}")


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def _decoded(token: str) -> bytes:
    """The bytes of an unpadded base64 text; ``ValueError`` says, as Go does, where it goes wrong."""
    wrong = next((index for index, character in enumerate(token) if character not in _BASE64), -1)
    if wrong < 0 and len(token) % 4 == 1:
        wrong = len(token) - 1
    if wrong >= 0:
        raise ValueError(f"illegal base64 data at input byte {wrong}")
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


# ---------------------------------------------------------------- bytes


def prefix_of(row: Resource) -> bytes:
    """How the bytes of every object of a kind begin; items of lists leave it out."""
    strategy = row.strategy
    return b'{"kind":"%s","apiVersion":"%s",' % (strategy.kind.encode(), strategy.api_version.encode())


def data_of(row: Resource, record: Record) -> bytes:
    """An object's bytes in the form that the row shows."""
    return record.data if row.face is None else row.face.data(record)


def document_of(row: Resource, record: Record) -> Document:
    """An object in the form that the row shows; it may be shared and must not be changed."""
    return record.document if row.face is None else row.face.document(record)


def copy_of(row: Resource, record: Record) -> Document:
    """The same, as one's own."""
    return record.copy() if row.face is None else row.face.document(record)


def encode(row: Resource, records: Sequence[Record], revision: str, meta: Mapping[str, Any] | None = None) -> bytes:
    """The list document, made of the bytes of its items."""
    strategy, skip = row.strategy, len(prefix_of(row))
    head = b'{"kind":"%s","apiVersion":"%s","metadata":%s,"items":[' % (
        strategy.list_kind.encode(),
        strategy.api_version.encode(),
        msgspec.json.encode(meta or {"resourceVersion": revision}),
    )
    return b"".join((head, b",".join([b"{" + data_of(row, record)[skip:] for record in records]), b"]}"))
