"""Two copies of a node's kubelet and runtime live at once, on disks of their own, as after a machine was given up too early."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hosts import Ear, on_a_loop, until

from elbowroom.api.gates import profile_of
from elbowroom.client import BusClient
from elbowroom.history import files
from elbowroom.history.report import judge
from elbowroom.host.keys import make_keys
from elbowroom.host.process import ANY, Host
from elbowroom.host.shared import INSIDE, TRUNK
from elbowroom.host.spec import DiskSpec, MachineSpec, Ready
from elbowroom.wire import Code, Reply, decode

PROFILE = dict(profile_of("lab", {}).as_config())
NODE = {
    "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}, "annotations": {"elbowroom.dev/node": "emulated"}},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def machines(folder: Path, server: str, epoch: int) -> tuple[MachineSpec, MachineSpec]:
    inside = f"{INSIDE}//runtime/n1"
    config = {"profile": PROFILE, "node": "n1", "epoch": epoch}
    kubelet = MachineSpec(
        "kubelet/n1",
        "elbowroom.kubelet.machine:build",
        config,
        dial={"apiserver": f"{TRUNK}{server}", "runtime/n1": inside},
        disk=DiskSpec("files", str(folder / "kubelet")),
    )
    runtime = MachineSpec(
        "runtime/n1", "elbowroom.runtime.machine:build", config, bind=inside, disk=DiskSpec("boot", str(folder / "runtime"))
    )
    return kubelet, runtime


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "500m"}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": "n1", "containers": [container]}}


async def in_force(client: BusClient, name: str, cpu: str) -> bool:
    status = (await client.get("pods", name, namespace="default")).get("status", {})
    found = [one.get("resources", {}).get("requests", {}).get("cpu") for one in status.get("containerStatuses", [])]
    return status.get("phase") == "Running" and found == [cpu]


@on_a_loop
async def test_the_older_copy_is_refused_and_the_newer_one_goes_on_with_its_pods(ear: Ear) -> None:
    keys = make_keys()
    server = MachineSpec("apiserver", "elbowroom.apiserver.machine:build", {"profile": PROFILE, "store": "memory"}, bind=f"{ANY}*")
    await ear.host(server, keys=keys)
    ready = await ear.hear(lambda _, report: isinstance(report, Ready) and report.machine == "apiserver")
    assert isinstance(ready, Ready)
    async with BusClient("", ready.address, keys=keys) as client:
        await client.create("nodes", NODE)
        old = await ear.host(*machines(ear.folder / "old", ready.address, 1), keys=keys, line="nodes-1#1")
        await client.create("pods", pod("p"), namespace="default")
        await until(lambda: in_force(client, "p", "500m"))

        new = await ear.host(*machines(ear.folder / "new", ready.address, 2), keys=keys, line="nodes-1#2", moved=True)
        refusals = refusals_of(new)
        # The older copy's connection breaks, so it speaks at once, and goes on doing so.
        await until(lambda: _speaks(old, ready.address, refusals))
        await client.create("pods", pod("q"), namespace="default")
        for cpu in ("600m", "700m", "800m"):
            body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
            for name in ("p", "q"):
                await until(_runs(client, name))
                await client.patch("pods", name, body, namespace="default", subresource="resize")
            for name in ("p", "q"):
                await until(lambda name=name, cpu=cpu: in_force(client, name, cpu))

    assert set(refusals) == {"kubelet/n1 of epoch 1 was replaced by epoch 2"}
    lives = ear.history("kubelet/n1")
    assert [life[0]["inc"] for life in lives] == [1, 2]
    verdict = judge(files.load(ear.folder / "history"))
    assert not verdict.failures, verdict.text()


def _runs(client: BusClient, name: str) -> Callable[[], Any]:
    async def look() -> bool:
        status = (await client.get("pods", name, namespace="default")).get("status", {})
        return bool(status.get("phase") == "Running" and status.get("containerStatuses"))

    return look


def refusals_of(host: Host) -> list[str]:
    """What the API server refuses a kubelet of that host's name from now on, as it comes: answers go to the later life."""
    kubelet, refused = host._running["kubelet/n1"], []
    hear = kubelet._on_frame

    def listen(peer: str, frame: bytes) -> None:
        message = decode(frame)
        if peer == "apiserver" and isinstance(message, Reply) and message.code is Code.FAILED_PRECONDITION:
            refused.append(message.message)
        hear(peer, frame)

    kubelet._on_frame = listen  # type: ignore[method-assign]
    return refused


async def _speaks(copy: Host, address: str, refusals: list[str]) -> bool:
    """Let it connect anew, and say whether it was refused; what it says may be lost, as anything on a connection that breaks."""
    copy._trunks["apiserver"]._dialer.redial(address)
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            while not refusals:
                await asyncio.sleep(0)
    return bool(refusals)
