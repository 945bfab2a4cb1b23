"""Public reports of bugs in API servers, their storage, quotas and quantities, as mutants of ours."""

from mutating import BODY, Change, Mutant

_MACHINE = "apiserver/test_machine.py::"
_REGISTRY = "apiserver/test_registry.py::"
_STORE = "apiserver/test_store.py::"
_WATCH = "apiserver/test_watch.py::"
_PATCHES = "apiserver/test_patches.py::"
_ADMISSION = "apiserver_pods/test_pods_admission.py::"
_CREATE = "apiserver_pods/test_pods_create.py::"
_RESIZE = "apiserver_pods/test_pods_resize.py::"
_UPDATE = "apiserver_pods/test_pods_update.py::"
_QUANTITY = "api/test_quantity.py::"
_REPORTS = "apiserver/test_apiserver_reports.py::"

APISERVER = (
    Mutant(
        "a-full-disk-is-no-error",
        "BR-008",
        "what a full disk did not take is acknowledged",
        (
            Change(
                "elbowroom.apiserver.drivers.sqlite:SqliteDisk.commit",
                'raise OSError(f"cannot write {self._path}: {why}") from why',
                "return",
            ),
        ),
        ("apiserver/test_disks.py::test_a_group_that_fails_leaves_nothing_behind",),
    ),
    Mutant(
        "a-pod-level-limit-is-taken-away",
        "BR-037",
        "a resize without a pod-level limit removes it",
        (Change("elbowroom.apiserver.pods:_resize_level", "_is_removed((after or {}).get(field), before.get(field))", "False"),),
        (_RESIZE + "test_pod_level_resources_cannot_be_removed",),
    ),
    Mutant(
        "a-plain-update-resizes",
        "BR-039",
        "resources are changed past the subresource, its rights and its checks",
        (
            Change(
                "elbowroom.apiserver.pods:_munged",
                '{**after, "image": before.get("image", "")}',
                '{**after, "image": before.get("image", ""), "resources": before.get("resources", {})}',
            ),
        ),
        (_UPDATE + "test_resources_change_through_resize_only",),
    ),
    Mutant(
        "who-may-write-a-status-may-resize",
        "BR-040",
        "the right to one subresource is a right to another",
        (
            Change(
                "elbowroom.apiserver.authorizer:_is_a_components",
                "(request.verb, what)",
                '(request.verb, what.replace("pods/resize", "pods/status"))',
            ),
        ),
        (_MACHINE + "test_peers_may_do_what_they_need_and_no_more",),
    ),
    Mutant(
        "a-resize-changes-labels",
        "BR-041",
        "labels and annotations change through the resize subresource",
        (
            Change(
                "elbowroom.apiserver.pods:PodResizeStrategy.prepare_update",
                '_put_back(new["metadata"], old["metadata"], _KEPT_METADATA)',
                "None",
            ),
        ),
        (_RESIZE + "test_everything_else_in_the_request_is_silently_ignored",),
    ),
    Mutant(
        "a-resize-changes-the-image",
        "BR-041",
        "containers change as a whole through the resize subresource",
        (Change("elbowroom.apiserver.pods:_with_resources", "container = dict(before)", "container = dict(after)"),),
        (_RESIZE + "test_everything_else_in_the_request_is_silently_ignored",),
    ),
    Mutant(
        "a-resize-changes-the-class",
        "BR-043",
        "a resize makes a Guaranteed pod Burstable",
        (Change("elbowroom.apiserver.pods:_resize", '(status.get("qosClass") or _qos_of(stored)) != _qos_of(spec)', "False"),),
        (_RESIZE + "test_the_quality_of_service_stays",),
    ),
    Mutant(
        "an-init-container-restarts-on-resize",
        "BR-045",
        "a pod is accepted whose init container can never be resized as it says",
        (
            Change(
                "elbowroom.apiserver.pod_validation:_init_containers", 'policy.get("restartPolicy") == "RestartContainer"', "False"
            ),
        ),
        (_CREATE + "test_an_invalid_pod_is_refused_with_upstreams_words",),
    ),
    Mutant(
        "a-resize-knows-no-limit-range",
        "BR-047",
        "a resize passes the bounds of its namespace",
        (
            Change(
                "elbowroom.apiserver.admission.limits:_concerns",
                'attributes.operation == "UPDATE" and attributes.subresource == "resize"',
                "False",
            ),
        ),
        (_ADMISSION + "test_a_limit_range_holds_on_resize_but_not_on_plain_updates_or_the_dying",),
    ),
    Mutant(
        "a-ratio-is-no-bound",
        "BR-047",
        "the ratio of limit to request is not checked",
        (
            Change(
                "elbowroom.apiserver.admission.limits:_ratio",
                "ratio * 1000 > bound.milli_or_zero if fine else ratio > bound.value_or_zero",
                "False",
            ),
        ),
        (_ADMISSION + "test_a_limit_range_bounds_the_ratio",),
    ),
    Mutant(
        "a-resize-is-charged-in-full",
        "BR-049",
        "a pod that is resized is charged a second time",
        (
            Change(
                "elbowroom.apiserver.admission.quota:QuotaPlugin._judge_pod",
                "old_usage if before is not None and quotas.selects(quota, before) else {}",
                "{}",
            ),
        ),
        (_ADMISSION + "test_a_resize_is_charged_for_what_it_adds",),
    ),
    Mutant(
        "what-shrank-stays-charged",
        "BR-049",
        "the quota that a shrunk pod gives back is never lowered",
        (Change("elbowroom.controllers.quota:Quotas._matters", "quotas.usage(old, now) != quotas.usage(new, now)", "False"),),
        ("controllers/test_controllers_cleanup.py::test_a_shrunk_pod_gives_back_once_its_status_shows_it",),
    ),
    Mutant(
        "other-words-are-a-resize",
        "BR-051",
        "a request in another notation of the same amount is a new generation",
        (
            Change("elbowroom.api.quantity:canonicalise", BODY, "return text"),
            Change(
                "elbowroom.apiserver.pods:PodStrategy.spec_changed",
                'not same(new["spec"], old["spec"])',
                'new["spec"] != old["spec"]',
            ),
        ),
        (_RESIZE + "test_the_same_amounts_in_other_words_are_no_change",),
    ),
    Mutant(
        "quantities-are-stored-as-written",
        "BR-051",
        "clients that compare texts see differences that are none",
        (Change("elbowroom.api.quantity:canonicalise", BODY, "parse(text)\nreturn text"),),
        (
            _QUANTITY + "test_a_resource_list_stores_the_canonical_text",
            _CREATE + "test_requests_default_to_limits_and_quantities_become_canonical",
        ),
    ),
    Mutant(
        "the-end-of-a-quantity-is-not-read",
        "BR-051",
        "1e3m is accepted, as a million times what it says",
        (Change("elbowroom.api.quantity:parse", "_SHAPE.fullmatch(text)", "_SHAPE.match(text)"),),
        (_QUANTITY + "test_a_text_of_another_shape_is_refused_with_upstreams_words",),
    ),
    Mutant(
        "an-exponent-has-no-bound",
        "BR-052",
        "a quantity of a few characters costs the server minutes",
        (Change("elbowroom.api.quantity:_exponent", "exponent > EXPONENT_MAX", "False"),),
        (_QUANTITY + "test_an_unknown_suffix_or_an_enormous_exponent_is_refused[1e1001]",),
    ),
    Mutant(
        "a-negative-amount-is-accepted",
        "BR-053",
        "a pod asks for less than nothing",
        (Change("elbowroom.apiserver.pod_validation:_amount", "quantity.nanos < 0", "False"),),
        (_CREATE + "test_an_invalid_pod_is_refused_with_upstreams_words",),
    ),
    Mutant(
        "copies-are-not-counted",
        "BR-055",
        "a JSON patch of a kilobyte makes a document of gigabytes",
        (Change("elbowroom.apiserver.patches:_apply_operation", "budget[0] < 0", "False"),),
        (_PATCHES + "test_copies_cannot_grow_a_document_without_bound",),
        slow=True,
    ),
    Mutant(
        "operations-are-not-counted",
        "BR-055",
        "a JSON patch has no end of operations",
        (Change("elbowroom.apiserver.patches:json_patch", "len(operations) > OPERATIONS_MAX", "False"),),
        (_PATCHES + "test_what_is_no_json_patch_is_refused_in_upstreams_words",),
    ),
    Mutant(
        "a-watch-begins-now",
        "BR-057",
        "a watch from an earlier revision misses what came between",
        (
            Change(
                "elbowroom.apiserver.watch:Watches.open",
                "watch.behind = min(revision, self._store.revision)",
                "watch.behind = self._store.revision",
            ),
        ),
        (
            _WATCH + "test_after_a_restart_a_watch_resumes_where_it_was",
            _WATCH + "test_a_revision_below_the_floor_is_410_and_one_above_it_is_resumed",
        ),
    ),
    Mutant(
        "a-server-that-starts-forgets-the-past",
        "BR-059",
        "a server that has just started has no past, and begins watches from it at the present",
        (
            Change(
                "elbowroom.apiserver.store:Store.replay",
                "self.revision = self.floor + above",
                "self.revision = self.floor = self.floor + above\nself._ring.clear()",
            ),
            Change("elbowroom.apiserver.watch:Watches.open", "revision < self._store.floor", "False"),
            Change(
                "elbowroom.apiserver.watch:Watches.open",
                "watch.behind = min(revision, self._store.revision)",
                "watch.behind = max(min(revision, self._store.revision), self._store.floor)",
            ),
        ),
        (_WATCH + "test_after_a_restart_a_watch_resumes_where_it_was",),
    ),
    Mutant(
        "a-list-of-the-future-is-answered",
        "BR-062",
        "a list from a revision that the server does not have yet shows an older state without a word",
        (Change("elbowroom.apiserver.listing:_revision", "revision > store.revision", "False"),),
        ("apiserver/test_lists.py::test_a_future_version_says_when_to_come_again",),
    ),
    Mutant(
        "the-initial-state-has-no-end",
        "BR-063",
        "a streaming list never says that its state is whole",
        (
            Change(
                "elbowroom.apiserver.watch:Watches.open",
                "watch.marks_end = from_state and watch.bookmarks",
                "watch.marks_end = False",
            ),
        ),
        (_WATCH + "test_a_watch_from_the_state_tells_all_that_stands_and_then_that_it_has",),
    ),
    Mutant(
        "an-empty-state-has-no-end",
        "BR-063",
        "a streaming list of nothing never says that its state is whole",
        (Change("elbowroom.apiserver.watch:Watches._advance", "watch.marks_end", "watch.marks_end and watch.shown"),),
        (_REPORTS + "test_a_streaming_list_of_nothing_says_at_once_that_it_is_whole",),
    ),
    Mutant(
        "initial-events-match-anything",
        "BR-063",
        "initial events are sent for whatever match of the revision is asked for",
        (Change("elbowroom.apiserver.watch:_check_query", BODY, "pass"),),
        (_WATCH + "test_a_watch_that_cannot_be_ends_with_the_reason",),
    ),
    Mutant(
        "a-slow-reader-is-thinned",
        "BR-065",
        "a reader that grants no room misses events and is not told",
        (Change("elbowroom.apiserver.watch:Watches.publish", "watch.behind = change.revision - 1", "pass"),),
        (_WATCH + "test_a_reader_that_grants_no_room_is_sent_nothing_and_later_misses_nothing",),
    ),
    Mutant(
        "a-watch-of-the-future-tells-the-present",
        "BR-069",
        "a watch from a revision that is yet to come delivers what is older",
        (Change("elbowroom.apiserver.watch:Watches._tell", "change.revision <= watch.start", "False"),),
        (_WATCH + "test_over_http_a_revision_of_the_future_is_waited_for",),
    ),
    Mutant(
        "acknowledged-before-durable",
        "BR-071",
        "a write is told and answered before it is durable",
        (
            Change(
                "elbowroom.apiserver.machine:ApiServer._made",
                "[_A5, *served.writes, _A7]",
                "[_A5, _A7]",
            ),
            Change("elbowroom.apiserver.machine:ApiServer._made", "return effects", "return [*effects, *served.writes]"),
        ),
        (_MACHINE + "test_a_write_is_durable_before_it_is_noted_told_and_answered",),
    ),
    Mutant(
        "damage-is-not-noticed",
        "BR-072",
        "a row of the log that was damaged on the disk is believed",
        (
            Change(
                "elbowroom.apiserver.store:_row",
                'len(raw) < 5 or zlib.crc32(body) != int.from_bytes(raw[:4], "big")',
                "False",
            ),
        ),
        (_STORE + "test_a_damaged_log_is_refused_in_one_line",),
    ),
    Mutant(
        "a-copy-goes-back",
        "BR-074",
        "a client's copy takes an older state for news",
        (
            Change(
                "elbowroom.cache.reflector:Reflector._on_event",
                "event.sequence <= self._sequence",
                "False",
            ),
            Change(
                "elbowroom.cache.reflector:Reflector._on_event",
                "event.sequence != self._sequence + 1 or (self._initial is None and event.previous != self._revision)",
                "False",
            ),
            Change(
                "elbowroom.cache.reflector:Reflector._apply",
                "old is not None and (known == event.revision or (self._initial is None and known > event.revision))",
                "False",
            ),
        ),
        ("machine/test_reflector.py::test_a_doubled_event_is_told_once",),
    ),
    Mutant(
        "an-old-version-overwrites",
        "BR-075",
        "a patch that bears an old resourceVersion undoes what came between",
        (Change("elbowroom.apiserver.registry.core:Registry._replace", "revision and revision != record.revision", "False"),),
        (
            _REGISTRY + "test_an_update_of_what_has_changed_meanwhile_is_a_conflict",
            _REGISTRY + "test_a_patch_that_names_another_version_is_a_conflict",
        ),
    ),
    Mutant(
        "what-went-meanwhile-stays-in-the-copy",
        "BR-091",
        "what went away while nobody looked stays in a client's copy for ever",
        (
            Change(
                "elbowroom.cache.reflector:Reflector._on_bookmark",
                "[key for key in self.store if key not in self._initial]",
                "[]",
            ),
        ),
        ("machine/test_reflector.py::test_a_revision_too_old_means_the_state_again_and_what_went_meanwhile_is_told",),
    ),
    Mutant(
        "refusals-say-nothing",
        "BR-103",
        "whether quota, bounds or validation refused a resize cannot be told",
        (
            Change(
                "elbowroom.apiserver.registry.admitting:_refused",
                "statuses.forbidden(kind.group, kind.plural, attributes.name, refusal.message, refusal.causes)",
                'statuses.forbidden(kind.group, kind.plural, attributes.name, "denied", refusal.causes)',
            ),
        ),
        (_REPORTS + "test_who_refused_a_resize_can_be_told_and_nothing_has_changed",),
    ),
)
