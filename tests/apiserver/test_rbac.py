"""Roles and bindings: who may do what, in upstream's words, and that nobody grants more than they have."""

from typing import Any

import msgspec
import pytest
from apiserver_world import Answer, World, a_node, a_pod, requests_of

from elbowroom.apiserver import rbac, rbac_defaults
from elbowroom.rpc import MERGE_PATCH, STRATEGIC_PATCH, requests
from elbowroom.wire import ApiRequest

GROUP = rbac.GROUP
ROLES, CLUSTER_ROLES = rbac.ROLES, rbac.CLUSTER_ROLES
BINDINGS, CLUSTER_BINDINGS = rbac.ROLE_BINDINGS, rbac.CLUSTER_ROLE_BINDINGS
AUTHENTICATED = ("system:authenticated",)


def a_world(*objects: tuple[str, dict[str, Any]]) -> World:
    """A cluster with the default policy, a pod ``v`` in ``default``, and these objects."""
    world = World(policy=True)
    world.create("nodes", a_node())
    world.create("pods", a_pod("v", node="n1"), "default")
    for resource, document in objects:
        answer = world.create(resource, document, "" if resource in (CLUSTER_ROLES, CLUSTER_BINDINGS) else "default")
        assert answer.status == 201, answer.body
    return world


def rule(verbs: str, resources: str, groups: tuple[str, ...] = ("",), *names: str) -> dict[str, Any]:
    found: dict[str, Any] = {"verbs": verbs.split(), "apiGroups": list(groups), "resources": resources.split()}
    return {**found, "resourceNames": list(names)} if names else found


def role(*rules: dict[str, Any], name: str = "r", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more}, "rules": list(rules)}


def binding(name: str = "b", to: str = "r", kind: str = "Role", *, subjects: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    who = [{"kind": "User", "name": "ann"}] if subjects is None else subjects
    return {"metadata": {"name": name}, "roleRef": {"kind": kind, "name": to}, "subjects": who}


def by(world: World, request: ApiRequest, user: str = "ann", groups: tuple[str, ...] = AUTHENTICATED) -> Answer:
    return world.ask(msgspec.structs.replace(request, user=user, groups=groups), "http/1")


def resize(cpu: str = "200m") -> ApiRequest:
    return requests.patch("pods", "v", requests_of(cpu), namespace="default", subresource="resize")


# ---------------------------------------------------------------- decisions


def test_a_right_to_pods_is_none_to_resize_them() -> None:
    world = a_world((ROLES, role(rule("*", "pods"))), (BINDINGS, binding()))
    refused = by(world, resize())
    assert (refused.status, refused.body["details"]) == (403, {"name": "v", "kind": "pods"})
    assert refused.message == (
        'pods "v" is forbidden: User "ann" cannot patch resource "pods/resize" in API group "" in the namespace "default"'
    )
    assert by(world, requests.get("pods", "v", namespace="default")).status == 200


def test_a_right_to_resize_is_none_to_the_pod_and_each_verb_is_a_right_of_its_own() -> None:
    world = a_world((ROLES, role(rule("patch", "pods/resize"))), (BINDINGS, binding()))
    assert by(world, resize()).body["metadata"]["generation"] == 2
    for verb, request in (
        ("get", requests.get("pods", "v", namespace="default", subresource="resize")),
        ("update", requests.update("pods", "v", {"metadata": {"name": "v"}}, namespace="default", subresource="resize")),
    ):
        words = f'User "ann" cannot {verb} resource "pods/resize" in API group "" in the namespace "default"'
        assert by(world, request).message == f'pods "v" is forbidden: {words}'
    assert by(world, requests.get("pods", "v", namespace="default")).status == 403


@pytest.mark.parametrize(
    ("given", "may"),
    [
        (rule("patch", "pods/resize"), True),
        (rule("*", "*"), True),
        (rule("patch", "*/resize"), True),
        (rule("patch", "pods/*"), False),
        (rule("patch", "*/status"), False),
        (rule("get", "pods/resize"), False),
        (rule("patch", "pods/resize", ("*",)), True),
        (rule("patch", "pods/resize", ("apps",)), False),
        (rule("patch", "pods/resize", ("",), "v"), True),
        (rule("patch", "pods/resize", ("",), "w"), False),
        ({"verbs": ["patch"], "nonResourceURLs": ["*"]}, False),
    ],
)
def test_a_rule_lets_pass_what_it_names(given: dict[str, Any], may: bool) -> None:
    kind = "nonResourceURLs" in given
    made = [(CLUSTER_ROLES, role(given)), (CLUSTER_BINDINGS, binding(kind="ClusterRole"))] if kind else []
    world = a_world(*(made or [(ROLES, role(given)), (BINDINGS, binding())]))
    assert by(world, resize()).status == (200 if may else 403)


@pytest.mark.parametrize(
    ("subject", "user", "groups", "may"),
    [
        ({"kind": "User", "name": "ann"}, "ann", AUTHENTICATED, True),
        ({"kind": "User", "name": "ann"}, "bob", AUTHENTICATED, False),
        ({"kind": "Group", "name": "ops"}, "bob", ("ops", *AUTHENTICATED), True),
        ({"kind": "Group", "name": "ann"}, "ann", AUTHENTICATED, False),
        ({"kind": "ServiceAccount", "name": "s"}, "system:serviceaccount:default:s", AUTHENTICATED, True),
        ({"kind": "ServiceAccount", "name": "s", "namespace": "n"}, "system:serviceaccount:default:s", AUTHENTICATED, False),
        ({"kind": "ServiceAccount", "name": "s", "namespace": "n"}, "system:serviceaccount:n:s", AUTHENTICATED, True),
        ({"kind": "Group", "name": "system:unauthenticated"}, "system:anonymous", ("system:unauthenticated",), True),
    ],
)
def test_a_binding_is_for_its_subjects(subject: dict[str, Any], user: str, groups: tuple[str, ...], may: bool) -> None:
    world = a_world((ROLES, role(rule("patch", "pods/resize"))), (BINDINGS, binding(subjects=[subject])))
    assert by(world, resize(), user, groups).status == (200 if may else 403)


def test_a_binding_holds_in_its_namespace_and_one_for_the_cluster_everywhere() -> None:
    world = a_world((CLUSTER_ROLES, role(rule("list", "pods nodes"))), (BINDINGS, binding(kind="ClusterRole")))
    assert by(world, requests.listing("pods", namespace="default")).status == 200
    refused = by(world, requests.listing("pods"))
    assert refused.message == 'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope'
    assert by(world, requests.listing("pods", namespace="kube-system")).status == 403
    assert by(world, requests.listing("nodes")).status == 403
    world.create(CLUSTER_BINDINGS, binding(kind="ClusterRole"))
    assert by(world, requests.listing("pods")).status == by(world, requests.listing("nodes")).status == 200


def test_a_binding_to_a_role_that_is_not_there_is_told() -> None:
    world = a_world((BINDINGS, binding(to="gone")), (BINDINGS, binding("c", "lost", "ClusterRole")))
    told = f'RBAC: [role.{GROUP} "gone" not found, clusterrole.{GROUP} "lost" not found]'
    assert by(world, resize()).message.endswith(f'in the namespace "default": {told}')


def test_a_right_is_there_as_soon_as_it_is_given_and_gone_as_soon_as_it_is_taken() -> None:
    world = a_world((ROLES, role(rule("get", "pods/resize"))), (BINDINGS, binding()))
    assert by(world, resize()).status == 403
    world.patch(ROLES, "r", role(rule("patch", "pods/resize")), namespace="default", kind=MERGE_PATCH)
    assert by(world, resize()).status == 200
    world.delete(BINDINGS, "b", "default")
    assert by(world, resize("300m")).status == 403


def test_metrics_are_for_whom_a_rule_opens_them() -> None:
    def asked(world: World, groups: tuple[str, ...]) -> Answer:
        return Answer(world.ask_raw(ApiRequest("get", "metrics", "elbowroom", user="ann", groups=groups), "http/1"))

    world = a_world()
    refused = asked(world, AUTHENTICATED)
    assert (refused.status, refused.message) == (403, 'forbidden: User "ann" cannot get path "/metrics"')
    request = ApiRequest("get", "metrics", "elbowroom", user="ann", groups=("system:monitoring", *AUTHENTICATED))
    assert b"apiserver_request_total" in world.ask_raw(request, "http/1").body


# ---------------------------------------------------------------- the default policy


def bound_to(name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return BINDINGS, binding(to=name, kind="ClusterRole", **more)


@pytest.mark.parametrize(
    ("name", "verb", "resource", "may"),
    [
        ("view", "list", "pods", True),
        ("view", "patch", "pods", False),
        ("edit", "patch", "pods", True),
        ("edit", "get", "pods", True),
        ("edit", "patch", "pods/resize", False),
        ("edit", "create", f"roles.{GROUP}", False),
        ("admin", "create", f"roles.{GROUP}", True),
        ("admin", "delete", "deployments.apps", True),
        ("admin", "patch", "pods/resize", False),
        ("cluster-admin", "patch", "pods/resize", True),
    ],
)
def test_the_default_roles_build_on_each_other(name: str, verb: str, resource: str, may: bool) -> None:
    full, _, subresource = resource.partition("/")
    plural, _, group = full.partition(".")
    attributes = {"verb": verb, "resource": plural, "group": group, "subresource": subresource, "namespace": "default"}
    status = review(a_world(bound_to(name)), {"resourceAttributes": attributes}).body["status"]
    assert status["allowed"] is may
    if may:
        assert status["reason"] == f'RBAC: allowed by RoleBinding "b/default" of ClusterRole "{name}" to User "ann"'


def test_the_default_roles_are_stored_with_their_marks_and_their_rules() -> None:
    world = a_world()
    edit = world.get(CLUSTER_ROLES, "edit").body
    assert edit["metadata"]["labels"] == {
        "kubernetes.io/bootstrapping": "rbac-defaults",
        f"{GROUP}/aggregate-to-admin": "true",
    }
    assert edit["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    assert edit["aggregationRule"] == {"clusterRoleSelectors": [{"matchLabels": {f"{GROUP}/aggregate-to-edit": "true"}}]}
    assert {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"]} in edit["rules"]
    admin = world.get(CLUSTER_ROLES, "cluster-admin").body
    assert admin["rules"] == [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]


def test_no_default_role_but_those_with_a_wildcard_names_resize() -> None:
    named = [document["metadata"]["name"] for resource, document in rbac_defaults.objects() if "pods/resize" in str(document)]
    assert named == []


def test_the_default_policy_is_valid_and_is_made_once() -> None:
    world = a_world()
    made = rbac_defaults.objects()
    for resource, document in made:
        name = document["metadata"]["name"]
        stored = world.get(resource, name).body
        assert stored["metadata"]["uid"]
        copy = {**document, "metadata": {**document["metadata"], "name": f"copy-{name.replace(':', '-')}"}}
        assert world.create(resource, copy).status == 201
    revision = world.list(CLUSTER_ROLES).revision
    again = World(policy=True, disk=world.disk)
    assert again.list(CLUSTER_ROLES).revision == revision


def test_an_aggregated_role_has_the_rules_of_those_that_it_selects() -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "r"}}]}
    world = a_world((CLUSTER_ROLES, {**role(), "aggregationRule": selector}), bound_to("r"))
    assert by(world, resize()).status == 403
    world.create(CLUSTER_ROLES, role(rule("patch", "pods/resize"), name="part", labels={"to": "r"}))
    assert by(world, resize()).status == 200


# ---------------------------------------------------------------- validation

TO = {"kind": "Role", "name": "r"}
INVALID: list[tuple[str, dict[str, Any], str]] = [
    (
        ROLES,
        role({"apiGroups": [""], "resources": ["pods"]}),
        "rules[0].verbs: Required value: verbs must contain at least one value",
    ),
    (
        ROLES,
        role({"verbs": ["get"]}),
        "[rules[0].apiGroups: Required value: resource rules must supply at least one api group, "
        "rules[0].resources: Required value: resource rules must supply at least one resource]",
    ),
    (
        ROLES,
        role({"verbs": ["get"], "nonResourceURLs": ["/x"]}),
        'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
    ),
    (
        CLUSTER_ROLES,
        role({"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}),
        'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
    ),
    (
        CLUSTER_ROLES,
        {**role(), "aggregationRule": {}},
        "aggregationRule.clusterRoleSelectors: Required value: "
        "at least one clusterRoleSelector required if aggregationRule is non-nil",
    ),
    (BINDINGS, binding(to=""), "roleRef.name: Required value"),
    (BINDINGS, binding(kind="Thing"), 'roleRef.kind: Unsupported value: "Thing": supported values: "Role", "ClusterRole"'),
    (CLUSTER_BINDINGS, binding(), 'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'),
    (
        BINDINGS,
        binding(subjects=[{"kind": "Robot", "name": "x"}]),
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ),
    (BINDINGS, binding(subjects=[{"kind": "User"}]), "subjects[0].name: Required value"),
    (
        BINDINGS,
        binding(subjects=[{"kind": "User", "name": "x", "apiGroup": "y"}]),
        f'subjects[0].apiGroup: Unsupported value: "y": supported values: "{GROUP}"',
    ),
    (
        CLUSTER_BINDINGS,
        binding(kind="ClusterRole", subjects=[{"kind": "ServiceAccount", "name": "s"}]),
        "subjects[0].namespace: Required value",
    ),
]


@pytest.mark.parametrize(("resource", "document", "words"), INVALID)
def test_what_makes_no_sense_is_refused_in_upstreams_words(resource: str, document: dict[str, Any], words: str) -> None:
    answer = World().create(resource, document, "default" if resource in (ROLES, BINDINGS) else "")
    assert answer.status == 422
    assert answer.message.partition(" is invalid: ")[2] == words


def test_a_binding_keeps_its_role() -> None:
    world = a_world((BINDINGS, binding()))
    stored = world.get(BINDINGS, "b", namespace="default").body
    assert (stored["roleRef"]["apiGroup"], stored["subjects"][0]["apiGroup"]) == (GROUP, GROUP)
    answer = world.patch(BINDINGS, "b", {"roleRef": {"name": "other"}}, namespace="default", kind=MERGE_PATCH)
    assert answer.status == 422 and answer.message.endswith(": cannot change roleRef")


def test_names_with_colons_are_names_of_roles() -> None:
    assert World().create(CLUSTER_ROLES, role(name="a:b")).status == 201
    assert World().create(CLUSTER_ROLES, role(name="a/b")).status == 422


# ---------------------------------------------------------------- escalation


def admin_world(*objects: tuple[str, dict[str, Any]]) -> World:
    """Ann administrates the namespace ``default``."""
    return a_world(bound_to("admin"), *objects)


def test_nobody_grants_what_they_do_not_have() -> None:
    world = admin_world()
    wish = requests.create(
        ROLES, role(rule("get patch", "pods/resize pods"), rule("get", "nodes", ("", "x"), "n")), namespace="default"
    )
    answer = by(world, wish)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.message == (
        f'roles.{GROUP} "r" is forbidden: user "ann" (groups=["system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["n"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["pods/resize"], Verbs:["get" "patch"]}\n'
        '{APIGroups:["x"], Resources:["nodes"], ResourceNames:["n"], Verbs:["get"]}'
    )
    assert by(world, requests.create(ROLES, role(rule("get patch", "pods")), namespace="default")).status == 201
    more = requests.patch(ROLES, "r", role(rule("*", "pods")), namespace="default", kind=MERGE_PATCH)
    assert '{APIGroups:[""], Resources:["pods"], Verbs:["*"]}' in by(world, more).message


def test_nobody_binds_what_they_do_not_have() -> None:
    world = admin_world((CLUSTER_ROLES, role(rule("patch", "pods/resize"), name="resizer")))
    for to, code in (("view", 201), ("resizer", 403), ("cluster-admin", 403), ("gone", 404)):
        request = requests.create(BINDINGS, binding(f"to-{to}", to, "ClusterRole"), namespace="default")
        assert by(world, request).status == code, to


def test_who_may_escalate_or_bind_is_let_through() -> None:
    extra = role(rule("escalate", "roles", (GROUP,)), rule("bind", "clusterroles", (GROUP,), "resizer"), name="extra")
    world = admin_world(
        (CLUSTER_ROLES, role(rule("patch", "pods/resize"), name="resizer")), (ROLES, extra), (BINDINGS, binding("x", "extra"))
    )
    assert by(world, requests.create(ROLES, role(rule("*", "*")), namespace="default")).status == 201
    bound = requests.create(BINDINGS, binding("y", "resizer", "ClusterRole"), namespace="default")
    assert by(world, bound).status == 201
    assert by(world, resize()).status == 200
    other = requests.create(BINDINGS, binding("z", "cluster-admin", "ClusterRole"), namespace="default")
    assert by(world, other).status == 403


def test_the_garbage_collector_needs_no_rights_to_let_a_role_go() -> None:
    world = admin_world((ROLES, role(rule("*", "nodes"), finalizers=["a.b/c"])))
    finalizers = requests.patch(ROLES, "r", {"metadata": {"finalizers": None}}, namespace="default", kind=MERGE_PATCH)
    assert by(world, finalizers).status == 200
    labels = requests.patch(ROLES, "r", {"metadata": {"labels": {"a": "b"}}}, namespace="default", kind=MERGE_PATCH)
    assert by(world, labels).status == 403


def test_only_who_has_everything_makes_an_aggregated_role() -> None:
    maker = role(rule("*", "clusterroles", (GROUP,)), name="maker")
    world = a_world((CLUSTER_ROLES, maker), (CLUSTER_BINDINGS, binding(to="maker", kind="ClusterRole")))
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "r"}}]}
    wish = requests.create(CLUSTER_ROLES, {**role(), "aggregationRule": selector})
    assert by(world, wish).status == 201  # * among the verbs is escalate too
    narrow = role(rule("create", "clusterroles", (GROUP,)), name="narrow")
    other = a_world((CLUSTER_ROLES, narrow), (CLUSTER_BINDINGS, binding(to="narrow", kind="ClusterRole")))
    assert by(other, wish).message.endswith("must have cluster-admin privileges to use the aggregationRule")


# ---------------------------------------------------------------- questions


def review(world: World, spec: dict[str, Any], kind: str = "selfsubjectaccessreviews", **more: Any) -> Answer:
    group = "authentication.k8s.io" if kind == "selfsubjectreviews" else "authorization.k8s.io"
    namespace = more.pop("namespace", "")
    return by(world, requests.create(f"{kind}.{group}", {"spec": spec}, namespace=namespace), **more)


def test_everybody_may_ask_what_they_may_and_the_anonymous_may_not() -> None:
    world = a_world()
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    assert review(world, spec).body["status"] == {"allowed": False}
    stranger = review(world, spec, user="system:anonymous", groups=("system:unauthenticated",))
    assert stranger.message == (
        'selfsubjectaccessreviews.authorization.k8s.io is forbidden: User "system:anonymous" cannot create resource '
        '"selfsubjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope'
    )


def test_paths_outside_of_resources_have_rules_too() -> None:
    world = a_world()
    for path, may in (("/version", True), ("/apis/apps/v1", True), ("/metrics", False)):
        status = review(world, {"nonResourceAttributes": {"verb": "get", "path": path}}).body["status"]
        assert status["allowed"] is may, path


def test_a_question_must_be_about_one_thing() -> None:
    world = a_world()
    assert review(world, {}).message.endswith("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    both = {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}}
    assert "cannot be specified in combination with resourceAttributes" in review(world, both).message


def test_an_administrator_may_ask_about_others() -> None:
    world = a_world(bound_to("view"))
    attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
    masters = {"user": "root", "groups": ("system:masters",)}
    for kind, where in (("subjectaccessreviews", ""), ("localsubjectaccessreviews", "default")):
        asked = review(world, {"user": "ann", "resourceAttributes": attributes}, kind, namespace=where, **masters)
        assert asked.body["status"]["allowed"] is True
        assert review(world, {"user": "bob", "resourceAttributes": attributes}, kind, namespace=where, **masters).body[
            "status"
        ] == {"allowed": False}
    nobody = review(world, {"resourceAttributes": attributes}, "subjectaccessreviews", **masters)
    assert nobody.message.endswith('spec.user: Invalid value: "": at least one of user or group must be specified')
    assert review(world, {"user": "bob", "resourceAttributes": attributes}, "subjectaccessreviews").status == 403


def test_all_that_somebody_may_is_listed() -> None:
    world = a_world(
        (ROLES, role(rule("patch", "pods/resize", ("",), "v"))), (BINDINGS, binding()), (BINDINGS, binding("c", "gone"))
    )
    status = review(world, {"namespace": "default"}, "selfsubjectrulesreviews").body["status"]
    assert status["resourceRules"] == [
        rule("create", "selfsubjectaccessreviews selfsubjectrulesreviews", ("authorization.k8s.io",)),
        rule("create", "selfsubjectreviews", ("authentication.k8s.io",)),
        rule("patch", "pods/resize", ("",), "v"),
    ]
    assert [paths["verbs"] for paths in status["nonResourceRules"]] == [["get"], ["get"]]
    assert (status["incomplete"], status["evaluationError"]) == (False, f'role.{GROUP} "gone" not found')
    assert review(world, {}, "selfsubjectrulesreviews").message == "no namespace on request"


def test_who_am_i() -> None:
    status = review(a_world(), {}, "selfsubjectreviews").body["status"]
    assert status == {"userInfo": {"username": "ann", "groups": ["system:authenticated"]}}


# ---------------------------------------------------------------- components


@pytest.mark.parametrize("peer", ["kubelet/n1", "scheduler", "controllers"])
def test_components_work_without_any_role(peer: str) -> None:
    world = World()
    world.create("nodes", a_node())
    world.create("pods", a_pod("v", node="n1"), "default")
    body = {"status": {"phase": "Running"}}
    request = requests.patch("pods", "v", body, namespace="default", subresource="status", kind=STRATEGIC_PATCH)
    assert world.ask(request, peer).status == 200
    assert world.ask(resize(), peer).status == 403


def test_a_node_is_given_more_by_a_role_but_never_another_nodes_things() -> None:
    world = a_world()
    world.create("nodes", a_node("n2"))
    assert world.ask(requests.get("pods", "v", namespace="default", subresource="resize"), "kubelet/n1").status == 403
    world.create(CLUSTER_ROLES, role(rule("*", "*")))
    world.create(CLUSTER_BINDINGS, binding(kind="ClusterRole", subjects=[{"kind": "Group", "name": "system:nodes"}]))
    assert world.ask(requests.get("pods", "v", namespace="default", subresource="resize"), "kubelet/n1").status == 200
    refused = world.ask(requests.patch("nodes", "n2", {"metadata": {"labels": {"a": "b"}}}), "kubelet/n1")
    assert refused.message == 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"'
