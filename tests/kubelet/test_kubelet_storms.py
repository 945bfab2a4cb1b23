"""Random lives of a node: pods come, change size and go, while kubelet and runtime die; then it is as if nothing had happened."""

import random
from typing import Any

import pytest
from kubelet_world import NODE, World, a_container, a_pod
from test_kubelet_crashes import actuated_was_allocated, limits_hold

from elbowroom.api.resources import of
from elbowroom.history.invariants import INVARIANTS
from elbowroom.history.records import History

CPU_MILLI, MEMORY_MIB = 4000, 4096


def a_size(rng: random.Random) -> dict[str, str]:
    return {"cpu": f"{rng.randrange(1, 30) * 100}m", "memory": f"{rng.randrange(2, 24) * 64}Mi"}


def a_random_pod(rng: random.Random, name: str, *, slow: bool) -> dict[str, Any]:
    policy = [{"resourceName": rng.choice(["cpu", "memory"]), "restartPolicy": "RestartContainer"}] if rng.random() < 0.3 else []
    containers = []
    for at in range(rng.randrange(1, 3)):
        size = {"cpu": f"{rng.randrange(1, 8) * 100}m", "memory": f"{rng.randrange(1, 8) * 64}Mi"}
        containers.append(a_container(f"c{at}", size["cpu"], size["memory"], size, resizePolicy=policy))
    workload = {"c0": {"resizeSeconds": rng.choice([0, 0.4]) if slow else 0, "stopSeconds": rng.choice([0, 0.5])}}
    return a_pod(name, *containers, grace=rng.choice([0, 1]), priority=rng.randrange(0, 3), workload=workload)


def resize(world: World, name: str, rng: random.Random) -> None:
    def apply(pod: dict[str, Any]) -> None:
        for container in pod["spec"]["containers"]:
            if rng.random() < 0.7:
                size = a_size(rng)
                container["resources"] = {"requests": dict(size), "limits": dict(size)}

    world.api.change("pods", f"ns/{name}", apply, bump=True)


def storm(world: World, rng: random.Random, rounds: int, *, slow: bool) -> None:
    made = 0
    for _ in range(rounds):
        names = sorted(key.partition("/")[2] for key in world.api.objects["pods"])
        match rng.choice(["create", "resize", "resize", "resize", "delete", "kill", "die", "runtime", "api", "run"]):
            case "create" if len(names) < 5:
                made += 1
                world.api.create("pods", a_random_pod(rng, f"p{made}", slow=slow))
            case "resize" if names:
                resize(world, rng.choice(names), rng)
            case "delete" if names and rng.random() < 0.5:
                world.api.delete(rng.choice(names), grace=rng.choice([None, 0]))
            case "kill":
                world.restart_kubelet()
            case "die":
                world.die_at = world.effects + rng.randrange(1, 40)
            case "runtime":
                world.restart_runtime()
            case "api":
                world.reconnect("apiserver")
        world.run(rng.choice([0.001, 0.004, 0.05, 0.7]))
        if not world.kubelet_lives:
            world.start_kubelet()


def is_at_rest(world: World) -> bool:
    """Each pod has what it wants, or waits for a reason that holds, or was rejected, or has gone."""
    pods = list(world.api.objects["pods"].values())
    used = {
        pod["metadata"]["name"]: [of(s.get("allocatedResources")) for s in pod["status"].get("containerStatuses", [])]
        for pod in pods
        if pod["status"]["phase"] not in ("Failed", "Succeeded")
    }
    for pod in pods:
        name = pod["metadata"]["name"]
        if pod["status"]["phase"] == "Failed":
            continue
        if pod["metadata"].get("deletionTimestamp") or pod["status"]["phase"] != "Running":
            return False
        wanted = [of(c["resources"]["requests"]) for c in pod["spec"]["containers"]]
        pending = world.condition(name, "PodResizePending")
        if world.condition(name, "PodResizeInProgress") is not None:
            return False
        if any("running" not in s["state"] for s in pod["status"]["containerStatuses"]):
            return False
        if [of(s["resources"]["limits"]) for s in pod["status"]["containerStatuses"]] != used[name]:
            return False
        if pending is None:
            if used[name] != wanted:
                return False
            continue
        others = [vector for other, vectors in used.items() if other != name for vector in vectors]
        room = {
            "cpu": CPU_MILLI - sum(v.get("cpu", 0) for v in others),
            "memory": (MEMORY_MIB << 20) - sum(v.get("memory", 0) for v in others),
        }
        whole = {"cpu": CPU_MILLI, "memory": MEMORY_MIB << 20}
        total = {r: sum(w[r] for w in wanted) for r in room}
        if all(total[r] <= room[r] for r in room):
            return False
        if (pending["reason"] == "Infeasible") is not any(total[r] > whole[r] for r in whole):
            return False
    return True


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_after_a_storm_every_pod_has_what_it_wants_or_waits_for_a_reason(seed: int, slow: bool) -> None:
    rng = random.Random(seed)
    world = World(cpu=str(CPU_MILLI // 1000), memory=f"{MEMORY_MIB}Mi")
    storm(world, rng, 60, slow=slow)
    world.die_at = None
    world.until(lambda: is_at_rest(world), within=30)
    world.run(5)
    assert is_at_rest(world)
    assert len(world.noted("kl.alloc")) > 1 and world.noted("kl.judge")
    limits_hold(world)
    actuated_was_allocated(world)
    records = [{"kind": kind, "proc": f"kubelet/{NODE}", "node": NODE, **note} for kind, note in world.notes]
    for invariant in ("I-01", "I-03", "I-05"):
        assert list(INVARIANTS[invariant](History(tuple(records)))) == [], invariant
