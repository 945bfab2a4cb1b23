"""A scenario's client: it drives virtual time, says what it knows, and follows collections."""

from typing import Any

import pytest

from elbowroom.api.gates import profile_of
from elbowroom.api.objects import Object
from elbowroom.apiserver.machine import build
from elbowroom.history.records import History
from elbowroom.history.report import judge
from elbowroom.rpc import create, delete, get
from elbowroom.sim import Client, World


def a_world(seed: int = 1) -> World:
    world = World(seed)
    world.add("apiserver", build, {"profile": profile_of("v1.37").as_config()})
    return world


def config_map(name: str) -> Any:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return create("configmaps", document, namespace="default")


def test_a_request_is_answered_in_virtual_time() -> None:
    world = a_world()
    before = world.now
    made = world.client.document(config_map("a"))
    assert made["metadata"]["name"] == "a"
    assert before < world.now < before + 200_000_000
    assert world.client.api(get("configmaps", "b", namespace="default")).status == 404
    kinds = [one["kind"] for one in world.history if one["kind"].startswith("api.")]
    assert kinds == ["api.invoke", "api.ok", "api.invoke", "api.fail"]
    assert str(world.notes("api.ok")[0]["rev"]) == made["metadata"]["resourceVersion"]


def test_a_request_that_must_succeed_fails_with_the_servers_words() -> None:
    with pytest.raises(AssertionError, match=r"get configmaps b: 404 .* not found"):
        a_world().client.document(get("configmaps", "b", namespace="default"))


def test_several_requests_can_be_under_way_and_end_in_any_order() -> None:
    world = a_world()
    asked = [world.client.begin(config_map(f"m{number}")) for number in range(20)]
    assert all(pending.response is None for pending in asked)
    assert world.run_until(lambda: all(pending.response is not None for pending in asked))
    assert len({pending.document()["metadata"]["resourceVersion"] for pending in asked}) == 20


def test_an_answer_that_never_comes_is_unknown_by_the_deadline() -> None:
    world = a_world()
    world.run_for(0.1)
    world.client.api(get("configmaps", "x", namespace="default"))
    world.partition("apiserver", "client/1", 60.0, one_way=True)
    before = world.now
    assert world.client.api(config_map("a"), timeout=2.0).status == 0
    assert world.now - before == 2_000_000_000
    assert [one["kind"] for one in world.notes("api.*")][-1] == "api.info"
    world.run_for(70.0)
    assert world.client.api(get("configmaps", "a", namespace="default")).status == 200, "it did happen"


def test_a_mirror_follows_the_collection_over_a_crash() -> None:
    world = a_world()
    mirror = world.client.mirror("configmaps", Object, namespace="default")
    world.client.document(config_map("a"))
    assert world.run_until(lambda: "default/a" in mirror.store)
    world.crash("apiserver", 0.5)
    world.run_for(1.0)
    world.client.document(config_map("b"))
    assert world.run_until(lambda: "default/b" in mirror.store)
    world.client.document(delete("configmaps", "a", namespace="default"))
    assert world.run_until(lambda: set(mirror.store) == {"default/b"})


def test_every_acknowledged_write_survives_a_death_before_any_effect_and_the_judges_agree() -> None:
    def run(number: int) -> World:
        world = World(3)
        world.die_before(number)
        world.add("apiserver", build, {"profile": profile_of("v1.37").as_config()})
        mirror = world.client.mirror("configmaps", Object, namespace="default")
        kept = []
        for name in ("a", "b", "c"):
            if world.client.api(config_map(name), timeout=1.0).status == 201:
                kept.append(f"default/{name}")
        world.run_for(1.0)
        assert set(kept) <= set(mirror.store)
        for key in kept:
            ask = get("configmaps", key.partition("/")[2], namespace="default")
            while (status := world.client.api(ask).status) == 0:
                pass  # the death cut the question off
            assert status == 200
        world.close()
        return world

    whole = run(0)
    assert whole.effects > 50
    for number in range(1, whole.effects + 1, 3):
        world = run(number)
        assert [one["name"] for one in world.notes("fault.begin")] == ["crash"] or world.effects < number
        broken = {failure.invariant for failure in judge(History.of(world.history)).failures}
        assert not broken & {"I-34", "I-37", "I-38"}, f"death before effect {number}: {broken}"


def test_two_clients_have_names_and_operations_of_their_own() -> None:
    world = a_world()
    other = Client(world, "client/2")
    world.client.document(config_map("a"))
    other.document(config_map("b"))
    assert [(one["proc"], one["op"]) for one in world.notes("api.ok")] == [("client/1", "client/1/1"), ("client/2", "client/2/1")]
