"""A pod of high priority asks for more memory than its node has left: the kubelet defers the resize, the scheduler makes elbow
room by evicting exactly the pods that have to go, and the resize comes into force while the container runs on."""

from typing import Any

from elbowroom.deploy.stories import layers
from elbowroom.deploy.stories.stage import Stage, condition, container_status, is_in_force, memory, names, resize_body
from elbowroom.deploy.stories.telling import Teller, UnmetError

GI = 1024**3


def cluster() -> dict[str, Any]:
    """Three nodes of 4 CPUs and 4Gi, each process on its own."""
    return {"nodes": [{"count": 3, "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"}}]}


def play(stage: Stage, teller: Teller) -> None:
    with teller.step("Three nodes are Ready; every kubelet and every runtime is a process of its own.") as seen:
        pids = [c["pid"] for c in stage.status()["components"]]
        if len(set(pids)) != len(pids) or len(pids) != 3 + 2 * 3:
            raise UnmetError(f"the processes are {pids}")
        seen.append(f"{len(pids)} processes; API server at {stage.status()['server']}")

    with teller.step("On node-1 run `vip` (priority 10000, 1Gi) and five pods of low priority, 450Mi each.") as seen:
        stage.priority_classes(high=10000, mid=200, low=100, lowest=50)
        stage.start_pod("vip", node="node-1", memory="1Gi", priority="high", guaranteed=True)
        stage.start_pod("batch-a", node="node-1", memory="450Mi", priority="mid")
        stage.start_pod("batch-b", node="node-1", memory="450Mi", priority="low")
        stage.start_pod("batch-e", node="node-1", memory="450Mi", priority="lowest")
        stage.await_later_second(stage.pod("batch-b")["status"]["startTime"])
        stage.start_pod("batch-c", node="node-1", memory="450Mi", priority="low")
        stage.start_pod("batch-d", node="node-1", memory="450Mi", priority="low")
        seen += [
            f"{pod['metadata']['name']:8} priority {pod['spec']['priority']:>5}, since {pod['status']['startTime']}"
            for pod in sorted(stage.pods(), key=lambda pod: -pod["spec"]["priority"])
        ]

    original = stage.pod("vip")
    before = layers.of(original, "main", stage.data, stage.cgroups("node-1"))
    since = stage.revision()
    with teller.step("`vip` is to have 3Gi: PATCH of its subresource `resize`. 2Gi more are wanted, 822Mi are free."):
        stage.patch("pods", "vip", resize_body("main", memory="3Gi", limits=True), subresource="resize")

    with teller.step("The kubelet cannot allocate that now and defers it.") as seen:
        deferred = stage.await_pod(
            "vip", lambda pod: condition(pod, "PodResizePending", reason="Deferred"), "Deferred", since=since
        )
        seen.append(str(condition(deferred, "PodResizePending")["message"]))
        if memory(deferred, "status") != 1 * GI:
            raise UnmetError("the container's resources changed although the resize is pending")

    with teller.step("The scheduler evicts the three pods that have to go: lowest priority first, of equals the youngest.") as seen:
        marked: dict[str, str] = {}
        gone: set[str] = set()
        in_force = False
        for kind, pod in stage.events("pods", since, "the resize in force and every evicted pod gone"):
            name = pod["metadata"]["name"]
            if name == "vip":
                in_force = bool(is_in_force(pod, 3 * GI))
            elif "deletionTimestamp" in pod["metadata"]:
                marked[name] = condition(pod, "DisruptionTarget").get("reason", "no condition")
            if kind == "DELETED":
                gone.add(name)
            if in_force and gone == marked.keys():
                break
        if set(marked) != {"batch-e", "batch-d", "batch-c"} or set(marked.values()) != {"PreemptionByScheduler"}:
            raise UnmetError(f"evicted were {marked}")
        seen += [f"{name} evicted: DisruptionTarget, reason {reason}" for name, reason in sorted(marked.items(), reverse=True)]

    with teller.step("The resize is in force, and the container never stopped.") as seen:
        vip = stage.await_pod("vip", lambda pod: is_in_force(pod, 3 * GI), "in force", since=since)
        old, new = container_status(original), container_status(vip)
        if (new["containerID"], new["restartCount"]) != (old["containerID"], 0):
            raise UnmetError(f"the container was {old['containerID']} and is {new['containerID']}, restarts {new['restartCount']}")
        seen.append(
            f"{new['containerID']}, restartCount {new['restartCount']}, running since {new['state']['running']['startedAt']}"
        )

    with teller.step("Nobody else was touched: the oldest of the low ones and the one of higher priority run on.") as seen:
        left = names(stage.pods())
        if left != ["batch-a", "batch-b", "vip"] or any("deletionTimestamp" in pod["metadata"] for pod in stage.pods()):
            raise UnmetError(f"left are {left}")
        seen.append(f"left on node-1: {', '.join(left)}")

    with teller.step("All four layers agree, and so does the cgroup."):
        after = stage.until(
            lambda: layers.of(stage.pod("vip"), "main", stage.data, stage.cgroups("node-1")),
            lambda found: found.all_are(3 * GI),
            "the layers agree",
        )
        if not before.all_are(1 * GI):
            raise UnmetError(f"before the resize they were {before}")
    teller.rows(layers.rows(before, after))
