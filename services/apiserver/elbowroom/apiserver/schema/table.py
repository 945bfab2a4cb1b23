"""Names and types of the fields of Kubernetes v1.37, as its Go types have them.

``TYPES``: a struct's name (``atomic``: applied as a whole), then its fields in upstream's order, one a line::

    NUMBER name TYPE MARKS [patch=STRATEGY:KEY] [map=KEY,KEY | set | atomic] [preview]

NUMBER is the field's in protobuf: ``2.5`` for one that JSON shows in the parent of its message, 0 for none. TYPE is a struct, a
scalar, a name of ``STRINGS``, or one of them behind ``[]`` (list) or ``{}`` (map by string). MARKS say what Go writes: ``-`` a zero
value is left out, ``+`` it is always there, ``~`` there as null; none: as given. ``!`` the field is required.
``preview`` marks fields of designs that v1.37 has not (docs/profiles.md rows 11 and 13). Made by ``tools/field_table.py``.
"""

STRINGS = """
AddressType AppArmorProfileType AzureDataDiskCachingMode AzureDataDiskKind Capability CauseType ClaimResourceStatus
CompletionMode ConcurrencyPolicy ConditionStatus ContainerRestartPolicy ContainerRestartRuleAction
ContainerRestartRuleOnExitCodesOperator ConversionStrategyType CoordinatedLeaseStrategy
CustomResourceDefinitionConditionType DNSPolicy DaemonSetConditionType DaemonSetUpdateStrategyType DeletionPropagation
DeploymentConditionType DeploymentStrategyType FieldSelectorOperator FieldValueErrorReason FinalizerName GRPCProbeMode
HPAScalingPolicyType HTTPProtocol HorizontalPodAutoscalerConditionType HostPathType IPFamily IPFamilyPolicy JSONSchemaURL
JobConditionType LabelSelectorOperator LimitType LoadBalancerIPMode ManagedFieldsOperationType MetricSourceType
MetricTargetType MountPropagationMode NamespaceConditionType NamespacePhase NodeAddressType NodeConditionType
NodeInclusionPolicy NodePhase NodeSelectorOperator OSName PathType PersistentVolumeAccessMode
PersistentVolumeClaimConditionType PersistentVolumeClaimModifyVolumeStatus PersistentVolumeClaimPhase
PersistentVolumeClaimRetentionPolicyType PersistentVolumeMode PersistentVolumePhase PersistentVolumeReclaimPolicy
PodConditionType PodFSGroupChangePolicy PodFailurePolicyAction PodFailurePolicyOnExitCodesOperator PodManagementPolicyType
PodPhase PodQOSClass PodReplacementPolicy PodResizeStatus PodSELinuxChangePolicy PolicyType PreemptionPolicy ProcMountType
Protocol PullPolicy RecursiveReadOnlyMode ReplicaSetConditionType ResourceHealthStatus ResourceID ResourceName
ResourceQuotaScope ResourceResizeRestartPolicy ResourceScope RestartPolicy ScalingPolicySelect ScopeSelectorOperator
SeccompProfileType SecretType ServiceAffinity ServiceExternalTrafficPolicy ServiceInternalTrafficPolicy ServiceType Signal
StatefulSetConditionType StatefulSetUpdateStrategyType StatusReason StorageMedium SupplementalGroupsPolicy TaintEffect
TerminationMessagePolicy TolerationOperator URIScheme UnhealthyPodEvictionPolicyType UniqueVolumeName
UnsatisfiableConstraintAction VolumeBindingMode VolumeHealthStatusType types.UID
"""

KINDS = """
core/v1: Pod Node Namespace LimitRange ResourceQuota Event=core.Event ConfigMap Secret ServiceAccount Binding Service
 Endpoints PodTemplate PersistentVolumeClaim PersistentVolume
apps/v1: Deployment ReplicaSet ControllerRevision StatefulSet DaemonSet
batch/v1: Job CronJob
policy/v1: PodDisruptionBudget Eviction
scheduling.k8s.io/v1: PriorityClass
scheduling.k8s.io/v1beta1: PodGroup Workload
coordination.k8s.io/v1: Lease
autoscaling/v1: Scale HorizontalPodAutoscaler=autoscaling.HorizontalPodAutoscaler
autoscaling/v2: HorizontalPodAutoscaler=autoscalingv2.HorizontalPodAutoscaler
apiextensions.k8s.io/v1: CustomResourceDefinition
discovery.k8s.io/v1: EndpointSlice
storage.k8s.io/v1: StorageClass
networking.k8s.io/v1: Ingress IngressClass NetworkPolicy
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
AllCompositeDisruptionMode
AllDisruptionMode
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
AzureFilePersistentVolumeSource
 1 secretName string+!
 2 shareName string+!
 3 readOnly bool-
 4 secretNamespace string~
AzureFileVolumeSource
 1 secretName string+!
 2 shareName string+!
 3 readOnly bool-
BasicSchedulingPolicy
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
CSIPersistentVolumeSource
 1 driver string+!
 2 volumeHandle string+!
 3 readOnly bool-
 4 fsType string-
 5 volumeAttributes {}string-
 6 controllerPublishSecretRef SecretReference
 7 nodeStageSecretRef SecretReference
 8 nodePublishSecretRef SecretReference
 9 controllerExpandSecretRef SecretReference
 10 nodeExpandSecretRef SecretReference
CSIVolumeSource
 1 driver string+!
 2 readOnly bool
 3 fsType string
 4 volumeAttributes {}string-
 5 nodePublishSecretRef LocalObjectReference
Capabilities
 1 add []Capability- atomic
 2 drop []Capability- atomic
CephFSPersistentVolumeSource
 1 monitors []string! atomic
 2 path string-
 3 user string-
 4 secretFile string-
 5 secretRef SecretReference
 6 readOnly bool-
CephFSVolumeSource
 1 monitors []string! atomic
 2 path string-
 3 user string-
 4 secretFile string-
 5 secretRef LocalObjectReference
 6 readOnly bool-
CinderPersistentVolumeSource
 1 volumeID string+!
 2 fsType string-
 3 readOnly bool-
 4 secretRef SecretReference
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
CompositeBasicSchedulingPolicy
CompositeDisruptionMode
 1 single SingleCompositeDisruptionMode
 2 all AllCompositeDisruptionMode
CompositeGangSchedulingPolicy
 1 minGroupCount int32+!
CompositePodGroupSchedulingConstraints
 1 topology []schedulingbeta1.TopologyConstraint- atomic
CompositePodGroupSchedulingPolicy
 1 basic CompositeBasicSchedulingPolicy
 2 gang CompositeGangSchedulingPolicy
CompositePodGroupTemplate
 1 name string+!
 2 schedulingPolicy CompositePodGroupSchedulingPolicy+!
 3 schedulingConstraints CompositePodGroupSchedulingConstraints
 4 disruptionMode CompositeDisruptionMode
 5 priorityClassName string-
 6 priority int32
 7 preemptionPolicy PreemptionPolicy
 8 podGroupTemplates []PodGroupTemplate- map=name
 9 compositePodGroupTemplates []CompositePodGroupTemplate- map=name
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
ContainerResourceMetricSource
 1 name ResourceName+!
 2 target MetricTarget+!
 3 container string+!
ContainerResourceMetricStatus
 1 name ResourceName+!
 2 current MetricValueStatus+!
 3 container string+!
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
CronJob
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec CronJobSpec+!
 3 status CronJobStatus+
CronJobSpec
 1 schedule string+!
 8 timeZone string
 2 startingDeadlineSeconds int64
 3 concurrencyPolicy ConcurrencyPolicy-
 4 suspend bool
 5 jobTemplate JobTemplateSpec+!
 6 successfulJobsHistoryLimit int32
 7 failedJobsHistoryLimit int32
CronJobStatus
 1 active []ObjectReference- atomic
 4 lastScheduleTime time
 5 lastSuccessfulTime time
CustomResourceColumnDefinition
 1 name string+!
 2 type string+!
 3 format string-
 4 description string-
 5 priority int32-
 6 jsonPath string+!
CustomResourceConversion
 1 strategy ConversionStrategyType+!
 2 webhook WebhookConversion
CustomResourceDefinition
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec CustomResourceDefinitionSpec+!
 3 status CustomResourceDefinitionStatus+
CustomResourceDefinitionCondition
 1 type CustomResourceDefinitionConditionType+!
 2 status ConditionStatus+!
 3 lastTransitionTime time+
 4 reason string-
 5 message string-
 6 observedGeneration int64-
CustomResourceDefinitionNames
 1 plural string+!
 2 singular string-
 3 shortNames []string- atomic
 4 kind string+!
 5 listKind string-
 6 categories []string- atomic
CustomResourceDefinitionSpec
 1 group string+!
 3 names CustomResourceDefinitionNames+!
 4 scope ResourceScope+!
 7 versions []CustomResourceDefinitionVersion! atomic
 9 conversion CustomResourceConversion
 10 preserveUnknownFields bool-
CustomResourceDefinitionStatus
 1 conditions []CustomResourceDefinitionCondition map=type
 2 acceptedNames CustomResourceDefinitionNames+
 3 storedVersions []string atomic
 4 observedGeneration int64-
CustomResourceDefinitionVersion
 1 name string+!
 2 served bool+!
 3 storage bool+!
 7 deprecated bool-
 8 deprecationWarning string
 4 schema CustomResourceValidation
 5 subresources CustomResourceSubresources
 6 additionalPrinterColumns []CustomResourceColumnDefinition- atomic
 9 selectableFields []SelectableField- atomic
CustomResourceSubresourceScale
 1 specReplicasPath string+!
 2 statusReplicasPath string+!
 3 labelSelectorPath string
CustomResourceSubresourceStatus
CustomResourceSubresources
 1 status CustomResourceSubresourceStatus
 2 scale CustomResourceSubresourceScale
CustomResourceValidation
 1 openAPIV3Schema JSONSchemaProps
DaemonEndpoint
 1 Port int32+!
DaemonSet
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec DaemonSetSpec+!
 3 status DaemonSetStatus+
DaemonSetCondition
 1 type DaemonSetConditionType+
 2 status ConditionStatus+
 3 lastTransitionTime time+
 4 reason string-
 5 message string-
DaemonSetSpec
 1 selector LabelSelector~!
 2 template PodTemplateSpec+!
 3 updateStrategy DaemonSetUpdateStrategy+
 4 minReadySeconds int32-
 6 revisionHistoryLimit int32
DaemonSetStatus
 1 currentNumberScheduled int32+!
 2 numberMisscheduled int32+!
 3 desiredNumberScheduled int32+!
 4 numberReady int32+!
 5 observedGeneration int64-
 6 updatedNumberScheduled int32-
 7 numberAvailable int32-
 8 numberUnavailable int32-
 9 collisionCount int32
 10 conditions []DaemonSetCondition- patch=merge:type map=type
DaemonSetUpdateStrategy
 1 type DaemonSetUpdateStrategyType-
 2 rollingUpdate RollingUpdateDaemonSet
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
DisruptionMode
 1 single SingleDisruptionMode
 2 all AllDisruptionMode
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
Endpoint
 1 addresses []string! set
 2 conditions EndpointConditions+
 3 hostname string
 4 targetRef ObjectReference
 5 deprecatedTopology {}string-
 6 nodeName string
 7 zone string
 8 hints EndpointHints
EndpointAddress atomic
 1 ip string+!
 3 hostname string-
 4 nodeName string
 2 targetRef ObjectReference
EndpointConditions
 1 ready bool
 2 serving bool
 3 terminating bool
EndpointHints
 1 forZones []ForZone- atomic
 2 forNodes []ForNode- atomic
EndpointSlice
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 4 addressType AddressType+!
 2 endpoints []Endpoint atomic
 3 ports []discovery.EndpointPort atomic
EndpointSubset
 1 addresses []EndpointAddress- atomic
 2 notReadyAddresses []EndpointAddress- atomic
 3 ports []core.EndpointPort- atomic
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
ExternalDocumentation
 1 description string-
 2 url string-
ExternalMetricSource
 1 metric MetricIdentifier+!
 2 target MetricTarget+!
ExternalMetricStatus
 1 metric MetricIdentifier+!
 2 current MetricValueStatus+!
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
FlexPersistentVolumeSource
 1 driver string+!
 2 fsType string-
 3 secretRef SecretReference
 4 readOnly bool-
 5 options {}string-
FlexVolumeSource
 1 driver string+!
 2 fsType string-
 3 secretRef LocalObjectReference
 4 readOnly bool-
 5 options {}string-
FlockerVolumeSource
 1 datasetName string-
 2 datasetUUID string-
ForNode
 1 name string+!
ForZone
 1 name string+!
GCEPersistentDiskVolumeSource
 1 pdName string+!
 2 fsType string-
 3 partition int32-
 4 readOnly bool-
GRPCAction
 1 port int32+!
 2 service string~
 3 mode GRPCProbeMode
GangSchedulingPolicy
 1 minCount int32+!
GitRepoVolumeSource
 1 repository string+!
 2 revision string-
 3 directory string-
GlusterfsPersistentVolumeSource
 1 endpoints string+!
 2 path string+!
 3 readOnly bool-
 4 endpointsNamespace string
GlusterfsVolumeSource
 1 endpoints string+!
 2 path string+!
 3 readOnly bool-
HPAScalingPolicy
 1 type HPAScalingPolicyType+!
 2 value int32+!
 3 periodSeconds int32+!
HPAScalingRules
 3 stabilizationWindowSeconds int32
 1 selectPolicy ScalingPolicySelect
 2 policies []HPAScalingPolicy- atomic
 4 tolerance quantity
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
HTTPIngressPath
 1 path string-
 3 pathType PathType~!
 2 backend IngressBackend+!
HTTPIngressRuleValue
 1 paths []HTTPIngressPath! atomic
HorizontalPodAutoscalerBehavior
 1 scaleUp HPAScalingRules
 2 scaleDown HPAScalingRules
HorizontalPodAutoscalerCondition
 1 type HorizontalPodAutoscalerConditionType+!
 2 status ConditionStatus+!
 3 lastTransitionTime time+
 4 reason string-
 5 message string-
 6 observedGeneration int64
HostAlias
 1 ip string+!
 2 hostnames []string- atomic
HostIP
 1 ip string+!
HostPathVolumeSource
 1 path string+!
 2 type HostPathType
IPBlock
 1 cidr string+!
 2 except []string- atomic
ISCSIPersistentVolumeSource
 1 targetPortal string+!
 2 iqn string+!
 3 lun int32+!
 4 iscsiInterface string-
 5 fsType string-
 6 readOnly bool-
 7 portals []string- atomic
 8 chapAuthDiscovery bool-
 11 chapAuthSession bool-
 10 secretRef SecretReference
 12 initiatorName string
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
Ingress
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec IngressSpec+
 3 status IngressStatus+
IngressBackend
 4 service IngressServiceBackend
 3 resource core.TypedLocalObjectReference
IngressClass
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec IngressClassSpec+
IngressClassParametersReference
 1 apiGroup string
 2 kind string+!
 3 name string+!
 4 scope string~
 5 namespace string
IngressClassSpec
 1 controller string-
 2 parameters IngressClassParametersReference
IngressLoadBalancerIngress
 1 ip string-
 2 hostname string-
 4 ports []IngressPortStatus- atomic
IngressLoadBalancerStatus
 1 ingress []IngressLoadBalancerIngress- atomic
IngressPortStatus
 1 port int32+!
 2 protocol Protocol+!
 3 error string
IngressRule
 1 host string-
 2.1 http HTTPIngressRuleValue
IngressServiceBackend
 1 name string+!
 2 port ServiceBackendPort+
IngressSpec
 4 ingressClassName string
 1 defaultBackend IngressBackend
 2 tls []IngressTLS- atomic
 3 rules []IngressRule- atomic
IngressStatus
 1 loadBalancer IngressLoadBalancerStatus+
IngressTLS
 1 hosts []string- atomic
 2 secretName string-
JSONSchemaProps
 1 id string-
 2 $schema JSONSchemaURL-
 3 $ref string
 4 description string-
 5 type string-
 6 format string-
 7 title string-
 8 default any
 9 maximum float64
 10 exclusiveMaximum bool-
 11 minimum float64
 12 exclusiveMinimum bool-
 13 maxLength int64
 14 minLength int64
 15 pattern string-
 16 maxItems int64
 17 minItems int64
 18 uniqueItems bool-
 19 multipleOf float64
 20 enum []any- atomic
 21 maxProperties int64
 22 minProperties int64
 23 required []string- atomic
 24 items JSONSchemaProps
 25 allOf []JSONSchemaProps- atomic
 26 oneOf []JSONSchemaProps- atomic
 27 anyOf []JSONSchemaProps- atomic
 28 not JSONSchemaProps
 29 properties {}JSONSchemaProps-
 30 additionalProperties any
 31 patternProperties {}JSONSchemaProps-
 32 dependencies {}any-
 33 additionalItems any
 34 definitions {}JSONSchemaProps-
 35 externalDocs ExternalDocumentation
 36 example any
 37 nullable bool-
 38 x-kubernetes-preserve-unknown-fields bool
 39 x-kubernetes-embedded-resource bool-
 40 x-kubernetes-int-or-string bool-
 41 x-kubernetes-list-map-keys []string- atomic
 42 x-kubernetes-list-type string
 43 x-kubernetes-map-type string
 44 x-kubernetes-validations []ValidationRule- patch=merge:rule map=rule
Job
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec JobSpec+
 3 status JobStatus+
JobCondition
 1 type JobConditionType+!
 2 status ConditionStatus+!
 3 lastProbeTime time+
 4 lastTransitionTime time+
 5 reason string-
 6 message string-
JobSchedulingConfiguration
 1 schedulingPolicy WorkloadPodGroupSchedulingPolicy
 2 schedulingConstraints WorkloadPodGroupSchedulingConstraints
 3 disruptionMode WorkloadPodGroupDisruptionMode
 4 resourceClaims []WorkloadPodGroupResourceClaim- patch=merge:name map=name
JobSpec
 1 parallelism int32
 2 completions int32
 3 activeDeadlineSeconds int64
 11 podFailurePolicy PodFailurePolicy
 16 successPolicy SuccessPolicy
 7 backoffLimit int32
 12 backoffLimitPerIndex int32
 13 maxFailedIndexes int32
 4 selector LabelSelector
 5 manualSelector bool
 6 template PodTemplateSpec+!
 8 ttlSecondsAfterFinished int32
 9 completionMode CompletionMode
 10 suspend bool
 14 podReplacementPolicy PodReplacementPolicy
 15 managedBy string
 17 scheduling JobSchedulingConfiguration
JobStatus
 1 conditions []JobCondition- patch=merge:type atomic
 2 startTime time
 3 completionTime time
 4 active int32-
 5 succeeded int32-
 6 failed int32-
 11 terminating int32
 7 completedIndexes string-
 10 failedIndexes string
 8 uncountedTerminatedPods UncountedTerminatedPods
 9 ready int32
JobTemplateSpec
 1 metadata ObjectMeta+
 2 spec JobSpec+
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
LocalVolumeSource
 1 path string+!
 2 fsType string
ManagedFieldsEntry
 1 manager string-
 2 operation ManagedFieldsOperationType-
 3 apiVersion string-
 4 time time
 6 fieldsType string-
 7 fieldsV1 any
 8 subresource string-
MetricIdentifier
 1 name string+!
 2 selector LabelSelector
MetricSpec
 1 type MetricSourceType+!
 2 object ObjectMetricSource
 3 pods PodsMetricSource
 4 resource ResourceMetricSource
 7 containerResource ContainerResourceMetricSource
 5 external ExternalMetricSource
MetricStatus
 1 type MetricSourceType+!
 2 object ObjectMetricStatus
 3 pods PodsMetricStatus
 4 resource ResourceMetricStatus
 7 containerResource ContainerResourceMetricStatus
 5 external ExternalMetricStatus
MetricTarget
 1 type MetricTargetType+!
 2 value quantity
 3 averageValue quantity
 4 averageUtilization int32
MetricValueStatus
 1 value quantity
 2 averageValue quantity
 3 averageUtilization int32
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
NetworkPolicy
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec NetworkPolicySpec+
NetworkPolicyEgressRule
 1 ports []NetworkPolicyPort- atomic
 2 to []NetworkPolicyPeer- atomic
NetworkPolicyIngressRule
 1 ports []NetworkPolicyPort- atomic
 2 from []NetworkPolicyPeer- atomic
NetworkPolicyPeer
 1 podSelector LabelSelector
 2 namespaceSelector LabelSelector
 3 ipBlock IPBlock
NetworkPolicyPort
 1 protocol Protocol
 2 port intorstring
 3 endPort int32
NetworkPolicySpec
 1 podSelector LabelSelector+
 2 ingress []NetworkPolicyIngressRule- atomic
 3 egress []NetworkPolicyEgressRule- atomic
 4 policyTypes []PolicyType- atomic
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
ObjectMetricSource
 1 describedObject autoscalingv2.CrossVersionObjectReference+!
 2 target MetricTarget+!
 3 metric MetricIdentifier+!
ObjectMetricStatus
 1 metric MetricIdentifier+!
 2 current MetricValueStatus+!
 3 describedObject autoscalingv2.CrossVersionObjectReference+!
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
PersistentVolume
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec PersistentVolumeSpec+
 3 status PersistentVolumeStatus+
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
 7 dataSource core.TypedLocalObjectReference
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
PersistentVolumeSpec
 1 capacity ResourceList-
 2.1 gcePersistentDisk GCEPersistentDiskVolumeSource
 2.2 awsElasticBlockStore AWSElasticBlockStoreVolumeSource
 2.3 hostPath HostPathVolumeSource
 2.4 glusterfs GlusterfsPersistentVolumeSource
 2.5 nfs NFSVolumeSource
 2.6 rbd RBDPersistentVolumeSource
 2.7 iscsi ISCSIPersistentVolumeSource
 2.8 cinder CinderPersistentVolumeSource
 2.9 cephfs CephFSPersistentVolumeSource
 2.10 fc FCVolumeSource
 2.11 flocker FlockerVolumeSource
 2.12 flexVolume FlexPersistentVolumeSource
 2.13 azureFile AzureFilePersistentVolumeSource
 2.14 vsphereVolume VsphereVirtualDiskVolumeSource
 2.15 quobyte QuobyteVolumeSource
 2.16 azureDisk AzureDiskVolumeSource
 2.17 photonPersistentDisk PhotonPersistentDiskVolumeSource
 2.18 portworxVolume PortworxVolumeSource
 2.19 scaleIO ScaleIOPersistentVolumeSource
 2.20 local LocalVolumeSource
 2.21 storageos StorageOSPersistentVolumeSource
 2.22 csi CSIPersistentVolumeSource
 3 accessModes []PersistentVolumeAccessMode- atomic
 4 claimRef ObjectReference
 5 persistentVolumeReclaimPolicy PersistentVolumeReclaimPolicy-
 6 storageClassName string-
 7 mountOptions []string- atomic
 8 volumeMode PersistentVolumeMode
 9 nodeAffinity VolumeNodeAffinity
 10 volumeAttributesClassName string
PersistentVolumeStatus
 1 phase PersistentVolumePhase-
 2 message string-
 3 reason string-
 4 lastPhaseTransitionTime time
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
PodFailurePolicy
 1 rules []PodFailurePolicyRule! atomic
PodFailurePolicyOnExitCodesRequirement
 1 containerName string
 2 operator PodFailurePolicyOnExitCodesOperator+!
 3 values []int32! set
PodFailurePolicyOnPodConditionsPattern
 1 type PodConditionType+!
 2 status ConditionStatus+
PodFailurePolicyRule
 1 action PodFailurePolicyAction+!
 2 onExitCodes PodFailurePolicyOnExitCodesRequirement
 3 onPodConditions []PodFailurePolicyOnPodConditionsPattern- atomic
PodGroup
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec PodGroupSpec+!
 3 status PodGroupStatus+
PodGroupResourceClaim
 1 name string+!
 2 resourceClaimName string
 3 resourceClaimTemplateName string
PodGroupResourceClaimStatus
 1 name string+!
 2 resourceClaimName string
PodGroupSchedulingConstraints
 1 topology []schedulingbeta1.TopologyConstraint- atomic
PodGroupSchedulingPolicy
 1 basic BasicSchedulingPolicy
 2 gang GangSchedulingPolicy
PodGroupSpec
 1 parentCompositePodGroupName string
 2 workloadRef WorkloadReference
 3 schedulingPolicy PodGroupSchedulingPolicy+!
 4 schedulingConstraints PodGroupSchedulingConstraints
 5 resourceClaims []PodGroupResourceClaim- patch=merge,retainKeys:name map=name
 6 disruptionMode DisruptionMode
 7 priorityClassName string-
 8 priority int32
 9 preemptionPolicy PreemptionPolicy
PodGroupStatus
 1 conditions []Condition- patch=merge:type map=type
 2 resourceClaimStatuses []PodGroupResourceClaimStatus- patch=merge,retainKeys:name map=name
PodGroupTemplate
 1 name string+!
 2 schedulingPolicy PodGroupSchedulingPolicy+!
 3 schedulingConstraints PodGroupSchedulingConstraints~
 4 resourceClaims []PodGroupResourceClaim- patch=merge,retainKeys:name map=name
 5 disruptionMode DisruptionMode
 6 priorityClassName string-
 7 priority int32
 8 preemptionPolicy PreemptionPolicy
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
PodsMetricSource
 1 metric MetricIdentifier+!
 2 target MetricTarget+!
PodsMetricStatus
 1 metric MetricIdentifier+!
 2 current MetricValueStatus+!
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
RBDPersistentVolumeSource
 1 monitors []string! atomic
 2 image string+!
 3 fsType string-
 4 pool string-
 5 user string-
 6 keyring string-
 7 secretRef SecretReference
 8 readOnly bool-
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
ResourceMetricSource
 1 name ResourceName+!
 2 target MetricTarget+!
ResourceMetricStatus
 1 name ResourceName+!
 2 current MetricValueStatus+!
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
RollingUpdateDaemonSet
 1 maxUnavailable intorstring
 2 maxSurge intorstring
RollingUpdateDeployment
 1 maxUnavailable intorstring
 2 maxSurge intorstring
RollingUpdateStatefulSetStrategy
 1 partition int32
 2 maxUnavailable intorstring
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
ScaleIOPersistentVolumeSource
 1 gateway string+!
 2 system string+!
 3 secretRef SecretReference~!
 4 sslEnabled bool-
 5 protectionDomain string-
 6 storagePool string-
 7 storageMode string-
 8 volumeName string-
 9 fsType string-
 10 readOnly bool-
ScaleIOVolumeSource
 1 gateway string+!
 2 system string+!
 3 secretRef LocalObjectReference~!
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
SecretReference atomic
 1 name string-
 2 namespace string-
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
SelectableField
 1 jsonPath string+!
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
ServiceBackendPort atomic
 1 name string-
 2 number int32-
ServicePort
 1 name string-
 2 protocol Protocol-
 6 appProtocol string
 3 port int32+!
 4 targetPort intorstring+
 5 nodePort int32-
ServiceReference
 1 namespace string+!
 2 name string+!
 3 path string
 4 port int32
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
SingleCompositeDisruptionMode
SingleDisruptionMode
SleepAction
 1 seconds int64+!
StatefulSet
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec StatefulSetSpec+!
 3 status StatefulSetStatus+
StatefulSetCondition
 1 type StatefulSetConditionType+
 2 status ConditionStatus+
 3 lastTransitionTime time+
 4 reason string-
 5 message string-
StatefulSetOrdinals
 1 start int32+
StatefulSetPersistentVolumeClaimRetentionPolicy
 1 whenDeleted PersistentVolumeClaimRetentionPolicyType-
 2 whenScaled PersistentVolumeClaimRetentionPolicyType-
StatefulSetSpec
 1 replicas int32
 2 selector LabelSelector~!
 3 template PodTemplateSpec+!
 4 volumeClaimTemplates []PersistentVolumeClaim- atomic
 5 serviceName string+
 6 podManagementPolicy PodManagementPolicyType-
 7 updateStrategy StatefulSetUpdateStrategy+
 8 revisionHistoryLimit int32
 9 minReadySeconds int32-
 10 persistentVolumeClaimRetentionPolicy StatefulSetPersistentVolumeClaimRetentionPolicy
 11 ordinals StatefulSetOrdinals
StatefulSetStatus
 1 observedGeneration int64-
 2 replicas int32+!
 3 readyReplicas int32-
 4 currentReplicas int32-
 5 updatedReplicas int32-
 6 currentRevision string-
 7 updateRevision string-
 9 collisionCount int32
 10 conditions []StatefulSetCondition- patch=merge:type map=type
 11 availableReplicas int32+
StatefulSetUpdateStrategy
 1 type StatefulSetUpdateStrategyType-
 2 rollingUpdate RollingUpdateStatefulSetStrategy
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
StorageClass
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 provisioner string+!
 3 parameters {}string-
 4 reclaimPolicy PersistentVolumeReclaimPolicy
 5 mountOptions []string- atomic
 6 allowVolumeExpansion bool
 7 volumeBindingMode VolumeBindingMode
 8 allowedTopologies []TopologySelectorTerm- atomic
StorageOSPersistentVolumeSource
 1 volumeName string-
 2 volumeNamespace string-
 3 fsType string-
 4 readOnly bool-
 5 secretRef ObjectReference
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
SuccessPolicy
 1 rules []SuccessPolicyRule! atomic
SuccessPolicyRule
 1 succeededIndexes string
 2 succeededCount int32
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
TopologySelectorLabelRequirement
 1 key string+!
 2 values []string! atomic
TopologySelectorTerm atomic
 1 matchLabelExpressions []TopologySelectorLabelRequirement- atomic
TopologySpreadConstraint
 1 maxSkew int32+!
 2 topologyKey string+!
 3 whenUnsatisfiable UnsatisfiableConstraintAction+!
 4 labelSelector LabelSelector
 5 minDomains int32
 6 nodeAffinityPolicy NodeInclusionPolicy
 7 nodeTaintsPolicy NodeInclusionPolicy
 8 matchLabelKeys []string- atomic
TypedObjectReference
 1 apiGroup string~
 2 kind string+!
 3 name string+!
 4 namespace string
UncountedTerminatedPods
 1 succeeded []types.UID- set
 2 failed []types.UID- set
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
ValidationRule
 1 rule string+!
 2 message string-
 3 messageExpression string-
 4 reason FieldValueErrorReason
 5 fieldPath string-
 6 optionalOldSelf bool
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
VolumeNodeAffinity
 1 required NodeSelector
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
WebhookClientConfig
 3 url string
 1 service ServiceReference
 2 caBundle bytes-
WebhookConversion
 2 clientConfig WebhookClientConfig
 3 conversionReviewVersions []string! atomic
WeightedPodAffinityTerm
 1 weight int32+!
 2 podAffinityTerm PodAffinityTerm+!
WindowsSecurityContextOptions
 1 gmsaCredentialSpecName string
 2 gmsaCredentialSpec string
 3 runAsUserName string
 4 hostProcess bool
Workload
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec WorkloadSpec+!
WorkloadPodGroupAllDisruptionMode
WorkloadPodGroupBasicSchedulingPolicy
WorkloadPodGroupDisruptionMode
 1 single WorkloadPodGroupSingleDisruptionMode
 2 all WorkloadPodGroupAllDisruptionMode
WorkloadPodGroupGangSchedulingPolicy
 1 minCount int32
WorkloadPodGroupResourceClaim
 1 name string+!
 2 resourceClaimName string
 3 resourceClaimTemplateName string
WorkloadPodGroupSchedulingConstraints
 1 topology []schedulingalpha3.TopologyConstraint- atomic
WorkloadPodGroupSchedulingPolicy
 1 basic WorkloadPodGroupBasicSchedulingPolicy
 2 gang WorkloadPodGroupGangSchedulingPolicy
WorkloadPodGroupSingleDisruptionMode
WorkloadReference
 1 workloadName string+!
 2 templateName string+!
WorkloadSpec
 1 controllerRef schedulingbeta1.TypedLocalObjectReference
 2 podGroupTemplates []PodGroupTemplate map=name
 3 compositePodGroupTemplates []CompositePodGroupTemplate- map=name
autoscaling.CrossVersionObjectReference atomic
 1 kind string+!
 2 name string+!
 3 apiVersion string-
autoscaling.HorizontalPodAutoscaler
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec autoscaling.HorizontalPodAutoscalerSpec+!
 3 status autoscaling.HorizontalPodAutoscalerStatus+
autoscaling.HorizontalPodAutoscalerSpec
 1 scaleTargetRef autoscaling.CrossVersionObjectReference+!
 2 minReplicas int32
 3 maxReplicas int32+!
 4 targetCPUUtilizationPercentage int32
autoscaling.HorizontalPodAutoscalerStatus
 1 observedGeneration int64
 2 lastScaleTime time
 3 currentReplicas int32+!
 4 desiredReplicas int32+!
 5 currentCPUUtilizationPercentage int32
autoscalingv2.CrossVersionObjectReference
 1 kind string+!
 2 name string+!
 3 apiVersion string-
autoscalingv2.HorizontalPodAutoscaler
 0 kind string-
 0 apiVersion string-
 1 metadata ObjectMeta+
 2 spec autoscalingv2.HorizontalPodAutoscalerSpec+!
 3 status autoscalingv2.HorizontalPodAutoscalerStatus+
autoscalingv2.HorizontalPodAutoscalerSpec
 1 scaleTargetRef autoscalingv2.CrossVersionObjectReference+!
 2 minReplicas int32
 3 maxReplicas int32+!
 4 metrics []MetricSpec- atomic
 5 behavior HorizontalPodAutoscalerBehavior
autoscalingv2.HorizontalPodAutoscalerStatus
 1 observedGeneration int64
 2 lastScaleTime time
 3 currentReplicas int32-
 4 desiredReplicas int32+!
 5 currentMetrics []MetricStatus atomic
 6 conditions []HorizontalPodAutoscalerCondition- patch=merge:type map=type
core.EndpointPort atomic
 1 name string-
 2 port int32+!
 3 protocol Protocol-
 4 appProtocol string
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
core.TypedLocalObjectReference atomic
 1 apiGroup string~
 2 kind string+!
 3 name string+!
discovery.EndpointPort atomic
 1 name string
 2 protocol Protocol
 3 port int32
 4 appProtocol string
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
schedulingalpha3.TopologyConstraint
 1 key string+!
schedulingbeta1.TopologyConstraint
 1 key string+!
schedulingbeta1.TypedLocalObjectReference
 1 apiGroup string-
 2 kind string+!
 3 name string+!
"""
