"""API requests by their verbs, for machines and clients that speak to the API server over the bus.

``resource`` is the plural, with its group where it has one: ``pods``, ``replicasets.apps``, ``leases.coordination.k8s.io``.
Bodies are documents (dicts) or bytes that are JSON already.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.wire import ApiRequest

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def _split(resource: str) -> tuple[str, str]:
    plural, _, group = resource.partition(".")
    return plural, group


def _raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


def get(resource: str, name: str, *, namespace: str = "", subresource: str = "") -> ApiRequest:
    """Read one object."""
    plural, group = _split(resource)
    return ApiRequest("get", plural, group, namespace=namespace, name=name, subresource=subresource)


def listing(resource: str, *, namespace: str = "", query: Mapping[str, str] | None = None) -> ApiRequest:
    """Read a collection; ``query`` holds fieldSelector, labelSelector, limit, continue, ..."""
    plural, group = _split(resource)
    return ApiRequest("list", plural, group, namespace=namespace, query=dict(query or {}))


def create(resource: str, body: Any, *, namespace: str = "", name: str = "", subresource: str = "") -> ApiRequest:
    """POST an object (or, with ``name`` and ``subresource``, a Binding or Eviction)."""
    plural, group = _split(resource)
    return ApiRequest("create", plural, group, namespace=namespace, name=name, subresource=subresource, body=_raw(body))


def update(resource: str, name: str, body: Any, *, namespace: str = "", subresource: str = "") -> ApiRequest:
    """PUT an object."""
    plural, group = _split(resource)
    return ApiRequest("update", plural, group, namespace=namespace, name=name, subresource=subresource, body=_raw(body))


def patch(
    resource: str, name: str, body: Any, *, namespace: str = "", subresource: str = "", kind: str = STRATEGIC_PATCH
) -> ApiRequest:
    """PATCH an object with one of the four kinds of patch."""
    plural, group = _split(resource)
    return ApiRequest(
        "patch", plural, group, namespace=namespace, name=name, subresource=subresource, content_type=kind, body=_raw(body)
    )


def delete(resource: str, name: str, *, namespace: str = "", options: Mapping[str, Any] | None = None) -> ApiRequest:
    """DELETE an object; ``options`` are DeleteOptions (gracePeriodSeconds, preconditions, propagationPolicy)."""
    plural, group = _split(resource)
    return ApiRequest("delete", plural, group, namespace=namespace, name=name, body=_raw(options) if options else b"")
