"""Public reports of bugs in schedulers and their preemption, as mutants of ours."""

from mutating import BODY, Change, Mutant

_PATHS = "scheduler/test_scheduler_paths.py::"
_VICTIMS = "scheduler/test_scheduler_victims.py::"
_RESOURCES = "api/test_api_resources.py::"
_REPORTS = "scheduler/test_scheduler_reports.py::"
_RACES = "world/test_races.py::"

SCHEDULER = (
    Mutant(
        "the-allocation-is-not-counted",
        "BR-003",
        "what a kubelet has given away is free to the scheduler as long as it is neither desired nor actual",
        (
            Change(
                "elbowroom.api.resources:_effective_requests",
                "_largest(wanted, actual, allocated)",
                "_largest(wanted, actual)",
            ),
        ),
        (_RESOURCES + "test_effective_is_the_largest_of_the_three_sums",),
    ),
    Mutant(
        "the-infeasible-holds-room",
        "BR-005",
        "a desire that can never be met keeps others from the room",
        (Change("elbowroom.api.resources:_effective_requests", "infeasible = is_infeasible(pod)", "infeasible = False"),),
        (_RESOURCES + "test_an_infeasible_desire_does_not_count",),
    ),
    Mutant(
        "the-fit-forgets-the-neighbours-desires",
        "BR-067",
        "a resize counts its neighbours without what they wait for, though the rule in force says with it",
        (Change("elbowroom.scheduler.plugins.resources:_ResizeFits._requested", "not self._aligned", "False"),),
        (_VICTIMS + "test_desires_of_others_count_unless_the_fit_is_aligned_with_the_kubelet",),
    ),
    Mutant(
        "who-fits-is-forgotten",
        "BR-077",
        "a resize whose room was taken by another is not woken, and waits for the clock",
        (Change("elbowroom.scheduler.plugins.deferred:DeferredPodScheduling._neighbour_changed", BODY, "return False"),),
        (_PATHS + "test_a_parked_pod_is_woken_when_its_room_is_taken",),
    ),
    Mutant(
        "the-first-victim-is-taken-for-the-top-one",
        "BR-079",
        "between nodes with equal violations the one with the more important victim is chosen",
        (
            Change(
                "elbowroom.scheduler.preemption:_reprieve",
                "if violations:\n    victims.sort(key=lambda other: importance(other, world.now))",
                "",
            ),
        ),
        (_REPORTS + "test_of_nodes_with_equal_violations_the_one_with_the_lesser_victim_is_chosen",),
    ),
    Mutant(
        "a-disrupted-pod-is-charged-again",
        "BR-081",
        "a pod that its budget counts as disrupted already takes from the budget once more",
        (
            Change(
                "elbowroom.scheduler.preemption:violating",
                "not budget.covers(info) or info.pod.metadata.name in budget.disrupted",
                "not budget.covers(info)",
            ),
        ),
        (_REPORTS + "test_a_pod_that_its_budget_lists_as_disrupted_takes_nothing_from_it",),
    ),
    Mutant(
        "the-mark-bears-the-preemptors-class",
        "BR-083",
        "a victim of another class cannot be marked, since the mark would change its class",
        (
            Change(
                "elbowroom.scheduler.actuation:Actuator._mark",
                "with_condition(pod, condition)",
                '{**with_condition(pod, condition), "qosClass": "Guaranteed"}',
            ),
        ),
        (_REPORTS + "test_a_victims_mark_is_its_condition_and_nothing_else",),
    ),
    Mutant(
        "what-went-away-is-counted",
        "BR-091",
        "a pod that is gone holds its room in the scheduler's cache",
        (Change("elbowroom.scheduler.machine:Scheduler._pod_gone", "self._cache.remove_pod(old.uid)", "None"),),
        (_PATHS + "test_a_pod_that_ended_holds_no_room",),
    ),
    Mutant(
        "a-deleted-preemptor-keeps-its-promise",
        "BR-093",
        "the node stays promised to a preemptor that is gone",
        (Change("elbowroom.scheduler.machine:Scheduler._pod_gone", "self._nominator.remove(old.uid)", "None"),),
        (_PATHS + "test_the_room_of_a_deleted_preemptor_is_given_back",),
    ),
    Mutant(
        "a-void-promise-stays",
        "BR-095",
        "a nomination that a more important pod made void goes on blocking the node",
        (Change("elbowroom.scheduler.actuation:Actuator._withdraw", BODY, "return []"),),
        (_PATHS + "test_a_lower_nomination_is_taken_back",),
    ),
)
