"""Names and types of the fields of Kubernetes v1.37, as its Go types have them.

``TYPES``: a struct's name (``atomic``: applied as a whole), then its fields in upstream's order, one a line::

    NUMBER name TYPE MARKS [patch=STRATEGY:KEY] [map=KEY,KEY | set | atomic] [preview]

NUMBER is the field's in protobuf: ``2.5`` for one that JSON shows in the parent of its message, 0 for none. TYPE is a struct, a
scalar, a name of ``STRINGS``, or one of them behind ``[]`` (list) or ``{}`` (map by string). MARKS say what Go writes: ``-`` a zero
value is left out, ``+`` it is always there, ``~`` there as null; none: as given. ``!`` the field is required.
``preview`` marks fields of designs that v1.37 has not (docs/profiles.md rows 11 and 13).
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
 1 volumeID string+!
 2 fsType string-
 3 partition int32-
 4 readOnly bool-
Affinity
 1 nodeAffinity NodeAffinity
 2 podAffinity PodAffinity
 3 podAntiAffinity PodAntiAffinity
AggregationRule
 1 clusterRoleSelectors []LabelSelector- atomic
AppArmorProfile
 1 type AppArmorProfileType+!
 2 localhostProfile string
AttachedVolume
 1 name UniqueVolumeName+!
 2 devicePath string+!
AzureDiskVolumeSource
 1 diskName string+!
 2 diskURI string+!
 3 cachingMode AzureDataDiskCachingMode
 4 fsType string
 5 readOnly bool
 6 kind AzureDataDiskKind
AzureFileVolumeSource
 1 secretName string+!
 2 shareName string+!
 3 readOnly bool-
Binding
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 target ObjectReference+!
BoundObjectReference
 1 kind string-
 2 apiVersion string-
 3 name string-
 4 uid types.UID-
CSIVolumeSource
 1 driver string+!
 2 readOnly bool
 3 fsType string
 4 volumeAttributes {}string-
 5 nodePublishSecretRef LocalObjectReference
Capabilities
 1 add []Capability- atomic
 2 drop []Capability- atomic
CephFSVolumeSource
 1 monitors []string! atomic
 2 path string-
 3 user string-
 4 secretFile string-
 5 secretRef LocalObjectReference
 6 readOnly bool-
CinderVolumeSource
 1 volumeID string+!
 2 fsType string-
 3 readOnly bool-
 4 secretRef LocalObjectReference
ClientIPConfig
 1 timeoutSeconds int32
ClusterRole
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 rules []PolicyRule atomic
 3 aggregationRule AggregationRule
ClusterRoleBinding
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 subjects []Subject- atomic
 3 roleRef RoleRef+!
ClusterTrustBundleProjection
 1 name string
 2 signerName string
 3 labelSelector LabelSelector
 5 optional bool
 4 path string+!
 6 user int64
Condition
 1 type string+!
 2 status ConditionStatus+!
 3 observedGeneration int64-
 4 lastTransitionTime time+!
 5 reason string+!
 6 message string+!
ConfigMap
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 4 immutable bool
 2 data {}string-
 3 binaryData {}bytes-
ConfigMapEnvSource
 1.1 name string-
 2 optional bool
ConfigMapKeySelector atomic
 1.1 name string-
 2 key string+!
 3 optional bool
ConfigMapNodeConfigSource
 1 namespace string+!
 2 name string+!
 3 uid types.UID-
 4 resourceVersion string-
 5 kubeletConfigKey string+!
ConfigMapProjection
 1.1 name string-
 2 items []KeyToPath- atomic
 4 optional bool
ConfigMapVolumeSource
 1.1 name string-
 2 items []KeyToPath- atomic
 3 defaultMode int32
 4 optional bool
 5 defaultUser int64
Container
 1 name string+!
 2 image string-
 3 command []string- atomic
 4 args []string- atomic
 5 workingDir string-
 6 ports []ContainerPort- patch=merge:containerPort map=containerPort,protocol
 19 envFrom []EnvFromSource- atomic
 7 env []EnvVar- patch=merge:name map=name
 8 resources ResourceRequirements+
 23 resizePolicy []ContainerResizePolicy- atomic
 24 restartPolicy ContainerRestartPolicy
 25 restartPolicyRules []ContainerRestartRule- atomic
 9 volumeMounts []VolumeMount- patch=merge:mountPath map=mountPath
 21 volumeDevices []VolumeDevice- patch=merge:devicePath map=devicePath
 10 livenessProbe Probe
 11 readinessProbe Probe
 22 startupProbe Probe
 12 lifecycle Lifecycle
 13 terminationMessagePath string-
 20 terminationMessagePolicy TerminationMessagePolicy-
 14 imagePullPolicy PullPolicy-
 15 securityContext SecurityContext
 16 stdin bool-
 17 stdinOnce bool-
 18 tty bool-
ContainerExtendedResourceRequest
 1 containerName string+!
 2 resourceName string+!
 3 requestName string+!
ContainerImage
 1 names []string atomic
 2 sizeBytes int64-
ContainerPort
 1 name string-
 2 hostPort int32-
 3 containerPort int32+!
 4 protocol Protocol-
 5 hostIP string-
ContainerResizePolicy
 1 resourceName ResourceName+!
 2 restartPolicy ResourceResizeRestartPolicy+!
ContainerRestartRule
 1 action ContainerRestartRuleAction-!
 2 exitCodes ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
 1 operator ContainerRestartRuleOnExitCodesOperator-!
 2 values []int32- set
ContainerState
 1 waiting ContainerStateWaiting
 2 running ContainerStateRunning
 3 terminated ContainerStateTerminated
ContainerStateRunning
 1 startedAt time+
ContainerStateTerminated
 1 exitCode int32+!
 2 signal int32-
 3 reason string-
 4 message string-
 5 startedAt time+
 6 finishedAt time+
 7 containerID string-
ContainerStateWaiting
 1 reason string-
 2 message string-
ContainerStatus
 1 name string+!
 2 state ContainerState+
 3 lastState ContainerState+
 4 ready bool+!
 5 restartCount int32+!
 6 image string+!
 7 imageID string+!
 8 containerID string-
 9 started bool
 10 allocatedResources ResourceList-
 11 resources ResourceRequirements
 12 volumeMounts []VolumeMountStatus- patch=merge:mountPath map=mountPath
 13 user ContainerUser
 14 allocatedResourcesStatus []ResourceStatus- patch=merge:name map=name
 15 stopSignal Signal
 0 resizeStatus string- preview
ContainerUser
 1 linux LinuxContainerUser
ControllerRevision
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 data any+!
 3 revision int64+
CreateOptions
 0 kind string-
 0 apiVersion string-
 1 dryRun []string- atomic
 3 fieldManager string-
 4 fieldValidation string-
DaemonEndpoint
 1 Port int32+!
DeleteOptions
 0 kind string-
 0 apiVersion string-
 1 gracePeriodSeconds int64
 2 preconditions Preconditions
 3 orphanDependents bool
 4 propagationPolicy DeletionPropagation
 5 dryRun []string- atomic
 6 ignoreStoreReadErrorWithClusterBreakingPotential bool
Deployment
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec DeploymentSpec+!
 3 status DeploymentStatus+
DeploymentCondition
 1 type DeploymentConditionType+
 2 status ConditionStatus+
 6 lastUpdateTime time+
 7 lastTransitionTime time+
 4 reason string-
 5 message string-
DeploymentSpec
 1 replicas int32
 2 selector LabelSelector~!
 3 template PodTemplateSpec+!
 4 strategy DeploymentStrategy+ patch=retainKeys
 5 minReadySeconds int32-
 6 revisionHistoryLimit int32
 7 paused bool-
 9 progressDeadlineSeconds int32
DeploymentStatus
 1 observedGeneration int64-
 2 replicas int32-
 3 updatedReplicas int32-
 7 readyReplicas int32-
 4 availableReplicas int32-
 5 unavailableReplicas int32-
 9 terminatingReplicas int32
 6 conditions []DeploymentCondition- patch=merge:type map=type
 8 collisionCount int32
DeploymentStrategy
 1 type DeploymentStrategyType-
 2 rollingUpdate RollingUpdateDeployment
DownwardAPIProjection
 1 items []DownwardAPIVolumeFile- atomic
DownwardAPIVolumeFile
 1 path string+!
 2 fieldRef ObjectFieldSelector
 3 resourceFieldRef ResourceFieldSelector
 4 mode int32
 5 user int64
DownwardAPIVolumeSource
 1 items []DownwardAPIVolumeFile- atomic
 2 defaultMode int32
 3 defaultUser int64
EmptyDirVolumeSource
 1 medium StorageMedium-
 2 sizeLimit quantity
 3 mode int32
EndpointAddress atomic
 1 ip string+!
 3 hostname string-
 4 nodeName string
 2 targetRef ObjectReference
EndpointPort atomic
 1 name string-
 2 port int32+!
 3 protocol Protocol-
 4 appProtocol string
EndpointSubset
 1 addresses []EndpointAddress- atomic
 2 notReadyAddresses []EndpointAddress- atomic
 3 ports []EndpointPort- atomic
Endpoints
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 subsets []EndpointSubset- atomic
EnvFromSource
 1 prefix string-
 2 configMapRef ConfigMapEnvSource
 3 secretRef SecretEnvSource
EnvVar
 1 name string+!
 2 value string-
 3 valueFrom EnvVarSource
EnvVarSource
 1 fieldRef ObjectFieldSelector
 2 resourceFieldRef ResourceFieldSelector
 3 configMapKeyRef ConfigMapKeySelector
 4 secretKeyRef SecretKeySelector
 5 fileKeyRef FileKeySelector
EphemeralContainer
 1.1 name string+!
 1.2 image string-
 1.3 command []string- atomic
 1.4 args []string- atomic
 1.5 workingDir string-
 1.6 ports []ContainerPort- patch=merge:containerPort map=containerPort,protocol
 1.19 envFrom []EnvFromSource- atomic
 1.7 env []EnvVar- patch=merge:name map=name
 1.8 resources ResourceRequirements+
 1.23 resizePolicy []ContainerResizePolicy- atomic
 1.24 restartPolicy ContainerRestartPolicy
 1.25 restartPolicyRules []ContainerRestartRule- atomic
 1.9 volumeMounts []VolumeMount- patch=merge:mountPath map=mountPath
 1.21 volumeDevices []VolumeDevice- patch=merge:devicePath map=devicePath
 1.10 livenessProbe Probe
 1.11 readinessProbe Probe
 1.22 startupProbe Probe
 1.12 lifecycle Lifecycle
 1.13 terminationMessagePath string-
 1.20 terminationMessagePolicy TerminationMessagePolicy-
 1.14 imagePullPolicy PullPolicy-
 1.15 securityContext SecurityContext
 1.16 stdin bool-
 1.17 stdinOnce bool-
 1.18 tty bool-
 2 targetContainerName string-
EphemeralVolumeSource
 1 volumeClaimTemplate PersistentVolumeClaimTemplate
EventSource
 1 component string-
 2 host string-
Eviction
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 deleteOptions DeleteOptions
EvictionResponder atomic
 1 name string+!
 2 priority int32~!
ExecAction
 1 command []string- atomic
FCVolumeSource
 1 targetWWNs []string- atomic
 2 lun int32
 3 fsType string-
 4 readOnly bool-
 5 wwids []string- atomic
FieldSelectorAttributes
 1 rawSelector string-
 2 requirements []FieldSelectorRequirement- atomic
FieldSelectorRequirement
 1 key string+!
 2 operator FieldSelectorOperator+!
 3 values []string- atomic
FileKeySelector atomic
 1 volumeName string+!
 2 path string+!
 3 key string+!
 4 optional bool
FlexVolumeSource
 1 driver string+!
 2 fsType string-
 3 secretRef LocalObjectReference
 4 readOnly bool-
 5 options {}string-
FlockerVolumeSource
 1 datasetName string-
 2 datasetUUID string-
GCEPersistentDiskVolumeSource
 1 pdName string+!
 2 fsType string-
 3 partition int32-
 4 readOnly bool-
GRPCAction
 1 port int32+!
 2 service string~
 3 mode GRPCProbeMode
GitRepoVolumeSource
 1 repository string+!
 2 revision string-
 3 directory string-
GlusterfsVolumeSource
 1 endpoints string+!
 2 path string+!
 3 readOnly bool-
HTTPGetAction
 1 path string-
 2 port intorstring+!
 3 host string-
 4 scheme URIScheme-
 5 httpHeaders []HTTPHeader- atomic
 6 protocol HTTPProtocol
HTTPHeader
 1 name string+!
 2 value string+!
HostAlias
 1 ip string+!
 2 hostnames []string- atomic
HostIP
 1 ip string+!
HostPathVolumeSource
 1 path string+!
 2 type HostPathType
ISCSIVolumeSource
 1 targetPortal string+!
 2 iqn string+!
 3 lun int32+!
 4 iscsiInterface string-
 5 fsType string-
 6 readOnly bool-
 7 portals []string- atomic
 8 chapAuthDiscovery bool-
 11 chapAuthSession bool-
 10 secretRef LocalObjectReference
 12 initiatorName string
ImageVolumeSource
 1 reference string-
 2 pullPolicy PullPolicy-
ImageVolumeStatus
 1 imageRef string-!
KeyToPath
 1 key string+!
 2 path string+!
 3 mode int32
 4 user int64
LabelSelector atomic
 1 matchLabels {}string-
 2 matchExpressions []LabelSelectorRequirement- atomic
LabelSelectorAttributes
 1 rawSelector string-
 2 requirements []LabelSelectorRequirement- atomic
LabelSelectorRequirement
 1 key string+!
 2 operator LabelSelectorOperator+!
 3 values []string- atomic
Lease
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec LeaseSpec+
LeaseSpec
 1 holderIdentity string
 2 leaseDurationSeconds int32
 3 acquireTime microtime
 4 renewTime microtime
 5 leaseTransitions int32
 6 strategy CoordinatedLeaseStrategy
 7 preferredHolder string
Lifecycle
 1 postStart LifecycleHandler
 2 preStop LifecycleHandler
 3 stopSignal Signal
LifecycleHandler
 1 exec ExecAction
 2 httpGet HTTPGetAction
 3 tcpSocket TCPSocketAction
 4 sleep SleepAction
LimitRange
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec LimitRangeSpec+
LimitRangeItem
 1 type LimitType+!
 2 max ResourceList-
 3 min ResourceList-
 4 default ResourceList-
 5 defaultRequest ResourceList-
 6 maxLimitRequestRatio ResourceList-
LimitRangeSpec
 1 limits []LimitRangeItem~! atomic
LinuxContainerUser
 1 uid int64+!
 2 gid int64+!
 3 supplementalGroups []int64- atomic
ListMeta
 1 selfLink string-
 2 resourceVersion string-
 3 continue string-
 4 remainingItemCount int64
 5 shardInfo ShardInfo
LoadBalancerIngress
 1 ip string-
 2 hostname string-
 3 ipMode LoadBalancerIPMode
 4 ports []PortStatus- atomic
LoadBalancerStatus
 1 ingress []LoadBalancerIngress- atomic
LocalObjectReference atomic
 1 name string-
LocalSubjectAccessReview
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec SubjectAccessReviewSpec+!
 3 status SubjectAccessReviewStatus+
ManagedFieldsEntry
 1 manager string-
 2 operation ManagedFieldsOperationType-
 3 apiVersion string-
 4 time time
 6 fieldsType string-
 7 fieldsV1 any
 8 subresource string-
ModifyVolumeStatus
 1 targetVolumeAttributesClassName string-
 2 status PersistentVolumeClaimModifyVolumeStatus+!
NFSVolumeSource
 1 server string+!
 2 path string+!
 3 readOnly bool-
Namespace
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec NamespaceSpec+
 3 status NamespaceStatus+
NamespaceCondition
 1 type NamespaceConditionType+!
 2 status ConditionStatus+!
 4 lastTransitionTime time+
 5 reason string-
 6 message string-
NamespaceSpec
 1 finalizers []FinalizerName- atomic
NamespaceStatus
 1 phase NamespacePhase-
 2 conditions []NamespaceCondition- patch=merge:type map=type
Node
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec NodeSpec+
 3 status NodeStatus+
NodeAddress
 1 type NodeAddressType+!
 2 address string+!
NodeAffinity
 1 requiredDuringSchedulingIgnoredDuringExecution NodeSelector
 2 preferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm- atomic
NodeAllocatableMappedResources
 1 name ResourceName+!
 2 quantity quantity~!
NodeAllocatableOverheadResources
 1 name ResourceName+!
 2 perPod quantity
 3 perContainer quantity
NodeAllocatableResourceClaimStatus
 1 resourceClaimName string+!
 2 containers []string- set
 4 mapping []NodeAllocatableMappedResources- patch=merge:name map=name
 5 overhead []NodeAllocatableOverheadResources- patch=merge:name map=name
NodeCondition
 1 type NodeConditionType+!
 2 status ConditionStatus+!
 3 lastHeartbeatTime time+
 4 lastTransitionTime time+
 5 reason string-
 6 message string-
NodeConfigSource
 2 configMap ConfigMapNodeConfigSource
NodeConfigStatus
 1 assigned NodeConfigSource
 2 active NodeConfigSource
 3 lastKnownGood NodeConfigSource
 4 error string-
NodeDaemonEndpoints
 1 kubeletEndpoint DaemonEndpoint+
NodeFeatures
 1 supplementalGroupsPolicy bool
NodePodPreemptionPolicy
 1 disableResizePreemption []string- set
NodeRuntimeHandler
 1 name string+
 2 features NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures
 1 recursiveReadOnlyMounts bool
 2 userNamespaces bool
NodeSelector atomic
 1 nodeSelectorTerms []NodeSelectorTerm! atomic
NodeSelectorRequirement
 1 key string+!
 2 operator NodeSelectorOperator+!
 3 values []string- atomic
NodeSelectorTerm atomic
 1 matchExpressions []NodeSelectorRequirement- atomic
 2 matchFields []NodeSelectorRequirement- atomic
NodeSpec
 1 podCIDR string-
 7 podCIDRs []string- patch=merge set
 3 providerID string-
 4 unschedulable bool-
 5 taints []Taint- atomic
 6 configSource NodeConfigSource
 2 externalID string-
 8 podPreemptionPolicy NodePodPreemptionPolicy
NodeStatus
 1 capacity ResourceList-
 2 allocatable ResourceList-
 3 phase NodePhase-
 4 conditions []NodeCondition- patch=merge:type map=type
 5 addresses []NodeAddress- patch=merge:type map=type
 6 daemonEndpoints NodeDaemonEndpoints+
 7 nodeInfo NodeSystemInfo+
 8 images []ContainerImage- atomic
 9 volumesInUse []UniqueVolumeName- atomic
 10 volumesAttached []AttachedVolume- atomic
 11 config NodeConfigStatus
 12 runtimeHandlers []NodeRuntimeHandler- atomic
 13 features NodeFeatures
 14 declaredFeatures []string- atomic
NodeSwapStatus
 1 capacity int64
NodeSystemInfo
 1 machineID string+!
 2 systemUUID string+!
 3 bootID string+!
 4 kernelVersion string+!
 5 osImage string+!
 6 containerRuntimeVersion string+!
 7 kubeletVersion string+!
 8 kubeProxyVersion string+!
 9 operatingSystem string+!
 10 architecture string+!
 11 swap NodeSwapStatus
 0 runningInUserNamespace bool
NonResourceAttributes
 1 path string-
 2 verb string-
NonResourceRule
 1 verbs []string! atomic
 2 nonResourceURLs []string- atomic
ObjectFieldSelector atomic
 1 apiVersion string-
 2 fieldPath string+!
ObjectMeta
 1 name string-
 2 generateName string-
 3 namespace string-
 4 selfLink string-
 5 uid types.UID-
 6 resourceVersion string-
 7 generation int64-
 8 creationTimestamp time-
 9 deletionTimestamp time
 10 deletionGracePeriodSeconds int64
 11 labels {}string-
 12 annotations {}string-
 13 ownerReferences []OwnerReference- patch=merge:uid map=uid
 14 finalizers []string- patch=merge set
 17 managedFields []ManagedFieldsEntry- atomic
ObjectReference atomic
 1 kind string-
 2 namespace string-
 3 name string-
 4 uid types.UID-
 5 apiVersion string-
 6 resourceVersion string-
 7 fieldPath string-
OwnerReference atomic
 5 apiVersion string+!
 1 kind string+!
 3 name string+!
 4 uid types.UID+!
 6 controller bool
 7 blockOwnerDeletion bool
PartialObjectMetadata
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
PatchOptions
 0 kind string-
 0 apiVersion string-
 1 dryRun []string- atomic
 2 force bool
 3 fieldManager string-
 4 fieldValidation string-
PersistentVolumeClaim
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec PersistentVolumeClaimSpec+
 3 status PersistentVolumeClaimStatus+
PersistentVolumeClaimCondition
 1 type PersistentVolumeClaimConditionType+!
 2 status ConditionStatus+!
 3 lastProbeTime time+
 4 lastTransitionTime time+
 5 reason string-
 6 message string-
PersistentVolumeClaimSpec
 1 accessModes []PersistentVolumeAccessMode- atomic
 4 selector LabelSelector
 2 resources VolumeResourceRequirements+
 3 volumeName string-
 5 storageClassName string
 6 volumeMode PersistentVolumeMode
 7 dataSource TypedLocalObjectReference
 8 dataSourceRef TypedObjectReference
 9 volumeAttributesClassName string
PersistentVolumeClaimStatus
 1 phase PersistentVolumeClaimPhase-
 2 accessModes []PersistentVolumeAccessMode- atomic
 3 capacity ResourceList-
 4 conditions []PersistentVolumeClaimCondition- patch=merge:type map=type
 5 allocatedResources ResourceList-
 7 allocatedResourceStatuses {}ClaimResourceStatus-
 8 currentVolumeAttributesClassName string
 9 modifyVolumeStatus ModifyVolumeStatus
 10 healthStatus VolumeHealthStatus
PersistentVolumeClaimTemplate
 1 metadata ObjectMeta+
 2 spec PersistentVolumeClaimSpec+!
PersistentVolumeClaimVolumeSource
 1 claimName string+!
 2 readOnly bool-
PhotonPersistentDiskVolumeSource
 1 pdID string+!
 2 fsType string-
Pod
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec PodSpec+
 3 status PodStatus+
PodAffinity
 1 requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm- atomic
 2 preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm- atomic
PodAffinityTerm
 1 labelSelector LabelSelector
 2 namespaces []string- atomic
 3 topologyKey string+!
 4 namespaceSelector LabelSelector
 5 matchLabelKeys []string- atomic
 6 mismatchLabelKeys []string- atomic
PodAntiAffinity
 1 requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm- atomic
 2 preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm- atomic
PodCertificateProjection
 1 signerName string-!
 2 keyType string-!
 3 maxExpirationSeconds int32
 4 credentialBundlePath string-
 5 keyPath string-
 6 certificateChainPath string-
 7 userAnnotations {}string-
 8 user int64
PodCondition
 1 type PodConditionType+!
 7 observedGeneration int64-
 2 status ConditionStatus+!
 3 lastProbeTime time+
 4 lastTransitionTime time+
 5 reason string-
 6 message string-
PodDNSConfig
 1 nameservers []string- atomic
 2 searches []string- atomic
 3 options []PodDNSConfigOption- atomic
PodDNSConfigOption
 1 name string-
 2 value string
PodDisruptionBudget
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec PodDisruptionBudgetSpec+
 3 status PodDisruptionBudgetStatus+
PodDisruptionBudgetSpec
 1 minAvailable intorstring
 2 selector LabelSelector patch=replace
 3 maxUnavailable intorstring
 4 unhealthyPodEvictionPolicy UnhealthyPodEvictionPolicyType
PodDisruptionBudgetStatus
 1 observedGeneration int64-
 2 disruptedPods {}time-
 3 disruptionsAllowed int32+
 4 currentHealthy int32+
 5 desiredHealthy int32+
 6 expectedPods int32+
 7 conditions []Condition- patch=merge:type map=type
PodExtendedResourceClaimStatus
 1 requestMappings []ContainerExtendedResourceRequest! atomic
 2 resourceClaimName string+!
PodIP
 1 ip string+!
PodOS
 1 name OSName+!
PodReadinessGate
 1 conditionType PodConditionType+!
PodResourceClaim
 1 name string+!
 3 resourceClaimName string
 4 resourceClaimTemplateName string
PodResourceClaimStatus
 1 name string+!
 2 resourceClaimName string
PodSchedulingGate
 1 name string+!
PodSchedulingGroup
 1 podGroupName string
PodSecurityContext
 1 seLinuxOptions SELinuxOptions
 8 windowsOptions WindowsSecurityContextOptions
 2 runAsUser int64
 6 runAsGroup int64
 3 runAsNonRoot bool
 4 supplementalGroups []int64- atomic
 12 supplementalGroupsPolicy SupplementalGroupsPolicy
 5 fsGroup int64
 7 sysctls []Sysctl- atomic
 9 fsGroupChangePolicy PodFSGroupChangePolicy
 10 seccompProfile SeccompProfile
 11 appArmorProfile AppArmorProfile
 13 seLinuxChangePolicy PodSELinuxChangePolicy
PodSpec
 1 volumes []Volume- patch=merge,retainKeys:name map=name
 20 initContainers []Container- patch=merge:name map=name
 2 containers []Container! patch=merge:name map=name
 34 ephemeralContainers []EphemeralContainer- patch=merge:name map=name
 3 restartPolicy RestartPolicy-
 4 terminationGracePeriodSeconds int64
 5 activeDeadlineSeconds int64
 6 dnsPolicy DNSPolicy-
 7 nodeSelector {}string- atomic
 8 serviceAccountName string-
 9 serviceAccount string-
 21 automountServiceAccountToken bool
 10 nodeName string-
 11 hostNetwork bool-
 12 hostPID bool-
 13 hostIPC bool-
 27 shareProcessNamespace bool
 14 securityContext PodSecurityContext
 15 imagePullSecrets []LocalObjectReference- patch=merge:name map=name
 16 hostname string-
 17 subdomain string-
 18 affinity Affinity
 19 schedulerName string-
 22 tolerations []Toleration- atomic
 23 hostAliases []HostAlias- patch=merge:ip map=ip
 24 priorityClassName string-
 25 priority int32
 26 dnsConfig PodDNSConfig
 28 readinessGates []PodReadinessGate- atomic
 29 runtimeClassName string
 30 enableServiceLinks bool
 31 preemptionPolicy PreemptionPolicy
 32 overhead ResourceList-
 33 topologySpreadConstraints []TopologySpreadConstraint- patch=merge:topologyKey map=topologyKey,whenUnsatisfiable
 35 setHostnameAsFQDN bool
 36 os PodOS
 37 hostUsers bool
 38 schedulingGates []PodSchedulingGate- patch=merge:name map=name
 39 resourceClaims []PodResourceClaim- patch=merge,retainKeys:name map=name
 40 resources ResourceRequirements
 41 hostnameOverride string
 43 schedulingGroup PodSchedulingGroup
 44 evictionResponders []EvictionResponder- patch=merge:name map=name
 0 scaleDownGracePeriodSeconds int64 preview
PodStatus
 17 observedGeneration int64-
 1 phase PodPhase-
 2 conditions []PodCondition- patch=merge:type map=type
 3 message string-
 4 reason string-
 11 nominatedNodeName string-
 5 hostIP string-
 16 hostIPs []HostIP- patch=merge:ip atomic
 6 podIP string-
 12 podIPs []PodIP- patch=merge:ip map=ip
 7 startTime time
 10 initContainerStatuses []ContainerStatus- atomic
 8 containerStatuses []ContainerStatus- atomic
 9 qosClass PodQOSClass-
 13 ephemeralContainerStatuses []ContainerStatus- atomic
 14 resize PodResizeStatus-
 15 resourceClaimStatuses []PodResourceClaimStatus- patch=merge,retainKeys:name map=name
 18 extendedResourceClaimStatus PodExtendedResourceClaimStatus
 19 allocatedResources ResourceList-
 20 resources ResourceRequirements
 21 nodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus- patch=merge:resourceClaimName map=resourceClaimName
 22 volumeHealth []PodVolumeHealth- map=name
PodTemplate
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 template PodTemplateSpec+
PodTemplateSpec
 1 metadata ObjectMeta+
 2 spec PodSpec+
PodVolumeHealth
 1 name string+!
 2 healthConditions []VolumeHealthCondition- patch=merge:status map=status,reason
 3 lastTransitionTime time+
PolicyRule
 1 verbs []string! atomic
 2 apiGroups []string- atomic
 3 resources []string- atomic
 4 resourceNames []string- atomic
 5 nonResourceURLs []string- atomic
PortStatus
 1 port int32+!
 2 protocol Protocol+!
 3 error string
PortworxVolumeSource
 1 volumeID string+!
 2 fsType string-
 3 readOnly bool-
Preconditions
 1 uid types.UID
 2 resourceVersion string
PreferredSchedulingTerm
 1 weight int32+!
 2 preference NodeSelectorTerm+!
PriorityClass
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 value int32+
 3 globalDefault bool-
 4 description string-
 5 preemptionPolicy PreemptionPolicy
Probe
 1.1 exec ExecAction
 1.2 httpGet HTTPGetAction
 1.3 tcpSocket TCPSocketAction
 1.4 grpc GRPCAction
 2 initialDelaySeconds int32-
 3 timeoutSeconds int32-
 4 periodSeconds int32-
 5 successThreshold int32-
 6 failureThreshold int32-
 7 terminationGracePeriodSeconds int64
ProjectedVolumeSource
 1 sources []VolumeProjection atomic
 2 defaultMode int32
 3 defaultUser int64
QuobyteVolumeSource
 1 registry string+!
 2 volume string+!
 3 readOnly bool-
 4 user string-
 5 group string-
 6 tenant string-
RBDVolumeSource
 1 monitors []string! atomic
 2 image string+!
 3 fsType string-
 4 pool string-
 5 user string-
 6 keyring string-
 7 secretRef LocalObjectReference
 8 readOnly bool-
ReplicaSet
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec ReplicaSetSpec+!
 3 status ReplicaSetStatus+
ReplicaSetCondition
 1 type ReplicaSetConditionType+
 2 status ConditionStatus+
 3 lastTransitionTime time+
 4 reason string-
 5 message string-
ReplicaSetSpec
 1 replicas int32
 4 minReadySeconds int32-
 2 selector LabelSelector~!
 3 template PodTemplateSpec+
ReplicaSetStatus
 1 replicas int32+!
 2 fullyLabeledReplicas int32-
 4 readyReplicas int32-
 5 availableReplicas int32-
 7 terminatingReplicas int32
 3 observedGeneration int64-
 6 conditions []ReplicaSetCondition- patch=merge:type map=type
ResourceAttributes
 1 namespace string-
 2 verb string-
 3 group string-
 4 version string-
 5 resource string-
 6 subresource string-
 7 name string-
 8 fieldSelector FieldSelectorAttributes
 9 labelSelector LabelSelectorAttributes
ResourceClaim
 1 name string+!
 2 request string-
ResourceFieldSelector atomic
 1 containerName string-
 2 resource string+!
 3 divisor quantity+
ResourceHealth
 1 resourceID ResourceID+!
 2 health ResourceHealthStatus-
 6 message string
ResourceQuota
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec ResourceQuotaSpec+
 3 status ResourceQuotaStatus+
ResourceQuotaSpec
 1 hard ResourceList-
 2 scopes []ResourceQuotaScope- atomic
 3 scopeSelector ScopeSelector
ResourceQuotaStatus
 1 hard ResourceList-
 2 used ResourceList-
ResourceRequirements
 1 limits ResourceList-
 2 requests ResourceList-
 3 claims []ResourceClaim- map=name
ResourceRule
 1 verbs []string! atomic
 2 apiGroups []string- atomic
 3 resources []string- atomic
 4 resourceNames []string- atomic
ResourceStatus
 1 name ResourceName+!
 2 resources []ResourceHealth- map=resourceID
Role
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 rules []PolicyRule atomic
RoleBinding
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 subjects []Subject- atomic
 3 roleRef RoleRef+!
RoleRef atomic
 1 apiGroup string+
 2 kind string+!
 3 name string+!
RollingUpdateDeployment
 1 maxUnavailable intorstring
 2 maxSurge intorstring
SELinuxOptions
 1 user string-
 2 role string-
 3 type string-
 4 level string-
Scale
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec ScaleSpec+
 3 status ScaleStatus+
ScaleIOVolumeSource
 1 gateway string+!
 2 system string+!
 3 secretRef LocalObjectReference~
 4 sslEnabled bool-
 5 protectionDomain string-
 6 storagePool string-
 7 storageMode string-
 8 volumeName string-
 9 fsType string-
 10 readOnly bool-
ScaleSpec
 1 replicas int32-
ScaleStatus
 1 replicas int32+!
 2 selector string-
ScopeSelector atomic
 1 matchExpressions []ScopedResourceSelectorRequirement- atomic
ScopedResourceSelectorRequirement
 1 scopeName ResourceQuotaScope+!
 2 operator ScopeSelectorOperator+!
 3 values []string- atomic
SeccompProfile
 1 type SeccompProfileType+!
 2 localhostProfile string
Secret
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 5 immutable bool
 2 data {}bytes-
 4 stringData {}string-
 3 type SecretType-
SecretEnvSource
 1.1 name string-
 2 optional bool
SecretKeySelector atomic
 1.1 name string-
 2 key string+!
 3 optional bool
SecretProjection
 1.1 name string-
 2 items []KeyToPath- atomic
 4 optional bool
SecretVolumeSource
 1 secretName string-
 2 items []KeyToPath- atomic
 3 defaultMode int32
 4 optional bool
 5 defaultUser int64
SecurityContext
 1 capabilities Capabilities
 2 privileged bool
 3 seLinuxOptions SELinuxOptions
 10 windowsOptions WindowsSecurityContextOptions
 4 runAsUser int64
 8 runAsGroup int64
 5 runAsNonRoot bool
 6 readOnlyRootFilesystem bool
 7 allowPrivilegeEscalation bool
 9 procMount ProcMountType
 11 seccompProfile SeccompProfile
 12 appArmorProfile AppArmorProfile
SelfSubjectAccessReview
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec SelfSubjectAccessReviewSpec+!
 3 status SubjectAccessReviewStatus+
SelfSubjectAccessReviewSpec
 1 resourceAttributes ResourceAttributes
 2 nonResourceAttributes NonResourceAttributes
SelfSubjectReview
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 status SelfSubjectReviewStatus+
SelfSubjectReviewStatus
 1 userInfo UserInfo+
SelfSubjectRulesReview
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec SelfSubjectRulesReviewSpec+!
 3 status SubjectRulesReviewStatus+
SelfSubjectRulesReviewSpec
 1 namespace string-
Service
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec ServiceSpec+
 3 status ServiceStatus+
ServiceAccount
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 secrets []ObjectReference- patch=merge:name map=name
 3 imagePullSecrets []LocalObjectReference- atomic
 4 automountServiceAccountToken bool
ServiceAccountTokenProjection
 1 audience string-
 2 expirationSeconds int64
 3 path string+!
 4 user int64
ServicePort
 1 name string-
 2 protocol Protocol-
 6 appProtocol string
 3 port int32+!
 4 targetPort intorstring+
 5 nodePort int32-
ServiceSpec
 1 ports []ServicePort- patch=merge:port map=port,protocol
 2 selector {}string- atomic
 3 clusterIP string-
 18 clusterIPs []string- atomic
 4 type ServiceType-
 5 externalIPs []string- atomic
 7 sessionAffinity ServiceAffinity-
 8 loadBalancerIP string-
 9 loadBalancerSourceRanges []string- atomic
 10 externalName string-
 11 externalTrafficPolicy ServiceExternalTrafficPolicy-
 12 healthCheckNodePort int32-
 13 publishNotReadyAddresses bool-
 14 sessionAffinityConfig SessionAffinityConfig
 19 ipFamilies []IPFamily- atomic
 17 ipFamilyPolicy IPFamilyPolicy
 20 allocateLoadBalancerNodePorts bool
 21 loadBalancerClass string
 22 internalTrafficPolicy ServiceInternalTrafficPolicy
 23 trafficDistribution string
ServiceStatus
 1 loadBalancer LoadBalancerStatus+
 2 conditions []Condition- patch=merge:type map=type
SessionAffinityConfig
 1 clientIP ClientIPConfig
ShardInfo
 1 selector string+!
SleepAction
 1 seconds int64+!
Status
 0 kind string-
 0 apiVersion string-
 1 metadata ListMeta+
 2 status string-
 3 message string-
 4 reason StatusReason-
 5 details StatusDetails
 6 code int32-
StatusCause
 1 reason CauseType-
 2 message string-
 3 field string-
StatusDetails
 1 name string-
 2 group string-
 3 kind string-
 6 uid types.UID-
 4 causes []StatusCause- atomic
 5 retryAfterSeconds int32-
StorageOSVolumeSource
 1 volumeName string-
 2 volumeNamespace string-
 3 fsType string-
 4 readOnly bool-
 5 secretRef LocalObjectReference
Subject atomic
 1 kind string+!
 2 apiGroup string-
 3 name string+!
 4 namespace string-
SubjectAccessReview
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec SubjectAccessReviewSpec+!
 3 status SubjectAccessReviewStatus+
SubjectAccessReviewSpec
 1 resourceAttributes ResourceAttributes
 2 nonResourceAttributes NonResourceAttributes
 3 user string-
 4 groups []string- atomic
 5 extra {}[]string-
 6 uid string-
SubjectAccessReviewStatus
 1 allowed bool+!
 4 denied bool-
 2 reason string-
 3 evaluationError string-
SubjectRulesReviewStatus
 1 resourceRules []ResourceRule! atomic
 2 nonResourceRules []NonResourceRule! atomic
 3 incomplete bool+!
 4 evaluationError string-
Sysctl
 1 name string+!
 2 value string+!
TCPSocketAction
 1 port intorstring+!
 2 host string-
Taint
 1 key string+!
 2 value string-
 3 effect TaintEffect+!
 4 timeAdded time
TokenRequest
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec TokenRequestSpec+
 3 status TokenRequestStatus+
TokenRequestSpec
 1 audiences []string atomic
 4 expirationSeconds int64~
 3 boundObjectRef BoundObjectReference~
 5 attestations {}[]string-
TokenRequestStatus
 1 token string+
 2 expirationTimestamp time+
TokenReview
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec TokenReviewSpec+!
 3 status TokenReviewStatus+
TokenReviewSpec
 1 token string-!
 2 audiences []string- atomic
TokenReviewStatus
 1 authenticated bool-
 2 user UserInfo+
 4 audiences []string- atomic
 3 error string-
Toleration
 1 key string-
 2 operator TolerationOperator-
 3 value string-
 4 effect TaintEffect-
 5 tolerationSeconds int64
TopologySpreadConstraint
 1 maxSkew int32+!
 2 topologyKey string+!
 3 whenUnsatisfiable UnsatisfiableConstraintAction+!
 4 labelSelector LabelSelector
 5 minDomains int32
 6 nodeAffinityPolicy NodeInclusionPolicy
 7 nodeTaintsPolicy NodeInclusionPolicy
 8 matchLabelKeys []string- atomic
TypedLocalObjectReference atomic
 1 apiGroup string~
 2 kind string+!
 3 name string+!
TypedObjectReference
 1 apiGroup string~
 2 kind string+!
 3 name string+!
 4 namespace string
UpdateOptions
 0 kind string-
 0 apiVersion string-
 1 dryRun []string- atomic
 2 fieldManager string-
 3 fieldValidation string-
UserInfo
 1 username string-
 2 uid string-
 3 groups []string- atomic
 4 extra {}[]string-
Volume
 1 name string+!
 2.1 hostPath HostPathVolumeSource
 2.2 emptyDir EmptyDirVolumeSource
 2.3 gcePersistentDisk GCEPersistentDiskVolumeSource
 2.4 awsElasticBlockStore AWSElasticBlockStoreVolumeSource
 2.5 gitRepo GitRepoVolumeSource
 2.6 secret SecretVolumeSource
 2.7 nfs NFSVolumeSource
 2.8 iscsi ISCSIVolumeSource
 2.9 glusterfs GlusterfsVolumeSource
 2.10 persistentVolumeClaim PersistentVolumeClaimVolumeSource
 2.11 rbd RBDVolumeSource
 2.12 flexVolume FlexVolumeSource
 2.13 cinder CinderVolumeSource
 2.14 cephfs CephFSVolumeSource
 2.15 flocker FlockerVolumeSource
 2.16 downwardAPI DownwardAPIVolumeSource
 2.17 fc FCVolumeSource
 2.18 azureFile AzureFileVolumeSource
 2.19 configMap ConfigMapVolumeSource
 2.20 vsphereVolume VsphereVirtualDiskVolumeSource
 2.21 quobyte QuobyteVolumeSource
 2.22 azureDisk AzureDiskVolumeSource
 2.23 photonPersistentDisk PhotonPersistentDiskVolumeSource
 2.26 projected ProjectedVolumeSource
 2.24 portworxVolume PortworxVolumeSource
 2.25 scaleIO ScaleIOVolumeSource
 2.27 storageos StorageOSVolumeSource
 2.28 csi CSIVolumeSource
 2.29 ephemeral EphemeralVolumeSource
 2.30 image ImageVolumeSource
VolumeDevice
 1 name string+!
 2 devicePath string+!
VolumeHealthCondition
 1 status VolumeHealthStatusType+!
 2 reason string+!
 3 message string-
VolumeHealthStatus
 1 healthConditions []VolumeHealthCondition- patch=merge:status map=status,reason
 2 lastTransitionTime time+
VolumeMount
 1 name string+!
 2 readOnly bool-
 7 recursiveReadOnly RecursiveReadOnlyMode
 3 mountPath string+!
 4 subPath string-
 5 mountPropagation MountPropagationMode
 6 subPathExpr string-
 8 bindMountOptions []string- set
VolumeMountStatus
 1 name string+!
 2 mountPath string+!
 3 readOnly bool-
 4 recursiveReadOnly RecursiveReadOnlyMode
 5 volumeStatus VolumeStatus
VolumeProjection
 1 secret SecretProjection
 2 downwardAPI DownwardAPIProjection
 3 configMap ConfigMapProjection
 4 serviceAccountToken ServiceAccountTokenProjection
 5 clusterTrustBundle ClusterTrustBundleProjection
 6 podCertificate PodCertificateProjection
VolumeResourceRequirements
 1 limits ResourceList-
 2 requests ResourceList-
VolumeStatus
 1 image ImageVolumeStatus
VsphereVirtualDiskVolumeSource
 1 volumePath string+!
 2 fsType string-
 3 storagePolicyName string-
 4 storagePolicyID string-
WeightedPodAffinityTerm
 1 weight int32+!
 2 podAffinityTerm PodAffinityTerm+!
WindowsSecurityContextOptions
 1 gmsaCredentialSpecName string
 2 gmsaCredentialSpec string
 3 runAsUserName string
 4 hostProcess bool
core.Event
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+!
 2 involvedObject ObjectReference+!
 3 reason string-
 4 message string-
 5 source EventSource+
 6 firstTimestamp time+
 7 lastTimestamp time+
 8 count int32-
 9 type string-
 10 eventTime microtime+
 11 series core.EventSeries
 12 action string-
 13 related ObjectReference
 14 reportingComponent string+
 15 reportingInstance string+
core.EventSeries
 1 count int32-
 2 lastObservedTime microtime+
events.Event
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 eventTime microtime+!
 3 series events.EventSeries
 4 reportingController string-
 5 reportingInstance string-
 6 action string-
 7 reason string-
 8 regarding ObjectReference+
 9 related ObjectReference
 10 note string-
 11 type string-
 12 deprecatedSource EventSource+
 13 deprecatedFirstTimestamp time+
 14 deprecatedLastTimestamp time+
 15 deprecatedCount int32-
events.EventSeries
 1 count int32+!
 2 lastObservedTime microtime+!
"""
