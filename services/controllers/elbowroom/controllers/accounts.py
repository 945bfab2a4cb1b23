"""Every namespace has a service account ``default``: made with it, and made again if somebody deletes it."""

from collections.abc import Iterable
from typing import Any

from elbowroom import rpc
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Plan
from elbowroom.machine import Instant

ACCOUNT = "default"


class ServiceAccounts(Controller):
    """Keys: names of namespaces."""

    name = "serviceaccounts"
    reads = ("namespaces", "serviceaccounts")

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "namespaces" and change.new is not None:
            yield change.key
        elif resource == "serviceaccounts" and change.new is None:
            yield change.key.partition("/")[0]

    def reconcile(self, now: Instant, key: str) -> Plan:
        namespace = self.shared.namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return NOTHING
        if f"{key}/{ACCOUNT}" in self.shared.reflectors["serviceaccounts"].store:
            return NOTHING
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": key}}
        return Plan((Ask(rpc.create("serviceaccounts", body, namespace=key)),))
