"""A real kubectl drives a real cluster. ``KUBECTL=/path/to/another`` runs the same with that one (1.32 to 1.37)."""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from elbowroom.testing.cluster import Cluster, running, until

pytestmark = pytest.mark.kubectl

WAIT = "--timeout=20s"
HAS = "{.status.containerStatuses[0].resources.requests."


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("kubectl"), "--nodes", "2", "--node-memory", "4Gi") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def minor(cluster: Cluster) -> int:
    """kubectl's minor version."""
    return int(json.loads(cluster.kubectl("version", "--client", "-o", "json"))["clientVersion"]["minor"])


def manifest(name: str, node: str = "node-1", memory: str = "100Mi", **labels: str) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "100m", "memory": memory}}}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def create(cluster: Cluster, name: str, **fields: str) -> None:
    """A pod that runs and is Ready."""
    cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(manifest(name, **fields)))
    cluster.kubectl("wait", f"pod/{name}", "--for=condition=Ready", WAIT)


def words(table: str) -> list[list[str]]:
    """The table's cells, for columns without blanks."""
    return [line.split() for line in table.splitlines()]


# ---------------------------------------------------------------- looking


def test_get_shows_tables_documents_and_names(cluster: Cluster) -> None:
    create(cluster, "look-1", app="look")
    create(cluster, "look-2", node="node-2", app="look")
    heads, *rows = words(cluster.kubectl("get", "pods", "-l", "app=look"))
    assert heads == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in rows] == [["look-1", "1/1", "Running", "0"], ["look-2", "1/1", "Running", "0"]]
    wide = words(cluster.kubectl("get", "pods", "-l", "app=look", "-o", "wide"))
    assert wide[0][5:8] == ["IP", "NODE", "NOMINATED"] and [row[6] for row in wide[1:]] == ["node-1", "node-2"]
    listed = yaml.safe_load(cluster.kubectl("get", "pods", "-l", "app=look", "-o", "yaml"))
    assert (listed["kind"], [pod["metadata"]["name"] for pod in listed["items"]]) == ("List", ["look-1", "look-2"])
    assert cluster.kubectl("get", "pods", "-l", "app notin (look)", "-o", "name").splitlines() == []
    assert cluster.kubectl("get", "pods", "--field-selector", "spec.nodeName=node-2", "-o", "name") == "pod/look-2\n"
    everywhere = words(cluster.kubectl("get", "pods", "-A"))
    assert everywhere[0][:2] == ["NAMESPACE", "NAME"] and ["default", "look-1"] in [row[:2] for row in everywhere]
    path = "-o=jsonpath={.items[*].metadata.name}"
    assert cluster.kubectl("get", "pods", "-l", "app=look", "--sort-by=.metadata.name", path) == "look-1 look-2"
    assert cluster.kubectl("get", "pods", "-l", "app=look", "--chunk-size=1", "-o", "name").split() == ["pod/look-1", "pod/look-2"]
    nodes = words(cluster.kubectl("get", "nodes"))
    assert nodes[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"] and [row[1] for row in nodes[1:]] == ["Ready", "Ready"]


def test_get_watches(cluster: Cluster) -> None:
    command = [cluster.kubectl_binary, "get", "pods", "-l", "app=watched", "--watch", "--output-watch-events", "--no-headers"]
    with subprocess.Popen(command, env=cluster.environment, text=True, stdout=subprocess.PIPE) as watching:
        try:
            create(cluster, "watched", app="watched")
            cluster.kubectl("delete", "pod", "watched")
            assert watching.stdout is not None
            told: list[str] = []
            for line in watching.stdout:
                told.append(line.split()[0])
                if told[-1] == "DELETED":
                    break
        finally:
            watching.kill()
    assert told[0] == "ADDED" and "MODIFIED" in told and told.count("ADDED") == 1


def test_a_watch_ends_with_its_timeout(cluster: Cluster) -> None:
    create(cluster, "patient", app="patient")
    told = cluster.try_kubectl("get", "pods", "-l", "app=patient", "-w", "--request-timeout=1s", "-o", "name")
    assert told.stdout == "pod/patient\n"


def test_get_raw_reaches_what_has_no_command(cluster: Cluster) -> None:
    assert cluster.kubectl("get", "--raw", "/livez") == "ok"
    assert json.loads(cluster.kubectl("get", "--raw", "/api/v1/nodes"))["kind"] == "NodeList"
    assert json.loads(cluster.kubectl("get", "--raw", "/api/v1/nodes/node-1/proxy/podresources")).keys() == {"podResources"}
    assert "apiserver_request_total" in cluster.kubectl("get", "--raw", "/metrics")
    assert "kubelet_" in cluster.kubectl("get", "--raw", "/api/v1/nodes/node-1/proxy/metrics")
    assert "scheduler_" in cluster.kubectl("get", "--raw", "/elbowroom/scheduler/metrics")


def test_describe_tells_a_pod_and_a_node(cluster: Cluster) -> None:
    create(cluster, "told", memory="200Mi")
    pod = cluster.kubectl("describe", "pod", "told")
    for fact in (r"Node: +node-1/", r"Status: +Running", r"memory: +200Mi", r"QoS Class: +Burstable", r"Ready +True", "Scheduled"):
        assert re.search(fact, pod), f"{fact}\n{pod}"
    node = cluster.kubectl("describe", "node", "node-1")
    for fact in (r"cpu: +4", r"memory: +4Gi", r"MemoryPressure +False", r"Ready +True", r"default +told +100m \(2%\)", r"Lease:"):
        assert re.search(fact, node), f"{fact}\n{node}"


def test_events_are_told_in_order(cluster: Cluster) -> None:
    create(cluster, "eventful")
    told = [row[2] for row in words(cluster.kubectl("events", "--for", "pod/eventful"))[1:]]
    assert "Scheduled" in told
    assert [reason for reason in told if reason in ("Pulled", "Created", "Started")] == ["Pulled", "Created", "Started"]
    assert "eventful" in cluster.kubectl("get", "events", "--field-selector", "involvedObject.name=eventful,reason=Started")


def test_the_server_describes_itself(cluster: Cluster) -> None:
    resources = cluster.kubectl("api-resources", "--no-headers")
    assert re.search(r"^pods +po +v1 +true +Pod", resources, re.MULTILINE)
    assert re.search(r"^replicasets +rs +apps/v1 +true +ReplicaSet", resources, re.MULTILINE)
    assert "v1" in cluster.kubectl("api-versions").split()
    assert "resources" in cluster.kubectl("explain", "pod.spec.containers")
    assert json.loads(cluster.kubectl("version", "-o", "json"))["serverVersion"]["minor"] == "37"
    assert cluster.kubectl("auth", "can-i", "patch", "pods", "--subresource=resize") == "yes\n"


# ---------------------------------------------------------------- writing


def test_create_refuses_what_there_is(cluster: Cluster) -> None:
    create(cluster, "once")
    again = cluster.try_kubectl("create", "-f", "-", stdin=yaml.safe_dump(manifest("once")))
    assert (again.returncode, again.stderr) == (
        1,
        'Error from server (AlreadyExists): error when creating "STDIN": pods "once" already exists\n',
    )


def test_create_refuses_unknown_fields(cluster: Cluster) -> None:
    wrong = manifest("wrong")
    wrong["spec"]["containers"][0]["imag"] = "x"
    refused = cluster.try_kubectl("create", "-f", "-", stdin=yaml.safe_dump(wrong))
    assert refused.returncode == 1
    assert 'strict decoding error: unknown field "spec.containers[0].imag"' in refused.stderr


def test_apply_creates_then_changes_nothing_then_changes(cluster: Cluster) -> None:
    def applied(*options: str, **labels: str) -> str:
        return cluster.kubectl("apply", *options, "-f", "-", stdin=yaml.safe_dump(manifest("applied", **labels)))

    assert applied(a="1") == "pod/applied created\n"
    assert applied(a="1") == "pod/applied unchanged\n"
    assert applied(b="2") == "pod/applied configured\n"
    labels = json.loads(cluster.kubectl("get", "pod", "applied", "-o", "jsonpath={.metadata.labels}"))
    assert labels == {"b": "2"}
    assert applied("--dry-run=server", c="3") == "pod/applied configured (server dry run)\n"
    assert cluster.kubectl("get", "pod", "applied", "-o", "jsonpath={.metadata.labels}") == '{"b":"2"}'


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "150Mi"}}}]}}),
        ("merge", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "150Mi"}}}]}}),
        ("json", [{"op": "replace", "path": "/spec/containers/0/resources/requests/memory", "value": "150Mi"}]),
    ],
)
def test_patch_resizes(cluster: Cluster, kind: str, patch: Any) -> None:
    name = f"patched-{kind}"
    create(cluster, name)
    done = cluster.kubectl("patch", "pod", name, "--subresource", "resize", f"--type={kind}", "-p", json.dumps(patch))
    assert done == f"pod/{name} patched\n"
    cluster.kubectl("wait", f"pod/{name}", f"--for=jsonpath={HAS}memory}}=150Mi", WAIT)
    assert cluster.kubectl("get", "pod", name, "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "0"


def test_a_plain_patch_of_resources_is_refused(cluster: Cluster) -> None:
    create(cluster, "plain")
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "150Mi"}}}]}}
    refused = cluster.try_kubectl("patch", "pod", "plain", "-p", json.dumps(patch))
    assert refused.returncode == 1
    assert 'The Pod "plain" is invalid: spec: Forbidden: pod updates may not change fields other than' in refused.stderr


def test_edit_changes_a_pod(cluster: Cluster) -> None:
    create(cluster, "edited", stage="before")
    editor = {"KUBE_EDITOR": "sed -i s/before/after/"}
    assert cluster.kubectl("edit", "pod", "edited", environment=editor) == "pod/edited edited\n"
    assert cluster.kubectl("get", "pod", "edited", "-L", "stage", "--no-headers").split()[-1] == "after"
    assert (
        cluster.try_kubectl("edit", "pod", "edited", environment={"KUBE_EDITOR": "true"}).stderr
        == "Edit cancelled, no changes made.\n"
    )


def test_edit_resizes(cluster: Cluster, minor: int) -> None:
    create(cluster, "stretched")
    editor = {"KUBE_EDITOR": "sed -i s/100Mi/160Mi/"}
    edited = cluster.try_kubectl("edit", "pod", "stretched", "--subresource", "resize", environment=editor)
    if minor <= 32:  # it does not know what newer servers write into the status, and gives up before it asks
        assert edited.returncode == 1 and "unable to find api field in struct PodStatus" in edited.stderr
        return
    assert (edited.returncode, edited.stdout) == (0, "pod/stretched edited\n"), edited
    cluster.kubectl("wait", "pod/stretched", f"--for=jsonpath={HAS}memory}}=160Mi", WAIT)


def test_labels_and_annotations_are_set_kept_and_removed(cluster: Cluster) -> None:
    create(cluster, "marked")
    assert cluster.kubectl("label", "pod", "marked", "a=1", "b=2") == "pod/marked labeled\n"
    refused = cluster.try_kubectl("label", "pod", "marked", "a=3")
    assert refused.returncode == 1 and "'a' already has a value (1), and --overwrite is false" in refused.stderr
    cluster.kubectl("label", "pod", "marked", "a=3", "b-", "--overwrite")
    assert cluster.kubectl("annotate", "pods", "-l", "a=3", "note=well") == "pod/marked annotated\n"
    meta = json.loads(cluster.kubectl("get", "pod", "marked", "-o", "json"))["metadata"]
    assert (meta["labels"], meta["annotations"]["note"]) == ({"a": "3"}, "well")


def test_delete_waits_until_the_pod_is_gone(cluster: Cluster) -> None:
    create(cluster, "doomed")
    assert cluster.kubectl("delete", "pod", "doomed").startswith('pod "doomed" deleted')
    gone = cluster.try_kubectl("get", "pod", "doomed")
    assert (gone.returncode, gone.stderr) == (1, 'Error from server (NotFound): pods "doomed" not found\n')
    create(cluster, "doomed")
    cluster.kubectl("delete", "pod", "doomed", "--wait=false")
    cluster.kubectl("wait", "pod/doomed", "--for=delete", WAIT)
    assert cluster.kubectl("delete", "pod", "doomed", "--ignore-not-found") == ""


# ---------------------------------------------------------------- workloads and nodes


def replicas(cluster: Cluster, name: str, count: int, node: str = "node-2") -> None:
    """A ReplicaSet all of whose pods are Ready."""
    template = manifest("", node, app=name)
    template["metadata"].pop("name")
    spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}}
    spec["template"] = {"metadata": template["metadata"], "spec": template["spec"]}
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}
    cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(body))
    await_replicas(cluster, name, count)


def await_replicas(cluster: Cluster, name: str, count: int) -> None:
    cluster.kubectl("wait", f"rs/{name}", f"--for=jsonpath={{.status.readyReplicas}}={count}", WAIT)


def test_scale_makes_and_removes_pods(cluster: Cluster) -> None:
    replicas(cluster, "scaled", 1)
    assert cluster.kubectl("scale", "rs/scaled", "--replicas=3") == "replicaset.apps/scaled scaled\n"
    await_replicas(cluster, "scaled", 3)
    cluster.kubectl("scale", "rs/scaled", "--current-replicas=3", "--replicas=2")
    await_replicas(cluster, "scaled", 2)
    refused = cluster.try_kubectl("scale", "rs/scaled", "--current-replicas=3", "--replicas=1")
    assert refused.returncode == 1 and "Expected replicas to be 3, was 2" in refused.stderr
    assert [row[1:4] for row in words(cluster.kubectl("get", "rs", "scaled", "--no-headers"))] == [["2", "2", "2"]]
    cluster.kubectl("delete", "rs", "scaled")
    until("its pods go with it", lambda: not cluster.pods("app=scaled"))


def test_a_cordoned_node_takes_no_pods_until_it_is_uncordoned(cluster: Cluster) -> None:
    assert cluster.kubectl("cordon", "node-2") == "node/node-2 cordoned\n"
    assert words(cluster.kubectl("get", "nodes", "--no-headers"))[1][1] == "Ready,SchedulingDisabled"
    cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(manifest("shut-out", "node-2")))
    cluster.kubectl("wait", "pod/shut-out", "--for=condition=PodScheduled=False", WAIT)
    assert cluster.kubectl("uncordon", "node-2") == "node/node-2 uncordoned\n"
    cluster.kubectl("wait", "pod/shut-out", "--for=condition=Ready", WAIT)


def test_a_tainted_node_repels(cluster: Cluster) -> None:
    assert cluster.kubectl("taint", "node", "node-2", "only=mine:NoSchedule") == "node/node-2 tainted\n"
    cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(manifest("repelled", "node-2")))
    cluster.kubectl("wait", "pod/repelled", "--for=condition=PodScheduled=False", WAIT)
    assert cluster.kubectl("taint", "node", "node-2", "only-") == "node/node-2 untainted\n"
    cluster.kubectl("wait", "pod/repelled", "--for=condition=Ready", WAIT)


def test_drain_evicts_what_comes_back_elsewhere_and_refuses_what_would_not(cluster: Cluster) -> None:
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    replicas(cluster, "drained", 2)
    create(cluster, "alone", node="node-2")
    refused = cluster.try_kubectl("drain", "node-2")
    assert refused.returncode == 1
    assert "cannot delete Pods that declare no controller (use --force to override): default/alone" in refused.stderr
    before = set(cluster.pods("app=drained"))
    cluster.kubectl("drain", "node-2", "--force", WAIT)
    assert "alone" not in cluster.pods() and not before & set(cluster.pods("app=drained"))
    await_pending = until("the successors wait", lambda: {p.status.phase for p in cluster.pods("app=drained").values()})
    assert await_pending == {"Pending"}
    cluster.kubectl("uncordon", "node-2")
    await_replicas(cluster, "drained", 2)


# ---------------------------------------------------------------- who asks


def test_a_bad_token_is_nobody(cluster: Cluster) -> None:
    refused = cluster.try_kubectl("get", "pods", "--token=wrong")
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (1, "error: You must be logged in to the server (Unauthorized)")


def test_without_credentials_one_is_anonymous_and_has_no_rights(cluster: Cluster) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"username": "root", "password": "root"}  # else kubectl asks; servers don't know such any more
    nobody = cluster.folder / "nobody"
    nobody.write_text(yaml.safe_dump(config))
    refused = cluster.try_kubectl("get", "pods", "--kubeconfig", str(nobody))
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        1,
        'Error from server (Forbidden): pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in '
        'the namespace "default"',
    )
    assert cluster.kubectl("get", "--raw", "/livez", "--kubeconfig", str(nobody)) == "ok"
