"""Each component is killed with kill -9 in the middle of a resize, at a step chosen so that half of it is done; nothing is lost
and no container restarts. At last a node is deleted in mid-resize. (The emulated clock runs ten times as fast: the controllers
wait 40 s before they give up the pods of a node that is gone.)"""

from typing import Any

from elbowroom.deploy.stories.stage import Stage, condition, container_status, is_in_force, memory, names, resize_body
from elbowroom.deploy.stories.telling import Teller, UnmetError

MI = 1024**2


def cluster() -> dict[str, Any]:
    return {"timeScale": 10, "nodes": [{"count": 3, "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"}}]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("Three nodes; `web` (priority 10000, 1Gi) runs on node-1 beside `batch` (priority 100, 2Gi).") as seen:
        stage.priority_classes(high=10000, low=100)
        stage.start_pod("batch", node="node-1", memory="2Gi", priority="low")
        original = stage.start_pod("web", node="node-1", memory="1Gi", priority="high", guaranteed=True)
        seen.append(f"container {container_status(original)['containerID']}")

    def resized_across_death(component: str, at: str, mi: int) -> list[str]:
        """Resize ``web`` with a failpoint armed; the component must have died and the resize come into force all the same."""
        before = stage.component(component)["restarts"]
        since = stage.revision()
        stage.kill(component, at=at)
        stage.patch("pods", "web", resize_body("main", memory=f"{mi}Mi", limits=True), subresource="resize")
        stage.until(lambda: stage.component(component)["restarts"], lambda now: now > before, f"{component} died at {at}")
        web = stage.await_pod("web", lambda pod: is_in_force(pod, mi * MI), f"{mi}Mi in force", since=since)
        new = container_status(web)
        if (new["containerID"], new["restartCount"]) != (container_status(original)["containerID"], 0):
            raise UnmetError(f"the container was restarted: {new['containerID']}, restartCount {new['restartCount']}")
        return [f"restarts of {component}: {before} -> {stage.component(component)['restarts']}; web has {mi}Mi, restartCount 0"]

    with teller.step("The kubelet dies with the new allocation half written (K4); `web` grows to 1200Mi.") as seen:
        seen += resized_across_death("kubelet/node-1", "K4", 1200)

    with teller.step("The kubelet dies having sent a decrease to the runtime (K10.1); `web` shrinks to 1100Mi.") as seen:
        seen += resized_across_death("kubelet/node-1", "K10.1", 1100)

    with teller.step("The runtime dies having applied the change, before it answered (T2); `web` grows to 1300Mi.") as seen:
        seen += resized_across_death("runtime/node-1", "T2", 1300)

    with teller.step("The API server dies when the write is durable but not answered (A7); the client looks: it is there.") as seen:
        since = stage.revision()
        mi = _cut_off_behind_the_write(stage, seen)
        stage.await_pod("web", lambda pod: is_in_force(pod, mi * MI), f"{mi}Mi in force", since=since)
        seen.append(f"web has {mi}Mi")

    with teller.step(
        "The scheduler dies having sent the victim's deletion (S7.1); `web` grows to 3Gi, and only `batch` goes."
    ) as seen:
        stage.start_pod("bystander", node="node-1", memory="256Mi", priority="low")
        seen += resized_across_death("scheduler", "S7.1", 3072)
        left = names(stage.pods())
        if left != ["bystander", "web"]:
            raise UnmetError(f"left are {left}")
        seen.append(f"left on node-1: {', '.join(left)}")

    with teller.step("On node-3 a resize that takes long is under way; the node is deleted in the middle of it.") as seen:
        stage.start_pod("lost", node="node-3", memory="512Mi", workload='{"main": {"resizeSeconds": 600}}')
        since = stage.revision()
        stage.patch("pods", "lost", resize_body("main", memory="1Gi"), subresource="resize")
        stage.await_pod("lost", lambda pod: condition(pod, "PodResizeInProgress"), "in progress", since=since)
        stage.delete("nodes", "node-3")
        stage.await_gone("pods", "lost", since)
        seen.append("the pod is gone with its node")
        gone = ("kubelet/node-3", "runtime/node-3")
        stage.until(lambda: [stage.component(name) for name in gone], lambda found: not any(found), "its two processes ended")
        seen.append("its kubelet and its runtime have ended")

    with teller.step("All else is as it was: two nodes Ready, `web` running in the container it began in.") as seen:
        nodes = stage.until(lambda: stage.status()["nodes"], lambda nodes: nodes == {"total": 2, "ready": 2}, "two nodes are Ready")
        web = container_status(stage.pod("web"))
        if web["containerID"] != container_status(original)["containerID"]:
            raise UnmetError("the container was restarted")
        seen.append(
            f"{nodes['ready']} of {nodes['total']} nodes Ready; web: restartCount {web['restartCount']}, {web['containerID']}"
        )


def _cut_off_behind_the_write(stage: Stage, seen: list[str]) -> int:
    """Ask for a resize of ``web`` whose write becomes durable while its answer gets lost; the MiB asked for.

    The failpoint fires at the next write, whoever's it is: if that was a kubelet's, the same is tried again with another size.
    """
    for mi in (1400, 1410, 1420, 1430, 1440):
        before = stage.component("apiserver")["restarts"]
        stage.kill("apiserver", at="A7")
        path, body = "/api/v1/namespaces/default/pods/web/resize", resize_body("main", memory=f"{mi}Mi", limits=True)
        answered = stage.try_call("PATCH", path, body, "application/strategic-merge-patch+json")
        stage.until(lambda: stage.component("apiserver")["restarts"], before.__lt__, "the API server died at A7")
        web = stage.pod("web")
        if answered is None and memory(web) == mi * MI:
            seen.append("the client got no answer")
            seen.append(f"after the restart the store has the write, at revision {web['metadata']['resourceVersion']}")
            return mi
    raise UnmetError("the API server died five times behind writes of others")
