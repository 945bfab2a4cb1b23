"""Who is turned away for other reasons than room (RC-73)."""

from typing import Any

import msgspec
import pytest
from kubelet_world import NODE, World, a_container, a_pod

from elbowroom.api.gates import Profile
from elbowroom.api.objects import Pod
from elbowroom.kubelet import sysctls
from elbowroom.kubelet.config import KUBELET_CONFIG, ConfigError, parse


def setting(*names: str, **spec: Any) -> Pod:
    context = {"sysctls": [{"name": name, "value": "1"} for name in names]}
    return msgspec.convert({"spec": {"containers": [a_container()], "securityContext": context, **spec}}, Pod)


@pytest.mark.parametrize(
    ("pod", "unsafe", "why"),
    [
        (setting("net.ipv4.tcp_syncookies", "kernel.shm_rmid_forced"), (), ""),
        (setting("net/ipv4/tcp_syncookies"), (), ""),
        (setting("kernel.msgmax"), (), '"kernel.msgmax" not allowlisted'),
        (setting("net.ipv4.tcp_syncookies", "net/core/somaxconn"), (), '"net.core.somaxconn" not allowlisted'),
        (setting("kernel.msgmax", "net.core.somaxconn"), ("kernel.msg*", "net.core.somaxconn"), ""),
        (setting("net.ipv4.tcp_syncookies", hostNetwork=True), (), '"net.ipv4.tcp_syncookies" not allowed with host Net enabled'),
        (setting("kernel.shm_rmid_forced", hostNetwork=True), (), ""),
        (setting("kernel.shm_rmid_forced", hostIPC=True), (), '"kernel.shm_rmid_forced" not allowed with host IPC enabled'),
        (setting("kernel.msgmax", hostIPC=True), ("kernel.msg*",), '"kernel.msgmax" not allowed with host IPC enabled'),
        (setting(), (), ""),
    ],
)
def test_a_pod_sets_what_is_safe_or_allowed_and_no_namespace_of_the_host(pod: Pod, unsafe: tuple[str, ...], why: str) -> None:
    found = sysctls.refusal(pod, unsafe)
    assert (found and (found.reason, found.message)) == (("SysctlForbidden", f"forbidden sysctl: {why}") if why else None)


@pytest.mark.parametrize(
    ("name", "dotted"), [("net.ipv4.a/b", "net.ipv4.a/b"), ("net/ipv4/a.b", "net.ipv4.a/b"), ("plain", "plain")]
)
def test_both_ways_of_writing_are_one_name(name: str, dotted: str) -> None:
    assert sysctls.normalised(name) == dotted


def test_a_kubelet_that_is_to_allow_what_no_namespace_keeps_does_not_start() -> None:
    note = {KUBELET_CONFIG: '{"allowedUnsafeSysctls": ["vm.swappiness"]}'}
    with pytest.raises(ConfigError, match=r'the sysctls "vm\.swappiness" are not known to be namespaced'):
        parse(note, Profile("lab"))
    assert parse({KUBELET_CONFIG: '{"allowedUnsafeSysctls": ["net.*"]}'}, Profile("lab")).sysctls == ("net.*",)


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        (
            a_pod("a", a_container(), securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            "SysctlForbidden",
            'forbidden sysctl: "kernel.msgmax" not allowlisted',
        ),
        (
            a_pod("a", a_container(), os={"name": "windows"}),
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ),
        (
            {**a_pod("a", a_container()), "metadata": {"name": "a", "namespace": "ns", "labels": {"kubernetes.io/os": "windows"}}},
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
    ],
)
def test_a_pod_that_is_turned_away_says_why(pod: dict[str, Any], reason: str, message: str) -> None:
    world = World()
    world.api.create("pods", pod)
    world.until(lambda: world.status("a")["phase"] == "Failed")
    assert (world.status("a")["reason"], world.status("a")["message"]) == (reason, f"Pod was rejected: {message}")


def test_a_pod_of_before_is_turned_away_by_a_kubelet_that_no_longer_allows_what_it_sets() -> None:
    world = World(kubelet={"allowedUnsafeSysctls": ["kernel.msg*"]})
    context = {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}
    world.api.create("pods", a_pod("a", a_container(cpu="1"), securityContext=context))
    world.until(lambda: world.status("a")["phase"] == "Running")
    world.api.change("nodes", NODE, lambda node: node["metadata"]["annotations"].pop(KUBELET_CONFIG))
    world.restart_kubelet()
    world.until(lambda: world.status("a")["phase"] == "Failed")
    assert world.status("a")["reason"] == "SysctlForbidden"
