"""Bugs that need a certain order of events: a late answer, a death, a word that was lost.

Seeds of the simulated world catch them (tests/world/test_races.py), since no table of rules knows the order.
"""

from mutating import BODY, Change, Mutant

_MACHINE = "kubelet/test_kubelet_machine.py::"
_REPORTS = "kubelet/test_kubelet_reports.py::"
_PATHS = "scheduler/test_scheduler_paths.py::"
_LOSSES = "scheduler/test_scheduler_losses.py::"
_RACE = "world/test_races.py::test_whoever_comes_first_nobody_goes_in_vain"

RACES = (
    Mutant(
        "the-runtime-is-told-before-the-checkpoint",
        "BR-071",
        "a resize reaches the runtime before the kubelet can remember it",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes._grant",
                "kubelet.emit(*kubelet.allocated.save(), Step('K8 memory state'))",
                "None",
            ),
            Change(
                "elbowroom.kubelet.resizes:Resizes._grant",
                "worker.granted(now)",
                "worker.granted(now)\nkubelet.emit(*kubelet.allocated.save(), Step('K8 memory state'))",
            ),
        ),
        (_MACHINE + "test_the_allocation_is_durable_before_anything_shows_it",),
    ),
    Mutant(
        "actuated-before-it-was-told",
        "BR-007",
        "the record says that a container has what it is only about to get",
        (
            Change(
                "elbowroom.kubelet.resizer:Resizer._operate",
                "kubelet.emit(Step(operation.labels[0]))",
                "kubelet.emit(Step(operation.labels[0]))\n"
                "owner.record(operation.name, operation.amounts.record(), 'update')\n"
                "kubelet.emit(*kubelet.actuated.save())",
            ),
        ),
        ("world/test_resize_storm.py::test_a_quiet_storm_ends_where_its_last_word_says[0-lab]",),
        slow=True,
    ),
    Mutant(
        "what-was-told-is-not-compared",
        "BR-072",
        "a kubelet that died between a call and its record takes the record for the truth",
        (Change("elbowroom.kubelet.account:Account.correct", BODY, "return"),),
        (_REPORTS + "test_what_the_runtime_was_told_in_an_earlier_life_is_set_right",),
    ),
    Mutant(
        "a-gap-is-not-noticed",
        "BR-066",
        "a reader that lost an event on the way does not ask for it",
        (
            Change(
                "elbowroom.cache.reflector:Reflector._on_event",
                "event.sequence != self._sequence + 1 or (self._initial is None and event.previous != self._revision)",
                "False",
            ),
            Change(
                "elbowroom.cache.reflector:Reflector._on_bookmark",
                "self._broken(now, f'a bookmark tells of {mark.sequence} events, {self._sequence} came')",
                "[]",
            ),
        ),
        ("machine/test_reflector.py::test_a_lost_event_is_noticed_and_the_stream_resumed",),
    ),
    Mutant(
        "the-preemptor-does-not-wait",
        "BR-077",
        "a preemptor looks for victims again while the first are being told",
        (
            Change("elbowroom.scheduler.actuation:Actuator.is_preempting", BODY, "return False"),
            Change("elbowroom.scheduler.actuation:Actuator.begin", "preemptor.uid in self._by_preemptor", "False"),
        ),
        (_PATHS + "test_the_preemptor_is_gated_while_its_victims_are_told",),
    ),
    Mutant(
        "a-round-under-way-is-forgotten",
        "BR-077",
        "with tracking on, a second look while the victims end takes more of them",
        (
            Change(
                "elbowroom.scheduler.preemption:ineligible",
                "pod.spec.node_name and is_deferred(pod) and world.tracking in ('specNodeName', 'memory')",
                "False",
            ),
        ),
        (
            "scheduler/test_scheduler_policies.py::test_a_second_look_takes_a_second_round_unless_the_first_is_tracked",
            _RACE + "[2: a neighbour shrinks-memory]",
        ),
        slow=True,
    ),
    Mutant(
        "a-deferral-that-ended-still-preempts",
        "BR-077",
        "a resize that was granted meanwhile stays in the scheduler's queue, and takes victims when it is tried",
        (
            Change(
                "elbowroom.scheduler.machine:Scheduler._assigned",
                "self._queue.remove(new.uid, 'no longer deferred')",
                "None",
            ),
        ),
        (_PATHS + "test_a_resize_taken_back_is_forgotten",),
    ),
    Mutant(
        "every-victim-is-told-at-once",
        "BR-077",
        "the last victim goes although another could not be told",
        (
            Change(
                "elbowroom.scheduler.actuation:Actuator._settle",
                "if round_.failed:\n    round_.last = None\n    return []",
                "",
            ),
        ),
        (_LOSSES + "test_a_refused_victim_spares_the_last_one_and_the_preemptor_tries_again",),
    ),
    Mutant(
        "the-freed-room-is-not-tried",
        "BR-015",
        "the end of a pod wakes no resize that waits for its room",
        (
            Change(
                "elbowroom.kubelet.intake:Intake.remove",
                "if len(resizes):\n    resizes.attempt_all(now, PODS_REMOVED)",
                "",
            ),
        ),
        ("world/test_preemption.py::test_without_faults_exactly_the_victims_needed_go",),
    ),
    Mutant(
        "victims-are-chosen-from-an-old-picture",
        "BR-091",
        "the scheduler chooses victims among the pods that were there when it first looked",
        (
            Change(
                "elbowroom.scheduler.machine:Scheduler._try",
                "self._snapshot.refresh(self._cache)",
                "self._snapshot.nodes or self._snapshot.refresh(self._cache)",
            ),
        ),
        (_RACE + "[4: the scheduler dies-memory]",),
    ),
)
