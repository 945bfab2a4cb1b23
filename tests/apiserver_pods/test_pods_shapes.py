"""What a pod may say of volumes, environments, security, names and annotations: upstream's findings, word for word."""

from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

IMAGE = "registry.k8s.io/pause:3.10"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
    "regex used for validation is '[-._a-zA-Z0-9]+')"
)
C = "spec.containers[0]"
V = "spec.volumes[0]"
S = "spec.securityContext"
OWN = f"{C}.securityContext"
ONE_SOURCE = "must specify one of: `configMapRef` or `secretRef`"
TWO_FILES = [{"key": "a", "path": "p"}, {"key": "b", "path": "p/q"}]
NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def a_pod(container: Document, annotations: Document | None = None, /, **spec: Any) -> Document:
    metadata = {"name": "a", **({"annotations": annotations} if annotations else {})}
    containers = [{"name": "c", "image": IMAGE, **container}]
    return {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": 5, "containers": containers, **spec}}


def findings(pod: Document) -> list[str]:
    with pytest.raises(Refused) as caught:
        Bench().create(pod)
    return [f"{field}: {message}" for field, message in caught.value.causes]


def variable(**source: Any) -> Document:
    return {"env": [{"name": "A", "valueFrom": source}]}


@pytest.mark.parametrize(
    ("container", "wanted"),
    [
        (variable(configMapKeyRef={}), [f'env[0].valueFrom.configMapKeyRef.name: Invalid value: "": {SUBDOMAIN}',
                                        "env[0].valueFrom.configMapKeyRef.key: Required value"]),
        (variable(secretKeyRef={"name": "x", "key": "a b"}), [f'env[0].valueFrom.secretKeyRef.key: Invalid value: "a b": {KEY}']),
        (variable(fileKeyRef={"volumeName": "v", "path": "../p", "key": "k"}),
         ['env[0].valueFrom.fileKeyRef.path: Invalid value: "../p": must not contain \'..\'',
          'env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"']),
        ({"envFrom": [{}]}, [f'envFrom: Invalid value: "": {ONE_SOURCE}']),
        ({"envFrom": [{"configMapRef": {}}]}, ["envFrom[0].configMapRef.name: Required value"]),
        ({"envFrom": [{"secretRef": {"name": "A"}}]}, [f'envFrom[0].secretRef.name: Invalid value: "A": {SUBDOMAIN}']),
        ({"envFrom": [{"configMapRef": {"name": "x"}, "secretRef": {"name": "x"}}]},
         ['envFrom: Invalid value: "": may not have more than one field specified at a time']),
        ({"livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b"}]}}},
         ["livenessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters "
          "or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"]),
        ({"restartPolicyRules": [{"action": "Stop"}], "restartPolicy": "Never"},
         ['restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", "RestartAllContainers"',
          "restartPolicyRules[0].exitCodes: Required value: must be specified"]),
        ({"securityContext": {"runAsUser": -1}},
         ["securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
        ({"securityContext": {"procMount": "x"}},
         ['securityContext.procMount: Unsupported value: "x": supported values: "Default", "Unmasked"']),
        ({"securityContext": {"procMount": "Unmasked"}},
         ['securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`']),
        ({"securityContext": {"seccompProfile": {}}},
         ["securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"]),
        ({"securityContext": {"seccompProfile": {"type": "Unconfined", "localhostProfile": "x"}}},
         ['securityContext.seccompProfile.localhostProfile: Invalid value: {"Type":"Unconfined","LocalhostProfile":"x"}: can only '
          "be set when seccomp type is Localhost"]),
        ({"securityContext": {"appArmorProfile": {"type": "Localhost"}}},
         ["securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"]),
        ({"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
         ['securityContext: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,'
          '"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,'
          '"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and '
          "`privileged` to true"]),
        ({"volumeDevices": [{"name": "v", "devicePath": "../x"}]},
         ['volumeDevices[0].name: Not found: "v"',
          "volumeDevices[0].devicePath: Invalid value: \"../x\": can not contain backsteps ('..')"]),
    ],
)  # fmt: skip
def test_what_a_container_may_not_say(container: Document, wanted: list[str]) -> None:
    assert findings(a_pod(container)) == [f"{C}.{one}" for one in wanted]


@pytest.mark.parametrize(
    ("volume", "wanted"),
    [
        ({"emptyDir": {"sizeLimit": "-1"}}, ["emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"]),
        ({"emptyDir": {}, "hostPath": {"path": "/x"}}, ["hostPath: Forbidden: may not specify more than 1 volume type"]),
        ({"hostPath": {}}, ["hostPath.path: Required value"]),
        ({"hostPath": {"path": "/a/..", "type": "x"}},
         ["hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
          'hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", "Directory", '
          '"DirectoryOrCreate", "File", "FileOrCreate", "Socket"']),
        ({"secret": {"secretName": "s", "defaultMode": 512}},
         ["secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"]),
        ({"configMap": {"name": "s", "items": [{"path": "/x"}]}},
         ["configMap.items[0].key: Required value", 'configMap.items[0].path: Invalid value: "/x": must be a relative path']),
        ({"nfs": {"path": "x"}}, ["nfs.server: Required value", 'nfs.path: Invalid value: "x": must be an absolute path']),
        ({"csi": {}}, ["csi.driver: Required value"]),
        ({"ephemeral": {}}, ["ephemeral.volumeClaimTemplate: Required value"]),
        ({"image": {}}, ["image.reference: Required value"]),
        ({"projected": {"sources": [{"secret": {}}]}}, ["projected.sources[0].secret.name: Required value"]),
        ({"projected": {"sources": [{"secret": {"name": "a"}, "configMap": {"name": "a"}}]}},
         ["projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"]),
    ],
)  # fmt: skip
def test_what_a_volume_may_not_say(volume: Document, wanted: list[str]) -> None:
    assert findings(a_pod({}, volumes=[{"name": "v", **volume}])) == [f"{V}.{one}" for one in wanted]


@pytest.mark.parametrize(
    ("mount", "wanted"),
    [
        ({"subPath": "/x"}, 'subPath: Invalid value: "/x": must be a relative path'),
        ({"subPathExpr": "a/.."}, "subPathExpr: Invalid value: \"a/..\": must not contain '..'"),
        ({"mountPropagation": "x"},
         'mountPropagation: Unsupported value: "x": supported values: "Bidirectional", "HostToContainer", "None"'),
        ({"mountPropagation": "Bidirectional"},
         "mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"),
        ({"recursiveReadOnly": "Enabled"}, "recursiveReadOnly: Forbidden: may only be specified when readOnly is true"),
    ],
)  # fmt: skip
def test_what_a_mount_may_not_say(mount: Document, wanted: str) -> None:
    mounts = [{"name": "v", "mountPath": "/x", **mount}]
    pod = a_pod({"volumeMounts": mounts}, volumes=[{"name": "v", "emptyDir": {}}])
    assert findings(pod) == [f"{C}.volumeMounts.{wanted}"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"hostAliases": [{"ip": "x"}]}, [f'spec.hostAliases[0].ip: Invalid value: "x": {NO_IP}']),
        ({"hostAliases": [{"ip": "010.1.2.3", "hostnames": ["A"]}]},
         ['spec.hostAliases[0].ip: Invalid value: "010.1.2.3": must not have leading 0s',
          f'spec.hostAliases[0].hostnames[0]: Invalid value: "A": {SUBDOMAIN}']),
        ({"dnsConfig": {"nameservers": ["x"], "options": [{}]}},
         [f'spec.dnsConfig.nameservers[0]: Invalid value: "x": {NO_IP}',
          "spec.dnsConfig.options[0]: Required value: must not be empty"]),
        ({"securityContext": {"fsGroup": -1, "supplementalGroups": [1, -2]}},
         [f"{S}.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
          f"{S}.supplementalGroups[1]: Invalid value: -2: must be between 0 and 2147483647, inclusive"]),
        ({"securityContext": {"fsGroupChangePolicy": "x"}},
         [f'{S}.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"']),
        ({"securityContext": {"sysctls": [{"name": "net.a"}, {"name": "net.a"}]}, "hostNetwork": True},
         [f"{S}.sysctls[0].name: Invalid value: \"net.a\": may not be specified when 'hostNetwork' is true",
          f'{S}.sysctls[1].name: Duplicate value: "net.a"',
          f"{S}.sysctls[1].name: Invalid value: \"net.a\": may not be specified when 'hostNetwork' is true"]),
        ({"shareProcessNamespace": True, "hostPID": True},
         [f"{S}.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"]),
        ({"hostUsers": False, "hostPID": True}, ["spec.HostPID: Forbidden: when `hostUsers` is false"]),
        ({"os": {"name": "windows"}, "hostPID": True}, ["spec.hostPID: Forbidden: cannot be set for a windows pod"]),
        ({"hostnameOverride": "a", "setHostnameAsFQDN": True},
         ["spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"]),
        ({"resourceClaims": [{"name": "a"}]},
         ['spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must '
          "specify one of: `resourceClaimName`, `resourceClaimTemplateName`"]),
        ({"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}]},
         ["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
          "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "p", "expirationSeconds": 1}}]}}]},
         [f"{V}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than "
          "10 minutes",
          f"{V}.projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"]),
    ],
)  # fmt: skip
def test_what_a_pod_may_not_say(spec: Document, wanted: list[str]) -> None:
    assert findings(a_pod({}, **spec)) == wanted


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("kubernetes.io/config.mirror", "x",
         '[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set'),
        ("controller.kubernetes.io/pod-deletion-cost", "+1",
         '[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer'),
        ("seccomp.security.alpha.kubernetes.io/pod", "x",
         '.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile'),
        ("container.apparmor.security.beta.kubernetes.io/d", "unconfined",
         '[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found'),
    ],
)  # fmt: skip
def test_what_an_annotation_may_not_say(name: str, value: str, wanted: str) -> None:
    assert findings(a_pod({}, {name: value})) == [f"metadata.annotations{wanted}"]


def test_no_update_makes_a_mirror_of_a_pod() -> None:
    bench = Bench()
    bench.create(a_pod({}, nodeName="n"))
    pod = bench.pod()
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    with pytest.raises(Refused) as caught:
        bench.update(pod)
    assert [f"{field}: {message}" for field, message in caught.value.causes] == [
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"
    ]


def test_a_stop_signal_is_dropped() -> None:
    container = Bench().create(a_pod({"lifecycle": {"stopSignal": "SIGUSR1"}}))["spec"]["containers"][0]
    assert container["lifecycle"] == {}


@pytest.mark.parametrize(
    ("container", "spec", "wanted"),
    [
        ({"ports": [{"containerPort": 80}, {"containerPort": 80}]}, {},
         [f"{C}.ports[1]: duplicate port definition with {C}.ports[0]"]),
        ({"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 80}]}, {},
         [f"{C}.ports[1]: overlapping port definition with {C}.ports[0]"]),
        ({"ports": [{"containerPort": 80, "hostIP": "1.2.3.4"}]}, {},
         [f"{C}.ports[0]: hostIP set without hostPort: {{Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}}"]),
        ({}, {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
         ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead']),
        ({}, {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
         ['spec.imagePullSecrets[1].name: duplicate name "a"', 'spec.imagePullSecrets[2].name: invalid empty name ""']),
        ({}, {"volumes": [{"name": "v", "configMap": {"name": "m", "items": TWO_FILES}}]},
         ['volume "v" (ConfigMap "m"): overlapping paths: "p/q" with "p"']),
        ({}, {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}},
         ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results "
          "in matching no pod"]),
    ],
)  # fmt: skip
def test_what_a_creator_is_warned_of(container: Document, spec: Document, wanted: list[str]) -> None:
    bench = Bench()
    bench.create(a_pod(container, **spec))
    assert bench.warnings == wanted
