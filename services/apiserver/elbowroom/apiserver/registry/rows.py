"""What is served: the built-in kinds, their other versions, and what definitions define."""

from elbowroom.api.gates import Profile
from elbowroom.apiserver import discovery, schema, statuses
from elbowroom.apiserver.definitions import customs
from elbowroom.apiserver.definitions.customs import Custom
from elbowroom.apiserver.definitions.naming import DEFINITIONS
from elbowroom.apiserver.kinds import podgroups, table, versions
from elbowroom.apiserver.kinds.base import Resource
from elbowroom.apiserver.store import Record, Store
from elbowroom.wire import ApiRequest


class Rows:
    """The rows of the registry, by what a request names."""

    def __init__(self, store: Store, profile: Profile) -> None:
        self._store = store
        gates = [gate for gate in discovery.GATED if profile.on(gate)]
        self._catalog = discovery.Catalog(discovery.built_in(gates))
        rows = (*table.rows(), *(podgroups.rows() if podgroups.GATE in gates else ()))
        self.built_in: dict[str, Resource] = {row.strategy.resource: row for row in rows}
        """By resource (``pods``, ``replicasets.apps``), in the version that is stored."""
        self._others = {(row.strategy.group, row.strategy.version, row.strategy.plural): row for row in versions.rows()}
        """The forms of kinds that are served in more than one."""
        self._customs: dict[str, tuple[int, dict[str, Custom]]] = {}
        """By definition, what follows from it, and the revision that it follows from."""
        self._fields: dict[str, schema.Field] = {}
        self._allowed: dict[tuple[str, str, str, str, str], Resource] = {}
        """The rows of built-in kinds that were found, by what was asked of them: group, version, resource, subresource, verb."""
        previews = profile.publishes_resize_status or profile.on("InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay")
        for name, row in self.built_in.items():
            strategy = row.strategy
            field = schema.find(strategy.group, strategy.version, strategy.kind, previews=previews)
            assert field is not None, f"{name} has no field tree"
            self._fields[name] = field

    def of(self, request: ApiRequest) -> Resource:
        """The row that a request is about; 404 for a resource, 405 for a verb, that is not served."""
        asked = (request.group, request.version, request.resource, request.subresource, request.verb)
        row = self._allowed.get(asked)
        if row is None:
            row, is_custom = self._found(request)
            if not is_custom:
                self._allowed[asked] = row
        return row

    def _found(self, request: ApiRequest) -> tuple[Resource, bool]:
        """The row, and whether it is of a custom kind."""
        known = self._catalog.find(request.group, request.version, request.resource)
        row = self._others.get((request.group, request.version, request.resource)) or self.built_in.get(
            f"{request.resource}.{request.group}" if request.group else request.resource
        )
        is_custom = known is None or row is None
        if known is None or row is None:
            custom = self.customs_of(f"{request.resource}.{request.group}").get(request.version)
            if custom is None:
                raise statuses.no_such_resource()
            known, row = custom.resource, custom.row
        verbs = known.verbs
        if request.subresource:
            subresource = known.subresource(request.subresource)
            if subresource is None:
                raise statuses.no_such_resource()
            verbs = subresource.verbs
        if request.verb not in verbs:
            raise statuses.method_not_allowed()
        return row, is_custom

    def customs_of(self, name: str) -> dict[str, Custom]:
        """What is served of the definition of that name, by version. It follows from the store alone."""
        record = self._store.get(DEFINITIONS, "", name)
        if record is None:
            self._customs.pop(name, None)
            return {}
        known = self._customs.get(name)
        if known is None or known[0] != record.revision:
            known = self._customs[name] = (record.revision, customs.customs(record.document, record.revision))
        return known[1]

    def field(self, row: Resource) -> schema.Field:
        """The field tree of a row's kind."""
        return self._fields[row.strategy.resource] if row.field is None else row.field


def stored(store: Store, row: Resource, request: ApiRequest) -> Record:
    """The object that a request names, or 404."""
    strategy = row.strategy
    record = store.get(strategy.resource, request.namespace if strategy.namespaced else "", request.name)
    if record is None:
        raise statuses.not_found(strategy.group, strategy.plural, request.name)
    return record
