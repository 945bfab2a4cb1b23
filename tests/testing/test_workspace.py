"""What the workspace promises to people's tests."""

import pytest

from elbowroom.testing.workspace import Refused, Workspace, namespace_of

pytestmark = pytest.mark.processes


def test_a_pod_is_ready_when_it_is_returned_and_replicas_are_all_there(elbowroom: Workspace) -> None:
    pod = elbowroom.pod("a", cpu="200m", memory="32Mi", guaranteed=True, priority=-5, labels={"x": "y"})
    assert pod["status"]["qosClass"] == "Guaranteed" and pod["spec"]["priority"] == -5
    elbowroom.replicas("r", 2, priority=7)
    assert len(elbowroom.pods("app=r")) == 2 and list(elbowroom.pods("x=y")) == ["a"]


def test_a_resize_keeps_the_class_of_service(elbowroom: Workspace) -> None:
    elbowroom.pod("a", cpu="200m", guaranteed=True)
    elbowroom.resize("a", cpu="300m")
    done = elbowroom.until_resized("a")
    assert done["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "300m", "memory": "64Mi"}
    assert done["status"]["qosClass"] == "Guaranteed"


def test_a_resize_is_deferred_until_the_obstacle_goes(elbowroom: Workspace) -> None:
    node = elbowroom.node(cpu="2", memory="1Gi")
    elbowroom.pod("a", node=node)
    obstacle = elbowroom.defer("a")
    assert elbowroom.view("a").condition("PodResizePending")
    elbowroom.delete("pods", obstacle)
    assert elbowroom.until_resized("a")["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert elbowroom.until_event("a", "ResizeDeferred")["involvedObject"]["name"] == "a"


def test_a_resize_beyond_the_node_is_infeasible(elbowroom: Workspace) -> None:
    elbowroom.pod("a")
    pending = elbowroom.make_infeasible("a")["status"]["conditions"]
    assert [c["reason"] for c in pending if c["type"] == "PodResizePending"] == ["Infeasible"]


def test_victims_are_those_of_the_own_namespace(elbowroom: Workspace) -> None:
    node = elbowroom.node(cpu="1")
    elbowroom.pod("low", cpu="600m", node=node, priority=1)
    elbowroom.pod("high", cpu="300m", node=node, priority=2)
    assert elbowroom.victims() == []
    elbowroom.resize("high", cpu="800m")
    elbowroom.until_resized("high")
    elbowroom.until_gone("pods", "low")
    assert elbowroom.victims() == elbowroom.victims(of="high") == ["low"] and elbowroom.victims(of="low") == []
    assert {record["node"] for record in elbowroom.records("sch.delete")} == {node}
    elbowroom.assert_valid()


def test_a_pod_that_takes_no_part_in_the_workspace_is_kept_off_its_nodes(elbowroom: Workspace) -> None:
    node = elbowroom.node()
    stranger = elbowroom.manifest("stranger", node=node)
    stranger["spec"].pop("tolerations")
    elbowroom.create("pods", stranger)
    elbowroom.until_event("stranger", "FailedScheduling")
    assert not elbowroom.view("stranger").spec.node_name


def test_what_is_frozen_is_woken_when_the_workspace_closes(elbowroom: Workspace) -> None:
    with Workspace(elbowroom.cluster, f"{elbowroom.namespace}-inner") as inner:
        node = inner.node()
        inner.kill(f"kubelet/{node}", signal="STOP")
        inner.pod("late", node=node, is_ready=False)
    assert not inner.pods()


def test_what_the_server_refuses_is_an_error_with_its_status(elbowroom: Workspace) -> None:
    with pytest.raises(Refused, match='pods "nobody" not found') as refused:
        elbowroom.get("pods", "nobody")
    assert (refused.value.status, refused.value.document["reason"]) == (404, "NotFound")
    elbowroom.delete("pods", "nobody")


@pytest.mark.parametrize(
    ("test", "namespace"), [("test_It[a/b]", "test-it-a-b-7"), ("[", "test-7"), ("x" * 80, "x" * 40 + "-7"), ("_é_", "test-7")]
)
def test_a_namespace_is_named_after_its_test(test: str, namespace: str) -> None:
    assert namespace_of(test, 7) == namespace
