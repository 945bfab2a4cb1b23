"""Services: defaults, addresses, what is refused."""

from typing import Any

import pytest
from apiserver_world import World

from elbowroom.apiserver import tables


def a_service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}


def test_a_service_gets_its_defaults_and_the_next_free_address() -> None:
    world = World()
    made = world.create("services", a_service(), "default").body["spec"]
    assert made["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (made["clusterIP"], made["clusterIPs"]) == ("10.96.1.1", ["10.96.1.1"])
    assert (made["type"], made["sessionAffinity"], made["ipFamilies"]) == ("ClusterIP", "None", ["IPv4"])
    assert world.create("services", a_service("t"), "default").body["spec"]["clusterIP"] == "10.96.1.2"
    assert world.create("services", a_service("h", clusterIP="None"), "default").body["spec"]["clusterIP"] == "None"
    world.delete("services", "s", "default")
    assert world.create("services", a_service("u"), "default").body["spec"]["clusterIP"] == "10.96.1.1"


def test_an_update_keeps_the_address_and_may_not_change_it() -> None:
    world = World()
    world.create("services", a_service(), "default")
    kept = world.update("services", "s", a_service(selector={"a": "c"}), namespace="default").body["spec"]
    assert (kept["clusterIP"], kept["selector"]) == ("10.96.1.1", {"a": "c"})
    refused = world.update("services", "s", a_service(clusterIP="10.96.1.9"), namespace="default")
    assert refused.status == 422 and "may not change once set" in refused.message


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"ports": []}, "spec.ports: Required value"),
        ({"type": "X"}, 'spec.type: Unsupported value: "X": supported values: "ClusterIP"'),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"ports": [{"port": 1}, {"port": 2, "name": "a"}]}, "spec.ports[0].name: Required value"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, 'spec.ports[1].name: Duplicate value: "a"'),
        ({"clusterIP": "1.2.3.4"}, "The range of valid IPs is 10.96.0.0/12"),
        ({"clusterIP": "x"}, "must be a valid IP address"),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
    ],
)  # fmt: skip
def test_a_service_that_cannot_be_is_refused(spec: dict[str, Any], words: str) -> None:
    answer = World().create("services", a_service(**spec), "default")
    assert answer.status == 422 and words in answer.message


def test_a_service_is_a_row() -> None:
    world = World()
    made = world.create("services", a_service(), "default").body
    [row] = tables.table(world.now, made)["rows"]
    assert row["cells"] == ["s", "ClusterIP", "10.96.1.1", "<none>", "80/TCP", "0s", "a=b"]
