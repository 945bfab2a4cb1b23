"""Each verb of kubectl over every kind that is served, all kinds in one command, as a folder of manifests is used."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from clients_kinds import BEHIND_GATES, SAMPLES, sample

from elbowroom.testing.cluster import Cluster, until
from elbowroom.testing.workspace import Workspace

pytestmark = pytest.mark.kubectl

KIND = re.compile(r"^(\S+) +(?:\S+ +)?(\S*\bv\d\S*) +(true|false) +(\S+) +(\S+)", re.MULTILINE)
NAME = r"(?:tabs\.)?{}(?:\.example\.com)?"
LEFT_OUT = ("Namespace",)
"""Its deletion ends what the others are in."""


class Manifests:
    """One object of each kind, in a file."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self._file = cluster, namespace, folder / "all.yaml"
        listed = cluster.kubectl("api-resources", "--verbs=create,get,list,patch,update,delete", "--no-headers", "-o", "wide")
        self.kinds: dict[str, tuple[str, str]] = {}
        for plural, version, _, kind, _ in KIND.findall(listed):
            if kind not in BEHIND_GATES and not version.endswith(".example.com/v1"):
                self.kinds.setdefault(kind, (plural, version))  # the older group, where a kind is in two
        for left_out in LEFT_OUT:
            self.kinds.pop(left_out, None)

    def write(self, **metadata: Any) -> None:
        documents = []
        for kind, (_, version) in self.kinds.items():
            body = sample(kind, self.namespace, self.namespace)
            assert body is not None, f"{kind} is served and has no sample"
            body["metadata"] |= metadata
            documents.append({"apiVersion": version, "kind": kind, **body})
        self._file.write_text(yaml.safe_dump_all(documents))

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(*arguments, "-n", self.namespace, "-f", str(self._file))

    def each(self, told: str, done: str) -> None:
        """Every object is told of in a line that ends so."""
        lines = told.splitlines()
        assert len(lines) == len(self.kinds) and all(re.search(done, line) for line in lines), told


@pytest.fixture
def manifests(elbowroom_cluster: Cluster, elbowroom: Workspace, tmp_path: Path) -> Iterator[Manifests]:
    made = Manifests(elbowroom_cluster, elbowroom.namespace, tmp_path)
    made.write()
    kinds = dict(made.kinds)
    yield made
    made.kinds = kinds
    made.write()
    made.kubectl("delete", "--ignore-not-found", "--wait=false", "--now")


def test_every_kind_is_created_shown_changed_and_deleted(manifests: Manifests) -> None:
    every = manifests.kinds
    assert every.keys() == SAMPLES.keys() - set(LEFT_OUT), "every kind that is served, and no other, has a sample"
    manifests.each(manifests.kubectl("create", "--dry-run=server"), r" created \(server dry run\)$")
    manifests.each(manifests.kubectl("create"), " created$")
    manifests.each(manifests.kubectl("get", "-o", "name"), rf"/{NAME.format(manifests.namespace)}$")
    shown = json.loads(manifests.kubectl("get", "-o", "json"))["items"]
    assert sorted(item["kind"] for item in shown) == sorted(every)
    assert manifests.kubectl("get", "-o", "wide").count(manifests.namespace) >= len(every)
    told = manifests.kubectl("describe")
    assert len(re.findall(rf"^Name: +{NAME.format(manifests.namespace)}$", told, re.MULTILINE)) == len(every), told
    manifests.each(manifests.kubectl("label", "seen=yes"), " labeled$")
    manifests.each(manifests.kubectl("annotate", "note=well"), " annotated$")
    manifests.each(manifests.kubectl("patch", "--type=merge", "-p", '{"metadata":{"labels":{"seen":"twice"}}}'), " patched$")
    manifests.each(manifests.kubectl("delete", "--now"), r" (force )?deleted( from \S+ namespace)?$")


def test_every_kind_is_applied_compared_and_replaced(manifests: Manifests) -> None:
    manifests.each(manifests.kubectl("apply"), " created$")
    manifests.write(annotations={"version": "2"})
    differs = manifests.cluster.try_kubectl("diff", "-n", manifests.namespace, "-f", str(manifests._file))
    assert differs.returncode == 1 and differs.stdout.count('+    version: "2"') == len(manifests.kinds), differs
    manifests.each(manifests.kubectl("apply"), " configured$")
    manifests.each(manifests.kubectl("apply", "--server-side", "--force-conflicts"), " serverside-applied$")
    for kind in ("Job", "Pod"):
        manifests.kinds.pop(kind)  # without its node, or its selector, it would be another
    manifests.write(labels={"version": "3"})
    manifests.each(manifests.kubectl("replace"), " replaced$")


def test_every_kind_is_explained(manifests: Manifests) -> None:
    for kind, (plural, version) in manifests.kinds.items():
        told = manifests.cluster.kubectl("explain", plural, "--api-version", version)
        assert re.search(rf"^KIND: +{kind}$", told, re.MULTILINE) and "metadata" in told


def test_what_kubectl_makes_from_flags_is_accepted(elbowroom_cluster: Cluster, elbowroom: Workspace) -> None:
    def done(*arguments: str) -> str:
        return elbowroom_cluster.kubectl(*arguments, "-n", elbowroom.namespace)

    image = "--image=registry.k8s.io/pause:3.10"
    assert done("create", "configmap", "c", "--from-literal=a=1") == "configmap/c created\n"
    assert done("create", "serviceaccount", "s") == "serviceaccount/s created\n"
    assert done("create", "quota", "q", "--hard=pods=10") == "resourcequota/q created\n"
    assert done("create", "pdb", "p", "--selector=app=d", "--min-available=1") == "poddisruptionbudget.policy/p created\n"
    assert done("create", "role", "r", "--verb=get", "--resource=pods") == "role.rbac.authorization.k8s.io/r created\n"
    assert done("create", "rolebinding", "b", "--role=r", "--user=ann") == "rolebinding.rbac.authorization.k8s.io/b created\n"
    assert done("auth", "can-i", "get", "pods", "--as=ann") == "yes\n"
    assert done("create", "deployment", "d", image, "--replicas=1") == "deployment.apps/d created\n"
    assert "successfully rolled out" in done("rollout", "status", "deployment/d", "--timeout=20s")
    assert done("set", "resources", "deployment/d", "--requests=cpu=50m") == "deployment.apps/d resource requirements updated\n"
    assert done("rollout", "restart", "deployment/d") == "deployment.apps/d restarted\n"
    assert "successfully rolled out" in done("rollout", "status", "deployment/d", "--timeout=20s")
    assert done("rollout", "history", "deployment/d").count("<none>") == 3
    assert done("rollout", "undo", "deployment/d") == "deployment.apps/d rolled back\n"
    assert done("expose", "deployment", "d", "--port=80") == "service/d exposed\n"
    assert done("run", "one", image, "--labels=app=one", "--restart=Never") == "pod/one created\n"
    done("wait", "pod/one", "--for=condition=Ready", "--timeout=20s")
    assert done("logs", "one") == ""
    assert done("delete", "all", "-l", "app=one", "--now").startswith('pod "one" ')
    until("the pod is gone", lambda: "one" not in elbowroom.pods())
