"""Plain updates and status updates of pods."""

from dataclasses import replace
from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

IMAGE = "registry.k8s.io/pause:3.10"
RESOURCES = {"requests": {"cpu": "610m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
ONLY = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def a_bench(**spec: Any) -> Bench:
    bench = Bench()
    bench.create(
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": IMAGE, "resources": RESOURCES}], **spec}}
    )
    return bench


def refused(bench: Bench, pod: Document, subresource: str = "") -> str:
    with pytest.raises(Refused) as caught:
        bench.update(pod, subresource)
    assert caught.value.code == 422
    return caught.value.message.removeprefix('Pod "a" is invalid: ')


def test_resources_change_through_resize_only() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "700m"
    message = refused(bench, pod)
    assert message.startswith(ONLY)
    assert '-     "cpu": "610m",\n+     "cpu": "700m",\n' in message.removeprefix(ONLY)


def test_a_huge_change_is_refused_without_a_diff() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"][0]["env"] = [{"name": f"N{index}", "value": "x"} for index in range(5000)]
    assert refused(bench, pod) == ONLY


def test_the_image_may_change_and_is_a_new_generation() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    after = bench.update(pod)
    assert (after["spec"]["containers"][0]["image"], after["metadata"]["generation"]) == ("registry.k8s.io/pause:3.9", 2)


def test_labels_are_no_new_generation_and_the_status_stays() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["metadata"]["labels"] = {"x": "y"}
    pod["status"] = {"phase": "Running"}
    after = bench.update(pod)
    assert (after["metadata"]["labels"], after["metadata"]["generation"], after["status"]["phase"]) == ({"x": "y"}, 1, "Pending")


def test_a_put_of_what_was_created_changes_nothing() -> None:
    bench = a_bench(priority=0)
    container = {"name": "c", "image": IMAGE, "resources": RESOURCES}
    assert bench.update({"metadata": {"name": "a"}, "spec": {"containers": [container]}})["metadata"]["generation"] == 1


def test_containers_are_neither_added_nor_removed() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"].append({"name": "d", "image": "x"})
    assert refused(bench, pod) == "spec.containers: Forbidden: pod updates may not add or remove containers"


def test_a_deadline_may_be_set_and_shortened() -> None:
    bench = a_bench()
    for seconds in (100, 50):
        pod = bench.pod()
        pod["spec"]["activeDeadlineSeconds"] = seconds
        bench.update(pod)
    pod["spec"]["activeDeadlineSeconds"] = 60
    assert refused(bench, pod) == "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value"
    del pod["spec"]["activeDeadlineSeconds"]
    why = "must not update from a positive integer to nil value"
    assert refused(bench, pod) == f"spec.activeDeadlineSeconds: Invalid value: null: {why}"


def test_tolerations_may_be_added_but_not_taken_away() -> None:
    bench = a_bench(tolerations=[{"key": "a", "operator": "Exists"}])
    pod = bench.pod()
    pod["spec"]["tolerations"].append({"key": "b", "operator": "Exists"})
    assert len(bench.update(pod)["spec"]["tolerations"]) == 4
    pod = bench.pod()
    pod["spec"]["tolerations"] = pod["spec"]["tolerations"][1:]
    assert (
        refused(bench, pod) == "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    )


def test_gates_may_go_and_a_gated_pod_may_become_choosier() -> None:
    bench = a_bench(schedulingGates=[{"name": "a.b/c"}], nodeSelector={"x": "1"})
    pod = bench.pod()
    pod["spec"]["nodeSelector"]["y"] = "2"
    pod["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]
            }
        }
    }
    assert bench.update(pod)["spec"]["nodeSelector"] == {"x": "1", "y": "2"}
    pod["spec"]["nodeSelector"] = {"x": "9"}
    assert "only additions to spec.nodeSelector are allowed" in refused(bench, pod)
    pod = bench.pod()
    pod["spec"]["schedulingGates"] = [{"name": "d.e/f"}]
    why = "only deletion is allowed, but found new scheduling gate 'd.e/f'"
    assert refused(bench, pod) == f"spec.schedulingGates[0].name: Forbidden: {why}"
    pod["spec"]["schedulingGates"] = []
    assert "schedulingGates" not in bench.update(pod)["spec"]


def with_terms(*terms: Document) -> Document:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


WIDE, NARROW = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "In", "values": ["x"]}
TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
SHOWN = '{"MatchExpressions":[{"Key":"b","Operator":"In","Values":["x"]}],"MatchFields":null}'


@pytest.mark.parametrize(
    ("before", "after", "finding"),
    [
        ([{"matchExpressions": [WIDE]}], [{"matchExpressions": [WIDE, NARROW]}], ""),
        (
            [{"matchExpressions": [WIDE]}],
            [{"matchExpressions": [NARROW]}],
            f"{TERMS}[0]: Invalid value: {SHOWN}: only additions are allowed (no mutations or deletions)",
        ),
        (
            [{}],
            [{"matchExpressions": [NARROW]}],
            f"{TERMS}[0]: Invalid value: {SHOWN}: only additions are allowed (no mutations or deletions)",
        ),
        (
            [{"matchExpressions": [NARROW]}],
            [{"matchExpressions": [NARROW]}, {}],
            f'{TERMS}: Invalid value: [{SHOWN},{{"MatchExpressions":null,"MatchFields":null}}]: no additions/deletions to '
            "non-empty NodeSelectorTerms list are allowed",
        ),
    ],
)
def test_the_terms_of_a_gated_pod_are_only_added_to(before: list[Document], after: list[Document], finding: str) -> None:
    bench = Bench()
    gated = {"schedulingGates": [{"name": "g"}], "affinity": with_terms(*before)}
    bench.create({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": IMAGE}], **gated}})
    pod = bench.pod()
    pod["spec"]["affinity"] = with_terms(*after)
    if finding:
        assert refused(bench, pod) == finding
    else:
        assert bench.update(pod)["spec"]["affinity"] == with_terms(*after)


# ---------------------------------------------------------------- status


def test_a_status_update_changes_status_and_labels_only() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["spec"]["containers"][0]["image"] = "other"
    pod["metadata"] |= {"labels": {"x": "y"}, "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}]}
    pod["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
    after = bench.update(pod, "status")
    assert after["spec"]["containers"][0]["image"] == IMAGE and "ownerReferences" not in after["metadata"]
    assert after["status"] == {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "qosClass": "Burstable"}
    assert (after["metadata"]["labels"], after["metadata"]["generation"]) == ({"x": "y"}, 1)


def test_an_empty_resources_field_of_a_container_status_survives() -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["status"]["containerStatuses"] = [{"name": "c", "resources": {}}]
    assert bench.update(pod, "status")["status"]["containerStatuses"][0]["resources"] == {}


def test_observed_generations_are_never_cleared() -> None:
    bench = a_bench()
    pod = bench.pod()
    condition = {"type": "Ready", "status": "True", "observedGeneration": 3}
    pod["status"] |= {"observedGeneration": 3, "conditions": [condition]}
    bench.update(pod, "status")
    pod = bench.pod()
    pod["status"]["observedGeneration"] = 0
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    after = bench.update(pod, "status")["status"]
    assert (after["observedGeneration"], after["conditions"][0]["observedGeneration"]) == (3, 3)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"qosClass": "Guaranteed"}, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'),
        (
            {"conditions": [{"type": "a b", "status": "True"}]},
            'status.conditions[0].Type: Invalid value: "a b": name part must consist',
        ),
        (
            {"podIP": "nope"},
            'status.podIPs[0]: Invalid value: "nope": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        ({"observedGeneration": -1}, "status.observedGeneration: Invalid value: -1: must be a non-negative integer"),
        (
            {"conditions": [{"type": "X", "status": "True", "observedGeneration": -1}]},
            "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
        ),
        ({"podIP": "01.2.3.4"}, 'status.podIPs[0]: Invalid value: "01.2.3.4": must not have leading 0s'),
        (
            {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]},
            'status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: may specify no more than one IP for each IP family',
        ),
        ({"hostIPs": [{"ip": "1.2.3.4"}]}, 'status.hostIPs[0].ip: Invalid value: "1.2.3.4": must be equal to `hostIP`'),
        (
            {"resourceClaimStatuses": [{"name": "x"}]},
            'status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in `spec.resourceClaims`',
        ),
        (
            {"containerStatuses": [{"name": "c", "user": {"linux": {"uid": -1, "gid": 1}}}]},
            "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        (
            {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": "a.b/c"}]}]},
            'status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "a.b/c": must match one of the '
            "container's resource requests",
        ),
        (
            {"nominatedNodeName": "A b"},
            'status.nominatedNodeName: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist',
        ),
    ],
)
def test_a_nonsensical_status_is_refused(change: Document, finding: str) -> None:
    bench = a_bench()
    pod = bench.pod()
    pod["status"] |= change
    assert refused(bench, pod, "status").startswith(finding)


def test_a_bound_pod_is_not_nominated() -> None:
    bench = a_bench(nodeName="n1")
    pod = bench.pod()
    pod["status"]["nominatedNodeName"] = "n2"
    why = "may not be set on pods that are already bound to a node"
    assert refused(bench, pod, "status") == f"status.nominatedNodeName: Forbidden: {why}"


def test_a_bound_pod_is_nominated_where_the_policy_keeps_a_resize_so() -> None:
    bench = a_bench(nodeName="n1")
    bench.profile = replace(bench.profile, nomination_tracking="nominatedNodeName")
    pod = bench.pod()
    pod["status"]["nominatedNodeName"] = "n1"
    bench.update(pod, "status")
    assert bench.pod()["status"]["nominatedNodeName"] == "n1"


def test_what_ended_for_good_does_not_run_again() -> None:
    bench = a_bench(restartPolicy="OnFailure")
    pod = bench.pod()
    pod["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
    bench.update(pod, "status")
    pod["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    why = "may not be transitioned to non-terminated state"
    assert refused(bench, pod, "status") == f"status.containerStatuses[0].state: Forbidden: {why}"
