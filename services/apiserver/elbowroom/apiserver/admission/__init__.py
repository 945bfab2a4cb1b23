"""The admission plugins, in upstream's order.

ServiceAccount is left out on purpose: pods get no token volume, so they run without a token controller. Plugins that decide nothing
here (webhooks, policies, storage, certificates) are left out too. ``ResourceQuota`` is the last, since it alone leaves a trace.
"""

from elbowroom.api.gates import Profile
from elbowroom.apiserver.admission.limits import LimitRanger
from elbowroom.apiserver.admission.namespaces import NamespaceLifecycle
from elbowroom.apiserver.admission.noderestriction import NodeRestriction
from elbowroom.apiserver.admission.nodes import TaintNodesByCondition
from elbowroom.apiserver.admission.priorities import Priority
from elbowroom.apiserver.admission.quota import QuotaPlugin
from elbowroom.apiserver.admission.resizing import NodeDeclaredFeatureValidator, PodResizeValidator
from elbowroom.apiserver.admission.runtimes import RuntimeClass
from elbowroom.apiserver.admission.tolerations import DefaultTolerationSeconds
from elbowroom.apiserver.admission_base import Plugin

__all__ = ["chain"]


def chain(profile: Profile) -> tuple[Plugin, ...]:
    """The plugins in the order in which each phase asks them; one chain for a life of the API server."""
    plugins: tuple[Plugin, ...] = (
        NamespaceLifecycle(),
        LimitRanger(),
        NodeRestriction(),
        TaintNodesByCondition(),
        Priority(),
        DefaultTolerationSeconds(),
        RuntimeClass(),
        NodeDeclaredFeatureValidator(),
        PodResizeValidator(),
        QuotaPlugin(),
    )
    return (
        plugins if profile.on("NodeDeclaredFeatures") else tuple(p for p in plugins if p.name != NodeDeclaredFeatureValidator.name)
    )
