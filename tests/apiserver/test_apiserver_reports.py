"""What public bug reports about API servers say must not happen, each as a fact about ours."""

from typing import Any

import pytest
from apiserver_world import World, a_node, a_pod

from elbowroom.machine import Note
from elbowroom.wire import StreamBookmark

STATE = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


def test_a_streaming_list_of_nothing_says_at_once_that_it_is_whole() -> None:
    watch = World().watch("configmaps", peer="http/1", labelSelector="app=nothing", **STATE)
    (mark,) = watch.messages
    assert isinstance(mark, StreamBookmark) and mark.initial_end


@pytest.mark.parametrize(
    ("resources", "code", "words"),
    [
        ({"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}, 403, "maximum cpu usage per Container is 2, but limit is 3"),
        (
            {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
            403,
            "exceeded quota: full, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1",
        ),
        ({"requests": {"cpu": "500m"}}, 422, "Pod QOS Class may not change as a result of resizing"),
    ],
    ids=["bounds", "quota", "validation"],
)
def test_who_refused_a_resize_can_be_told_and_nothing_has_changed(resources: Any, code: int, words: str) -> None:
    world = World()
    world.create("nodes", a_node())
    world.create("resourcequotas", {"metadata": {"name": "full"}, "spec": {"hard": {"requests.cpu": "1"}}}, "default")
    counted = {"status": {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}}
    world.patch("resourcequotas", "full", counted, namespace="default", subresource="status")
    bounds = {"metadata": {"name": "bounds"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}
    world.create("limitranges", bounds, "default")
    made = a_pod(node="n1")
    made["spec"]["containers"][0]["resources"] = {part: {"cpu": "1", "memory": "64Mi"} for part in ("requests", "limits")}
    assert world.create("pods", made, "default").status == 201
    before = world.get("pods", "a", namespace="default").body
    answer = world.patch(
        "pods", "a", {"spec": {"containers": [{"name": "c", "resources": resources}]}}, namespace="default", subresource="resize"
    )
    assert answer.status == code and words in answer.message
    assert world.get("pods", "a", namespace="default").body == before
    assert world.get("resourcequotas", "full", namespace="default").body["status"]["used"] == {"requests.cpu": "1"}


def test_a_history_is_cut_by_half_when_it_is_too_long_and_not_before() -> None:
    world = World(history_max=40)
    start = world.list("configmaps").revision

    def floors() -> list[int]:
        world.wait(1)  # the rows go, a few at a time
        return [effect.fields["floor"] for effect in world.effects if isinstance(effect, Note) and effect.name == "compacted"]

    def write(until: int) -> None:
        for number in range(world.list("configmaps").revision, until):
            world.create("configmaps", {"metadata": {"name": f"c{number}"}}, "default")

    write(40)
    assert floors() == []
    assert len(world.watch("configmaps", resourceVersion=str(start)).told) == 40 - start
    write(41)
    assert floors() == [21]
    end = world.watch("configmaps", resourceVersion=str(start)).end
    assert end is not None and "too old resource version" in end.message
    write(61)
    assert floors() == [21]
    write(62)
    assert floors() == [21, 42]
