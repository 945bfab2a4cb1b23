"""cluster.yaml: what a person writes about a cluster, checked whole before anything starts.

A field that does not exist, a value of the wrong type, a quantity that is none and an unknown gate are refused with their
path, in one line: ``spec.nodes[0].capacty: there is no such field``.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from elbowroom.api import quantity
from elbowroom.api.gates import GateDependencyError, Profile, UnknownGateError, profile_of
from elbowroom.deploy.errors import UserError
from elbowroom.kubelet import config as kubelet
from elbowroom.kubelet.node import labels as labels_of_node
from elbowroom.scheduler import config as scheduler

API_VERSION: Literal["elbowroom.dev/v1alpha1"] = "elbowroom.dev/v1alpha1"
NAME = r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
FILE_BYTES_MAX = 1024 * 1024


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True, strict=True)


def _as_text(value: Any) -> Any:
    """YAML reads ``cpu: 4`` as a number, as it does in every Kubernetes manifest."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _is_quantity(value: str) -> str:
    try:
        amount = quantity.parse(value)
    except ValueError as why:
        raise ValueError(f"{value!r} is no quantity") from why
    if amount < quantity.parse("0"):
        raise ValueError(f"{value!r} is less than nothing")
    return value


Quantity = Annotated[str, BeforeValidator(_as_text), AfterValidator(_is_quantity)]
Label = Annotated[str, BeforeValidator(_as_text)]


class Taint(Model):
    """A taint that the nodes bear from the start."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Machine(Model):
    """The hardware of a node (annotation ``elbowroom.dev/machine``)."""

    sockets: int | None = Field(default=None, ge=1)
    numa_nodes_per_socket: int | None = Field(default=None, ge=1)
    cores_per_numa: int | None = Field(default=None, ge=1)
    threads_per_core: int | None = Field(default=None, ge=1)
    cgroup_version: Literal[1, 2] | None = None
    swap: Quantity | None = None


class Nodes(Model):
    """So many nodes alike, named ``namePrefix`` and a number from 1."""

    count: int = Field(default=1, ge=0, le=50_000)
    name_prefix: str = Field(default="node-", pattern=r"^[a-z0-9]([-a-z0-9.]{0,40})?$")
    capacity: dict[str, Quantity] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    allocatable: dict[str, Quantity] | None = None
    kubelet: dict[str, Any] = {}
    machine: Machine = Machine()
    labels: dict[str, Label] = {}
    taints: list[Taint] = []

    @field_validator("capacity")
    @classmethod
    def _whole(cls, capacity: dict[str, str]) -> dict[str, str]:
        missing = [name for name in ("cpu", "memory") if name not in capacity]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        return {"pods": "110", **capacity}

    @model_validator(mode="after")
    def _leaves_no_more_than_there_is(self) -> Self:
        for name, amount in (self.allocatable or {}).items():
            if quantity.parse(amount) > quantity.parse(self.capacity.get(name, "0")):
                raise ValueError(f"allocatable.{name}: {amount} is more than the capacity, {self.capacity.get(name, '0')}")
        return self

    def names(self) -> list[str]:
        return [f"{self.name_prefix}{number}" for number in range(1, self.count + 1)]


class Apiserver(Model):
    store: Literal["sqlite", "memory"] = "sqlite"
    audit: Literal["None", "Metadata", "Request"] = "None"
    """How much of each request the audit log tells (docs/security.md)."""


class Scheduler(Model):
    """The open questions of the KEPs as policies (docs/policies.md; absent: the profile's), and upstream's configuration."""

    nomination_tracking: Literal["none", "memory", "nominatedNodeName", "specNodeName"] | None = None
    resize_fit: Literal["maxDesired", "kubeletAligned"] | None = None
    pdb_policy: Literal["bestEffort", "strict"] | None = None
    config: dict[str, Any] = {}
    """A KubeSchedulerConfiguration."""

    @field_validator("config")
    @classmethod
    def _makes_sense(cls, config: dict[str, Any]) -> dict[str, Any]:
        scheduler.parse(config)
        return config


class Ray(Model):
    """Where ``placement: ray`` finds machines."""

    address: str = ""
    """Of the head node; "": $RAY_ADDRESS, or else a Ray of this machine's own."""
    cpus_per_process: float = Field(default=0.0, ge=0)
    """What each process of nodes claims of Ray, so that an autoscaler knows how many machines to add."""


class Spec(Model):
    profile: Literal["lab", "v1.37"] = "lab"
    feature_gates: dict[str, bool] = {}
    time_scale: float = Field(default=1.0, gt=0, le=1000)
    placement: Literal["local", "ray"] = "local"
    ray: Ray = Ray()
    kubelets_per_process: int = Field(default=1, ge=1, le=4000)
    apiserver: Apiserver = Apiserver()
    scheduler: Scheduler = Scheduler()
    nodes: list[Nodes] = [Nodes(count=3)]

    @field_validator("feature_gates")
    @classmethod
    def _known(cls, gates: dict[str, bool], info: ValidationInfo) -> dict[str, bool]:
        try:
            profile_of("lab", gates)
        except (UnknownGateError, GateDependencyError) as why:
            raise ValueError(str(why)) from why
        return gates

    @model_validator(mode="after")
    def _on_ray(self) -> Self:
        if self.ray != Ray() and self.placement != "ray":
            raise ValueError("ray: goes with placement: ray")
        return self

    @model_validator(mode="after")
    def _accepted_by_kubelets(self) -> Self:
        profile = profile_of(self.profile, self.feature_gates)
        for number, group in enumerate(self.nodes):
            try:
                kubelet.parse(_annotations(group), profile)
            except kubelet.ConfigError as why:
                raise ValueError(f"nodes[{number}].kubelet: {why}") from why
        return self

    @field_validator("nodes")
    @classmethod
    def _distinct(cls, groups: list[Nodes]) -> list[Nodes]:
        seen: set[str] = set()
        for name in (name for group in groups for name in group.names()):
            if name in seen:
                raise ValueError(f"two nodes are called {name}; give their groups different namePrefixes")
            seen.add(name)
        return groups


class Metadata(Model):
    name: str | None = Field(default=None, pattern=NAME)


class Cluster(Model):
    """The whole file; ``Cluster()`` is three nodes of 4 CPUs and 16Gi."""

    api_version: Literal["elbowroom.dev/v1alpha1"] = API_VERSION
    kind: Literal["Cluster"] = "Cluster"
    metadata: Metadata = Metadata()
    spec: Spec = Field(default_factory=Spec)

    def profile(self) -> Profile:
        """The profile with the gates and policies of this file laid over it."""
        chosen = profile_of(self.spec.profile, self.spec.feature_gates)
        policies = {name: value for name, value in self.spec.scheduler.model_dump(exclude={"config"}).items() if value is not None}
        return replace(chosen, **policies)

    def manifests(self) -> list[dict[str, Any]]:
        """The Node documents to create."""
        return [_node(name, group) for group in self.spec.nodes for name in group.names()]


def _annotations(group: Nodes) -> dict[str, str]:
    """How a Node tells its kubelet and its hardware."""
    machine = group.machine.model_dump(by_alias=True, exclude_none=True)
    return {
        "elbowroom.dev/node": "emulated",
        **({kubelet.KUBELET_CONFIG: json.dumps(group.kubelet)} if group.kubelet else {}),
        **({kubelet.MACHINE: json.dumps(machine)} if machine else {}),
    }


def _node(name: str, group: Nodes) -> dict[str, Any]:
    labels = {**labels_of_node(name), **group.labels}
    status: dict[str, Any] = {"capacity": dict(group.capacity)}
    if group.allocatable is not None:
        status["allocatable"] = {**group.capacity, **group.allocatable}
    taints = [taint.model_dump(exclude_defaults=True) for taint in group.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _annotations(group)},
        "spec": {"taints": taints} if taints else {},
        "status": status,
    }


class Loader(yaml.SafeLoader):
    """Without aliases: a few lines of them stand for more than can be looked at, or be shown in a message. Nor may a field be there
    twice, of which YAML would keep the last."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"line {line}: aliases (*name) are not read; write it out")
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.YAMLError(f"line {key.start_mark.line + 1}: {key.value!r} is there twice")
                seen.add(key.value)
        return node


def load(path: Path) -> Cluster:
    """The cluster that the file describes; ``UserError`` names the file and the field."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise UserError(f"{path}: larger than {FILE_BYTES_MAX} bytes; this is no cluster.yaml")
        document = Loader(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as why:
        raise UserError(f"{path}: {why.strerror or why}") from why
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as why:
        raise UserError(f"{path}: not YAML: {_one_line(str(why))}") from why
    if not isinstance(document, dict):
        raise UserError(f"{path}: expected a mapping with apiVersion, kind, metadata and spec")
    return parse(document, str(path))


def parse(document: Mapping[str, Any], source: str) -> Cluster:
    """The cluster in a document read from ``source``."""
    for field, wanted in (("apiVersion", API_VERSION), ("kind", "Cluster")):
        if document.get(field) != wanted:
            raise UserError(f"{source}: {field}: must be {wanted!r}, not {document.get(field)!r}")
    try:
        return Cluster.model_validate(document)
    except ValidationError as why:
        raise UserError(f"{source}: {explain(why)}") from why


def overlay(cluster: Cluster, changes: Mapping[str, Any]) -> Cluster:
    """The cluster with fields of ``spec`` replaced (by their names in the file; of a mapping what is named), checked again."""
    document = cluster.model_dump(by_alias=True)
    spec = document["spec"]
    for field, value in changes.items():
        spec[field] = {**spec[field], **value} if isinstance(value, Mapping) and isinstance(spec.get(field), dict) else value
    try:
        return Cluster.model_validate(document)
    except ValidationError as why:
        raise UserError(explain(why)) from why


def explain(why: ValidationError) -> str:
    """All findings in one line, each with its path."""
    return "; ".join(f"{_path(error['loc'])}: {_finding(error)}" for error in why.errors(include_url=False))


def _finding(error: Any) -> str:
    match error["type"]:
        case "extra_forbidden":
            return "there is no such field"
        case "missing":
            return "is missing"
        case "value_error":
            return _one_line(str(error["ctx"]["error"]))
        case "literal_error":
            return f"must be {error['ctx']['expected']}, not {error['input']!r}"
        case _:
            return f"{_one_line(error['msg'])}, not {_one_line(repr(error['input']))[:60]}"


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _one_line(text: str) -> str:
    return " ".join(text.split())
