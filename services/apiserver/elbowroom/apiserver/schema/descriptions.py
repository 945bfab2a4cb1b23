"""What fields mean, in a sentence: for ``kubectl explain``.

A line is ``Type: text`` or ``Type.field: text``; ``*`` stands for any type.
"""

from functools import cache

_TEXTS = """
*.kind: The kind of this document.
*.apiVersion: The group and version of the schema that this document follows.
*.metadata: The object's name and all that is common to objects.
*.spec: What is wanted.
*.status: What was observed; written by the system.
*.conditions: Statements about the object, one of each type.
ObjectMeta: What all stored objects have: identity, labels, versions, owners.
ObjectMeta.name: Unique among the objects of its kind in the namespace; it cannot change.
ObjectMeta.generateName: A prefix from which the server makes a unique name if none is given.
ObjectMeta.namespace: The space in which the name is unique; empty for cluster-scoped kinds.
ObjectMeta.uid: Made by the server; tells this object from others that had or will have its name.
ObjectMeta.resourceVersion: Changes with every write; give it back to write only if nobody else did meanwhile.
ObjectMeta.generation: Counts the changes of what is wanted.
ObjectMeta.creationTimestamp: When the server stored the object first.
ObjectMeta.deletionTimestamp: When the object will be gone, or may be; set by a graceful deletion.
ObjectMeta.deletionGracePeriodSeconds: How many seconds the object has to end in order.
ObjectMeta.labels: Words to select objects by.
ObjectMeta.annotations: Notes by name that nothing selects by.
ObjectMeta.ownerReferences: Objects that this one depends on; when all are gone it is collected.
ObjectMeta.finalizers: Who has yet to do something before the object may vanish.
ObjectMeta.managedFields: Which manager set which field.
Pod: Containers that run together on one node.
PodSpec: What the containers are and how they are to run.
PodSpec.containers: The containers of the pod; at least one. They cannot be added or removed later.
PodSpec.initContainers: Containers that run one after the other before the others; with restartPolicy Always, beside them.
PodSpec.ephemeralContainers: Containers added to a running pod to look into it.
PodSpec.volumes: Storage that the containers can mount.
PodSpec.nodeName: The node that the pod is bound to; empty while it waits for the scheduler.
PodSpec.nodeSelector: Labels that a node must have.
PodSpec.affinity: Preferences and conditions about nodes and neighbours.
PodSpec.tolerations: Taints of a node that the pod puts up with.
PodSpec.priority: The number of its priority class; higher ones may preempt lower ones.
PodSpec.priorityClassName: The priority class.
PodSpec.preemptionPolicy: PreemptLowerPriority lets it displace pods of lower priority, Never does not.
PodSpec.restartPolicy: Whether ended containers start again: Always, OnFailure or Never.
PodSpec.schedulerName: Which scheduler places it.
PodSpec.schedulingGates: Reasons that keep the scheduler from looking at it.
PodSpec.terminationGracePeriodSeconds: How long its processes have between SIGTERM and SIGKILL.
PodSpec.activeDeadlineSeconds: How long it may be active before it is failed.
PodSpec.overhead: Resources that the sandbox itself takes.
PodSpec.resources: Requests and limits of the pod as a whole; containers share what they do not name.
PodSpec.scaleDownGracePeriodSeconds: How long exclusive CPUs stay usable after they were taken away in a resize.
PodSpec.topologySpreadConstraints: How evenly pods are to be spread.
Container: A program in an image, with its resources.
Container.name: A DNS label, unique in the pod.
Container.image: The image to run.
Container.resources: What the container asks for and is held to; cpu and memory can change in place, through /resize.
Container.resizePolicy: For each resource, whether changing it needs a restart of the container.
Container.restartPolicy: Always makes an init container a sidecar.
Container.imagePullPolicy: When the image is fetched: Always, IfNotPresent or Never.
Container.env: Environment variables.
Container.ports: Ports that it listens at.
Container.volumeMounts: Where volumes appear in its file system.
Container.livenessProbe: A check whose failure restarts the container.
Container.readinessProbe: A check whose failure takes the pod out of service.
Container.startupProbe: A check that holds back the other two until it first succeeds.
ContainerResizePolicy: What changing a resource of a running container needs.
ContainerResizePolicy.resourceName: cpu or memory.
ContainerResizePolicy.restartPolicy: NotRequired changes it in place, RestartContainer restarts the container.
ResourceRequirements: How much of each resource is asked for at least and used at most.
ResourceRequirements.requests: What the scheduler sets aside; a limit stands in for an absent request.
ResourceRequirements.limits: What is never exceeded.
ResourceRequirements.claims: Names of the pod's resource claims that the container uses.
PodStatus: Where the pod stands; the kubelet writes it.
PodStatus.phase: Pending, Running, Succeeded, Failed or Unknown.
PodStatus.conditions: PodScheduled, Initialized, Ready and others; PodResizePending and PodResizeInProgress tell of a resize.
PodStatus.observedGeneration: The generation that the kubelet's status speaks of.
PodStatus.nominatedNodeName: A node on which room is being made for the pod.
PodStatus.qosClass: Guaranteed, Burstable or BestEffort, by requests and limits; fixed at creation.
PodStatus.containerStatuses: The containers, one by one.
PodStatus.initContainerStatuses: The init containers, one by one.
PodStatus.allocatedResources: What the node has set aside for the pod as a whole.
PodStatus.resources: What the pod as a whole has in effect.
PodStatus.podIP: Its address in the cluster.
PodStatus.hostIP: Its node's address.
PodStatus.startTime: When the kubelet took it in.
PodStatus.reason: Why it is in its state, in a word.
PodStatus.message: Why it is in its state, for people.
PodCondition: One statement about a pod.
PodCondition.type: What the statement is about.
PodCondition.status: True, False or Unknown.
PodCondition.reason: Why, in a word: Deferred or Infeasible for a pending resize, Error for one in progress.
PodCondition.message: Why, for people.
PodCondition.observedGeneration: The generation of the pod for which this was found.
PodCondition.lastProbeTime: When it was last looked at.
PodCondition.lastTransitionTime: When the status last changed.
ContainerStatus: Where one container stands.
ContainerStatus.name: The container.
ContainerStatus.state: Waiting, running or terminated, and since when.
ContainerStatus.lastState: How its run before this one ended.
ContainerStatus.ready: Does it pass its readiness probe?
ContainerStatus.restartCount: How often it was started again.
ContainerStatus.started: Did it pass its startup probe?
ContainerStatus.allocatedResources: The requests that the node has granted.
ContainerStatus.resources: The requests and limits that are in effect.
ContainerStatus.resizeStatus: Deferred, Infeasible, InProgress or Succeeded, for those who look at containers one by one.
Node: A machine that runs pods.
NodeSpec: How a node is to behave.
NodeSpec.unschedulable: No new pods are placed here.
NodeSpec.taints: Marks that keep away pods which do not tolerate them.
NodeSpec.podPreemptionPolicy: Which preemptions are not wanted on this node.
NodePodPreemptionPolicy: Node-wide limits of preemption.
NodePodPreemptionPolicy.disableResizePreemption: Who asks that no pod be preempted here for a resize; any entry counts.
NodeStatus: Where a node stands; its kubelet writes it.
NodeStatus.capacity: What the machine has.
NodeStatus.allocatable: What of it pods can have.
NodeStatus.conditions: Ready, MemoryPressure and others.
NodeStatus.addresses: Where the node is reached.
NodeStatus.images: Images that are on the node.
NodeStatus.declaredFeatures: Features of the kubelet that pods may depend on.
NodeStatus.nodeInfo: Versions of kernel, kubelet and runtime.
Namespace: A space for names.
PodGroup: Pods that are scheduled, and disrupted, as one.
PodGroupSpec.workloadRef: The template of a Workload that the group was made from.
PodGroupSpec.schedulingPolicy: Whether its pods are scheduled one by one (basic) or all or none (gang).
PodGroupSpec.disruptionMode: Whether its pods can go by themselves (single) or only together (all).
PodGroupSpec.priorityClassName: The priority class of the group.
PodGroupSpec.priority: The number of its priority class.
GangSchedulingPolicy.minCount: How many pods there must be room for at once.
Workload: Templates of the groups that a workload's pods belong to.
WorkloadSpec.controllerRef: The object that the workload stands for.
WorkloadSpec.podGroupTemplates: The templates, at most eight, which cannot be added or removed later.
PriorityClass: A named priority.
PriorityClass.value: The priority; pods of higher value come first.
PriorityClass.globalDefault: Pods that name no class get this one.
PriorityClass.preemptionPolicy: PreemptLowerPriority or Never, for the pods of the class.
PriorityClass.description: When to use the class.
PodDisruptionBudget: How many pods of a kind may be away at once through evictions.
PodDisruptionBudgetSpec: Which pods, and how many must stay.
PodDisruptionBudgetSpec.minAvailable: So many, or such a part, must stay.
PodDisruptionBudgetSpec.maxUnavailable: So many, or such a part, may be away.
PodDisruptionBudgetSpec.selector: The pods that count.
PodDisruptionBudgetStatus.disruptionsAllowed: How many evictions are let through now.
LimitRange: Bounds and defaults of resources in a namespace.
LimitRangeItem.max: No more than this.
LimitRangeItem.min: No less than this.
LimitRangeItem.default: The limit of a container that names none.
LimitRangeItem.defaultRequest: The request of a container that names none.
ResourceQuota: How much a namespace may use in total.
ResourceQuotaSpec.hard: The bound of each resource.
ResourceQuotaStatus.used: What is used now.
Event: Something that happened to an object.
Lease: Somebody's claim that runs out unless it is renewed.
LeaseSpec.holderIdentity: Who holds it.
LeaseSpec.leaseDurationSeconds: After so long without renewal it is free.
LeaseSpec.renewTime: When it was last renewed.
ConfigMap: Configuration by name.
ConfigMap.data: Texts by key.
ConfigMap.binaryData: Bytes by key.
ConfigMap.immutable: The data can no longer change.
ServiceAccount: An identity for the programs in pods.
Deployment: Keeps replicas of a pod running and rolls out changes of it.
DeploymentSpec: Which pods, how many, and how to replace them.
DeploymentSpec.replicas: How many pods.
DeploymentSpec.selector: The pods that it takes for its own.
DeploymentSpec.template: What the pods are like.
DeploymentSpec.strategy: How old pods give way to new ones.
DeploymentSpec.paused: Changes are not rolled out.
DeploymentSpec.minReadySeconds: How long a pod must be ready to count as available.
DeploymentSpec.revisionHistoryLimit: How many old replica sets are kept.
DeploymentSpec.progressDeadlineSeconds: After so long without progress the roll-out has failed.
DeploymentStrategy: How old pods give way to new ones.
DeploymentStrategy.type: RollingUpdate or Recreate.
DeploymentStrategy.rollingUpdate: How fast, for RollingUpdate.
RollingUpdateDeployment: How many pods may be too few or too many while it rolls.
RollingUpdateDeployment.maxSurge: So many more than wanted.
RollingUpdateDeployment.maxUnavailable: So many fewer than wanted.
ReplicaSet: Keeps a number of equal pods running.
ReplicaSetSpec.replicas: How many pods.
ReplicaSetSpec.selector: The pods that it takes for its own.
ReplicaSetSpec.template: What the pods are like.
Scale: How many replicas a workload has and wants.
ScaleSpec.replicas: How many are wanted.
Binding: Puts a pod on a node.
Eviction: Asks that a pod be deleted if its disruption budgets allow it.
DeleteOptions: How to delete.
DeleteOptions.gracePeriodSeconds: How long the object has to end; 0 is at once.
DeleteOptions.propagationPolicy: What becomes of dependents: Orphan, Background or Foreground.
DeleteOptions.preconditions: Delete only this uid or resource version.
"""


@cache
def _texts() -> dict[str, str]:
    return {name: text for name, _, text in (line.partition(": ") for line in _TEXTS.strip().split("\n"))}


def description(struct: str, field: str = "") -> str:
    """What a type, or a field of it, means; empty where nothing is said."""
    if not field:
        return _texts().get(struct, "")
    return _texts().get(f"{struct}.{field}") or _texts().get(f"*.{field}", "")
