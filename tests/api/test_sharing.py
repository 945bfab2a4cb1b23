"""What equals an earlier value is that value, and nothing else about a view changes."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.objects import Lease, Node, Pod
from elbowroom.api.resources import spec_requests
from elbowroom.api.sharing import Sharing

WORDS = st.sampled_from(["", "a", "b", "True"])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2Gi"]))
CONDITIONS = st.lists(st.fixed_dictionaries({"type": WORDS, "status": WORDS, "observedGeneration": st.integers(0, 2)}), max_size=2)
STATUSES = st.lists(
    st.fixed_dictionaries(
        {"name": WORDS, "allocatedResources": AMOUNTS, "resources": st.fixed_dictionaries({"requests": AMOUNTS})},
        optional={"state": st.fixed_dictionaries({"running": st.fixed_dictionaries({"startedAt": WORDS})})},
    ),
    max_size=2,
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": WORDS, "labels": st.dictionaries(WORDS, WORDS, max_size=2)}),
        "spec": st.fixed_dictionaries(
            {
                "nodeName": WORDS,
                "containers": st.lists(st.fixed_dictionaries({"name": WORDS, "resources": st.just({})}), max_size=2),
                "tolerations": st.lists(st.fixed_dictionaries({"key": WORDS}), max_size=1),
            }
        ),
        "status": st.fixed_dictionaries(
            {"phase": WORDS, "conditions": CONDITIONS, "containerStatuses": STATUSES, "allocatedResources": AMOUNTS}
        ),
    }
)
POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"nodeName": "node-1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "c", "ready": True}]},
}


def decoded(document: dict[str, Any]) -> Pod:
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


@given(st.lists(PODS, max_size=6), st.integers(1, 8))
def test_a_shared_view_equals_the_view_whatever_was_seen_before_and_forgotten(pods: list[dict[str, Any]], room: int) -> None:
    sharing = Sharing(room)
    kept = [sharing.shared(decoded(pod)) for pod in pods]
    assert kept == [decoded(pod) for pod in pods]


@given(st.lists(PODS, max_size=6), st.integers(1, 8))
def test_a_shared_status_as_json_reads_as_it_came(pods: list[dict[str, Any]], room: int) -> None:
    sharing = Sharing(room)
    kept = [msgspec.json.decode(msgspec.json.encode(pod["status"])) for pod in pods]
    for status in kept:
        sharing.document(status)
    assert [msgspec.json.encode(status) for status in kept] == [msgspec.json.encode(pod["status"]) for pod in pods]


def test_pods_of_a_template_on_a_node_have_one_spec_and_what_was_worked_out_of_it() -> None:
    sharing = Sharing()
    one, other = sharing.shared(decoded(POD)), sharing.shared(decoded({**POD, "metadata": {"name": "b", "namespace": "default"}}))
    assert one.spec is other.spec and one.status.conditions is other.status.conditions
    spec_requests(one)
    assert vars(one.spec) == vars(other.spec) != {}


def test_pods_of_a_template_on_two_nodes_share_its_containers() -> None:
    sharing = Sharing()
    here, there = sharing.shared(decoded(POD)), sharing.shared(decoded({**POD, "spec": {**POD["spec"], "nodeName": "node-2"}}))
    assert here.spec is not there.spec and here.spec.containers is there.spec.containers
    assert (here.spec.node_name, there.spec.node_name) == ("node-1", "node-2")


def test_one_is_not_true_and_a_list_of_views_not_one_of_documents() -> None:
    sharing = Sharing()
    first: dict[str, Any] = {"conditions": [{"type": "Ready"}], "hostIPs": [1]}
    second: dict[str, Any] = {"conditions": [{"type": "Ready"}], "hostIPs": [True]}
    pod = sharing.shared(decoded({"status": {"conditions": [{"type": "Ready"}]}}))
    sharing.document(first)
    sharing.document(second)
    assert first["conditions"] is second["conditions"] is not pod.status.conditions
    assert second["hostIPs"][0] is True


def test_nodes_share_what_their_machines_have_in_common_and_other_views_stay() -> None:
    sharing = Sharing()
    raw = b'{"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"},"conditions":[{"type":"Ready"}]}}'
    one, other = (sharing.shared(msgspec.json.decode(raw, type=Node)) for _ in range(2))
    assert one == other and one.status.capacity is other.status.capacity and one.status.conditions is other.status.conditions
    lease = msgspec.json.decode(b'{"metadata":{"name":"n"},"spec":{"holderIdentity":"n"}}', type=Lease)
    assert sharing.shared(lease) is lease and lease.spec.holder_identity == "n"
