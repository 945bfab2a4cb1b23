"""A custom kind as operators bring them, through kubectl: rules, columns, subresources, and what is owned."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from elbowroom.testing.cluster import Cluster
from elbowroom.testing.workspace import Workspace

pytestmark = pytest.mark.kubectl

DEFINITION = yaml.safe_load("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.sailing.example.com}
spec:
  group: sailing.example.com
  scope: Namespaced
  names: {plural: fleets, kind: Fleet, shortNames: [fl], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What sails.
            x-kubernetes-validations:
            - {rule: "self.ships >= self.escorts", message: every escort escorts a ship}
            properties:
              ships: {type: integer, minimum: 0, default: 1}
              escorts: {type: integer, default: 0}
              harbour:
                type: string
                x-kubernetes-validations: [{rule: self == oldSelf, message: harbour is immutable}]
          status: {type: object, properties: {ships: {type: integer}, mood: {type: string}}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.ships, statusReplicasPath: .status.ships}
    additionalPrinterColumns:
    - {name: Ships, type: integer, jsonPath: .spec.ships}
    - {name: Mood, type: string, jsonPath: .status.mood, priority: 1}
""")


@pytest.fixture
def definition(elbowroom_cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "definition.yaml"
    file.write_text(yaml.safe_dump(DEFINITION))
    elbowroom_cluster.kubectl("apply", "-f", str(file))
    yield file
    elbowroom_cluster.kubectl("delete", "--ignore-not-found", "-f", str(file))


def test_a_custom_kind_is_used_like_any_other(
    elbowroom_cluster: Cluster, elbowroom: Workspace, definition: Path, tmp_path: Path
) -> None:
    space, file = elbowroom.namespace, tmp_path / "fleet.yaml"

    def write(name: str = "north", **spec: Any) -> None:
        body = {"apiVersion": "sailing.example.com/v1", "kind": "Fleet", "metadata": {"name": name}, "spec": spec}
        file.write_text(yaml.safe_dump(body))

    def done(*arguments: str) -> str:
        return elbowroom_cluster.kubectl(*arguments, "-n", space)

    def refused(*arguments: str) -> str:
        told = elbowroom_cluster.try_kubectl(*arguments, "-n", space)
        assert told.returncode != 0, told.stdout
        return str(told.stderr)

    assert "What sails." in done("explain", "fleets.spec")
    write(ships=2, escorts=3)
    assert "spec: Invalid value: every escort escorts a ship" in refused("apply", "-f", str(file))
    write(ships=2, escorts=1, harbour="a")
    assert done("apply", "-f", str(file)) == "fleet.sailing.example.com/north created\n"
    assert done("apply", "-f", str(file)) == "fleet.sailing.example.com/north unchanged\n"
    write(ships=2, escorts=1, harbour="b")
    assert 'spec.harbour: Invalid value: "b": harbour is immutable' in refused("apply", "-f", str(file))
    assert done("patch", "fl", "north", "--subresource=status", "--type=merge", "-p", '{"status":{"mood":"good"}}').endswith(
        "patched\n"
    )
    assert done("scale", "fl", "north", "--replicas=4") == "fleet.sailing.example.com/north scaled\n"
    assert done("get", "fl", "-o", "wide", "--no-headers").split() == ["north", "4", "good"]
    assert "north" in done("get", "all")


def test_custom_objects_own_and_are_owned(elbowroom_cluster: Cluster, elbowroom: Workspace, definition: Path) -> None:
    space = elbowroom.namespace

    def make(kind: str, version: str, name: str, *owners: dict[str, Any]) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "namespace": space}
        if owners:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": one["apiVersion"],
                    "kind": one["kind"],
                    "name": one["metadata"]["name"],
                    "uid": one["metadata"]["uid"],
                }
                for one in owners
            ]
        body = json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata})
        file = definition.with_name("object.json")
        file.write_text(body)
        return dict(json.loads(elbowroom_cluster.kubectl("create", "-f", str(file), "-o", "json")))

    gone, kept = make("Fleet", "sailing.example.com/v1", "gone"), make("Fleet", "sailing.example.com/v1", "kept")
    ship = make("Fleet", "sailing.example.com/v1", "ship", gone)
    make("Fleet", "sailing.example.com/v1", "both", gone, kept)
    make("ConfigMap", "v1", "log", ship)
    elbowroom_cluster.kubectl("delete", "fleet", "gone", "-n", space, "--cascade=foreground", "--wait")
    elbowroom.until_gone("configmaps", "log")
    listed = elbowroom_cluster.kubectl("get", "fleets", "-n", space, "-o", "name").split()
    assert listed == ["fleet.sailing.example.com/both", "fleet.sailing.example.com/kept"]

    def owners() -> list[str]:
        shown = json.loads(elbowroom_cluster.kubectl("get", "fleet", "both", "-n", space, "-o", "json"))
        return [one["name"] for one in shown["metadata"].get("ownerReferences", ())]

    elbowroom.until("the name of what is gone is taken off", lambda: owners() == ["kept"])
    elbowroom_cluster.kubectl("delete", "fleet", "kept", "-n", space, "--cascade=orphan", "--wait")
    assert owners() == []
