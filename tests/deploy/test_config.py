"""cluster.yaml: what is refused, and with which words."""

from pathlib import Path

import pytest

from elbowroom.deploy import config, launch
from elbowroom.deploy.errors import UserError


def a_file(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


HEAD = "apiVersion: elbowroom.dev/v1alpha1\nkind: Cluster\n"


def test_the_file_of_the_fixed_surface_is_understood_whole(tmp_path: Path) -> None:
    text = """
apiVersion: elbowroom.dev/v1alpha1
kind: Cluster
metadata: {name: default}
spec:
  featureGates: {InPlacePodVerticalScalingSchedulerPreemption: true}
  timeScale: 1
  placement: local
  kubeletsPerProcess: 1
  profile: lab
  apiserver: {store: sqlite}
  scheduler: {nominationTracking: none}
  nodes:
    - {count: 3, namePrefix: node-, capacity: {cpu: "4", memory: 4Gi, pods: "110"},
       kubelet: {}, machine: {}, labels: {}, taints: []}
"""
    cluster = config.load(a_file(tmp_path, text))
    assert [node["metadata"]["name"] for node in cluster.manifests()] == ["node-1", "node-2", "node-3"]
    assert cluster.manifests()[0]["status"]["capacity"] == {"cpu": "4", "memory": "4Gi", "pods": "110"}
    assert cluster.manifests()[0]["metadata"]["annotations"] == {"elbowroom.dev/node": "emulated"}
    assert cluster.profile().nomination_tracking == "none"


def test_every_example_is_a_cluster() -> None:
    folder = Path(__file__).parents[2] / "examples"
    examples = [path for path in sorted(folder.glob("*.yaml")) if "kind: Cluster" in path.read_text()]
    assert examples
    for path in examples:
        assert config.load(path).spec.nodes


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nodes: [{capacty: {cpu: 4}}]", "spec.nodes[0].capacty: there is no such field"),
        ("nodes: [{capacity: {cpu: 4}}]", "spec.nodes[0].capacity: memory is missing"),
        ("nodes: [{capacity: {cpu: four, memory: 4Gi}}]", "spec.nodes[0].capacity.cpu: 'four' is no quantity"),
        (
            "nodes: [{capacity: {cpu: 4, memory: 4Gi}, allocatable: {cpu: 4500m}}]",
            "spec.nodes[0]: allocatable.cpu: 4500m is more than the capacity, 4",
        ),
        ("nodes: [{allocatable: {example.com/tpu: 1}}]", "allocatable.example.com/tpu: 1 is more than the capacity, 0"),
        ("nodes: [{count: 1, count: 2}]", "'count' is there twice"),
        ("nodes: [{count: many}]", "spec.nodes[0].count: Input should be a valid integer, not 'many'"),
        ("nodes: [{count: 1}, {count: 2}]", "spec.nodes: two nodes are called node-1; give their groups different namePrefixes"),
        ("nodes: [{kubelet: {maxPodz: 3}}]", 'nodes[0].kubelet: strict decoding error: unknown field "maxPodz"'),
        ("nodes: [{machine: {sockets: 0}}]", "spec.nodes[0].machine.sockets: Input should be greater than or equal to 1, not 0"),
        ("nodes: [{taints: [{key: a, effect: Never}]}]", "spec.nodes[0].taints[0].effect: must be 'NoSchedule'"),
        ("featureGates: {NoSuchGate: true}", "spec.featureGates: unknown feature gate 'NoSuchGate'"),
        (
            'featureGates: {PodLevelResources: "yes"}',
            "spec.featureGates.PodLevelResources: Input should be a valid boolean, not 'yes'",
        ),
        ("apiserver: {store: etcd}", "spec.apiserver.store: must be 'sqlite' or 'memory', not 'etcd'"),
        ("profile: v1.36", "spec.profile: must be 'lab' or 'v1.37', not 'v1.36'"),
        ("timeScale: 0", "spec.timeScale: Input should be greater than 0, not 0"),
        ("kubeletsPerProcess: 0", "spec.kubeletsPerProcess: Input should be greater than or equal to 1, not 0"),
        (
            "scheduler: {config: {profiles: [{plugins: {score: {enabled: [{name: Nope}]}}}]}}",
            "spec.scheduler.config: profiles[0].plugins.score.enabled[0]: there is no plugin 'Nope'",
        ),
        ("scheduler: {nominationTracking: all}", "spec.scheduler.nominationTracking: must be 'none'"),
    ],
)
def test_what_is_wrong_is_named_with_its_path_in_one_line(tmp_path: Path, spec: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        config.load(a_file(tmp_path, f"{HEAD}spec: {{{spec}}}\n"))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a mapping"),
        ("- a", "expected a mapping"),
        ("a: [", "not YAML"),
        ("kind: Cluster", "apiVersion: must be 'elbowroom.dev/v1alpha1', not None"),
        ("apiVersion: elbowroom.dev/v1alpha1\nkind: Clutter", "kind: must be 'Cluster', not 'Clutter'"),
        (HEAD + "extra: 1", "extra: there is no such field"),
        (HEAD + "metadata: {name: ../../etc}", "metadata.name"),
    ],
)
def test_a_file_that_is_no_cluster_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=r"cluster\.yaml") as refused:
        config.load(a_file(tmp_path, text))
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        config.load(tmp_path / "absent.yaml")


def test_without_a_file_there_are_three_nodes_of_4_cpus_and_16gi() -> None:
    capacities = [node["status"]["capacity"] for node in config.Cluster().manifests()]
    assert capacities == [{"cpu": "4", "memory": "16Gi", "pods": "110"}] * 3


def test_flags_are_laid_over_the_file(tmp_path: Path) -> None:
    cluster = config.load(a_file(tmp_path, HEAD + "spec: {profile: v1.37, apiserver: {store: memory}}\n"))
    changed = config.overlay(cluster, {"apiserver": {"store": "sqlite"}, "kubeletsPerProcess": 5})
    assert (changed.spec.profile, changed.spec.apiserver.store, changed.spec.kubelets_per_process) == ("v1.37", "sqlite", 5)


def test_a_flag_about_one_field_of_a_mapping_leaves_its_others(tmp_path: Path) -> None:
    spec = "spec: {apiserver: {audit: Metadata}, featureGates: {PodLevelResourceManagers: false}}\n"
    changes = {"apiserver": {"store": "memory"}, "featureGates": {"InPlacePodVerticalScalingSchedulerPreemption": False}}
    changed = config.overlay(config.load(a_file(tmp_path, HEAD + spec)), changes).spec
    assert (changed.apiserver.store, changed.apiserver.audit) == ("memory", "Metadata")
    assert changed.feature_gates == {"PodLevelResourceManagers": False, "InPlacePodVerticalScalingSchedulerPreemption": False}


def test_a_wrong_flag_is_refused_with_the_fields_path() -> None:
    with pytest.raises(UserError, match=r"spec\.nodes\[0\]\.capacity\.cpu: 'lots' is no quantity"):
        config.overlay(config.Cluster(), {"nodes": launch.node_group(3, "lots", None)})


def test_gates_are_read_from_a_flag() -> None:
    assert launch.gates("A=true, B=False") == {"A": True, "B": False}
    with pytest.raises(UserError, match="Gate=true"):
        launch.gates("A")


def test_hardware_and_kubelet_options_become_annotations() -> None:
    group = {
        "count": 1,
        "kubelet": {"maxPods": 7},
        "machine": {"coresPerNuma": 8},
        "taints": [{"key": "a", "effect": "NoSchedule"}],
    }
    (node,) = config.overlay(config.Cluster(), {"nodes": [group]}).manifests()
    annotations = node["metadata"]["annotations"]
    assert annotations["elbowroom.dev/kubelet-config"] == '{"maxPods": 7}'
    assert annotations["elbowroom.dev/machine"] == '{"coresPerNuma": 8}'
    assert node["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule"}]
