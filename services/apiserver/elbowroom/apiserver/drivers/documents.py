"""What is served beside resources: health, metrics, discovery and OpenAPI."""

import hashlib
import re
from typing import Any

import msgspec

from elbowroom.apiserver import audit, discovery, negotiation, openapi, openapi_v2
from elbowroom.apiserver.drivers.answers import Answers, is_pretty
from elbowroom.apiserver.drivers.customs import Customs
from elbowroom.apiserver.drivers.exchange import Exchange
from elbowroom.apiserver.drivers.request import Request, check_is_get, own
from elbowroom.apiserver.identity import MASTERS, is_open
from elbowroom.apiserver.negotiation import JSON, PLAIN
from elbowroom.apiserver.routing import Document
from elbowroom.apiserver.statuses import ApiError
from elbowroom.wire import ApiRequest

TEXT = "text/plain; charset=utf-8"
_METRICS = re.compile(r"(/elbowroom/[^/]+)?/metrics")

_encode = msgspec.json.Encoder().encode


class Documents:
    """Serves them. ``address`` is the server's own; ``previews``: are the fields of the lab profile described?"""

    def __init__(self, exchange: Exchange, answers: Answers, customs: Customs, *, previews: bool) -> None:
        self._exchange, self._answers, self._customs, self._previews = exchange, answers, customs, previews
        self.address = ""
        self._made: dict[tuple[str, bool], tuple[bytes, str]] = {}

    def forget(self) -> None:
        """What is served has changed."""
        self._made.clear()

    async def serve(self, request: Request, asked: Document) -> None:
        await self._check_path(request, asked.path)
        match asked.path.strip("/").split("/"):
            case [("healthz" | "livez" | "readyz"), *_] as parts:
                await self._health(request, asked, parts)
            case ["metrics"]:
                check_is_get(request)
                await self._metrics(request, "")
            case ["elbowroom", component, "metrics"]:
                check_is_get(request)
                await self._metrics(request, component)
            case ["openapi", "v2"]:
                check_is_get(request)
                body, content_type = self._swagger("proto-openapi" in request.accept)
                await self._answers.respond(request, 200, body, content_type)
            case parts:
                found = self._described(request, parts if parts != [""] else [])
                if found is None:
                    await self._answers.respond(request, 404, b"404 page not found\n", TEXT)
                    return
                check_is_get(request)
                body, content_type = found
                if content_type == JSON and is_pretty(asked.query, request.user_agent):
                    body = msgspec.json.format(body, indent=2)
                await self._answers.respond(request, 200, body, content_type)

    def _described(self, request: Request, parts: list[str]) -> tuple[bytes, str] | None:
        """A discovery or OpenAPI document as bytes, made once; None if there is none at that path."""
        is_aggregated = parts in (["api"], ["apis"]) and negotiation.wants(request.accept, discovery.AGGREGATED)
        key = ("/".join(parts), is_aggregated)
        found = self._made.get(key)
        if found is None:
            document = self._describe(parts, is_aggregated)
            if document is None:
                return None
            found = (_encode(document) + b"\n", discovery.AGGREGATED if is_aggregated else JSON)
            self._made[key] = found
        return found

    def _swagger(self, is_protobuf: bool) -> tuple[bytes, str]:
        """``/openapi/v2``, made once."""
        key = ("openapi/v2", is_protobuf)
        if key not in self._made:
            described = openapi_v2.document(previews=self._previews, catalog=self._customs.catalog)
            made = (openapi_v2.protobuf(described), openapi_v2.PROTOBUF_TYPE) if is_protobuf else (_encode(described), JSON)
            self._made[key] = made
        return self._made[key]

    def _describe(self, parts: list[str], is_aggregated: bool) -> dict[str, Any] | None:
        catalog = self._customs.catalog
        match parts:
            case []:
                return catalog.root_paths(["/elbowroom/scheduler/metrics"])
            case ["version"]:
                return dict(discovery.version())
            case ["api" | "apis" as root] if is_aggregated:
                return catalog.aggregated(core=root == "api")
            case ["api"]:
                return discovery.api_versions(self.address)
            case ["apis"]:
                return catalog.api_group_list()
            case ["api", version]:
                return catalog.api_resource_list("", version)
            case ["apis", group]:
                return catalog.api_group(group)
            case ["apis", group, version]:
                return catalog.api_resource_list(group, version)
            case ["openapi", "v3"]:
                return openapi.index(self._openapi_hash, catalog)
            case ["openapi", "v3", "api", version]:
                return openapi.document("", version, previews=self._previews, catalog=catalog)
            case ["openapi", "v3", "apis", group, version]:
                return openapi.document(group, version, previews=self._previews, catalog=catalog)
            case _:
                return None

    def _openapi_hash(self, group: str, version: str) -> str:
        described = openapi.document(group, version, previews=self._previews, catalog=self._customs.catalog)
        return hashlib.sha256(_encode(described)).hexdigest().upper()

    async def _health(self, request: Request, asked: Document, parts: list[str]) -> None:
        if len(parts) > 1 and parts[1:] not in (["ping"], ["registry"]):
            await self._answers.respond(request, 404, b"404 page not found\n", TEXT)
            return
        checks = ["ping"] if parts[0] == "livez" else ["ping", "registry"]
        if len(parts) > 1:
            checks = [parts[1]]
        failed = []
        if "registry" in checks:
            probe = ApiRequest("list", "namespaces", query={"limit": "1"}, user="system:apiserver", groups=(MASTERS,))
            try:
                if (await self._exchange.ask(probe)).status != 200:
                    failed.append("registry")
            except ApiError:
                failed.append("registry")
        if not failed and "verbose" not in asked.query:
            await self._answers.respond(request, 200, b"ok", TEXT)
            return
        lines = [f"[-]{name} failed: reason withheld" if name in failed else f"[+]{name} ok" for name in checks]
        lines.append(f"{parts[0]} check {'failed' if failed else 'passed'}")
        await self._answers.respond(request, 500 if failed else 200, "\n".join(lines).encode() + b"\n", TEXT)

    async def _metrics(self, request: Request, component: str) -> None:
        await self._answers.answer(request, await self._exchange.ask(own(request, "get", "metrics", name=component)), PLAIN, {})

    async def _check_path(self, request: Request, path: str) -> None:
        """Refuse, with 403, a path outside of resources that its user may not see. Where roles decide, the machine is asked; of
        metrics it is asked anyway."""
        who = request.who
        if _METRICS.fullmatch(path) or (is_open(who.groups, path) and request.impersonate is None and not who.uid):
            return
        answer = await self._exchange.ask(own(request, request.method.lower(), "paths", query={"path": path}))
        if answer.status != 200:
            status = audit.status_of(answer.body)
            raise ApiError(answer.status, status.get("reason", ""), status.get("message", ""), status.get("details"))
