"""The owner of a node forbids evictions for the sake of resizes there: a deferred resize waits, and nobody is evicted. Once the
owner withdraws that, the scheduler makes room at once."""

from typing import Any

from elbowroom.deploy.stories.stage import Stage, condition, is_in_force, names, resize_body
from elbowroom.deploy.stories.telling import Teller, UnmetError

GI = 1024**3
OWNER = "example.com/quiet-hours"


def cluster() -> dict[str, Any]:
    return {"nodes": [{"count": 2, "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"}}]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("On node-1 (4Gi) run `vip` (priority 10000, 1Gi) and `batch` (priority 100, 2Gi)."):
        stage.priority_classes(high=10000, low=100)
        stage.start_pod("batch", node="node-1", memory="2Gi", priority="low")
        stage.start_pod("vip", node="node-1", memory="1Gi", priority="high")

    with teller.step(f"The node's owner puts {OWNER} into spec.podPreemptionPolicy.disableResizePreemption."):
        stage.patch("nodes", "node-1", {"spec": {"podPreemptionPolicy": {"disableResizePreemption": [OWNER]}}})

    since = stage.revision()
    with teller.step("`vip` is to have 3Gi; the kubelet defers that.") as seen:
        stage.patch("pods", "vip", resize_body("main", memory="3Gi"), subresource="resize")
        deferred = stage.await_pod(
            "vip", lambda pod: condition(pod, "PodResizePending", reason="Deferred"), "Deferred", since=since
        )
        seen.append(condition(deferred, "PodResizePending")["message"])
        if stage.profile == "lab":
            vip = stage.await_pod(
                "vip", lambda pod: condition(pod, "PodResizePreemptionDisabled", status="True"), "preemption disabled", since=since
            )
            seen.append(condition(vip, "PodResizePreemptionDisabled")["message"])

    with teller.step("The scheduler has been at work since (it placed a pod on node-2), and `batch` was not evicted.") as seen:
        stage.start_pod("witness", node="node-2", memory="64Mi")
        if any("deletionTimestamp" in pod["metadata"] for pod in stage.pods()) or len(stage.pods()) != 3:
            raise UnmetError(f"left are {names(stage.pods())}")
        seen.append(f"alive: {', '.join(names(stage.pods()))}")

    since = stage.revision()
    with teller.step("The owner withdraws the entry: `batch` is evicted, and `vip` has its 3Gi.") as seen:
        stage.patch("nodes", "node-1", {"spec": {"podPreemptionPolicy": None}}, kind="merge-patch")
        evicted: set[str] = set()
        for _, pod in stage.events("pods", since, "vip's resize in force"):
            if "deletionTimestamp" in pod["metadata"]:
                evicted.add(pod["metadata"]["name"])
            if pod["metadata"]["name"] == "vip" and is_in_force(pod, 3 * GI):
                break
        if evicted != {"batch"}:
            raise UnmetError(f"evicted were {sorted(evicted)}")
        if condition(stage.pod("vip"), "PodResizePreemptionDisabled"):
            raise UnmetError("vip still has the condition PodResizePreemptionDisabled")
        seen.append("evicted: batch alone; no condition is left on vip")
