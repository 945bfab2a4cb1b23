"""A cluster on two raylets, and what befalls it, told once; what was seen is printed as JSON.

To be run in a network namespace of its own that has nothing but loopback, since Ray listens at all addresses, and in a process
namespace, with which all ends that this leaves: ``python ray_story.py FOLDER``.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NOTICING = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 10_000,
    "health_check_failure_threshold": 3,
}
"""A raylet that is gone is noticed after three seconds instead of a quarter of a minute, one that is slow for longer."""
RAYLET: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 << 20}
PATIENCE_SECONDS = 60.0
NO_RAY = 77
"""The exit code that says that Ray itself could not be had."""
PODS = "/api/v1/namespaces/default/pods"


class Seen:
    """The cluster under a folder, and what it shows."""

    def __init__(self, folder: Path) -> None:
        from elbowroom.deploy.home import Home

        self.home = Home("default", folder)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([str(Path(sys.executable).parent / "elbowroom"), *arguments], capture_output=True, text=True)

    def status(self) -> dict[str, Any]:
        from elbowroom.deploy import control

        found: dict[str, Any] = control.ask(self.home.control(), {"do": "status"})["ok"]
        return found

    def components(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.status()["components"]}

    def is_well(self) -> bool:
        status = self.status()
        nodes = status["nodes"]
        return nodes["ready"] == nodes["total"] and all(one["state"] == "running" for one in status["components"])


def places(components: dict[str, dict[str, Any]], kind: str) -> dict[str, str]:
    return {name: one["place"]["node"] for name, one in components.items() if one["kind"] == kind}


def pod(name: str, node: str, cpu: str, priority: int) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}}}
    spec = {
        "containers": [container],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "priorityClassName": f"of-{priority}",
        "terminationGracePeriodSeconds": 0,
    }
    return {"metadata": {"name": name}, "spec": spec}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ours() -> list[str]:
    """What the processes here are called that belong to the cluster and not to Ray."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in (os.getpid(), os.getppid()) and alive(int(entry.name)):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if "HostActor" in words or "elbowroom" in words:
                found.append(words.strip())
    return found


def tell(folder: Path) -> dict[str, Any]:
    from ray.cluster_utils import Cluster

    from elbowroom.client import HttpClient
    from elbowroom.testing.cluster import until

    facts: dict[str, Any] = {"clock": {}}

    def passed(what: str) -> None:
        facts["clock"][what] = round(time.monotonic() - began, 1)

    began = time.monotonic()
    try:
        ray = Cluster(initialize_head=True, head_node_args={**RAYLET, "_system_config": NOTICING, "include_dashboard": False})
        second = ray.add_node(**RAYLET)
    except Exception as why:  # Ray gives a raylet 30 s to start, whatever the machine has to do
        sys.stderr.write(f"Ray does not come up: {why}")
        raise SystemExit(NO_RAY) from why
    facts["raylets"] = sorted([ray.head_node.node_id, second.node_id])
    facts["head"] = ray.head_node.node_id
    passed("raylets")
    seen = Seen(folder)
    ran = seen.run("up", "--on", "ray", "--address", ray.address, "--nodes", "6", "--kubelets-per-process", "2", "--detach")
    assert ran.returncode == 0, ran.stderr + (seen.home.logs / "supervisor.log").read_text()
    passed("up")
    before = seen.components()
    facts["up"] = {"places": {name: one["place"] for name, one in before.items()}, "nodes": seen.status()["nodes"]}
    facts["table"] = seen.run("status").stdout.splitlines()

    http = HttpClient(seen.home.kubeconfig)

    def get(path: str) -> Any:
        answer = http.get(path)
        return answer.document if answer.status == 200 else None

    def running(name: str) -> Any:
        found = get(f"{PODS}/{name}")
        return found and found["status"].get("phase") == "Running" and found["status"].get("containerStatuses") and found

    def cpu_of(name: str) -> str:
        statuses = (get(f"{PODS}/{name}") or {"status": {}})["status"].get("containerStatuses") or [{}]
        return str(statuses[0].get("resources", {}).get("requests", {}).get("cpu"))

    def await_running(name: str) -> None:
        until(f"{name} runs", lambda: running(name), PATIENCE_SECONDS, lambda: (get(f"{PODS}/{name}"), seen.status()["components"]))

    def create(path: str, body: dict[str, Any]) -> None:
        answer = http.post(path, body)
        assert answer.status == 201, answer.body

    def resize(name: str, cpu: str) -> None:
        body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
        assert http.patch(f"{PODS}/{name}/resize", body).status == 200

    for value in (10, 1000):
        create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"of-{value}"}, "value": value})
    there = sorted(name.partition("/")[2] for name, node in places(before, "kubelet").items() if node == second.node_id)
    far = next(name for name in there if name != "node-1")
    create(PODS, pod("low", "node-1", "2", 10))
    create(PODS, pod("high", "node-1", "1500m", 1000))
    create(PODS, pod("far", far, "1", 10))
    for name in ("low", "high", "far"):
        await_running(name)

    passed("pods")
    # A resize for which somebody has to go, and the process of its kubelet and runtime is killed in the middle.
    started = running("high")["status"]["containerStatuses"][0]["containerID"]
    resize("high", "3500m")
    victim = before["kubelet/node-1"]
    os.kill(victim["pid"], signal.SIGKILL)
    until("high is resized", lambda: cpu_of("high") == "3500m", PATIENCE_SECONDS)
    until("all is well after the actor's death", seen.is_well, PATIENCE_SECONDS)
    after = seen.components()["kubelet/node-1"]
    facts["preemption"] = {
        "low is left": get(f"{PODS}/low") is not None,
        "same container": running("high")["status"]["containerStatuses"][0]["containerID"] == started,
    }
    facts["actor"] = {
        "another process": after["pid"] != victim["pid"],
        "same machine": after["place"] == victim["place"],
        "restarts": after["restarts"],
    }

    passed("actor's death")

    # A component is killed by its name: alone where it shares its process, with its process else.
    before = seen.components()
    assert seen.run("kill", f"kubelet/{far}").returncode == seen.run("kill", "scheduler").returncode == 0
    until("all is well after the kills", seen.is_well, PATIENCE_SECONDS)
    after = seen.components()
    facts["kills"] = {
        "kubelet": [after[f"kubelet/{far}"][word] - before[f"kubelet/{far}"][word] for word in ("pid", "restarts")],
        "runtime": after[f"runtime/{far}"]["restarts"] - before[f"runtime/{far}"]["restarts"],
        "scheduler": after["scheduler"]["pid"] != before["scheduler"]["pid"],
    }

    passed("kills")

    # A raylet dies. What it ran does not know; one of its processes sleeps through it, and wakes when it has been replaced.
    before = seen.components()
    sleeper = before[f"kubelet/{far}"]["pid"]
    moved = sorted(name for name, one in before.items() if one["place"]["node"] == second.node_id)
    os.kill(sleeper, signal.SIGSTOP)
    raylet = second.all_processes["raylet"][0].process
    raylet.kill()
    raylet.wait()
    until(
        "all is elsewhere",
        lambda: (
            seen.is_well() and all(one["place"] and one["place"]["node"] != second.node_id for one in seen.components().values())
        ),
        2 * PATIENCE_SECONDS,
        lambda: [(name, one["state"], one["pid"], one["place"], one["restarts"]) for name, one in seen.components().items()],
    )
    after = seen.components()
    facts["raylet"] = {
        "moved": moved,
        "elsewhere": sorted(name for name, one in after.items() if one["place"]["node"] != second.node_id),
        "sleeper": f"kubelet/{far}",
        "both alive": alive(sleeper) and after[f"kubelet/{far}"]["pid"] != sleeper,
    }
    passed("raylet's death")
    os.kill(sleeper, signal.SIGCONT)
    until("the one that was replaced has ended", lambda: not alive(sleeper), PATIENCE_SECONDS)
    await_running("far")
    resize("far", "2")
    until("far is resized", lambda: cpu_of("far") == "2", PATIENCE_SECONDS)

    passed("two copies")

    # Nodes come and go.
    labels = {"kubernetes.io/hostname": "late"}
    annotations = {"elbowroom.dev/node": "emulated"}
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    create(
        "/api/v1/nodes",
        {"metadata": {"name": "late", "labels": labels, "annotations": annotations}, "status": {"capacity": capacity}},
    )
    assert http.delete("/api/v1/nodes/node-6").status == 200
    until(
        "the new node is Ready and the old one's machines are gone",
        lambda: seen.is_well() and ("kubelet/late" in seen.components() and "runtime/node-6" not in seen.components()),
        30,
    )
    create(PODS, pod("on-late", "late", "1", 10))
    await_running("on-late")

    passed("nodes")
    history = seen.status()["history"]
    facts["down"] = {"code": seen.run("down").returncode, "files": (seen.home.default_data / "ray").exists()}
    until("nothing is left", lambda: not ours(), PATIENCE_SECONDS, ours)
    judged = seen.run("check", history)
    facts["check"] = {"code": judged.returncode, "text": judged.stdout[-1500:], "history": history}
    passed("judged")
    lives = sorted(Path(history).glob(f"kubelet_{far}.*.jsonl"))
    last = [[json.loads(line) for line in life.read_bytes().splitlines()][-1] for life in lives]
    facts["ends of the sleeper"] = [[one["kind"], one["wall"]] for one in last]
    ray.shutdown()
    return facts


if __name__ == "__main__":
    sys.stdout.write(json.dumps(tell(Path(sys.argv[1]))))
