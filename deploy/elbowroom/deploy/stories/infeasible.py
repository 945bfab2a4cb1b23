"""A pod asks for more memory than its node has at all: no eviction could ever help, so the resize is refused, and the container
runs on as it was. Asked for something possible, it gets it."""

from typing import Any

from elbowroom.deploy.stories.stage import Stage, condition, container_status, is_in_force, memory, resize_body
from elbowroom.deploy.stories.telling import Teller, UnmetError

GI = 1024**3


def cluster() -> dict[str, Any]:
    return {"nodes": [{"count": 1, "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"}}]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("On node-1 (4Gi) run `greedy` (priority 10000) and `meek` (priority 100) with 1Gi each."):
        stage.priority_classes(high=10000, low=100)
        stage.start_pod("meek", node="node-1", memory="1Gi", priority="low")
        original = stage.start_pod("greedy", node="node-1", memory="1Gi", priority="high")

    since = stage.revision()
    body = resize_body("main", memory="8Gi")
    if stage.profile == "lab":
        with teller.step("`greedy` is to have 8Gi. The API server accepts the wish, the kubelet finds it infeasible.") as seen:
            stage.patch("pods", "greedy", body, subresource="resize")
            refused = stage.await_pod(
                "greedy", lambda pod: condition(pod, "PodResizePending", reason="Infeasible"), "Infeasible", since=since
            )
            seen.append(condition(refused, "PodResizePending")["message"])
            event = stage.await_event("greedy", "ResizeInfeasible")
            seen.append(f"Event {event['type']} {event['reason']}: {event['message']}")
    else:
        with teller.step("`greedy` is to have 8Gi. The API server refuses it: the node is smaller than that.") as seen:
            path = "/api/v1/namespaces/default/pods/greedy/resize"
            status, answer = stage.call("PATCH", path, body, "application/strategic-merge-patch+json")
            if status != 403:
                raise UnmetError(f"it answered {status} {answer.get('message', '')}")
            seen.append(f"403: {answer['message']}")

    with teller.step("Nobody was evicted, and the container has what it had.") as seen:
        for pod in stage.pods():
            if "deletionTimestamp" in pod["metadata"] or memory(pod, "status") != 1 * GI:
                raise UnmetError(f"{pod['metadata']['name']} has {memory(pod, 'status')} bytes")
            seen.append(f"{pod['metadata']['name']}: {memory(pod, 'status') // 1024**2}Mi")

    with teller.step("`greedy` asks for 2Gi instead, and gets it.") as seen:
        stage.patch("pods", "greedy", resize_body("main", memory="2Gi"), subresource="resize")
        greedy = stage.await_pod("greedy", lambda pod: is_in_force(pod, 2 * GI), "in force", since=since)
        if container_status(greedy)["containerID"] != container_status(original)["containerID"]:
            raise UnmetError("the container was restarted")
        seen.append("no condition is left; restartCount 0")
