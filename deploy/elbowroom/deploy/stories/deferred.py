"""Two pods of equal priority: one asks for more memory than the node has left. Nobody is evicted for an equal, so the resize
waits; as soon as room appears by itself it comes into force, without anybody asking again."""

from typing import Any

from elbowroom.deploy.stories.stage import Stage, condition, container_status, is_in_force, memory, names, resize_body
from elbowroom.deploy.stories.telling import Teller, UnmetError

GI = 1024**3


def cluster() -> dict[str, Any]:
    return {"nodes": [{"count": 1, "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"}}]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("On node-1 (4Gi) run `big` with 3Gi and `small` with 512Mi, both of the same priority."):
        stage.start_pod("big", node="node-1", memory="3Gi")
        original = stage.start_pod("small", node="node-1", memory="512Mi")

    since = stage.revision()
    with teller.step("`small` is to have 2Gi. The kubelet defers that: 512Mi are free.") as seen:
        stage.patch("pods", "small", resize_body("main", memory="2Gi"), subresource="resize")
        deferred = stage.await_pod(
            "small", lambda pod: condition(pod, "PodResizePending", reason="Deferred"), "Deferred", since=since
        )
        seen.append(condition(deferred, "PodResizePending")["message"])
        event = stage.await_event("small", "ResizeDeferred")
        seen.append(f"Event {event['type']} {event['reason']}: {event['message']}")

    since = stage.revision()
    with teller.step("`big` shrinks to 1Gi, and `small` gets its 2Gi at once.") as seen:
        stage.patch("pods", "big", resize_body("main", memory="1Gi"), subresource="resize")
        order: list[str] = []
        for kind, pod in stage.events("pods", since, "both resizes in force"):
            name, wanted = pod["metadata"]["name"], {"big": 1 * GI, "small": 2 * GI}
            if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
                raise UnmetError(f"{name} was evicted")
            if name not in order and is_in_force(pod, wanted[name]):
                order.append(name)
            if len(order) == 2:
                break
        seen.append(f"in force: first {order[0]}, then {order[1]}")

    since = stage.revision()
    with teller.step(
        "`small` is to have 3584Mi, all that `big` would leave if it went; deferred again, until `big` is deleted."
    ) as seen:
        stage.patch("pods", "small", resize_body("main", memory="3584Mi"), subresource="resize")
        stage.await_pod("small", lambda pod: condition(pod, "PodResizePending", reason="Deferred"), "Deferred", since=since)
        stage.delete("pods", "big")
        small = stage.await_pod("small", lambda pod: is_in_force(pod, 3584 * 1024**2), "in force", since=since)
        old, new = container_status(original), container_status(small)
        if (new["containerID"], new["restartCount"]) != (old["containerID"], 0):
            raise UnmetError("the container of small was restarted")
        seen.append(
            f"small has {memory(small, 'status') // 1024**2}Mi; restartCount 0; left on the node: {', '.join(names(stage.pods()))}"
        )
