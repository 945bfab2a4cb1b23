"""What a refused update tells of the difference: upstream's own structs as JSON, every field stated (RC-58)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver import internals, schema
from elbowroom.apiserver.internals import internal, json_name, struct_names
from elbowroom.apiserver.spec_diff import spec_diff

SPEC: dict[str, Any] = {
    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}}}],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "priority": 0,
}

CHANGES: list[tuple[dict[str, Any], str]] = [
    (
        {"hostNetwork": True},
        '@@ -48,7 +48,7 @@\n  "AutomountServiceAccountToken": null,\n  "NodeName": "",\n  "SecurityContext": {\n'
        '-  "HostNetwork": false,\n+  "HostNetwork": true,\n'
        '   "HostPID": false,\n   "HostIPC": false,\n   "ShareProcessNamespace": null,\n',
    ),
    (
        {"nodeSelector": {"a": "b"}},
        '@@ -43,7 +43,9 @@\n  "TerminationGracePeriodSeconds": 30,\n  "ActiveDeadlineSeconds": null,\n'
        '  "DNSPolicy": "ClusterFirst",\n- "NodeSelector": null,\n+ "NodeSelector": {\n+  "a": "b"\n+ },\n'
        '  "ServiceAccountName": "",\n  "AutomountServiceAccountToken": null,\n  "NodeName": "",\n',
    ),
    (
        {"containers": [{**SPEC["containers"][0], "resources": {"requests": {"cpu": "0.2"}, "limits": {"cpu": "500m"}}}]},
        '@@ -16,7 +16,7 @@\n      "cpu": "500m"\n     },\n     "Requests": {\n'
        '-     "cpu": "100m"\n+     "cpu": "200m"\n     },\n     "Claims": null\n    },\n',
    ),
    (
        {"schedulerName": "a<b"},
        '@@ -72,7 +72,7 @@\n  "Subdomain": "",\n  "SetHostnameAsFQDN": null,\n  "Affinity": null,\n'
        '- "SchedulerName": "default-scheduler",\n+ "SchedulerName": "a\\u003cb",\n'
        '  "Tolerations": null,\n  "HostAliases": null,\n  "PriorityClassName": "",\n',
    ),
]


@pytest.mark.parametrize(("change", "told"), CHANGES, ids=[next(iter(change)) for change, _ in CHANGES])
def test_the_difference_is_told_in_upstreams_structs(change: dict[str, Any], told: str) -> None:
    assert spec_diff(SPEC, {**SPEC, **change}) == told


def test_a_spec_states_every_field_in_upstreams_order() -> None:
    made = internal("PodSpec", SPEC)
    assert list(made)[:5] == ["Volumes", "InitContainers", "Containers", "EphemeralContainers", "RestartPolicy"]
    assert list(made["Containers"][0])[:6] == ["Name", "Image", "Command", "Args", "WorkingDir", "Ports"]
    assert made["Containers"][0]["Resources"] == {"Limits": {"cpu": "500m"}, "Requests": {"cpu": "100m"}, "Claims": None}
    assert (made["Priority"], made["Resources"], made["Overhead"], made["NodeName"]) == (0, None, None, "")


def test_what_a_document_has_in_the_spec_stands_in_the_security_context() -> None:
    made = internal("PodSpec", {"hostPID": True, "hostUsers": False})
    assert list(made["SecurityContext"])[:5] == ["HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"]
    assert [made["SecurityContext"][name] for name in ("HostNetwork", "HostPID", "HostUsers")] == [False, True, False]
    assert "HostPID" not in made


def test_the_old_name_of_the_service_account_counts() -> None:
    assert internal("PodSpec", {"serviceAccount": "x"})["ServiceAccountName"] == "x"
    assert internal("PodSpec", {"serviceAccount": "x", "serviceAccountName": "y"})["ServiceAccountName"] == "y"


def test_embedded_structs_leave_no_trace() -> None:
    volume = internal("Volume", {"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}})
    assert (volume["Name"], volume["HostPath"]) == ("v", None)
    assert volume["ConfigMap"] == {
        "Name": "m",
        "Items": [{"Key": "k", "Path": "p", "Mode": None}],
        "DefaultMode": None,
        "Optional": None,
    }
    template = {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}}
    claim = internal("Volume", {"name": "v", "ephemeral": template})["Ephemeral"]["VolumeClaimTemplate"]
    assert (list(claim), claim["labels"]) == (["labels", "Spec"], {"a": "b"})
    probe = internal("Container", {"livenessProbe": {"httpGet": {"port": "web"}}})["LivenessProbe"]
    assert (next(iter(probe)), probe["HTTPGet"]["Port"], probe["PeriodSeconds"]) == ("Exec", "web", 0)


def test_a_label_selector_is_public() -> None:
    selector = {"matchExpressions": [{"key": "k", "operator": "Exists"}], "matchLabels": {}}
    made = internal("PodAffinityTerm", {"labelSelector": selector, "topologyKey": "t"})
    assert made["LabelSelector"] == {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    assert (made["Namespaces"], made["NamespaceSelector"]) == (None, None)


def test_a_field_of_a_preview_comes_last() -> None:
    made = internal("PodSpec", {"scaleDownGracePeriodSeconds": 5})
    assert list(made)[-2:] == ["SchedulingGroup", "ScaleDownGracePeriodSeconds"]
    assert 'ScaleDownGracePeriodSeconds": 6' in spec_diff({"scaleDownGracePeriodSeconds": 5}, {"scaleDownGracePeriodSeconds": 6})


def test_equal_specs_have_no_difference_and_endless_ones_none_that_is_told() -> None:
    assert spec_diff(SPEC, SPEC) == ""
    assert spec_diff(SPEC, {**SPEC, "nodeSelector": {str(index): "" for index in range(6000)}}) == ""


@pytest.mark.parametrize(
    ("go", "json"),
    [
        ("Name", "name"),
        ("DNSPolicy", "dnsPolicy"),
        ("OS", "os"),
        ("TTY", "tty"),
        ("HostIP", "hostIP"),
        ("FSGroup", "fsGroup"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("AWSElasticBlockStore", "awsElasticBlockStore"),
    ],
)
def test_gos_names_say_the_documents(go: str, json: str) -> None:
    assert json_name(go) == json


def fields_of(field: schema.Field | None, wanted: str) -> set[str]:
    """The document's names of the fields of the struct ``wanted``, wherever it is used below ``field``."""
    seen: set[str] = set()
    left = [field]
    while left:
        at = left.pop()
        while at is not None and at.item is not None:
            at = at.item
        if at is None or at.struct is None or at.struct.name in seen:
            continue
        if at.struct.name == wanted:
            return set(at.fields)
        seen.add(at.struct.name)
        left += at.fields.values()
    return set()


NEWER = {
    "PodSpec": {"evictionResponders"},
    "EmptyDirVolumeSource": {"mode"},
    "VolumeMount": {"bindMountOptions"},
    "HTTPGetAction": {"protocol"},
    "GRPCAction": {"mode"},
    "SecretVolumeSource": {"defaultUser"},
    "DownwardAPIVolumeSource": {"defaultUser"},
    "ConfigMapVolumeSource": {"defaultUser"},
    "ProjectedVolumeSource": {"defaultUser"},
    "KeyToPath": {"user"},
    "DownwardAPIVolumeFile": {"user"},
    "ServiceAccountTokenProjection": {"user"},
    "ClusterTrustBundleProjection": {"user"},
    "PodCertificateProjection": {"user"},
}
"""What v1.37's documents can say and v1.36.2's structs cannot."""


def test_each_struct_has_the_fields_that_documents_have() -> None:
    """The two tables were made of different sources: the public types and upstream's own."""
    moved = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers", "serviceAccount"}
    pod = schema.find("", "v1", "Pod")
    compared = 0
    for struct in struct_names():
        public = fields_of(pod, struct)
        if public:
            compared += 1
            mine = {field.json for field in internals.fields_of(struct)}
            assert (public ^ mine) - moved == NEWER.get(struct, set()), struct
    assert compared > 80


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=4))
def test_any_text_becomes_lines_that_only_a_change_tells_apart(selector: dict[str, str]) -> None:
    told = spec_diff(SPEC, {**SPEC, "nodeSelector": selector})
    assert all(line[:1] in ("@", " ", "+", "-") for line in told.removesuffix("\n").split("\n"))
