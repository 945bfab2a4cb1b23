"""Public reports of bugs in kubelets and runtimes, as mutants of ours."""

from mutating import BODY, Change, Mutant

_MACHINE = "kubelet/test_kubelet_machine.py::"
_DECISIONS = "kubelet/test_kubelet_decisions.py::"
_CRASHES = "kubelet/test_kubelet_crashes.py::"
_REPORTS = "kubelet/test_kubelet_reports.py::"

KUBELET = (
    Mutant(
        "containers-start-with-what-is-desired",
        "BR-001",
        "a container that dies while its resize waits comes back with what nobody allocated",
        (
            Change(
                "elbowroom.kubelet.containers:Containers.start",
                "container, sandbox = action.container, owner.sandbox.sandbox",
                "container = next(c for c in actuation.containers_of(owner.pod) if c.name == action.container.name)\n"
                "sandbox = owner.sandbox.sandbox",
            ),
        ),
        (_REPORTS + "test_a_container_that_dies_while_its_resize_waits_comes_back_as_it_was",),
    ),
    Mutant(
        "a-restart-judges-by-the-desire",
        "BR-002",
        "a kubelet that comes back takes what its pods want for what they were allocated",
        (
            Change(
                "elbowroom.kubelet.doorkeeper:Doorkeeper.admit",
                "worker.allocated_pod",
                "worker.pod",
            ),
        ),
        (_CRASHES + "test_a_pod_that_never_fitted_again_is_not_rejected_for_somebodys_wish",),
    ),
    Mutant(
        "a-deferred-desire-counts-on-the-node",
        "BR-005",
        "what a pod waits for is taken from its neighbours at once",
        (Change("elbowroom.kubelet.account:Account.neighbour", "pod = self.allocated_pod", "pod = self._owner.pod"),),
        (_REPORTS + "test_what_a_pod_waits_for_is_not_taken_from_its_neighbours",),
    ),
    Mutant(
        "containers-are-allocated-one-by-one",
        "BR-007",
        "a kubelet that dies in a resize of two containers comes back with one of them resized",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes._grant",
                "kubelet.allocated.put(worker.uid, self.wanted(worker))",
                "for name, resources in (self.wanted(worker).containers or {}).items():\n"
                "    kubelet.allocated.put_container(worker.uid, name, resources)\n"
                "    kubelet.emit(*kubelet.allocated.save())",
            ),
        ),
        (_REPORTS + "test_containers_that_are_resized_together_are_allocated_together_wherever_the_kubelet_dies",),
    ),
    Mutant(
        "notation-is-a-difference",
        "BR-009",
        "an allocation in other words is another allocation, and a restart finds resizes that nobody asked for",
        (Change("elbowroom.kubelet.allocation:_same", BODY, "return one == other"),),
        (_DECISIONS + "test_the_allocation_overwrites_the_spec_and_notation_is_no_difference",),
    ),
    Mutant(
        "the-checksum-is-of-what-was-read",
        "BR-009",
        "a checkpoint is compared with what it would look like if it were written today, so a change of notation corrupts it",
        (
            Change(
                "elbowroom.kubelet.checkpoint:decode",
                "outer.data.encode()",
                "msgspec.json.encode(msgspec.json.decode(outer.data, type=_Inner))",
            ),
        ),
        (_DECISIONS + "test_an_older_file_without_pod_level_resources_and_with_unknown_keys_is_read",),
    ),
    Mutant(
        "finished-pods-are-admitted-again",
        "BR-011",
        "after a restart pods that have ended hold their room, and running ones are thrown out",
        (
            Change("elbowroom.kubelet.boot:_readmit", "worker.pod.is_terminal", "False"),
            Change(
                "elbowroom.kubelet.worker:PodWorker.active",
                "self.admitted and not self.gone and not self.over and not self.pod.is_terminal",
                "self.admitted and not self.gone and not self.over",
            ),
        ),
        (_CRASHES + "test_a_finished_pod_holds_nothing_after_a_restart",),
    ),
    Mutant(
        "the-kubelet-believes-the-scheduler",
        "BR-013",
        "a pod that grew after it was placed is started on a node that has no room for it",
        (
            Change(
                "elbowroom.kubelet.doorkeeper:Doorkeeper.admit",
                "admission.refusal(pod, spec_requests(pod), others, kubelet.node, restarted=ran, state=state, managers=managers)",
                "None",
            ),
        ),
        (_MACHINE + "test_a_pod_that_does_not_fit_is_rejected_with_upstreams_words",),
    ),
    Mutant(
        "a-neighbour-that-shrinks-wakes-nobody",
        "BR-015",
        "a deferred resize is not tried again when a neighbour has shrunk",
        (
            Change(
                "elbowroom.kubelet.intake:Intake.change",
                "counted is not None and worker.active and shrinks(counted, worker.counts)",
                "False",
            ),
        ),
        (_MACHINE + "test_a_resize_is_granted_once_the_status_of_a_shrunk_pod_has_come_back",),
    ),
    Mutant(
        "an-old-plan-is-carried-on",
        "BR-017",
        "a plan made for an earlier allocation goes on after a newer one, so quick reversals end anywhere",
        (
            Change(
                "elbowroom.kubelet.resizer:Resizer.go_on", "self._for is not None and self._for is not self._owner.layer", "False"
            ),
        ),
        (_REPORTS + "test_a_plan_is_thrown_away_when_another_allocation_has_come",),
    ),
    Mutant(
        "what-does-not-run-is-in-progress",
        "BR-019",
        "a resize of a container that does not run stays in progress",
        (
            Change(
                "elbowroom.kubelet.actuation:in_progress",
                "[c for c in _running(pod, states) if c.is_sidecar or c in pod.spec.containers]",
                "[c for c in containers_of(pod) if c.is_sidecar or c in pod.spec.containers]",
            ),
        ),
        (_REPORTS + "test_a_resize_of_a_container_that_has_ended_leaves_nothing_in_progress",),
        slow=True,
    ),
    Mutant(
        "the-kernels-floor-is-shown",
        "BR-021",
        "a limit below 10m is shown as the kernel's minimum, so the resize never looks done",
        (
            Change(
                "elbowroom.kubelet.status.document:_overlay_limits",
                "told.cpu_limit > 10 or of(limits).get('cpu', 0) > 10",
                "True",
            ),
            Change(
                "elbowroom.kubelet.status.document:_overlay_requests",
                "told.cpu_request > 2 or of(requests).get('cpu', 0) > 2",
                "True",
            ),
        ),
        (_MACHINE + "test_below_the_kernels_minimum_the_status_says_what_was_allocated",),
    ),
    Mutant(
        "only-limits-are-actuated",
        "BR-023",
        "a cpu request without a limit is never carried out",
        (
            Change(
                "elbowroom.kubelet.actuation:_ordered",
                "((new.cpu_limit, old.cpu_limit), (new.cpu_request, old.cpu_request))",
                "((new.cpu_limit, old.cpu_limit),)",
            ),
        ),
        (_MACHINE + "test_a_resize_without_room_is_deferred_and_granted_when_another_pod_goes",),
        slow=True,
    ),
    Mutant(
        "memory-is-checked-for-the-pod-alone",
        "BR-025",
        "a container's limit is lowered below its usage, since its pod as a whole uses less",
        (Change("elbowroom.kubelet.actuation:MemoryCheck.error", "usage[name] >= limit", "False"),),
        (_DECISIONS + "test_memory_is_never_taken_below_what_is_used", _REPORTS + "test_memory_is_checked_container_by_container"),
    ),
    Mutant(
        "a-failed-check-is-final",
        "BR-025",
        "a limit that the usage held up stays up after the usage has fallen",
        (
            Change(
                "elbowroom.kubelet.resizer:Resizer._fail",
                "self.retry_at = Instant(now + seconds(wait or actuation.RETRY_RUNTIME_SECONDS))",
                "self.retry_at = Instant(now + seconds(86400.0 if check else actuation.RETRY_RUNTIME_SECONDS))",
            ),
        ),
        (_REPORTS + "test_a_check_that_failed_is_made_again_by_itself",),
    ),
    Mutant(
        "an-error-is-final",
        "BR-027",
        "an error of the runtime ends the resize for good",
        (
            Change(
                "elbowroom.kubelet.resizer:Resizer._fail",
                "self.retry_at = Instant(now + seconds(wait or actuation.RETRY_RUNTIME_SECONDS))",
                "self.retry_at = Instant(now + seconds(wait or 86400.0))",
            ),
        ),
        (_MACHINE + "test_a_refusal_of_the_runtime_is_retried_every_second",),
    ),
    Mutant(
        "an-error-blocks-the-next-resize",
        "BR-027",
        "after an error the next request waits until the old one would be tried again",
        (Change("elbowroom.kubelet.resizer:Resizer.at_once", BODY, "pass"),),
        (_REPORTS + "test_a_failed_resize_does_not_hold_up_the_next_one",),
    ),
    Mutant(
        "a-resize-taken-back-stays-in-progress",
        "BR-029",
        "the condition of a resize that was taken back before anything was done is never removed",
        (
            Change(
                "elbowroom.kubelet.progress:Progress.judge",
                "owner.in_progress is not None and not owner.midway",
                "owner.in_progress is not None and not owner.midway and owner.sandbox is not owner.shown_sandbox",
            ),
        ),
        (_MACHINE + "test_going_back_ends_a_failing_resize",),
    ),
    Mutant(
        "the-condition-tells-no-generation",
        "BR-030",
        "nobody can tell which request a condition speaks of",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes._refuse",
                "ResizeCondition(reason, message, generation, since, now)",
                "ResizeCondition(reason, message, before.generation if before else generation, since, now)",
            ),
        ),
        (_MACHINE + "test_a_new_request_that_waits_again_keeps_the_time_since_when_the_pod_waits",),
    ),
    Mutant(
        "each-message-is-an-event",
        "BR-031",
        "a deferred resize floods its pod with events whenever its neighbours change",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes._refuse",
                "same_reason is None or same_reason.generation != generation",
                "same_reason is None or same_reason.message != message",
            ),
        ),
        (_MACHINE + "test_a_mere_change_of_the_message_makes_no_event",),
    ),
    Mutant(
        "a-withdrawn-resize-is-completed",
        "BR-031",
        "a resize that was withdrawn before it was granted is told to have been completed",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes.clear",
                "worker.pending = None",
                "worker.pending = None\nself._kubelet.event(now, worker.pod, 'Normal', 'ResizeCompleted', 'Pod resize completed')",
            ),
        ),
        (_MACHINE + "test_going_back_clears_the_condition_without_an_event",),
    ),
    Mutant(
        "exclusive-cpus-are-resized-unasked",
        "BR-033",
        "a pod with exclusive CPUs is resized although its CPUs cannot change",
        (
            Change(
                "elbowroom.kubelet.allocation:infeasible",
                "config.static_cpu and not exclusive_cpus and _requests_differ(wanted, allocated, 'cpu')",
                "False",
            ),
        ),
        (_DECISIONS + "test_what_a_node_can_never_do_is_infeasible",),
    ),
    Mutant(
        "nobody-is-resized-under-the-static-policy",
        "BR-033",
        "under the static policy pods without exclusive CPUs are not resized either",
        (Change("elbowroom.kubelet.allocation:infeasible", "qos_class(wanted) == 'Guaranteed'", "True"),),
        (_REPORTS + "test_under_the_static_policy_a_pod_without_exclusive_cpus_is_resized",),
    ),
    Mutant(
        "exclusive-cpus-have-a-quota",
        "BR-035",
        "a container with CPUs of its own is throttled on them",
        (
            Change(
                "elbowroom.kubelet.actuation:Amounts.linux",
                "UNLIMITED if self.unbound else quota_of(self.cpu_limit)",
                "quota_of(self.cpu_limit)",
            ),
        ),
        (
            "kubelet/test_managers_machine.py::test_a_sibling_that_shares_keeps_its_quota_and_their_pod_has_none",
            "kubelet/test_managers_machine.py::test_memory_alone_is_resized_and_the_quota_stays_off",
        ),
    ),
    Mutant(
        "the-pod-of-exclusive-cpus-has-a-quota",
        "BR-035",
        "a pod that has CPUs of its own is throttled as a whole",
        (
            Change(
                "elbowroom.kubelet.actuation:cgroup_of",
                "structs.replace(pod_config(pod), quota=UNLIMITED) if unbound else pod_config(pod)",
                "pod_config(pod)",
            ),
        ),
        ("kubelet/test_managers_machine.py::test_a_sibling_that_shares_keeps_its_quota_and_their_pod_has_none",),
    ),
    Mutant(
        "sums-wrap-at-64-bits",
        "BR-053",
        "requests whose sum passes 64 bits are negative, and fit everywhere",
        (
            Change(
                "elbowroom.api.quantity:_capped",
                BODY,
                "return (amount + INT64_MAX + 1) % (2 * INT64_MAX + 2) - INT64_MAX - 1",
            ),
        ),
        (
            "api/test_quantity.py::test_accessors_round_up_and_stop_at_64_bits",
            _REPORTS + "test_a_pod_whose_requests_add_up_past_64_bits_is_refused",
        ),
    ),
    Mutant(
        "the-kubelets-conditions-replace-all",
        "BR-075",
        "a kubelet that patches a status removes the conditions of others",
        (
            Change(
                "elbowroom.kubelet.status.patches:_condition_patch",
                '[{"$patch": "delete", "type": c["type"]} for c in known if c["type"] in owned and c["type"] not in names]',
                '[{"$patch": "delete", "type": c["type"]} for c in known if c["type"] not in names]',
            ),
        ),
        (
            _MACHINE + "test_others_conditions_are_kept",
            _DECISIONS + "test_a_patch_removes_the_kubelets_conditions_and_keeps_others",
        ),
    ),
    Mutant(
        "a-namesake-is-the-same-pod",
        "BR-090",
        "a pod made anew under an old name gets what the old one had",
        (
            Change(
                "elbowroom.kubelet.intake:Intake.told",
                "known is not None and (change.new is None or change.new.metadata.uid != known.uid)",
                "known is not None and change.new is None",
            ),
        ),
        (_REPORTS + "test_a_pod_made_anew_under_its_name_while_nobody_looked_is_another_pod",),
    ),
    Mutant(
        "what-others-wrote-stands",
        "BR-097",
        "a pod that was marked not ready from outside stays so",
        (
            Change(
                "elbowroom.kubelet.intake:Intake.change",
                "not worker.over and not told_soon",
                "False",
            ),
        ),
        (_MACHINE + "test_a_condition_that_somebody_else_changed_is_set_right",),
    ),
    Mutant(
        "the-infeasible-is-tried-for-ever",
        "BR-101",
        "what is infeasible is judged with every pass",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes.attempt_all",
                "isinstance(verdict, Deferred | Evict)",
                "isinstance(verdict, Deferred | Evict | Infeasible)",
            ),
        ),
        (_MACHINE + "test_an_infeasible_resize_is_not_tried_again_until_it_changes",),
    ),
    Mutant(
        "a-new-desire-is-not-tried",
        "BR-101",
        "once a resize was refused, no other one is tried",
        (
            Change(
                "elbowroom.kubelet.resizes:Resizes.wished",
                "self.push(worker)",
                "worker.pending is None and self.push(worker)",
            ),
        ),
        (_MACHINE + "test_an_infeasible_resize_is_not_tried_again_until_it_changes",),
    ),
)
