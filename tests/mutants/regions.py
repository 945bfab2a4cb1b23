"""The rules that everything hangs on: the functions that make them up, and the fast tests of each."""

from line_mutations import Region


def _of(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"elbowroom.{module}:{name}" for name in names)


_KUBELET = (
    "kubelet/test_kubelet_passes.py",
    "kubelet/test_kubelet_triggers.py",
    "kubelet/test_kubelet_reports.py",
    "kubelet/test_kubelet_machine.py",
)
_SCHEDULER = (
    "scheduler/test_scheduler_rules.py",
    "scheduler/test_scheduler_reports.py",
    "scheduler/test_scheduler_plugins.py",
    "scheduler/test_scheduler_victims.py",
    "scheduler/test_scheduler_paths.py",
)

REGIONS = (
    Region(
        "the maximum rule",
        _of(
            "api.resources",
            "maximum",
            "_largest",
            "_effective_requests",
            "_status_requests",
            "_aggregate",
            "_allocated_or_nothing",
            "_allocated",
            "_actual_or_nothing",
            "_actual",
        ),
        ("api/test_api_maximum.py", "api/test_api_resources.py"),
    ),
    Region(
        "the maximum rule",
        _of("kubelet.account", "Account.counts"),
        ("kubelet/test_kubelet_fit.py", "kubelet/test_kubelet_decisions.py", *_KUBELET),
    ),
    Region(
        "the maximum rule",
        _of("scheduler.podinfo", "PodInfo.held", "_tells_of_resources"),
        ("scheduler/test_scheduler_rehearsal.py", "scheduler/test_scheduler_twins.py", *_SCHEDULER),
    ),
    Region(
        "the fit rule",
        _of("kubelet.admission", "Crowd.of", "Crowd.count", "Crowd.without", "Lack.amount", "lacks", "_unfit")
        + _of("kubelet.allocation", "judge", "infeasible", "_above_allocatable", "increases"),
        ("kubelet/test_kubelet_fit.py", "kubelet/test_kubelet_decisions.py", "kubelet/test_kubelet_triggers.py"),
    ),
    Region(
        "the fit rule",
        _of(
            "scheduler.plugins.resources", "_ordered", "_Fits.check", "_Fits.beside", "_ResizeFits.check", "_ResizeFits._requested"
        ),
        _SCHEDULER,
    ),
    Region(
        "the reprieve loop",
        _of(
            "scheduler.preemption",
            "victims_on",
            "_reprieve",
            "_units_on",
            "importance",
            "violating",
            "Budget.covers",
            "_makes_room",
            "cost",
        )
        + _of(
            "scheduler.rehearsal",
            "_Copy.take",
            "_Copy.put",
            "_Copy.check",
            "_Sums.take",
            "_Sums.put",
            "_Sums.check",
            "promised_to",
            "check_with_nominated",
        ),
        (
            "scheduler/test_scheduler_choice.py::test_how_many_nodes_are_tried",
            "scheduler/test_scheduler_podgroups.py",
            "scheduler/test_scheduler_rehearsal.py",
            *_SCHEDULER,
        ),
    ),
    Region(
        "the order of commits",
        _of("apiserver.machine", "ApiServer._made", "ApiServer._raise_floor", "ApiServer._compact"),
        (
            "apiserver/test_machine.py",
            "apiserver/test_apiserver_reports.py",
            "apiserver/test_watch.py",
            "apiserver/test_definitions.py",
        ),
    ),
    Region(
        "the order of commits",
        _of("apiserver.drivers.sqlite", "SqliteDisk.commit", "_plain_rows"),
        ("apiserver/test_disks.py", "seams/test_disk_seam.py"),
    ),
    Region(
        "the order of commits",
        _of("host.incarnation", "Incarnation._pump", "Incarnation._group", "Incarnation._note_committed", "Incarnation._commit")
        + _of("host.incarnation", "Store.commit")
        + _of("host.disks", "FilesDisk.commit", "SystemFiles.write", "SystemFiles.sync"),
        ("host/test_files_disk.py", "seams/test_disk_seam.py", "host/test_host_commits.py"),
    ),
    Region(
        "the order of commits",
        _of("kubelet.checkpoint", "Checkpoint.save", "Checkpoint.put", "Checkpoint.forget")
        + _of("kubelet.resizes", "Resizes._grant")
        + _of("kubelet.resizer", "Resizer._operate", "Resizer._next", "Resizer._pod_written", "Resizer._updated"),
        ("kubelet/test_kubelet_decisions.py", "kubelet/test_preview_machine.py", *_KUBELET),
    ),
    Region(
        "the retry triggers",
        _of(
            "kubelet.resizes",
            "Resizes.attempt_all",
            "Resizes.wished",
            "Resizes.victims_ended",
            "Resizes.node_changed",
            "Resizes.machine_recovered",
            "shrinks",
        )
        + _of("kubelet.pending", "Rank.key", "PendingQueue.push_all", "PendingQueue.keep", "PendingQueue.remove")
        + _of("kubelet.intake", "Intake.remove")
        + _of("kubelet.rounds", "CpuRounds.come"),
        ("kubelet/test_kubelet_decisions.py", "kubelet/test_kubelet_shutdown.py", "kubelet/test_preview_machine.py", *_KUBELET),
    ),
    Region(
        "the retry triggers",
        _of(
            "scheduler.plugins.resources",
            "_elsewhere",
            "_pod_gone",
            "_pod_shrank",
            "_own_resize_changed",
            "_fits_empty",
            "_node_came",
            "_node_grew",
        )
        + _of(
            "scheduler.plugins.deferred",
            "DeferredPodScheduling._held_back",
            "DeferredPodScheduling._policy_lifted",
            "DeferredPodScheduling._own_node_came",
            "DeferredPodScheduling._own_node_resized",
            "DeferredPodScheduling._neighbour_changed",
            "DeferredPodScheduling._itself_changed",
        ),
        (
            "scheduler/test_scheduler_rules.py",
            "scheduler/test_scheduler_hints.py",
            "scheduler/test_scheduler_queue.py",
            "scheduler/test_scheduler_reports.py",
            "scheduler/test_scheduler_paths.py",
        ),
    ),
)
