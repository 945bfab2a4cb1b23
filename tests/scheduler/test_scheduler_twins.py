"""What is worked out by a short cut is what the long way gives, whatever the input."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_worlds import info_of

from elbowroom.api import resources

LISTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/chips", "ephemeral-storage"]), st.sampled_from(["0", "100m", "1", "3", "2Gi"])
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Pods with statuses that tell anything or nothing of their containers, some of them with a resize that is Infeasible."""

    def container(name: str) -> dict[str, Any]:
        return {"name": name, "image": "pause", "resources": {"requests": draw(LISTS)}}

    spec: dict[str, Any] = {"containers": [container("main"), container("beside")][: draw(st.integers(1, 2))]}
    status: dict[str, Any] = {"phase": "Running"}
    if draw(st.booleans()):
        spec["nodeName"] = "n1"
    if draw(st.booleans()):
        spec["initContainers"] = [{**container("first"), **draw(st.sampled_from([{}, {"restartPolicy": "Always"}]))}]
    if draw(st.booleans()):
        spec["overhead"] = {"cpu": "10m"}
    if draw(st.booleans()):
        spec["resources"] = {"requests": {"cpu": "5"}}
    for field in ("allocatedResources", "resources"):
        if draw(st.booleans()):
            status[field] = draw(LISTS) if field == "allocatedResources" else {"requests": draw(LISTS)}
    if draw(st.booleans()):
        status["containerStatuses"] = [{"name": "main", "allocatedResources": draw(LISTS), "resources": {"requests": draw(LISTS)}}]
    if draw(st.booleans()):
        status["initContainerStatuses"] = [{"name": "first", "allocatedResources": draw(LISTS)}]
    reason = draw(st.sampled_from(["", "Deferred", "Infeasible"]))
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": spec, "status": status}


@settings(max_examples=300, deadline=None)
@given(pods())
def test_a_pod_counts_with_its_effective_requests_however_they_are_found(document: dict[str, Any]) -> None:
    info = info_of(document)
    assert info.non_zero == resources.non_zero_requests(info.pod)
    if info.pod.spec.node_name:
        assert info.requests == resources.effective_requests(info.pod)
    else:
        assert info.requests == info.want == resources.spec_requests(info.pod)
