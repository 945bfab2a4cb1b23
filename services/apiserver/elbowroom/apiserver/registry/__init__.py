"""Kubernetes REST over the store: the same verbs for every kind, with strategies for what differs.

``core`` carries requests out; ``rows`` is what it serves, ``writes`` what a request changes, ``admitting`` the admission chain.
Beside the ordinary verbs stand ``patching``, ``deleting``, ``scaling`` and ``podcalls`` (binding, eviction); ``settling`` follows
a change of definitions up.
"""

from elbowroom.apiserver.registry.core import Registry
from elbowroom.apiserver.registry.writes import Served

__all__ = ["Registry", "Served"]
