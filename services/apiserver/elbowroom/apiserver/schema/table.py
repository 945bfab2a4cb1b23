"""Names and types of the fields of Kubernetes v1.37, as its Go types have them.

``TYPES``: a struct's name (``atomic``: applied as a whole), then its fields in upstream's order, one a line::

    name TYPE MARKS [patch=STRATEGY:KEY] [map=KEY,KEY | set | atomic] [preview]

TYPE is a struct, a scalar, a name of ``STRINGS``, or one of them behind ``[]`` (list) or ``{}`` (map by string). MARKS say what Go
writes: ``-`` a zero value is left out, ``+`` it is always there, ``~`` there as null; none: as given. ``!`` the field is required.
``preview`` marks fields of designs that v1.37 has not (spec/profiles.md rows 11 and 13).
"""

STRINGS = """
AppArmorProfileType AzureDataDiskCachingMode AzureDataDiskKind Capability CauseType ClaimResourceStatus ConditionStatus
ContainerRestartPolicy ContainerRestartRuleAction ContainerRestartRuleOnExitCodesOperator CoordinatedLeaseStrategy DNSPolicy
DeletionPropagation DeploymentConditionType DeploymentStrategyType FieldSelectorOperator FinalizerName GRPCProbeMode
HTTPProtocol HostPathType IPFamily IPFamilyPolicy LabelSelectorOperator LimitType LoadBalancerIPMode
ManagedFieldsOperationType MountPropagationMode NamespaceConditionType NamespacePhase NodeAddressType NodeConditionType
NodeInclusionPolicy NodePhase NodeSelectorOperator OSName PersistentVolumeAccessMode PersistentVolumeClaimConditionType
PersistentVolumeClaimModifyVolumeStatus PersistentVolumeClaimPhase PersistentVolumeMode PodConditionType
PodFSGroupChangePolicy PodPhase PodQOSClass PodResizeStatus PodSELinuxChangePolicy PreemptionPolicy ProcMountType Protocol
PullPolicy RecursiveReadOnlyMode ReplicaSetConditionType ResourceHealthStatus ResourceID ResourceName ResourceQuotaScope
ResourceResizeRestartPolicy RestartPolicy ScopeSelectorOperator SeccompProfileType SecretType ServiceAffinity
ServiceExternalTrafficPolicy ServiceInternalTrafficPolicy ServiceType Signal StatusReason StorageMedium
SupplementalGroupsPolicy TaintEffect TerminationMessagePolicy TolerationOperator URIScheme UnhealthyPodEvictionPolicyType
UniqueVolumeName UnsatisfiableConstraintAction VolumeHealthStatusType types.UID
"""

KINDS = """
core/v1: Pod Node Namespace LimitRange ResourceQuota Event=core.Event ConfigMap Secret ServiceAccount Binding Service
 Endpoints PodTemplate PersistentVolumeClaim
apps/v1: Deployment ReplicaSet ControllerRevision
policy/v1: PodDisruptionBudget Eviction
scheduling.k8s.io/v1: PriorityClass
coordination.k8s.io/v1: Lease
autoscaling/v1: Scale
authorization.k8s.io/v1: SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview
authentication.k8s.io/v1: TokenReview TokenRequest SelfSubjectReview
rbac.authorization.k8s.io/v1: Role RoleBinding ClusterRole ClusterRoleBinding
events.k8s.io/v1: Event=events.Event
meta.k8s.io/v1: DeleteOptions Status PartialObjectMetadata PatchOptions CreateOptions UpdateOptions
"""

TYPES = """
AWSElasticBlockStoreVolumeSource
 volumeID string+!
 fsType string-
 partition int32-
 readOnly bool-
Affinity
 nodeAffinity NodeAffinity
 podAffinity PodAffinity
 podAntiAffinity PodAntiAffinity
AggregationRule
 clusterRoleSelectors []LabelSelector- atomic
AppArmorProfile
 type AppArmorProfileType+!
 localhostProfile string
AttachedVolume
 name UniqueVolumeName+!
 devicePath string+!
AzureDiskVolumeSource
 diskName string+!
 diskURI string+!
 cachingMode AzureDataDiskCachingMode
 fsType string
 readOnly bool
 kind AzureDataDiskKind
AzureFileVolumeSource
 secretName string+!
 shareName string+!
 readOnly bool-
Binding
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 target ObjectReference+!
BoundObjectReference
 kind string-
 apiVersion string-
 name string-
 uid types.UID-
CSIVolumeSource
 driver string+!
 readOnly bool
 fsType string
 volumeAttributes {}string-
 nodePublishSecretRef LocalObjectReference
Capabilities
 add []Capability- atomic
 drop []Capability- atomic
CephFSVolumeSource
 monitors []string! atomic
 path string-
 user string-
 secretFile string-
 secretRef LocalObjectReference
 readOnly bool-
CinderVolumeSource
 volumeID string+!
 fsType string-
 readOnly bool-
 secretRef LocalObjectReference
ClientIPConfig
 timeoutSeconds int32
ClusterRole
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 rules []PolicyRule atomic
 aggregationRule AggregationRule
ClusterRoleBinding
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 subjects []Subject- atomic
 roleRef RoleRef+!
ClusterTrustBundleProjection
 name string
 signerName string
 labelSelector LabelSelector
 optional bool
 path string+!
 user int64
Condition
 type string+!
 status ConditionStatus+!
 observedGeneration int64-
 lastTransitionTime time+!
 reason string+!
 message string+!
ConfigMap
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 immutable bool
 data {}string-
 binaryData {}bytes-
ConfigMapEnvSource
 name string-
 optional bool
ConfigMapKeySelector atomic
 name string-
 key string+!
 optional bool
ConfigMapNodeConfigSource
 namespace string+!
 name string+!
 uid types.UID-
 resourceVersion string-
 kubeletConfigKey string+!
ConfigMapProjection
 name string-
 items []KeyToPath- atomic
 optional bool
ConfigMapVolumeSource
 name string-
 items []KeyToPath- atomic
 defaultMode int32
 optional bool
 defaultUser int64
Container
 name string+!
 image string-
 command []string- atomic
 args []string- atomic
 workingDir string-
 ports []ContainerPort- patch=merge:containerPort map=containerPort,protocol
 envFrom []EnvFromSource- atomic
 env []EnvVar- patch=merge:name map=name
 resources ResourceRequirements+
 resizePolicy []ContainerResizePolicy- atomic
 restartPolicy ContainerRestartPolicy
 restartPolicyRules []ContainerRestartRule- atomic
 volumeMounts []VolumeMount- patch=merge:mountPath map=mountPath
 volumeDevices []VolumeDevice- patch=merge:devicePath map=devicePath
 livenessProbe Probe
 readinessProbe Probe
 startupProbe Probe
 lifecycle Lifecycle
 terminationMessagePath string-
 terminationMessagePolicy TerminationMessagePolicy-
 imagePullPolicy PullPolicy-
 securityContext SecurityContext
 stdin bool-
 stdinOnce bool-
 tty bool-
ContainerExtendedResourceRequest
 containerName string+!
 resourceName string+!
 requestName string+!
ContainerImage
 names []string atomic
 sizeBytes int64-
ContainerPort
 name string-
 hostPort int32-
 containerPort int32+!
 protocol Protocol-
 hostIP string-
ContainerResizePolicy
 resourceName ResourceName+!
 restartPolicy ResourceResizeRestartPolicy+!
ContainerRestartRule
 action ContainerRestartRuleAction-!
 exitCodes ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
 operator ContainerRestartRuleOnExitCodesOperator-!
 values []int32- set
ContainerState
 waiting ContainerStateWaiting
 running ContainerStateRunning
 terminated ContainerStateTerminated
ContainerStateRunning
 startedAt time+
ContainerStateTerminated
 exitCode int32+!
 signal int32-
 reason string-
 message string-
 startedAt time+
 finishedAt time+
 containerID string-
ContainerStateWaiting
 reason string-
 message string-
ContainerStatus
 name string+!
 state ContainerState+
 lastState ContainerState+
 ready bool+!
 restartCount int32+!
 image string+!
 imageID string+!
 containerID string-
 started bool
 allocatedResources ResourceList-
 resources ResourceRequirements
 volumeMounts []VolumeMountStatus- patch=merge:mountPath map=mountPath
 user ContainerUser
 allocatedResourcesStatus []ResourceStatus- patch=merge:name map=name
 stopSignal Signal
 resizeStatus string- preview
ContainerUser
 linux LinuxContainerUser
ControllerRevision
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 data any+!
 revision int64+
CreateOptions
 kind string-
 apiVersion string-
 dryRun []string- atomic
 fieldManager string-
 fieldValidation string-
DaemonEndpoint
 Port int32+!
DeleteOptions
 kind string-
 apiVersion string-
 gracePeriodSeconds int64
 preconditions Preconditions
 orphanDependents bool
 propagationPolicy DeletionPropagation
 dryRun []string- atomic
 ignoreStoreReadErrorWithClusterBreakingPotential bool
Deployment
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec DeploymentSpec+!
 status DeploymentStatus+
DeploymentCondition
 type DeploymentConditionType+
 status ConditionStatus+
 lastUpdateTime time+
 lastTransitionTime time+
 reason string-
 message string-
DeploymentSpec
 replicas int32
 selector LabelSelector~!
 template PodTemplateSpec+!
 strategy DeploymentStrategy+ patch=retainKeys
 minReadySeconds int32-
 revisionHistoryLimit int32
 paused bool-
 progressDeadlineSeconds int32
DeploymentStatus
 observedGeneration int64-
 replicas int32-
 updatedReplicas int32-
 readyReplicas int32-
 availableReplicas int32-
 unavailableReplicas int32-
 terminatingReplicas int32
 conditions []DeploymentCondition- patch=merge:type map=type
 collisionCount int32
DeploymentStrategy
 type DeploymentStrategyType-
 rollingUpdate RollingUpdateDeployment
DownwardAPIProjection
 items []DownwardAPIVolumeFile- atomic
DownwardAPIVolumeFile
 path string+!
 fieldRef ObjectFieldSelector
 resourceFieldRef ResourceFieldSelector
 mode int32
 user int64
DownwardAPIVolumeSource
 items []DownwardAPIVolumeFile- atomic
 defaultMode int32
 defaultUser int64
EmptyDirVolumeSource
 medium StorageMedium-
 sizeLimit quantity
 mode int32
EndpointAddress atomic
 ip string+!
 hostname string-
 nodeName string
 targetRef ObjectReference
EndpointPort atomic
 name string-
 port int32+!
 protocol Protocol-
 appProtocol string
EndpointSubset
 addresses []EndpointAddress- atomic
 notReadyAddresses []EndpointAddress- atomic
 ports []EndpointPort- atomic
Endpoints
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 subsets []EndpointSubset- atomic
EnvFromSource
 prefix string-
 configMapRef ConfigMapEnvSource
 secretRef SecretEnvSource
EnvVar
 name string+!
 value string-
 valueFrom EnvVarSource
EnvVarSource
 fieldRef ObjectFieldSelector
 resourceFieldRef ResourceFieldSelector
 configMapKeyRef ConfigMapKeySelector
 secretKeyRef SecretKeySelector
 fileKeyRef FileKeySelector
EphemeralContainer
 name string+!
 image string-
 command []string- atomic
 args []string- atomic
 workingDir string-
 ports []ContainerPort- patch=merge:containerPort map=containerPort,protocol
 envFrom []EnvFromSource- atomic
 env []EnvVar- patch=merge:name map=name
 resources ResourceRequirements+
 resizePolicy []ContainerResizePolicy- atomic
 restartPolicy ContainerRestartPolicy
 restartPolicyRules []ContainerRestartRule- atomic
 volumeMounts []VolumeMount- patch=merge:mountPath map=mountPath
 volumeDevices []VolumeDevice- patch=merge:devicePath map=devicePath
 livenessProbe Probe
 readinessProbe Probe
 startupProbe Probe
 lifecycle Lifecycle
 terminationMessagePath string-
 terminationMessagePolicy TerminationMessagePolicy-
 imagePullPolicy PullPolicy-
 securityContext SecurityContext
 stdin bool-
 stdinOnce bool-
 tty bool-
 targetContainerName string-
EphemeralVolumeSource
 volumeClaimTemplate PersistentVolumeClaimTemplate
EventSource
 component string-
 host string-
Eviction
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 deleteOptions DeleteOptions
EvictionResponder atomic
 name string+!
 priority int32~!
ExecAction
 command []string- atomic
FCVolumeSource
 targetWWNs []string- atomic
 lun int32
 fsType string-
 readOnly bool-
 wwids []string- atomic
FieldSelectorAttributes
 rawSelector string-
 requirements []FieldSelectorRequirement- atomic
FieldSelectorRequirement
 key string+!
 operator FieldSelectorOperator+!
 values []string- atomic
FileKeySelector atomic
 volumeName string+!
 path string+!
 key string+!
 optional bool
FlexVolumeSource
 driver string+!
 fsType string-
 secretRef LocalObjectReference
 readOnly bool-
 options {}string-
FlockerVolumeSource
 datasetName string-
 datasetUUID string-
GCEPersistentDiskVolumeSource
 pdName string+!
 fsType string-
 partition int32-
 readOnly bool-
GRPCAction
 port int32+!
 service string~
 mode GRPCProbeMode
GitRepoVolumeSource
 repository string+!
 revision string-
 directory string-
GlusterfsVolumeSource
 endpoints string+!
 path string+!
 readOnly bool-
HTTPGetAction
 path string-
 port intorstring+!
 host string-
 scheme URIScheme-
 httpHeaders []HTTPHeader- atomic
 protocol HTTPProtocol
HTTPHeader
 name string+!
 value string+!
HostAlias
 ip string+!
 hostnames []string- atomic
HostIP
 ip string+!
HostPathVolumeSource
 path string+!
 type HostPathType
ISCSIVolumeSource
 targetPortal string+!
 iqn string+!
 lun int32+!
 iscsiInterface string-
 fsType string-
 readOnly bool-
 portals []string- atomic
 chapAuthDiscovery bool-
 chapAuthSession bool-
 secretRef LocalObjectReference
 initiatorName string
ImageVolumeSource
 reference string-
 pullPolicy PullPolicy-
ImageVolumeStatus
 imageRef string-!
KeyToPath
 key string+!
 path string+!
 mode int32
 user int64
LabelSelector atomic
 matchLabels {}string-
 matchExpressions []LabelSelectorRequirement- atomic
LabelSelectorAttributes
 rawSelector string-
 requirements []LabelSelectorRequirement- atomic
LabelSelectorRequirement
 key string+!
 operator LabelSelectorOperator+!
 values []string- atomic
Lease
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec LeaseSpec+
LeaseSpec
 holderIdentity string
 leaseDurationSeconds int32
 acquireTime microtime
 renewTime microtime
 leaseTransitions int32
 strategy CoordinatedLeaseStrategy
 preferredHolder string
Lifecycle
 postStart LifecycleHandler
 preStop LifecycleHandler
 stopSignal Signal
LifecycleHandler
 exec ExecAction
 httpGet HTTPGetAction
 tcpSocket TCPSocketAction
 sleep SleepAction
LimitRange
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec LimitRangeSpec+
LimitRangeItem
 type LimitType+!
 max ResourceList-
 min ResourceList-
 default ResourceList-
 defaultRequest ResourceList-
 maxLimitRequestRatio ResourceList-
LimitRangeSpec
 limits []LimitRangeItem! atomic
LinuxContainerUser
 uid int64+!
 gid int64+!
 supplementalGroups []int64- atomic
ListMeta
 selfLink string-
 resourceVersion string-
 continue string-
 remainingItemCount int64
 shardInfo ShardInfo
LoadBalancerIngress
 ip string-
 hostname string-
 ipMode LoadBalancerIPMode
 ports []PortStatus- atomic
LoadBalancerStatus
 ingress []LoadBalancerIngress- atomic
LocalObjectReference atomic
 name string-
LocalSubjectAccessReview
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec SubjectAccessReviewSpec+!
 status SubjectAccessReviewStatus+
ManagedFieldsEntry
 manager string-
 operation ManagedFieldsOperationType-
 apiVersion string-
 time time
 fieldsType string-
 fieldsV1 any
 subresource string-
ModifyVolumeStatus
 targetVolumeAttributesClassName string-
 status PersistentVolumeClaimModifyVolumeStatus+!
NFSVolumeSource
 server string+!
 path string+!
 readOnly bool-
Namespace
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec NamespaceSpec+
 status NamespaceStatus+
NamespaceCondition
 type NamespaceConditionType+!
 status ConditionStatus+!
 lastTransitionTime time+
 reason string-
 message string-
NamespaceSpec
 finalizers []FinalizerName- atomic
NamespaceStatus
 phase NamespacePhase-
 conditions []NamespaceCondition- patch=merge:type map=type
Node
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec NodeSpec+
 status NodeStatus+
NodeAddress
 type NodeAddressType+!
 address string+!
NodeAffinity
 requiredDuringSchedulingIgnoredDuringExecution NodeSelector
 preferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm- atomic
NodeAllocatableMappedResources
 name ResourceName+!
 quantity quantity~!
NodeAllocatableOverheadResources
 name ResourceName+!
 perPod quantity
 perContainer quantity
NodeAllocatableResourceClaimStatus
 resourceClaimName string+!
 containers []string- set
 mapping []NodeAllocatableMappedResources- patch=merge:name map=name
 overhead []NodeAllocatableOverheadResources- patch=merge:name map=name
NodeCondition
 type NodeConditionType+!
 status ConditionStatus+!
 lastHeartbeatTime time+
 lastTransitionTime time+
 reason string-
 message string-
NodeConfigSource
 configMap ConfigMapNodeConfigSource
NodeConfigStatus
 assigned NodeConfigSource
 active NodeConfigSource
 lastKnownGood NodeConfigSource
 error string-
NodeDaemonEndpoints
 kubeletEndpoint DaemonEndpoint+
NodeFeatures
 supplementalGroupsPolicy bool
NodePodPreemptionPolicy
 disableResizePreemption []string- set
NodeRuntimeHandler
 name string+
 features NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures
 recursiveReadOnlyMounts bool
 userNamespaces bool
NodeSelector atomic
 nodeSelectorTerms []NodeSelectorTerm! atomic
NodeSelectorRequirement
 key string+!
 operator NodeSelectorOperator+!
 values []string- atomic
NodeSelectorTerm atomic
 matchExpressions []NodeSelectorRequirement- atomic
 matchFields []NodeSelectorRequirement- atomic
NodeSpec
 podCIDR string-
 podCIDRs []string- patch=merge set
 providerID string-
 unschedulable bool-
 taints []Taint- atomic
 configSource NodeConfigSource
 externalID string-
 podPreemptionPolicy NodePodPreemptionPolicy
NodeStatus
 capacity ResourceList-
 allocatable ResourceList-
 phase NodePhase-
 conditions []NodeCondition- patch=merge:type map=type
 addresses []NodeAddress- patch=merge:type map=type
 daemonEndpoints NodeDaemonEndpoints+
 nodeInfo NodeSystemInfo+
 images []ContainerImage- atomic
 volumesInUse []UniqueVolumeName- atomic
 volumesAttached []AttachedVolume- atomic
 config NodeConfigStatus
 runtimeHandlers []NodeRuntimeHandler- atomic
 features NodeFeatures
 declaredFeatures []string- atomic
NodeSwapStatus
 capacity int64
NodeSystemInfo
 machineID string+!
 systemUUID string+!
 bootID string+!
 kernelVersion string+!
 osImage string+!
 containerRuntimeVersion string+!
 kubeletVersion string+!
 kubeProxyVersion string+!
 operatingSystem string+!
 architecture string+!
 swap NodeSwapStatus
 runningInUserNamespace bool
NonResourceAttributes
 path string-
 verb string-
NonResourceRule
 verbs []string! atomic
 nonResourceURLs []string- atomic
ObjectFieldSelector atomic
 apiVersion string-
 fieldPath string+!
ObjectMeta
 name string-
 generateName string-
 namespace string-
 selfLink string-
 uid types.UID-
 resourceVersion string-
 generation int64-
 creationTimestamp time-
 deletionTimestamp time
 deletionGracePeriodSeconds int64
 labels {}string-
 annotations {}string-
 ownerReferences []OwnerReference- patch=merge:uid map=uid
 finalizers []string- patch=merge set
 managedFields []ManagedFieldsEntry- atomic
ObjectReference atomic
 kind string-
 namespace string-
 name string-
 uid types.UID-
 apiVersion string-
 resourceVersion string-
 fieldPath string-
OwnerReference atomic
 apiVersion string+!
 kind string+!
 name string+!
 uid types.UID+!
 controller bool
 blockOwnerDeletion bool
PartialObjectMetadata
 kind string-
 apiVersion string-
 metadata ObjectMeta+
PatchOptions
 kind string-
 apiVersion string-
 dryRun []string- atomic
 force bool
 fieldManager string-
 fieldValidation string-
PersistentVolumeClaim
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec PersistentVolumeClaimSpec+
 status PersistentVolumeClaimStatus+
PersistentVolumeClaimCondition
 type PersistentVolumeClaimConditionType+!
 status ConditionStatus+!
 lastProbeTime time+
 lastTransitionTime time+
 reason string-
 message string-
PersistentVolumeClaimSpec
 accessModes []PersistentVolumeAccessMode- atomic
 selector LabelSelector
 resources VolumeResourceRequirements+
 volumeName string-
 storageClassName string
 volumeMode PersistentVolumeMode
 dataSource TypedLocalObjectReference
 dataSourceRef TypedObjectReference
 volumeAttributesClassName string
PersistentVolumeClaimStatus
 phase PersistentVolumeClaimPhase-
 accessModes []PersistentVolumeAccessMode- atomic
 capacity ResourceList-
 conditions []PersistentVolumeClaimCondition- patch=merge:type map=type
 allocatedResources ResourceList-
 allocatedResourceStatuses {}ClaimResourceStatus-
 currentVolumeAttributesClassName string
 modifyVolumeStatus ModifyVolumeStatus
 healthStatus VolumeHealthStatus
PersistentVolumeClaimTemplate
 metadata ObjectMeta+
 spec PersistentVolumeClaimSpec+!
PersistentVolumeClaimVolumeSource
 claimName string+!
 readOnly bool-
PhotonPersistentDiskVolumeSource
 pdID string+!
 fsType string-
Pod
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec PodSpec+
 status PodStatus+
PodAffinity
 requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm- atomic
 preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm- atomic
PodAffinityTerm
 labelSelector LabelSelector
 namespaces []string- atomic
 topologyKey string+!
 namespaceSelector LabelSelector
 matchLabelKeys []string- atomic
 mismatchLabelKeys []string- atomic
PodAntiAffinity
 requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm- atomic
 preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm- atomic
PodCertificateProjection
 signerName string-!
 keyType string-!
 maxExpirationSeconds int32
 credentialBundlePath string-
 keyPath string-
 certificateChainPath string-
 userAnnotations {}string-
 user int64
PodCondition
 type PodConditionType+!
 observedGeneration int64-
 status ConditionStatus+!
 lastProbeTime time+
 lastTransitionTime time+
 reason string-
 message string-
PodDNSConfig
 nameservers []string- atomic
 searches []string- atomic
 options []PodDNSConfigOption- atomic
PodDNSConfigOption
 name string-
 value string
PodDisruptionBudget
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec PodDisruptionBudgetSpec+
 status PodDisruptionBudgetStatus+
PodDisruptionBudgetSpec
 minAvailable intorstring
 selector LabelSelector patch=replace
 maxUnavailable intorstring
 unhealthyPodEvictionPolicy UnhealthyPodEvictionPolicyType
PodDisruptionBudgetStatus
 observedGeneration int64-
 disruptedPods {}time-
 disruptionsAllowed int32+
 currentHealthy int32+
 desiredHealthy int32+
 expectedPods int32+
 conditions []Condition- patch=merge:type map=type
PodExtendedResourceClaimStatus
 requestMappings []ContainerExtendedResourceRequest! atomic
 resourceClaimName string+!
PodIP
 ip string+!
PodOS
 name OSName+!
PodReadinessGate
 conditionType PodConditionType+!
PodResourceClaim
 name string+!
 resourceClaimName string
 resourceClaimTemplateName string
PodResourceClaimStatus
 name string+!
 resourceClaimName string
PodSchedulingGate
 name string+!
PodSchedulingGroup
 podGroupName string
PodSecurityContext
 seLinuxOptions SELinuxOptions
 windowsOptions WindowsSecurityContextOptions
 runAsUser int64
 runAsGroup int64
 runAsNonRoot bool
 supplementalGroups []int64- atomic
 supplementalGroupsPolicy SupplementalGroupsPolicy
 fsGroup int64
 sysctls []Sysctl- atomic
 fsGroupChangePolicy PodFSGroupChangePolicy
 seccompProfile SeccompProfile
 appArmorProfile AppArmorProfile
 seLinuxChangePolicy PodSELinuxChangePolicy
PodSpec
 volumes []Volume- patch=merge,retainKeys:name map=name
 initContainers []Container- patch=merge:name map=name
 containers []Container! patch=merge:name map=name
 ephemeralContainers []EphemeralContainer- patch=merge:name map=name
 restartPolicy RestartPolicy-
 terminationGracePeriodSeconds int64
 activeDeadlineSeconds int64
 dnsPolicy DNSPolicy-
 nodeSelector {}string- atomic
 serviceAccountName string-
 serviceAccount string-
 automountServiceAccountToken bool
 nodeName string-
 hostNetwork bool-
 hostPID bool-
 hostIPC bool-
 shareProcessNamespace bool
 securityContext PodSecurityContext
 imagePullSecrets []LocalObjectReference- patch=merge:name map=name
 hostname string-
 subdomain string-
 affinity Affinity
 schedulerName string-
 tolerations []Toleration- atomic
 hostAliases []HostAlias- patch=merge:ip map=ip
 priorityClassName string-
 priority int32
 dnsConfig PodDNSConfig
 readinessGates []PodReadinessGate- atomic
 runtimeClassName string
 enableServiceLinks bool
 preemptionPolicy PreemptionPolicy
 overhead ResourceList-
 topologySpreadConstraints []TopologySpreadConstraint- patch=merge:topologyKey map=topologyKey,whenUnsatisfiable
 setHostnameAsFQDN bool
 os PodOS
 hostUsers bool
 schedulingGates []PodSchedulingGate- patch=merge:name map=name
 resourceClaims []PodResourceClaim- patch=merge,retainKeys:name map=name
 resources ResourceRequirements
 hostnameOverride string
 schedulingGroup PodSchedulingGroup
 evictionResponders []EvictionResponder- patch=merge:name map=name
 scaleDownGracePeriodSeconds int64 preview
PodStatus
 observedGeneration int64-
 phase PodPhase-
 conditions []PodCondition- patch=merge:type map=type
 message string-
 reason string-
 nominatedNodeName string-
 hostIP string-
 hostIPs []HostIP- patch=merge:ip atomic
 podIP string-
 podIPs []PodIP- patch=merge:ip map=ip
 startTime time
 initContainerStatuses []ContainerStatus- atomic
 containerStatuses []ContainerStatus- atomic
 qosClass PodQOSClass-
 ephemeralContainerStatuses []ContainerStatus- atomic
 resize PodResizeStatus-
 resourceClaimStatuses []PodResourceClaimStatus- patch=merge,retainKeys:name map=name
 extendedResourceClaimStatus PodExtendedResourceClaimStatus
 allocatedResources ResourceList-
 resources ResourceRequirements
 nodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus- patch=merge:resourceClaimName map=resourceClaimName
 volumeHealth []PodVolumeHealth- map=name
PodTemplate
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 template PodTemplateSpec+
PodTemplateSpec
 metadata ObjectMeta+
 spec PodSpec+
PodVolumeHealth
 name string+!
 healthConditions []VolumeHealthCondition- patch=merge:status map=status,reason
 lastTransitionTime time+
PolicyRule
 verbs []string! atomic
 apiGroups []string- atomic
 resources []string- atomic
 resourceNames []string- atomic
 nonResourceURLs []string- atomic
PortStatus
 port int32+!
 protocol Protocol+!
 error string
PortworxVolumeSource
 volumeID string+!
 fsType string-
 readOnly bool-
Preconditions
 uid types.UID
 resourceVersion string
PreferredSchedulingTerm
 weight int32+!
 preference NodeSelectorTerm+!
PriorityClass
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 value int32+
 globalDefault bool-
 description string-
 preemptionPolicy PreemptionPolicy
Probe
 exec ExecAction
 httpGet HTTPGetAction
 tcpSocket TCPSocketAction
 grpc GRPCAction
 initialDelaySeconds int32-
 timeoutSeconds int32-
 periodSeconds int32-
 successThreshold int32-
 failureThreshold int32-
 terminationGracePeriodSeconds int64
ProjectedVolumeSource
 sources []VolumeProjection atomic
 defaultMode int32
 defaultUser int64
QuobyteVolumeSource
 registry string+!
 volume string+!
 readOnly bool-
 user string-
 group string-
 tenant string-
RBDVolumeSource
 monitors []string! atomic
 image string+!
 fsType string-
 pool string-
 user string-
 keyring string-
 secretRef LocalObjectReference
 readOnly bool-
ReplicaSet
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec ReplicaSetSpec+!
 status ReplicaSetStatus+
ReplicaSetCondition
 type ReplicaSetConditionType+
 status ConditionStatus+
 lastTransitionTime time+
 reason string-
 message string-
ReplicaSetSpec
 replicas int32
 minReadySeconds int32-
 selector LabelSelector~!
 template PodTemplateSpec+
ReplicaSetStatus
 replicas int32+!
 fullyLabeledReplicas int32-
 readyReplicas int32-
 availableReplicas int32-
 terminatingReplicas int32
 observedGeneration int64-
 conditions []ReplicaSetCondition- patch=merge:type map=type
ResourceAttributes
 namespace string-
 verb string-
 group string-
 version string-
 resource string-
 subresource string-
 name string-
 fieldSelector FieldSelectorAttributes
 labelSelector LabelSelectorAttributes
ResourceClaim
 name string+!
 request string-
ResourceFieldSelector atomic
 containerName string-
 resource string+!
 divisor quantity+
ResourceHealth
 resourceID ResourceID+!
 health ResourceHealthStatus-
 message string
ResourceQuota
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec ResourceQuotaSpec+
 status ResourceQuotaStatus+
ResourceQuotaSpec
 hard ResourceList-
 scopes []ResourceQuotaScope- atomic
 scopeSelector ScopeSelector
ResourceQuotaStatus
 hard ResourceList-
 used ResourceList-
ResourceRequirements
 limits ResourceList-
 requests ResourceList-
 claims []ResourceClaim- map=name
ResourceRule
 verbs []string! atomic
 apiGroups []string- atomic
 resources []string- atomic
 resourceNames []string- atomic
ResourceStatus
 name ResourceName+!
 resources []ResourceHealth- map=resourceID
Role
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 rules []PolicyRule atomic
RoleBinding
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 subjects []Subject- atomic
 roleRef RoleRef+!
RoleRef atomic
 apiGroup string+
 kind string+!
 name string+!
RollingUpdateDeployment
 maxUnavailable intorstring
 maxSurge intorstring
SELinuxOptions
 user string-
 role string-
 type string-
 level string-
Scale
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec ScaleSpec+
 status ScaleStatus+
ScaleIOVolumeSource
 gateway string+!
 system string+!
 secretRef LocalObjectReference~
 sslEnabled bool-
 protectionDomain string-
 storagePool string-
 storageMode string-
 volumeName string-
 fsType string-
 readOnly bool-
ScaleSpec
 replicas int32-
ScaleStatus
 replicas int32+!
 selector string-
ScopeSelector atomic
 matchExpressions []ScopedResourceSelectorRequirement- atomic
ScopedResourceSelectorRequirement
 scopeName ResourceQuotaScope+!
 operator ScopeSelectorOperator+!
 values []string- atomic
SeccompProfile
 type SeccompProfileType+!
 localhostProfile string
Secret
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 immutable bool
 data {}bytes-
 stringData {}string-
 type SecretType-
SecretEnvSource
 name string-
 optional bool
SecretKeySelector atomic
 name string-
 key string+!
 optional bool
SecretProjection
 name string-
 items []KeyToPath- atomic
 optional bool
SecretVolumeSource
 secretName string-
 items []KeyToPath- atomic
 defaultMode int32
 optional bool
 defaultUser int64
SecurityContext
 capabilities Capabilities
 privileged bool
 seLinuxOptions SELinuxOptions
 windowsOptions WindowsSecurityContextOptions
 runAsUser int64
 runAsGroup int64
 runAsNonRoot bool
 readOnlyRootFilesystem bool
 allowPrivilegeEscalation bool
 procMount ProcMountType
 seccompProfile SeccompProfile
 appArmorProfile AppArmorProfile
SelfSubjectAccessReview
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec SelfSubjectAccessReviewSpec+!
 status SubjectAccessReviewStatus+
SelfSubjectAccessReviewSpec
 resourceAttributes ResourceAttributes
 nonResourceAttributes NonResourceAttributes
SelfSubjectReview
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 status SelfSubjectReviewStatus+
SelfSubjectReviewStatus
 userInfo UserInfo+
SelfSubjectRulesReview
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec SelfSubjectRulesReviewSpec+!
 status SubjectRulesReviewStatus+
SelfSubjectRulesReviewSpec
 namespace string-
Service
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec ServiceSpec+
 status ServiceStatus+
ServiceAccount
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 secrets []ObjectReference- patch=merge:name map=name
 imagePullSecrets []LocalObjectReference- atomic
 automountServiceAccountToken bool
ServiceAccountTokenProjection
 audience string-
 expirationSeconds int64
 path string+!
 user int64
ServicePort
 name string-
 protocol Protocol-
 appProtocol string
 port int32+!
 targetPort intorstring+
 nodePort int32-
ServiceSpec
 ports []ServicePort- patch=merge:port map=port,protocol
 selector {}string- atomic
 clusterIP string-
 clusterIPs []string- atomic
 type ServiceType-
 externalIPs []string- atomic
 sessionAffinity ServiceAffinity-
 loadBalancerIP string-
 loadBalancerSourceRanges []string- atomic
 externalName string-
 externalTrafficPolicy ServiceExternalTrafficPolicy-
 healthCheckNodePort int32-
 publishNotReadyAddresses bool-
 sessionAffinityConfig SessionAffinityConfig
 ipFamilies []IPFamily- atomic
 ipFamilyPolicy IPFamilyPolicy
 allocateLoadBalancerNodePorts bool
 loadBalancerClass string
 internalTrafficPolicy ServiceInternalTrafficPolicy
 trafficDistribution string
ServiceStatus
 loadBalancer LoadBalancerStatus+
 conditions []Condition- patch=merge:type map=type
SessionAffinityConfig
 clientIP ClientIPConfig
ShardInfo
 selector string+!
SleepAction
 seconds int64+!
Status
 kind string-
 apiVersion string-
 metadata ListMeta+
 status string-
 message string-
 reason StatusReason-
 details StatusDetails
 code int32-
StatusCause
 reason CauseType-
 message string-
 field string-
StatusDetails
 name string-
 group string-
 kind string-
 uid types.UID-
 causes []StatusCause- atomic
 retryAfterSeconds int32-
StorageOSVolumeSource
 volumeName string-
 volumeNamespace string-
 fsType string-
 readOnly bool-
 secretRef LocalObjectReference
Subject atomic
 kind string+!
 apiGroup string-
 name string+!
 namespace string-
SubjectAccessReview
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec SubjectAccessReviewSpec+!
 status SubjectAccessReviewStatus+
SubjectAccessReviewSpec
 resourceAttributes ResourceAttributes
 nonResourceAttributes NonResourceAttributes
 user string-
 groups []string- atomic
 extra {}[]string-
 uid string-
SubjectAccessReviewStatus
 allowed bool+!
 denied bool-
 reason string-
 evaluationError string-
SubjectRulesReviewStatus
 resourceRules []ResourceRule! atomic
 nonResourceRules []NonResourceRule! atomic
 incomplete bool+!
 evaluationError string-
Sysctl
 name string+!
 value string+!
TCPSocketAction
 port intorstring+!
 host string-
Taint
 key string+!
 value string-
 effect TaintEffect+!
 timeAdded time
TokenRequest
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec TokenRequestSpec+
 status TokenRequestStatus+
TokenRequestSpec
 audiences []string atomic
 expirationSeconds int64~
 boundObjectRef BoundObjectReference~
 attestations {}[]string-
TokenRequestStatus
 token string+
 expirationTimestamp time+
TokenReview
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 spec TokenReviewSpec+!
 status TokenReviewStatus+
TokenReviewSpec
 token string-!
 audiences []string- atomic
TokenReviewStatus
 authenticated bool-
 user UserInfo+
 audiences []string- atomic
 error string-
Toleration
 key string-
 operator TolerationOperator-
 value string-
 effect TaintEffect-
 tolerationSeconds int64
TopologySpreadConstraint
 maxSkew int32+!
 topologyKey string+!
 whenUnsatisfiable UnsatisfiableConstraintAction+!
 labelSelector LabelSelector
 minDomains int32
 nodeAffinityPolicy NodeInclusionPolicy
 nodeTaintsPolicy NodeInclusionPolicy
 matchLabelKeys []string- atomic
TypedLocalObjectReference atomic
 apiGroup string~
 kind string+!
 name string+!
TypedObjectReference
 apiGroup string~
 kind string+!
 name string+!
 namespace string
UpdateOptions
 kind string-
 apiVersion string-
 dryRun []string- atomic
 fieldManager string-
 fieldValidation string-
UserInfo
 username string-
 uid string-
 groups []string- atomic
 extra {}[]string-
Volume
 name string+!
 hostPath HostPathVolumeSource
 emptyDir EmptyDirVolumeSource
 gcePersistentDisk GCEPersistentDiskVolumeSource
 awsElasticBlockStore AWSElasticBlockStoreVolumeSource
 gitRepo GitRepoVolumeSource
 secret SecretVolumeSource
 nfs NFSVolumeSource
 iscsi ISCSIVolumeSource
 glusterfs GlusterfsVolumeSource
 persistentVolumeClaim PersistentVolumeClaimVolumeSource
 rbd RBDVolumeSource
 flexVolume FlexVolumeSource
 cinder CinderVolumeSource
 cephfs CephFSVolumeSource
 flocker FlockerVolumeSource
 downwardAPI DownwardAPIVolumeSource
 fc FCVolumeSource
 azureFile AzureFileVolumeSource
 configMap ConfigMapVolumeSource
 vsphereVolume VsphereVirtualDiskVolumeSource
 quobyte QuobyteVolumeSource
 azureDisk AzureDiskVolumeSource
 photonPersistentDisk PhotonPersistentDiskVolumeSource
 projected ProjectedVolumeSource
 portworxVolume PortworxVolumeSource
 scaleIO ScaleIOVolumeSource
 storageos StorageOSVolumeSource
 csi CSIVolumeSource
 ephemeral EphemeralVolumeSource
 image ImageVolumeSource
VolumeDevice
 name string+!
 devicePath string+!
VolumeHealthCondition
 status VolumeHealthStatusType+!
 reason string+!
 message string-
VolumeHealthStatus
 healthConditions []VolumeHealthCondition- patch=merge:status map=status,reason
 lastTransitionTime time+
VolumeMount
 name string+!
 readOnly bool-
 recursiveReadOnly RecursiveReadOnlyMode
 mountPath string+!
 subPath string-
 mountPropagation MountPropagationMode
 subPathExpr string-
 bindMountOptions []string- set
VolumeMountStatus
 name string+!
 mountPath string+!
 readOnly bool-
 recursiveReadOnly RecursiveReadOnlyMode
 volumeStatus VolumeStatus
VolumeProjection
 secret SecretProjection
 downwardAPI DownwardAPIProjection
 configMap ConfigMapProjection
 serviceAccountToken ServiceAccountTokenProjection
 clusterTrustBundle ClusterTrustBundleProjection
 podCertificate PodCertificateProjection
VolumeResourceRequirements
 limits ResourceList-
 requests ResourceList-
VolumeStatus
 image ImageVolumeStatus
VsphereVirtualDiskVolumeSource
 volumePath string+!
 fsType string-
 storagePolicyName string-
 storagePolicyID string-
WeightedPodAffinityTerm
 weight int32+!
 podAffinityTerm PodAffinityTerm+!
WindowsSecurityContextOptions
 gmsaCredentialSpecName string
 gmsaCredentialSpec string
 runAsUserName string
 hostProcess bool
core.Event
 kind string-
 apiVersion string-
 metadata ObjectMeta+!
 involvedObject ObjectReference+!
 reason string-
 message string-
 source EventSource+
 firstTimestamp time+
 lastTimestamp time+
 count int32-
 type string-
 eventTime microtime+
 series core.EventSeries
 action string-
 related ObjectReference
 reportingComponent string+
 reportingInstance string+
core.EventSeries
 count int32-
 lastObservedTime microtime+
events.Event
 kind string-
 apiVersion string-
 metadata ObjectMeta+
 eventTime microtime+!
 series events.EventSeries
 reportingController string-
 reportingInstance string-
 action string-
 reason string-
 regarding ObjectReference+
 related ObjectReference
 note string-
 type string-
 deprecatedSource EventSource+
 deprecatedFirstTimestamp time+
 deprecatedLastTimestamp time+
 deprecatedCount int32-
events.EventSeries
 count int32+!
 lastObservedTime microtime+!
"""
