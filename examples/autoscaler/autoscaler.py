"""A small vertical autoscaler: it resizes pods in place, so that each has the CPU that it uses and a fifth more.

A pod takes part by the label ``autoscaler.example.com/scaled=true``; what it uses it says in the annotation ``.../usage`` (a real
autoscaler would read metrics). When its kubelet defers a resize, the autoscaler waits: the scheduler may be making room. When the
kubelet calls it infeasible, the wish is taken back, an Event tells so, and the annotation ``.../ceiling`` keeps the pod from asking
again.

    python examples/autoscaler/autoscaler.py --kubeconfig "$(elbowroom kubeconfig)"
"""

import argparse
import time
from dataclasses import dataclass

from kubernetes import client, config, watch
from kubernetes.utils.quantity import parse_quantity
from urllib3.exceptions import HTTPError

DOMAIN = "autoscaler.example.com"
SELECTOR = f"{DOMAIN}/scaled=true"
STEP_MILLI = 50
AGAIN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Resize:
    """The pod shall have that much CPU."""

    milli: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The node can never do it: the pod keeps what it has."""

    milli: int
    why: str


def decide(pod: client.V1Pod) -> Resize | GiveUp | None:
    """What to do about a pod as it is now; None: nothing."""
    annotations = pod.metadata.annotations or {}
    if f"{DOMAIN}/usage" not in annotations or pod.status.phase != "Running":
        return None
    desired = milli(pod.spec.containers[0].resources.requests["cpu"])
    pending = next((c for c in pod.status.conditions or [] if c.type == "PodResizePending"), None)
    if pending is not None and pending.reason == "Infeasible":
        return GiveUp(milli(pod.status.container_statuses[0].allocated_resources["cpu"]), pending.message)
    usage = milli(annotations[f"{DOMAIN}/usage"])
    wanted = -(-usage * 6 // (5 * STEP_MILLI)) * STEP_MILLI
    if f"{DOMAIN}/ceiling" in annotations:
        wanted = min(wanted, milli(annotations[f"{DOMAIN}/ceiling"]))
    return Resize(wanted) if abs(wanted - desired) * 10 > desired else None


def milli(quantity: str) -> int:
    return int(parse_quantity(quantity) * 1000)


class Autoscaler:
    """The controller: it lists, watches, and does what ``decide`` says."""

    def __init__(self, core: client.CoreV1Api) -> None:
        self._core = core

    def run(self) -> None:
        """Until the process ends. A watch that breaks or is too old begins anew with a list."""
        while True:
            try:
                self._follow()
            except (client.ApiException, HTTPError):
                time.sleep(AGAIN_SECONDS)

    def _follow(self) -> None:
        pods = self._core.list_pod_for_all_namespaces(label_selector=SELECTOR)
        for pod in pods.items:
            self.reconcile(pod)
        stream = watch.Watch().stream(
            self._core.list_pod_for_all_namespaces, label_selector=SELECTOR, resource_version=pods.metadata.resource_version
        )
        for event in stream:
            if event["type"] in ("ADDED", "MODIFIED"):
                self.reconcile(event["object"])

    def reconcile(self, pod: client.V1Pod) -> None:
        try:
            match decide(pod):
                case Resize(amount):
                    self._resize(pod, amount)
                case GiveUp(amount, why):
                    self._tell(pod, "ResizeGivenUp", f"Staying at {amount}m of CPU: {why}")
                    ceiling = {"metadata": {"annotations": {f"{DOMAIN}/ceiling": f"{amount}m"}}}
                    self._core.patch_namespaced_pod(pod.metadata.name, pod.metadata.namespace, ceiling)
                    self._resize(pod, amount)
        except client.ApiException as why:
            if why.status != 404:  # else it is gone
                raise

    def _resize(self, pod: client.V1Pod, amount: int) -> None:
        container = {"name": pod.spec.containers[0].name, "resources": {"requests": {"cpu": f"{amount}m"}}}
        self._core.patch_namespaced_pod_resize(pod.metadata.name, pod.metadata.namespace, {"spec": {"containers": [container]}})

    def _tell(self, pod: client.V1Pod, reason: str, message: str) -> None:
        meta = pod.metadata
        about = client.V1ObjectReference(api_version="v1", kind="Pod", name=meta.name, namespace=meta.namespace, uid=meta.uid)
        event = client.CoreV1Event(
            metadata=client.V1ObjectMeta(generate_name=f"{meta.name}."),
            involved_object=about,
            reason=reason,
            message=message,
            type="Warning",
            source=client.V1EventSource(component="autoscaler"),
        )
        self._core.create_namespaced_event(meta.namespace, event)


def main() -> None:
    parser = argparse.ArgumentParser(description="Resize pods in place to what they use.")
    parser.add_argument("--kubeconfig", required=True)
    config.load_kube_config(parser.parse_args().kubeconfig)
    Autoscaler(client.CoreV1Api()).run()


if __name__ == "__main__":
    main()
