"""Creating pods: defaults, validation in upstream's words, and the status a pod starts with."""

from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

from elbowroom.api.gates import profile_of

IMAGE = "registry.k8s.io/pause:3.10"


def a_pod(container: Document | None = None, /, **spec: Any) -> Document:
    containers = [{"name": "c", "image": IMAGE, **(container or {})}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}


def refusal(pod: Document) -> Refused:
    with pytest.raises(Refused) as caught:
        Bench().create(pod)
    return caught.value


def test_a_bare_pod_gets_upstreams_defaults() -> None:
    pod = Bench().create(a_pod())
    assert pod["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": IMAGE,
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1


def test_what_a_creator_says_of_the_status_is_dropped() -> None:
    assert Bench().create({**a_pod(), "status": {"phase": "Running", "podIP": "1.2.3.4"}})["status"]["phase"] == "Pending"


def test_requests_default_to_limits_and_quantities_become_canonical() -> None:
    resources = {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5"}}
    pod = Bench().create(a_pod({"resources": resources}))
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("localhost:5000/busybox", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("busybox@sha256:" + "a" * 64, "IfNotPresent"),
        ("NoImage", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert Bench().create(a_pod({"image": image}))["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_ports_probes_and_volumes_get_their_defaults() -> None:
    pod = a_pod(
        {
            "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        },
        volumes=[{"name": "v", "configMap": {"name": "m"}}],
        hostNetwork=True,
        serviceAccountName="s",
    )
    spec = Bench().create(pod)["spec"]
    container = spec["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert spec["volumes"] == [{"name": "v", "configMap": {"name": "m", "defaultMode": 420}}]
    assert spec["serviceAccount"] == "s"


def test_pod_level_requests_default_to_the_containers_sum_or_to_the_limits() -> None:
    pod = a_pod({"resources": {"requests": {"cpu": "100m"}}}, resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    level = Bench().create(pod)["spec"]["resources"]
    assert level == {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}}


@pytest.mark.parametrize("gate", [False, True])
def test_a_group_of_a_pod_is_dropped_unless_its_gate_is_on(gate: bool) -> None:
    group = {"podGroupName": "g"}
    spec = Bench(profile_of("v1.37", {"GenericWorkload": gate})).create(a_pod(schedulingGroup=group))["spec"]
    assert spec.get("schedulingGroup") == (group if gate else None)


def test_a_gated_pod_is_told_to_wait() -> None:
    status = Bench().create(a_pod(schedulingGates=[{"name": "a.b/c"}]))["status"]
    assert [(c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"]] == [
        ("PodScheduled", "False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
    ]


def test_match_label_keys_become_part_of_the_selector() -> None:
    term = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["v"]}
    pod = a_pod(topologySpreadConstraints=[term])
    pod["metadata"]["labels"] = {"v": "1"}
    merged = Bench().create(pod)["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert merged == {"matchExpressions": [{"key": "v", "operator": "In", "values": ["1"]}]}


INVALID = [
    (a_pod(containers=[]), "spec.containers: Required value"),
    (a_pod({"image": ""}), "spec.containers[0].image: Required value"),
    (a_pod({"image": " x "}), 'spec.containers[0].image: Invalid value: " x ": must not have leading or trailing whitespace'),
    (a_pod({"name": "a.b"}), 'spec.containers[0].name: Invalid value: "a.b": must not contain dots'),
    (a_pod(initContainers=[{"name": "c", "image": "x"}]), 'spec.initContainers[0].name: Duplicate value: "c"'),
    (
        a_pod({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        a_pod({"resources": {"requests": {"cpu": "-1"}}}),
        'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    (
        a_pod({"resources": {"requests": {"pods": "1"}}}),
        'spec.containers[0].resources.requests[pods]: Invalid value: "pods": must be a standard resource for containers',
    ),
    (
        a_pod({"resources": {"requests": {"x.io/g": "1"}}}),
        "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
    ),
    (
        a_pod({"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}),
        "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
    ),
    (
        a_pod({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}] * 2}),
        'spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"',
    ),
    (
        a_pod({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, restartPolicy="Never"),
        "spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` "
        "is 'Never'",
    ),
    (
        a_pod({"resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]}),
        'spec.containers[0].resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"',
    ),
    (
        a_pod(
            initContainers=[
                {"name": "i", "image": "x", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            ]
        ),
        'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set to '
        "'RestartContainer' for non-sidecar initContainers",
    ),
    (
        a_pod({"resources": {"requests": {"cpu": "100m"}}}, resources={"requests": {"cpu": "50m"}}),
        'spec.resources.requests[cpu]: Invalid value: "50m": must be greater than or equal to aggregate container requests of 100m',
    ),
    (
        a_pod(resources={"requests": {"ephemeral-storage": "1Gi"}}),
        'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: '
        '"cpu", "hugepages-", "memory"',
    ),
    (a_pod(restartPolicy="x"), 'spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"'),
    (a_pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    (
        a_pod({"volumeMounts": [{"name": "w", "mountPath": "/w"}]}),
        'spec.containers[0].volumeMounts[0].name: Not found: "w"',
    ),
    (
        a_pod({"lifecycle": {"preStop": {"sleep": {"seconds": 99}}}}, terminationGracePeriodSeconds=5),
        "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 99: must be non-negative and less than "
        "terminationGracePeriodSeconds (5)",
    ),
    (
        a_pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "x"}]),
        'spec.tolerations[0].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    (
        a_pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: "
        "must have at least one node selector term",
    ),
    (
        a_pod(schedulingGates=[{"name": "a.b/c"}], nodeName="n"),
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ),
    (a_pod(dnsPolicy="None"), "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    (
        a_pod({"startupProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}}),
        "spec.containers[0].startupProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
    ),
]


@pytest.mark.parametrize(("pod", "finding"), INVALID, ids=[finding[:60] for _, finding in INVALID])
def test_an_invalid_pod_is_refused_with_upstreams_words(pod: Document, finding: str) -> None:
    refused = refusal(pod)
    assert (refused.code, refused.message) == (422, f'Pod "a" is invalid: {finding}')


def test_several_errors_are_listed_together() -> None:
    refused = refusal(a_pod({"image": ""}, restartPolicy="x"))
    assert refused.message.startswith('Pod "a" is invalid: [spec.containers[0].image: Required value, spec.restartPolicy: ')
    assert [field for field, _ in refused.causes] == ["spec.containers[0].image", "spec.restartPolicy"]


def test_odd_but_valid_pods_are_warned_of() -> None:
    bench = Bench()
    pod = a_pod({"resources": {"limits": {"memory": "0.0000001Gi"}}})
    pod["metadata"]["name"] = "a.b"
    bench.create(pod)
    assert bench.warnings == [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: "
        "[must not contain dots]",
        'spec.containers[0].resources.limits[memory]: fractional byte value "107375m" is invalid, must be an integer',
        'spec.containers[0].resources.requests[memory]: fractional byte value "107375m" is invalid, must be an integer',
    ]
