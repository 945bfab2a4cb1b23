"""Pod specs as upstream's API server holds them: what a diff in one of its messages shows (RC-58).

Upstream converts a document to structs of its own, whose fields have other names and another order than the document's, and
which state every field, set or not. ``internal`` makes that form of a spec: a value that JSON can say, the fields in order.

``STRUCTS`` has the structs that a PodSpec is made of, as v1.36.2 declares them: the struct's name, then its fields,
``NAME[:TYPE][=JSON]``. JSON is the field's name in the document, where it doesn't follow from NAME. No TYPE is a string; ``b`` a
bool, ``i`` a number, ``q`` a quantity, ``x`` a number or string, ``m`` a map of strings, ``r`` a resource list, ``l`` a label
selector, anything else a struct; ``*`` is a pointer and ``[]`` a slice, null where nothing is set. ``+NAME`` stands for all fields
of that struct; ``+ObjectMeta`` for those of the document's ``metadata``, which are public.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from elbowroom.api.quantity import parse

STRUCTS = """
PodSpec Volumes:[]Volume InitContainers:[]Container Containers:[]Container EphemeralContainers:[]EphemeralContainer
 RestartPolicy TerminationGracePeriodSeconds:*i ActiveDeadlineSeconds:*i DNSPolicy NodeSelector:m ServiceAccountName
 AutomountServiceAccountToken:*b NodeName SecurityContext:*PodSecurityContext ImagePullSecrets:[]LocalObjectReference Hostname
 Subdomain SetHostnameAsFQDN:*b Affinity:*Affinity SchedulerName Tolerations:[]Toleration HostAliases:[]HostAlias
 PriorityClassName Priority:*i PreemptionPolicy:*s DNSConfig:*PodDNSConfig ReadinessGates:[]PodReadinessGate RuntimeClassName:*s
 Overhead:r EnableServiceLinks:*b TopologySpreadConstraints:[]TopologySpreadConstraint OS:*PodOS
 SchedulingGates:[]PodSchedulingGate ResourceClaims:[]PodResourceClaim Resources:*ResourceRequirements HostnameOverride:*s
 SchedulingGroup:*PodSchedulingGroup
Volume Name +VolumeSource
VolumeSource HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource GCEPersistentDisk:*GCEPersistentDiskVolumeSource
 AWSElasticBlockStore:*AWSElasticBlockStoreVolumeSource GitRepo:*GitRepoVolumeSource Secret:*SecretVolumeSource
 NFS:*NFSVolumeSource ISCSI:*ISCSIVolumeSource Glusterfs:*GlusterfsVolumeSource
 PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource RBD:*RBDVolumeSource Quobyte:*QuobyteVolumeSource
 FlexVolume:*FlexVolumeSource Cinder:*CinderVolumeSource CephFS:*CephFSVolumeSource=cephfs Flocker:*FlockerVolumeSource
 DownwardAPI:*DownwardAPIVolumeSource FC:*FCVolumeSource AzureFile:*AzureFileVolumeSource ConfigMap:*ConfigMapVolumeSource
 VsphereVolume:*VsphereVirtualDiskVolumeSource AzureDisk:*AzureDiskVolumeSource
 PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource Projected:*ProjectedVolumeSource PortworxVolume:*PortworxVolumeSource
 ScaleIO:*ScaleIOVolumeSource StorageOS:*StorageOSVolumeSource=storageos CSI:*CSIVolumeSource Ephemeral:*EphemeralVolumeSource
 Image:*ImageVolumeSource
HostPathVolumeSource Path Type:*s
EmptyDirVolumeSource Medium SizeLimit:*q
GCEPersistentDiskVolumeSource PDName FSType Partition:i ReadOnly:b
AWSElasticBlockStoreVolumeSource VolumeID FSType Partition:i ReadOnly:b
GitRepoVolumeSource Repository Revision Directory
SecretVolumeSource SecretName Items:[]KeyToPath DefaultMode:*i Optional:*b
KeyToPath Key Path Mode:*i
NFSVolumeSource Server Path ReadOnly:b
ISCSIVolumeSource TargetPortal IQN Lun:i ISCSIInterface FSType ReadOnly:b Portals:[]s DiscoveryCHAPAuth:b=chapAuthDiscovery
 SessionCHAPAuth:b=chapAuthSession SecretRef:*LocalObjectReference InitiatorName:*s
LocalObjectReference Name
GlusterfsVolumeSource EndpointsName=endpoints Path ReadOnly:b
PersistentVolumeClaimVolumeSource ClaimName ReadOnly:b
RBDVolumeSource CephMonitors:[]s=monitors RBDImage=image FSType RBDPool=pool RadosUser=user Keyring
 SecretRef:*LocalObjectReference ReadOnly:b
QuobyteVolumeSource Registry Volume ReadOnly:b User Group Tenant
FlexVolumeSource Driver FSType SecretRef:*LocalObjectReference ReadOnly:b Options:m
CinderVolumeSource VolumeID FSType ReadOnly:b SecretRef:*LocalObjectReference
CephFSVolumeSource Monitors:[]s Path User SecretFile SecretRef:*LocalObjectReference ReadOnly:b
FlockerVolumeSource DatasetName DatasetUUID
DownwardAPIVolumeSource Items:[]DownwardAPIVolumeFile DefaultMode:*i
DownwardAPIVolumeFile Path FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector Mode:*i
ObjectFieldSelector APIVersion FieldPath
ResourceFieldSelector ContainerName Resource Divisor:q
FCVolumeSource TargetWWNs:[]s Lun:*i FSType ReadOnly:b WWIDs:[]s=wwids
AzureFileVolumeSource SecretName ShareName ReadOnly:b
ConfigMapVolumeSource +LocalObjectReference Items:[]KeyToPath DefaultMode:*i Optional:*b
VsphereVirtualDiskVolumeSource VolumePath FSType StoragePolicyName StoragePolicyID
AzureDiskVolumeSource DiskName DataDiskURI=diskURI CachingMode:*s FSType:*s ReadOnly:*b Kind:*s
PhotonPersistentDiskVolumeSource PdID FSType
ProjectedVolumeSource Sources:[]VolumeProjection DefaultMode:*i
VolumeProjection Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection ConfigMap:*ConfigMapProjection
 ServiceAccountToken:*ServiceAccountTokenProjection ClusterTrustBundle:*ClusterTrustBundleProjection
 PodCertificate:*PodCertificateProjection
SecretProjection +LocalObjectReference Items:[]KeyToPath Optional:*b
DownwardAPIProjection Items:[]DownwardAPIVolumeFile
ConfigMapProjection +LocalObjectReference Items:[]KeyToPath Optional:*b
ServiceAccountTokenProjection Audience ExpirationSeconds:i Path
ClusterTrustBundleProjection Name:*s SignerName:*s LabelSelector:*l Optional:*b Path
PodCertificateProjection SignerName KeyType MaxExpirationSeconds:*i CredentialBundlePath KeyPath CertificateChainPath
 UserAnnotations:m
PortworxVolumeSource VolumeID FSType ReadOnly:b
ScaleIOVolumeSource Gateway System SecretRef:*LocalObjectReference SSLEnabled:b ProtectionDomain StoragePool StorageMode
 VolumeName FSType ReadOnly:b
StorageOSVolumeSource VolumeName VolumeNamespace FSType ReadOnly:b SecretRef:*LocalObjectReference
CSIVolumeSource Driver ReadOnly:*b FSType:*s VolumeAttributes:m NodePublishSecretRef:*LocalObjectReference
EphemeralVolumeSource VolumeClaimTemplate:*PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate +ObjectMeta Spec:PersistentVolumeClaimSpec
PersistentVolumeClaimSpec AccessModes:[]s Selector:*l Resources:VolumeResourceRequirements VolumeName StorageClassName:*s
 VolumeMode:*s DataSource:*TypedLocalObjectReference DataSourceRef:*TypedObjectReference VolumeAttributesClassName:*s
VolumeResourceRequirements Limits:r Requests:r
TypedLocalObjectReference APIGroup:*s Kind Name
TypedObjectReference APIGroup:*s Kind Name Namespace:*s
ImageVolumeSource Reference PullPolicy
Container Name Image Command:[]s Args:[]s WorkingDir Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar
 Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*s RestartPolicyRules:[]ContainerRestartRule
 VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe
 Lifecycle:*Lifecycle TerminationMessagePath TerminationMessagePolicy ImagePullPolicy SecurityContext:*SecurityContext Stdin:b
 StdinOnce:b TTY:b
ContainerPort Name HostPort:i ContainerPort:i Protocol HostIP
EnvFromSource Prefix ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource
ConfigMapEnvSource +LocalObjectReference Optional:*b
SecretEnvSource +LocalObjectReference Optional:*b
EnvVar Name Value ValueFrom:*EnvVarSource
EnvVarSource FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector ConfigMapKeyRef:*ConfigMapKeySelector
 SecretKeyRef:*SecretKeySelector FileKeyRef:*FileKeySelector
ConfigMapKeySelector +LocalObjectReference Key Optional:*b
SecretKeySelector +LocalObjectReference Key Optional:*b
FileKeySelector VolumeName Path Key Optional:*b
ResourceRequirements Limits:r Requests:r Claims:[]ResourceClaim
ResourceClaim Name Request
ContainerResizePolicy ResourceName RestartPolicy
ContainerRestartRule Action ExitCodes:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes Operator Values:[]i
VolumeMount Name ReadOnly:b RecursiveReadOnly:*s MountPath SubPath MountPropagation:*s SubPathExpr
VolumeDevice Name DevicePath
Probe +ProbeHandler InitialDelaySeconds:i TimeoutSeconds:i PeriodSeconds:i SuccessThreshold:i FailureThreshold:i
 TerminationGracePeriodSeconds:*i
ProbeHandler Exec:*ExecAction HTTPGet:*HTTPGetAction TCPSocket:*TCPSocketAction GRPC:*GRPCAction
ExecAction Command:[]s
HTTPGetAction Path Port:x Host Scheme HTTPHeaders:[]HTTPHeader
HTTPHeader Name Value
TCPSocketAction Port:x Host
GRPCAction Port:i Service:*s
Lifecycle PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal:*s
LifecycleHandler Exec:*ExecAction HTTPGet:*HTTPGetAction TCPSocket:*TCPSocketAction Sleep:*SleepAction
SleepAction Seconds:i
SecurityContext Capabilities:*Capabilities Privileged:*b SELinuxOptions:*SELinuxOptions
 WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*i RunAsGroup:*i RunAsNonRoot:*b ReadOnlyRootFilesystem:*b
 AllowPrivilegeEscalation:*b ProcMount:*s SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
Capabilities Add:[]s Drop:[]s
SELinuxOptions User Role Type Level
WindowsSecurityContextOptions GMSACredentialSpecName:*s GMSACredentialSpec:*s RunAsUserName:*s HostProcess:*b
SeccompProfile Type LocalhostProfile:*s
AppArmorProfile Type LocalhostProfile:*s
EphemeralContainer +EphemeralContainerCommon TargetContainerName
EphemeralContainerCommon Name Image Command:[]s Args:[]s WorkingDir Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar
 Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*s RestartPolicyRules:[]ContainerRestartRule
 VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe
 Lifecycle:*Lifecycle TerminationMessagePath TerminationMessagePolicy ImagePullPolicy SecurityContext:*SecurityContext Stdin:b
 StdinOnce:b TTY:b
PodSecurityContext HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace:*b HostUsers:*b SELinuxOptions:*SELinuxOptions
 WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*i RunAsGroup:*i RunAsNonRoot:*b SupplementalGroups:[]i
 SupplementalGroupsPolicy:*s FSGroup:*i FSGroupChangePolicy:*s Sysctls:[]Sysctl SeccompProfile:*SeccompProfile
 AppArmorProfile:*AppArmorProfile SELinuxChangePolicy:*s
Sysctl Name Value
Affinity NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity
NodeAffinity RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
 PreferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
NodeSelector NodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorTerm MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement
NodeSelectorRequirement Key Operator Values:[]s
PreferredSchedulingTerm Weight:i Preference:NodeSelectorTerm
PodAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
 PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAffinityTerm LabelSelector:*l Namespaces:[]s TopologyKey NamespaceSelector:*l MatchLabelKeys:[]s MismatchLabelKeys:[]s
WeightedPodAffinityTerm Weight:i PodAffinityTerm:PodAffinityTerm
PodAntiAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
 PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
Toleration Key Operator Value Effect TolerationSeconds:*i
HostAlias IP Hostnames:[]s
PodDNSConfig Nameservers:[]s Searches:[]s Options:[]PodDNSConfigOption
PodDNSConfigOption Name Value:*s
PodReadinessGate ConditionType
TopologySpreadConstraint MaxSkew:i TopologyKey WhenUnsatisfiable LabelSelector:*l MinDomains:*i NodeAffinityPolicy:*s
 NodeTaintsPolicy:*s MatchLabelKeys:[]s
PodOS Name
PodSchedulingGate Name
PodResourceClaim Name ResourceClaimName:*s ResourceClaimTemplateName:*s
PodSchedulingGroup PodGroupName:*s
"""

_ZERO: Mapping[str, Any] = {"s": "", "b": False, "i": 0, "q": "0", "x": 0, "m": None, "r": None}
_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""What a document has in the spec and upstream's struct in the security context."""
_INITIALS = re.compile(r"[A-Z]+?(?=[A-Z][a-z0-9]|[a-z0-9]|$)")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, what the document calls it, and its type (``STRUCTS``)."""

    name: str
    json: str
    kind: str
    pointer: bool = False
    items: bool = False


def internal(struct: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """``document`` as the struct of that name. What v1.36.2's struct has no field for (v1.37's, previews') comes last."""
    made: dict[str, Any] = {}
    known = set()
    if struct == "PodSpec":
        security = {**(document.get("securityContext") or {}), **{name: document[name] for name in _HOST if name in document}}
        account = document.get("serviceAccountName") or document.get("serviceAccount") or ""
        document = {**document, "securityContext": security, "serviceAccountName": account}
        known = {*_HOST, "serviceAccount"}
    fields = fields_of(struct)
    for field in fields:
        if field.kind == "ObjectMeta":
            made |= document.get("metadata") or {}
        else:
            made[field.name] = _value(field, document.get(field.json))
    known |= {field.json for field in fields}
    made |= {name[:1].upper() + name[1:]: value for name, value in document.items() if name not in known}
    return made


def _value(field: Field, value: Any) -> Any:
    if value is None:
        if field.pointer or field.items:
            return None
        return _ZERO[field.kind] if field.kind in _ZERO else internal(field.kind, {})
    return [_one(field.kind, item) for item in value] if field.items else _one(field.kind, value)


def _one(kind: str, value: Any) -> Any:
    match kind:
        case "q":
            return parse(value).canonical()
        case "m":
            return {name: value[name] for name in sorted(value)}
        case "r":
            return {name: parse(value[name]).canonical() for name in sorted(value)}
        case "l":
            return _selector(value)
        case _ if kind in _ZERO:
            return value
        case _:
            return internal(kind, value)


def _selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    """A label selector has a public struct: its fields are those of the document, and left out when empty."""
    made: dict[str, Any] = {}
    if selector.get("matchLabels"):
        made["matchLabels"] = _one("m", selector["matchLabels"])
    if selector.get("matchExpressions"):
        made["matchExpressions"] = [
            {name: one[name] for name in ("key", "operator", "values") if name != "values" or one.get(name)}
            for one in selector["matchExpressions"]
        ]
    return made


@cache
def fields_of(struct: str) -> tuple[Field, ...]:
    """The fields of a struct of ``STRUCTS``, those of embedded ones among them."""
    found: list[Field] = []
    for word in _words()[struct]:
        if word == "+ObjectMeta":
            found.append(Field("", "metadata", "ObjectMeta"))
            continue
        if word.startswith("+"):
            found += fields_of(word[1:])
            continue
        head, _, json = word.partition("=")
        name, _, kind = head.partition(":")
        bare = kind.removeprefix("*").removeprefix("[]")
        found.append(Field(name, json or json_name(name), bare or "s", kind.startswith("*"), kind.startswith("[]")))
    return tuple(found)


@cache
def _words() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in STRUCTS.strip().replace("\n ", " ").split("\n"):
        name, *words = line.split()
        found[name] = list(words)
    return found


def struct_names() -> list[str]:
    """All structs of ``STRUCTS``."""
    return list(_words())


def json_name(name: str) -> str:
    """A Go field's name as Kubernetes' JSON has it: ``FSGroup`` is ``fsGroup``, ``TTY`` is ``tty``."""
    return _INITIALS.sub(lambda found: found[0].lower(), name, count=1)
