"""Single-line mutations that no test can tell from the code, and why: each is the same in all that anybody sees."""

_MADE = "elbowroom.apiserver.machine:ApiServer._made: "
_MEMORY = "only how long a parsed document is kept in memory: it is made again from its bytes when it is asked for"
_DROPPING = "the floor could rise again while old rows are still being dropped: they go all the same, a timer later"
_KINDS = "a definition is told to its own watchers; those of the kind that it defines are others, and end either way"
_TIMER = "a timer holds at once, wherever it stands, and dies with the process"
_FLOOR = "elbowroom.apiserver.machine:ApiServer._raise_floor: "
_RAISED = (
    "[Step('C1'), persist, Step('C2'), Note('compacted', {'floor': self._store.floor}), *ended, SetTimer(DROPPING, now)]",
    "[Step('C1'), persist, Note('compacted', {'floor': self._store.floor}), Step('C2'), *ended, SetTimer(DROPPING, now)]",
    "[Step('C1'), persist, Step('C2'), *ended, Note('compacted', {'floor': self._store.floor}), SetTimer(DROPPING, now)]",
    "[Step('C1'), persist, Step('C2'), Note('compacted', {'floor': self._store.floor}), SetTimer(DROPPING, now), *ended]",
)
_APART = "the two have nothing to do with each other, and neither leaves the process"
_CUT = "a file is cut to the length that it has"
_DISMISSED = "who was dismissed counts for nothing already"
_NOT_RESIZED = "who leaves is not resized any more"
_STATUS_WAKES = "the status of the pod that has left wakes it, too, as soon as it has come back"
_MOVED = "whoever has left CPUs is moved off them in the same step, which goes on with the pod"
_TEMPORARY = "in either order a death in between leaves a temporary file at most, which the next life removes"
_JUDGED = "the verdict was given in this step; of the earlier allocation only refusals speak"
_TOLD = "whichever comes first tells of it, and the other finds nothing new to tell"
_LOOKED_AT = "what was done to a container is looked at before anything is told or decided"
_ANYTHING = "of what is asked for only whether it is anything at all is looked at here"
_FITS_EMPTY = "what the node does not have nobody waits for here: it was asked before whether the pod fits the empty node"
_LET_GO = "the next pass finds that it has what it asks for, and lets it go"
_AFTER = "the floor is durable first; in which order the rest follows is no promise, and no reader can see it"

SURVIVORS: dict[str, str] = {
    "elbowroom.api.resources:maximum: value > largest[name] => value >= largest[name]": "of equal numbers either is the largest",
    "elbowroom.api.resources:_largest: value > largest[name] => value >= largest[name]": "of equal amounts either is the largest",
    "elbowroom.api.resources:_aggregate: [*pod.status.container_statuses, *pod.status.init_container_statuses] => "
    "[*pod.status.init_container_statuses, *pod.status.container_statuses]": "no two containers of a pod bear one name",
    "elbowroom.scheduler.plugins.resources:_ordered: 3 => 4": "any number above those of the known resources puts others last",
    _MADE + "for resource in served_anew(served.changes): => (after) effects.append(_A9)": _KINDS,
    "elbowroom.apiserver.machine:ApiServer._compact: [*rows, Step('C3'), SetTimer(DROPPING, now)] => "
    "[*rows, SetTimer(DROPPING, now), Step('C3')]": _TIMER,
    "elbowroom.kubelet.admission:lacks: 4 => 5": "any number above those of the four known resources puts the others last",
    _MADE + "effects.append(_A9) => (after) for change in served.changes:": _MEMORY,
    _MADE + "change.old.release() => pass": _MEMORY,
    _MADE + "change.record.release() => pass": _MEMORY,
    _MADE + "change.deleted or change.record.resource in SELDOM_READ => "
    "change.deleted and change.record.resource in SELDOM_READ": _MEMORY,
    _MADE + "change.record.resource in SELDOM_READ => change.record.resource not in SELDOM_READ": _MEMORY,
    _FLOOR + "self._dropping = True => pass": _DROPPING,
    _FLOOR + "True => False": _DROPPING,
    "elbowroom.host.incarnation:Incarnation._group: passed.pop() => (after) self._carry_out(before)": _APART,
    "elbowroom.host.disks:SystemFiles.write: os.fstat(file).st_size > len(value) => os.fstat(file).st_size >= len(value)": _CUT,
    "elbowroom.kubelet.checkpoint:Checkpoint.forget: self.entries.pop(uid, None) => (after) self._encoded.pop(uid, None)": _APART,
    "elbowroom.host.disks:FilesDisk.commit: self._files.sync(folder) => (after) moved.clear()": _APART,
    "elbowroom.host.disks:FilesDisk.commit: self._files.sync(folder) (place 2) => (after) moved.clear()": _APART,
    "elbowroom.host.disks:FilesDisk.commit: _tell(step, labels) => (after) moved.add(target)": _APART,
    "elbowroom.host.disks:FilesDisk.commit: self._files.remove(target) => (after) self._files.remove(temporary)": _TEMPORARY,
    "elbowroom.kubelet.resizes:Resizes._grant: kubelet.scaling.carry_out(now, worker.pod, worker.allocated_pod) => "
    "(after) kubelet.allocated.put(worker.uid, self.wanted(worker))": _JUDGED,
    "elbowroom.kubelet.resizes:Resizes._grant: worker.granted(now) => (after) kubelet.publish(now, worker)": _TOLD,
    "elbowroom.kubelet.resizer:Resizer._updated: "
    "owner.put_state(msgspec.structs.replace(state, resources=state.resources.updated(told))) => pass": _LOOKED_AT,
    "elbowroom.kubelet.resizer:Resizer._next: self._operations = self._operations[1:] => (after) self._owner.touch()": _APART,
    "elbowroom.kubelet.resizer:Resizer._pod_written: self._written = operation.after => (after) self._next(now, body)": _APART,
    "elbowroom.kubelet.resizer:Resizer._updated: state is not None => state is None": _LOOKED_AT,
    **{
        f"elbowroom.kubelet.intake:Intake.remove: {one} => (after) {other}": why
        for one, other, why in (
            ("kubelet.roster.dismiss(worker)", "kubelet.doorkeeper.let_go(worker, worker.pod.status.phase or 'Unknown')", _APART),
            ("kubelet.doorkeeper.let_go(worker, worker.pod.status.phase or 'Unknown')", "resizes.terminated(now, worker)", _APART),
            ("resizes.terminated(now, worker)", "kubelet.doorkeeper.forget(worker)", _APART),
            ("kubelet.doorkeeper.forget(worker)", "kubelet.statuses.forget(worker)", _APART),
            ("kubelet.statuses.forget(worker)", "kubelet.allocated.forget(worker.uid)", _APART),
            ("kubelet.allocated.forget(worker.uid)", "kubelet.actuated.forget(worker.uid)", _APART),
            ("kubelet.actuated.forget(worker.uid)", "worker.leave(now)", _NOT_RESIZED),
            ("worker.leave(now)", "kubelet.doorkeeper.admit_waiting(now)", _DISMISSED),
        )
    },
    "elbowroom.kubelet.resizer:Resizer._operate: kubelet.emit(*kubelet.actuated.save(), Step('K15 actuated record durable')) => "
    "(after) self._next(now, b'')": _APART,
    "elbowroom.kubelet.rounds:CpuRounds.come: resizes.attempt_all(now, POD_RESIZED) => pass": _STATUS_WAKES,
    "elbowroom.kubelet.rounds:CpuRounds.come: worker.sync(now) => pass": _MOVED,
    "elbowroom.kubelet.rounds:CpuRounds.come: (worker := workers.get(uid)) is not None => (worker := workers.get(uid)) is None": (
        f"{_MOVED}; {_STATUS_WAKES}"
    ),
    "elbowroom.kubelet.rounds:CpuRounds.come: self._due = any([worker.repin(now) for worker in list(workers.values())]) "
    "or scaling.waits => (after) for worker in left:": _MOVED,
    "elbowroom.scheduler.preemption:_units_on: for other in unit.here: => (after) gone.append(unit)": _APART,
    "elbowroom.scheduler.rehearsal:_Sums.put: self._pods += 1 => (after) count(self._requested, other.requests, 1)": _APART,
    "elbowroom.scheduler.preemption:_reprieve: stage.take(other) => (after) victims.append(other)": _APART,
    "elbowroom.scheduler.preemption:_reprieve: victims.append(other) => (after) violations += other.uid in protected": _APART,
    "elbowroom.scheduler.plugins.resources:_node_grew: 1 => 2": _ANYTHING,
    "elbowroom.scheduler.plugins.resources:_node_grew: 0 => 1": _FITS_EMPTY,
    "elbowroom.kubelet.resizes:Resizes._grant: self.note_allocation(worker, trigger) => "
    "(after) self._resolved(now, worker, 'accepted')": _APART,
    "elbowroom.kubelet.resizes:Resizes.attempt_all: self.retry_at = Instant(now + self._kubelet.config.retry_ns) => "
    "(after) self._passes += 1": _APART,
    "elbowroom.kubelet.resizes:Resizes.attempt_all: self._queue.keep(kept) => (after) self._ordered = False": _APART,
    "elbowroom.kubelet.resizes:Resizes.wished: self._kubelet.emit(Step('K2 queued')) => "
    "(after) self._ordered = worker.uid not in self._queue": _APART,
    "elbowroom.kubelet.resizes:Resizes.wished: self.clear(now, worker, 'reverted') => "
    "(after) self._queue.remove(worker.uid)": _APART,
    "elbowroom.kubelet.resizes:Resizes.wished: self._queue.remove(worker.uid) => pass": _LET_GO,
    "elbowroom.kubelet.resizer:Resizer._updated: kubelet.emit(Step(operation.labels[1])) => "
    "(after) owner.record(operation.name, operation.amounts.record(), 'update')": _APART,
    **{f"{_FLOOR}{_RAISED[0]} => {other}": _AFTER for other in _RAISED[1:]},
}
