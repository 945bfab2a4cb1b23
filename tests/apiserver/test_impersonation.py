"""Acting as somebody else: who may, in upstream's words, and who one is then."""

from typing import Any

import msgspec
import pytest
from apiserver_world import Answer, World, a_node, a_pod

from elbowroom.apiserver.impersonation import account_of, asked_for
from elbowroom.apiserver.statuses import ApiError
from elbowroom.rpc import requests
from elbowroom.wire import ApiRequest, Impersonation

CLUSTER_ROLES, CLUSTER_BINDINGS = "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"
AUTHENTICATED = "system:authenticated"
WHO = ApiRequest("create", "selfsubjectreviews", "authentication.k8s.io", body=b"{}")
ACCOUNT = "system:serviceaccount:default:robot"


def a_world(*rules: dict[str, Any]) -> World:
    """A cluster in which ann may do what the rules say."""
    world = World(policy=True)
    world.create("nodes", a_node("n1"))
    world.create("pods", a_pod("v", node="n1"), "default")
    world.create(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": list(rules)})
    subject = {"kind": "User", "name": "ann"}
    world.create(
        CLUSTER_BINDINGS, {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [subject]}
    )
    return world


def rule(verb: str, resource: str, group: str = "", *names: str) -> dict[str, Any]:
    found: dict[str, Any] = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
    return {**found, "resourceNames": list(names)} if names else found


def acting(world: World, wanted: Impersonation, request: ApiRequest = WHO, *, user: str = "ann", **more: Any) -> Answer:
    groups = more.pop("groups", (AUTHENTICATED,))
    return world.ask(msgspec.structs.replace(request, user=user, groups=groups, impersonate=wanted, **more), "http/1")


def who_is(answer: Answer) -> dict[str, Any]:
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.body["status"]["userInfo"]
    return found


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        (Impersonation("bob"), [AUTHENTICATED]),
        (Impersonation("bob", ("ops",)), ["ops", AUTHENTICATED]),
        (Impersonation("bob", (AUTHENTICATED,)), [AUTHENTICATED]),
        (Impersonation("bob", ("system:unauthenticated",)), ["system:unauthenticated"]),
        (Impersonation("system:anonymous"), ["system:unauthenticated"]),
        (Impersonation(ACCOUNT), ["system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED]),
        (Impersonation(ACCOUNT, ("ops",)), ["ops", AUTHENTICATED]),
    ],
)
def test_an_administrator_acts_as_anybody(wanted: Impersonation, groups: list[str]) -> None:
    # As somebody with fewer rights one may not ask who one is, so the review is asked as who may.
    world = a_world()
    binding = {
        "metadata": {"name": "all"},
        "roleRef": {"kind": "ClusterRole", "name": "system:basic-user"},
        "subjects": [{"kind": "Group", "name": name} for name in ("ops", "system:unauthenticated")],
    }
    world.create(CLUSTER_BINDINGS, binding)
    answer = acting(world, wanted, user="root", groups=("system:masters", AUTHENTICATED))
    assert who_is(answer) == {"username": wanted.user, "groups": groups}


def test_uid_and_extra_are_acted_as_too() -> None:
    wanted = Impersonation("bob", (), "u-1", {"scopes": ("a", "b")})
    answer = acting(a_world(), wanted, user="root", groups=("system:masters",))
    assert who_is(answer) == {"username": "bob", "uid": "u-1", "groups": [AUTHENTICATED], "extra": {"scopes": ["a", "b"]}}


@pytest.mark.parametrize(
    ("rules", "wanted", "words"),
    [
        (
            [],
            Impersonation("bob"),
            'selfsubjectreviews.authentication.k8s.io is forbidden: User "ann" cannot impersonate-on:user-info:create resource '
            '"selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
        ),
        (
            [rule("impersonate-on:user-info:create", "selfsubjectreviews", "authentication.k8s.io")],
            Impersonation("bob"),
            'users.authentication.k8s.io "bob" is forbidden: User "ann" cannot impersonate:user-info resource "users" in API group '
            '"authentication.k8s.io" at the cluster scope',
        ),
        (
            [rule("impersonate", "users")],
            Impersonation("bob", ("ops",)),
            'selfsubjectreviews.authentication.k8s.io is forbidden: User "ann" cannot impersonate-on:user-info:create resource ',
        ),
        (
            [
                rule("impersonate-on:user-info:create", "selfsubjectreviews", "authentication.k8s.io"),
                rule("impersonate:user-info", "*", "authentication.k8s.io"),
            ],
            Impersonation("bob", ("system:masters",)),
            'groups.authentication.k8s.io "system:masters" is forbidden: User "ann" cannot impersonate:user-info resource "groups" '
            'in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed',
        ),
        (
            [rule("impersonate", "users", "", "eve")],
            Impersonation("bob"),
            "selfsubjectreviews.authentication.k8s.io is forbidden: ",
        ),
        ([rule("impersonate", "users")], Impersonation(ACCOUNT), "selfsubjectreviews.authentication.k8s.io is forbidden: "),
    ],
)
def test_who_may_not_is_refused_with_what_was_refused_first(rules: list[dict[str, Any]], wanted: Impersonation, words: str) -> None:
    answer = acting(a_world(*rules), wanted)
    assert answer.status == 403 and answer.message.startswith(words), answer.message


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ([rule("impersonate", "users", "", "bob")], Impersonation("bob")),
        ([rule("impersonate", "users"), rule("impersonate", "groups", "", AUTHENTICATED)], Impersonation("bob", (AUTHENTICATED,))),
        ([rule("impersonate", "serviceaccounts")], Impersonation(ACCOUNT)),
        (
            [rule("impersonate", "users"), rule("impersonate", "uids", "authentication.k8s.io")],
            Impersonation("bob", (), "u-1"),
        ),
        (
            [rule("impersonate", "users"), rule("impersonate", "userextras/scopes", "authentication.k8s.io", "a")],
            Impersonation("bob", (), "", {"scopes": ("a",)}),
        ),
        (
            [
                rule("impersonate-on:user-info:create", "selfsubjectreviews", "authentication.k8s.io"),
                rule("impersonate:user-info", "users", "authentication.k8s.io", "bob"),
            ],
            Impersonation("bob"),
        ),
        (
            [
                rule("impersonate-on:serviceaccount:create", "selfsubjectreviews", "authentication.k8s.io"),
                rule("impersonate:serviceaccount", "serviceaccounts", "authentication.k8s.io"),
            ],
            Impersonation(ACCOUNT),
        ),
        (
            [
                rule("impersonate-on:arbitrary-node:create", "selfsubjectreviews", "authentication.k8s.io"),
                rule("impersonate:arbitrary-node", "nodes", "authentication.k8s.io", "n1"),
            ],
            Impersonation("system:node:n1"),
        ),
    ],
)
def test_a_rule_for_each_part_lets_one_act(rules: list[dict[str, Any]], wanted: Impersonation) -> None:
    found = who_is(acting(a_world(*rules), wanted))
    assert found["username"] == wanted.user
    if wanted.user.startswith("system:node:"):
        assert found["groups"] == ["system:nodes", AUTHENTICATED]


def test_what_one_does_as_another_is_judged_by_the_others_rights() -> None:
    world = a_world(rule("impersonate", "users"), rule("get", "pods"))
    refused = acting(world, Impersonation("bob"), requests.get("pods", "v", namespace="default"))
    assert refused.message == (
        'pods "v" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "default"'
    )


def test_a_peer_of_the_bus_acts_as_nobody_but_itself() -> None:
    world = a_world()
    request = msgspec.structs.replace(
        requests.delete("pods", "v", namespace="default"),
        user="root",
        groups=("system:masters",),
        uid="x",
        impersonate=Impersonation("root", ("system:masters",)),
    )
    answer = world.ask(request, "runtime/n1")
    assert answer.status == 403 and 'User "system:anonymous" cannot delete' in answer.message


def test_groups_without_a_user_make_no_sense() -> None:
    with pytest.raises(ApiError) as refused:
        asked_for([("impersonate-group", "ops")])
    assert (refused.value.code, refused.value.message) == (
        400,
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"ops"}, Extra:map[string][]string(nil)} without '
        "impersonating a user name",
    )
    assert asked_for([("impersonate-user", "")]) is None


def test_extra_keys_are_unescaped() -> None:
    headers = [("impersonate-user", "bob"), ("impersonate-extra-a%2fb", "1"), ("impersonate-extra-a%2fb", "2")]
    assert asked_for(headers) == Impersonation("bob", extra={"a/b": ("1", "2")})


@pytest.mark.parametrize(
    ("user", "found"),
    [
        (ACCOUNT, ("default", "robot")),
        ("system:serviceaccount:a:b.c", ("a", "b.c")),
        ("system:serviceaccount:a", None),
        ("system:serviceaccount::b", None),
        ("system:serviceaccount:a:b:c", None),
        ("system:serviceaccount:A:b", None),
        ("bob", None),
    ],
)
def test_a_service_account_is_known_by_its_name(user: str, found: tuple[str, str] | None) -> None:
    assert account_of(user) == found
