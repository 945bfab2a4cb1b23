"""What is called on pods: binding and eviction."""

from elbowroom.apiserver import intake, podverbs, schema, statuses
from elbowroom.apiserver.intake import DeleteOptions
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.registry.deleting import Deleting, check_preconditions, precondition_failed
from elbowroom.apiserver.registry.rows import stored
from elbowroom.apiserver.registry.writes import Write
from elbowroom.apiserver.store import Record, Store
from elbowroom.apiserver.strategy import Context
from elbowroom.wire import ApiRequest, ApiResponse


class PodCalls:
    """Carries them out. ``row`` is that of pods."""

    def __init__(self, store: Store, row: Resource, deleting: Deleting) -> None:
        self._store, self._row, self._deleting = store, row, deleting

    def bind(self, context: Context, write: Write, request: ApiRequest) -> ApiResponse:
        """Answer a Binding, posted to ``bindings`` or to ``pods/NAME/binding``."""
        options = intake.write_options(request, "CreateOptions")
        field = schema.find("", "v1", "Binding")
        assert field is not None
        binding, warnings = intake.decoded_body(request, field, "", "v1", "Binding", options)
        context.warnings.extend(warnings)
        name = request.name or binding["metadata"].get("name", "")
        podverbs.check_binding(binding, name, request.namespace)
        record = self._store.get("pods", request.namespace, name)
        if record is None:
            raise statuses.not_found("", "pods", name)
        uid = binding["metadata"].get("uid")
        mine = record.document["metadata"]["uid"]
        if uid and uid != mine:
            raise precondition_failed(self._row.strategy, record, f"UID in precondition: {uid}, UID in object meta: {mine}")
        revision = binding["metadata"].get("resourceVersion")
        if revision and revision != str(record.revision):
            why = f"ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {record.revision}"
            raise precondition_failed(self._row.strategy, record, why)
        pod = podverbs.bound(record.document, binding, context)
        if not options.dry_run:
            record = write.put("pods", record.namespace, record.name, pod)
        return ApiResponse(201, statuses.success(201, says_code=True), tuple(context.warnings), record.revision)

    def evict(self, context: Context, write: Write, request: ApiRequest) -> ApiResponse:
        """Answer an Eviction."""
        options = intake.write_options(request, "CreateOptions")
        field = schema.find("policy", "v1", "Eviction")
        assert field is not None
        eviction, warnings = intake.decoded_body(request, field, "policy", "v1", "Eviction", options)
        context.warnings.extend(warnings)
        if eviction["metadata"].get("name", "") != request.name:
            raise statuses.bad_request("name in URL does not match name in Eviction object")
        said = eviction.get("deleteOptions", {})
        if options.dry_run and said.get("dryRun", ["All"]) != ["All"]:
            shown = " ".join(said["dryRun"])
            raise statuses.ApiError(500, "", f"Non-matching dry-run options in request and content: [All] and [{shown}]")
        record = stored(self._store, self._row, request)
        verdict = podverbs.judge_eviction(
            record.document, self._store.objects("poddisruptionbudgets.policy", record.namespace), context.now
        )
        if verdict.refusal is not None:
            raise verdict.refusal
        try:
            wanted = intake.delete_options_of(said)
        except statuses.ApiError as why:
            if not options.dry_run and not said.get("dryRun"):
                self._mark(context, write, record, verdict)
            return why.response()  # upstream learns that it cannot delete so once it has told the pod why it goes
        check_preconditions(self._row.strategy, record, wanted)
        if not options.dry_run and not wanted.dry_run:
            record = self._mark(context, write, record, verdict)
            told = DeleteOptions(wanted.grace_seconds, None, None, wanted.orphan, wanted.propagation)
            self._deleting.remove(context, write, self._row, record, told)
        return ApiResponse(201, statuses.success(201, says_code=True), tuple(context.warnings), self._store.revision)

    def _mark(self, context: Context, write: Write, record: Record, verdict: podverbs.Verdict) -> Record:
        """Charge the budget and tell the pod why it goes."""
        if verdict.budget is not None:
            write.put("poddisruptionbudgets.policy", record.namespace, verdict.budget["metadata"]["name"], verdict.budget)
        pod = record.copy()
        podverbs.tell_of_eviction(pod, context.now)
        return write.put("pods", record.namespace, record.name, pod)
