"""Pods of the node's own: what manifests say, and how their mirrors are kept."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubelet_world import NODE, World, a_container, a_pod

from elbowroom.kubelet import manifests
from elbowroom.kubelet.manifests import CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE
from elbowroom.wire import Code

PATH = "/etc/kubernetes/manifests"
CONFIG = {"staticPodPath": PATH}


def a_manifest(name: str = "web", cpu: str = "500m", grace: int = 0, **spec: Any) -> dict[str, Any]:
    size = {"cpu": cpu, "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "labels": {"app": name}},
        "spec": {
            "containers": [{"name": "c", "image": "pause:3.10", "resources": {"limits": size}}],
            "terminationGracePeriodSeconds": grace,
            **spec,
        },
    }


def a_world(**files: Any) -> World:
    world = World(kubelet=CONFIG, start=False)
    world.put_files(**files)
    world.start_runtime()
    world.start_kubelet()
    return world.run(1)


def mirror(world: World, name: str = f"web-{NODE}") -> dict[str, Any]:
    found: dict[str, Any] | None = world.api.pod(name)
    assert found is not None, "there is no mirror"
    return found


def runs(world: World, name: str = f"web-{NODE}", cpu: str = "500m", other_than: str = "") -> bool:
    """Is there a mirror (of another uid) that shows the pod running at that size?"""
    pod = world.api.pod(name)
    if pod is None or pod["metadata"]["uid"] == other_than or pod["status"].get("phase") != "Running":
        return False
    return bool(world.container(name).get("resources", {}).get("requests", {}).get("cpu") == cpu)


def read_one(text: str | bytes | dict[str, Any], node: str = NODE, file: str = "a.yaml") -> manifests.Manifests:
    content = text.encode() if isinstance(text, str) else text if isinstance(text, bytes) else msgspec.json.encode(text)
    return manifests.read(PATH, {file: content}, node, "now")


# ---------------------------------------------------------------- manifests


def test_a_manifest_becomes_a_pod_that_is_named_after_its_node() -> None:
    found = read_one(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  priorityClassName: system-node-critical\n"
        "  containers:\n  - {name: c, image: pause, resources: {limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 500m}}}\n",
        node="Node-1",
    )
    static = found.pods["default/web-node-1"]
    pod = static.pod
    assert pod.spec.node_name == "Node-1" and pod.spec.priority == 2_000_001_000
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "64Mi"}
    assert [(t.operator, t.effect) for t in pod.spec.tolerations] == [("Exists", "NoExecute")]
    notes = pod.metadata.annotations
    assert notes == {CONFIG_HASH: pod.uid, CONFIG_SEEN: "now", CONFIG_SOURCE: "file"} and len(pod.uid) == 32


def test_the_uid_is_another_for_another_text_node_or_file_and_the_same_for_the_same() -> None:
    uids = [
        next(iter(found.pods.values())).pod.uid
        for found in (
            read_one(a_manifest()),
            read_one(a_manifest()),
            read_one(a_manifest(cpu="1")),
            read_one(a_manifest(), node="n2"),
            read_one(a_manifest(), file="b.yaml"),
        )
    ]
    assert uids[0] == uids[1] and len(set(uids)) == 4
    own = {**a_manifest(), "metadata": {"name": "web", "uid": "mine"}}
    assert next(iter(read_one(own).pods.values())).hash == "mine"


def without(part: str) -> dict[str, Any]:
    made = a_manifest()
    del made["spec"]["containers"][0][part]
    return made


def with_volume(**volume: Any) -> dict[str, Any]:
    return a_manifest(volumes=[{"name": "v", **volume}])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "couldn't parse as pod(Object 'Kind' is missing), please check config file"),
        ("{", "couldn't parse as pod("),
        ("a: [", "couldn't parse as pod("),
        ("- 1", "couldn't parse as pod(Object 'Kind' is missing)"),
        ("apiVersion: v1\nkind: Service", "couldn't parse as pod(no kind 'Service' is registered for version 'v1')"),
        ("apiVersion: v1\nkind: Pod", "invalid pod: name is needed for the pod"),
        ("apiVersion: v1\nkind: Pod\nmetadata: [1]", "metadata is no object"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: 3}", "couldn't parse as pod("),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}", "invalid pod: [spec.containers: Required value]"),
        (without("image"), "invalid pod: [spec.containers[0].image: Required value]"),
        (without("name"), "invalid pod: [spec.containers[0].name: Required value]"),
        (a_manifest(name="A_b"), 'metadata.name: Invalid value: "A_b-n1": a lowercase RFC 1123 subdomain must consist of'),
        (a_manifest(cpu="lots"), 'spec.containers[0].resources.limits[cpu]: Invalid value: "lots": quantities must match'),
        (a_manifest(cpu="-1"), "must be greater than or equal to 0"),
        (a_manifest(restartPolicy="Sometimes"), 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        (a_manifest(serviceAccountName="x"), "static pods may not reference serviceaccounts"),
        (with_volume(configMap={"name": "x"}), "static pods may not reference configmaps (via configmap volumes)"),
        (with_volume(projected={"sources": [{"secret": {}}]}), "static pods may not reference secrets (via projected volumes)"),
        (a_manifest(resourceClaims=[{"name": "x"}]), "static pods may not reference resourceclaims"),
    ],
)
def test_what_upstream_refuses_of_a_manifest_is_refused_in_its_words(text: Any, words: str) -> None:
    found = read_one(text)
    assert not found.pods and words in found.refused[0][1]


def test_a_request_above_its_limit_and_references_to_the_api_are_found_in_every_container() -> None:
    made = a_manifest()
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    assert "must be less than or equal to cpu limit of 500m" in read_one(made).refused[0][1]
    for source, words in (
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}, "secrets"),
        ({"envFrom": [{"configMapRef": {"name": "s"}}]}, "configmaps"),
    ):
        init = a_manifest(initContainers=[{"name": "i", "image": "pause", **source}])
        assert read_one(init).refused[0][1] == f"static pods may not reference {words}"


def test_of_two_files_with_one_name_the_first_counts_and_an_unreadable_one_hinders_nobody() -> None:
    files = {"a": msgspec.json.encode(a_manifest()), "b": msgspec.json.encode(a_manifest(cpu="1")), "c": None}
    found = manifests.read(PATH, files, NODE, "now")
    assert [p.pod.spec.containers[0].resources.limits["cpu"] for p in found.pods.values()] == ["500m"]
    assert [file for file, _ in found.refused] == [f"{PATH}/b", f"{PATH}/c"]
    assert 'due to duplicate pod name "web-n1", ignoring' in found.refused[0][1]


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "too deep or too large" in read_one("\n".join(lines)).refused[0][1]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("containers", "initContainers", "resources", "tolerations", "volumes", "priority", "restartPolicy", "env")


@given(st.dictionaries(st.sampled_from(FIELDS), values, max_size=4), values | st.binary(max_size=20))
@settings(max_examples=150, deadline=None)
def test_no_file_breaks_the_reading(spec: dict[str, Any], other: Any) -> None:
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {**a_manifest()["spec"], **spec}}
    text = other if isinstance(other, bytes) else msgspec.json.encode(other)
    found = manifests.read(PATH, {"a": msgspec.json.encode(whole), "b": text}, NODE, "now")
    assert len(found.pods) + len(found.refused) == 2


# ---------------------------------------------------------------- running


def test_a_manifest_is_run_and_mirrored_with_upstreams_annotations() -> None:
    world = a_world(web=a_manifest())
    made = mirror(world)
    meta = made["metadata"]
    notes = meta["annotations"]
    assert notes[CONFIG_MIRROR] == notes[CONFIG_HASH] != meta["uid"]
    assert notes[CONFIG_SOURCE] == "file" and notes[CONFIG_SEEN].endswith("Z") and meta["labels"] == {"app": "web"}
    node = world.api.objects["nodes"][NODE]["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node, "controller": True}
    assert meta["ownerReferences"] == [owner]
    assert made["status"]["phase"] == "Running" and "running" in world.container(f"web-{NODE}")["state"]
    assert world.container(f"web-{NODE}")["allocatedResources"] == {"cpu": "500m", "memory": "64Mi"}
    assert {e["involvedObject"]["uid"] for e in world.api.events("Started")} == {notes[CONFIG_HASH]}
    assert list(world.disk("allocated_pods_state")) == [notes[CONFIG_HASH]]


def test_deleting_the_mirror_stops_nothing_and_it_is_made_anew() -> None:
    world = a_world(web=a_manifest(grace=30))
    old = mirror(world)
    for grace in (30, 0):
        world.api.delete(f"web-{NODE}", grace=grace)
        world.until(
            lambda old=old: (p := world.api.pod(f"web-{NODE}")) is not None and p["metadata"]["uid"] != old["metadata"]["uid"]
        )  # type: ignore[misc]
        world.until(lambda: world.status(f"web-{NODE}").get("phase") == "Running")
        assert world.container(f"web-{NODE}")["containerID"] == old["status"]["containerStatuses"][0]["containerID"]
        old = mirror(world)
    assert "StopContainer" not in [method for method, _ in world.calls]


def test_a_changed_manifest_is_another_pod_that_starts_when_the_old_one_has_ended() -> None:
    world = a_world(web=a_manifest(grace=10))
    old = mirror(world)
    world.put_files(web=a_manifest(cpu="1", grace=10))
    world.until(lambda: runs(world, cpu="1", other_than=old["metadata"]["uid"]))
    new = mirror(world)
    assert new["metadata"]["annotations"][CONFIG_HASH] != old["metadata"]["annotations"][CONFIG_HASH]
    exits = [i for i, (kind, _) in enumerate(world.notes) if kind == "rt.exit"]
    creates = [i for i, (kind, _) in enumerate(world.notes) if kind == "rt.create"]
    assert creates[0] < exits[0] < creates[1]


def test_a_removed_manifest_ends_the_pod_with_its_grace_and_then_its_mirror() -> None:
    world = World(kubelet=CONFIG)
    world.put_files(web=a_manifest(grace=10) | {"metadata": {"name": "web", "namespace": "ns", "annotations": SLOW}})
    world.until(lambda: runs(world))
    begun = world.now
    world.put_files()
    world.run(1)
    assert world.api.pod(f"web-{NODE}") is not None
    world.until(lambda: world.api.pod(f"web-{NODE}") is None)
    assert 3 <= (world.now - begun) / 1e9 < 4
    assert world.proxy("cgroups")["body"] == b"[]"


SLOW = {"elbowroom.dev/workload": '{"c": {"stopSeconds": 3}}'}


def test_a_manifest_that_comes_back_while_its_pod_ends_is_run_again_after_that() -> None:
    manifest = a_manifest(grace=10) | {"metadata": {"name": "web", "namespace": "ns", "annotations": SLOW}}
    world = a_world(web=manifest)
    world.put_files()
    world.run(1)
    world.put_files(web=manifest)
    world.run(1)
    assert len(world.noted("rt.create")) == 1
    world.until(lambda: len(world.noted("rt.create")) == 2)
    world.until(lambda: runs(world))


def test_a_bad_manifest_is_told_once_and_hinders_nobody() -> None:
    world = a_world(web=a_manifest(), bad="kind: [", late=None)
    world.put_files(web=a_manifest(), bad="kind: [", late=a_manifest("late"))
    world.until(lambda: world.api.pod(f"late-{NODE}") is not None)
    told = [note["file"] for note in world.noted("kl.manifest.refused")]
    assert told == [f"{PATH}/bad", f"{PATH}/late"]


def test_a_static_pod_outlives_its_kubelet_and_what_changed_meanwhile_is_seen() -> None:
    world = a_world(web=a_manifest(), old=a_manifest("old"))
    before = mirror(world)
    world.kill_kubelet()
    world.put_files(web=a_manifest(), new=a_manifest("new"))
    world.api.delete(f"web-{NODE}", grace=30)
    world.start_kubelet()
    world.until(lambda: world.api.pod(f"new-{NODE}") is not None and world.api.pod(f"old-{NODE}") is None)
    world.until(lambda: runs(world, other_than=before["metadata"]["uid"]))
    assert world.container(f"web-{NODE}")["containerID"] == before["status"]["containerStatuses"][0]["containerID"]
    assert world.container(f"web-{NODE}")["restartCount"] == 0
    names = {entry["pod"] for entry in msgspec.json.decode(world.proxy("cgroups")["body"])}
    assert names == {f"web-{NODE}", f"new-{NODE}"}


def test_a_kubelet_may_die_before_each_effect_that_a_changed_manifest_makes() -> None:
    def settled(world: World) -> bool:
        return runs(world, cpu="1") and len(world._disks["runtime/n1"]) == 2

    def begin() -> World:
        world = a_world(web=a_manifest())
        world.die_at = None
        return world

    base = begin()
    before = base.effects
    base.put_files(web=a_manifest(cpu="1"))
    base.until(lambda: settled(base))
    count = base.effects - before
    assert count > 10
    for die_at in range(0, count, 2):
        world = begin()
        world.die_at = world.effects + die_at
        world.put_files(web=a_manifest(cpu="1"))
        world.until(lambda world=world: not world.kubelet_lives)  # type: ignore[misc]
        world.start_kubelet()
        world.until(lambda world=world: settled(world))  # type: ignore[misc]


def test_a_kubelet_waits_for_its_manifests_before_it_takes_pods_back() -> None:
    world = a_world(web=a_manifest(cpu="3"))
    world.kill_kubelet()
    world.api.create("pods", a_pod("b", a_container(cpu="2")))
    world.start_kubelet()
    world.until(lambda: world.status("b")["phase"] == "Failed")
    world.run(1)
    assert world.status("b")["reason"] == "OutOfcpu" and mirror(world)["status"]["phase"] == "Running"


def test_a_static_pod_pushes_others_out_and_is_no_pods_victim() -> None:
    world = World(kubelet=CONFIG)
    world.api.create("pods", a_pod("low", a_container(cpu="3"), priority=1000, workload={"c": {"stopSeconds": None}}))
    world.until(lambda: world.status("low")["phase"] == "Running")
    world.put_files(web=a_manifest(cpu="2"))
    world.until(lambda: runs(world, cpu="2"))
    assert world.status("low")["reason"] == "Preempting"
    world.api.create("pods", a_pod("crit", a_container(cpu="3"), priority=2_000_000_000))
    world.until(lambda: world.status("crit")["phase"] == "Failed")
    assert mirror(world)["status"]["phase"] == "Running"


def test_a_pod_of_the_api_server_that_calls_itself_static_is_none() -> None:
    world = World(kubelet=CONFIG)
    world.api.create("pods", a_pod("low", a_container(cpu="3")))
    world.run(1)
    liar = a_pod("liar", a_container(cpu="2"))
    liar["metadata"]["annotations"] = {CONFIG_SOURCE: "file"}
    world.api.create("pods", liar)
    world.until(lambda: world.status("liar")["phase"] == "Failed")
    assert world.status("liar")["reason"] == "OutOfcpu" and world.status("low")["phase"] == "Running"


def test_what_is_changed_in_the_mirror_resizes_nothing() -> None:
    world = a_world(web=a_manifest())
    world.api.resize(f"web-{NODE}", requests={"cpu": "1"}, limits={"cpu": "1"})
    world.run(5)
    assert world.container(f"web-{NODE}")["resources"]["requests"]["cpu"] == "500m"
    assert not world.noted("kl.judge") and not world.api.events("ResizeStarted")


def test_a_manifest_with_a_uid_of_its_own_is_resized_in_place() -> None:
    def named(cpu: str) -> dict[str, Any]:
        return a_manifest(cpu=cpu) | {"metadata": {"name": "web", "namespace": "ns", "uid": "mine"}}

    world = a_world(web=named("500m"))
    world.put_files(web=named("1"))
    world.until(lambda: world.container(f"web-{NODE}")["resources"]["requests"]["cpu"] == "1")
    assert world.container(f"web-{NODE}")["restartCount"] == 0


def test_a_mirror_that_the_api_server_does_not_take_is_asked_for_again() -> None:
    world = World(kubelet=CONFIG)
    world.api.create("pods", a_pod(f"web-{NODE}", a_container(cpu="1")))
    world.run(1)
    world.put_files(web=a_manifest())
    world.run(3)
    assert len(world.noted("rt.create")) == 2 and world.noted("kl.api.failed")[0]["what"] == "create mirror"
    world.api.delete(f"web-{NODE}", grace=0)
    world.until(
        lambda: (p := world.api.pod(f"web-{NODE}")) is not None and CONFIG_MIRROR in p["metadata"]["annotations"], within=15
    )
    world.until(lambda: world.status(f"web-{NODE}").get("phase") == "Running")


def test_a_static_pod_that_has_ended_tells_a_new_mirror_of_its_end() -> None:
    world = a_world(web=a_manifest(restartPolicy="Never") | {"metadata": ENDS})
    world.until(lambda: world.status(f"web-{NODE}").get("phase") == "Succeeded")
    uid = mirror(world)["metadata"]["uid"]
    world.api.delete(f"web-{NODE}", grace=0)
    world.until(lambda: (p := world.api.pod(f"web-{NODE}")) is not None and p["metadata"]["uid"] != uid)
    world.until(lambda: mirror(world)["status"].get("phase") == "Succeeded")
    assert len(world.noted("rt.create")) == 1


ENDS = {"name": "web", "namespace": "ns", "annotations": {"elbowroom.dev/workload": '{"c": {"exitAfterSeconds": 1}}'}}


def test_a_runtime_that_fails_keeps_the_mirror_pending() -> None:
    world = World(kubelet=CONFIG)
    world.refuse["RunPodSandbox"] = (Code.UNKNOWN, "no network")
    world.put_files(web=a_manifest())
    world.run(2)
    assert mirror(world)["status"]["phase"] == "Pending"
