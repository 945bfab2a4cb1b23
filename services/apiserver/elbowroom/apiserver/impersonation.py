"""``kubectl --as``: who may act as whom (KEP-5284, and the older verb ``impersonate``).

A user may act as another one for one request if they may ``impersonate-on:MODE:VERB`` what the request is about and
``impersonate:MODE`` the other one, where the mode tells nodes, service accounts and people apart; or if they may ``impersonate``
the user, each of the groups, the uid and each extra. As upstream does it, what is refused first is what is told.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

import msgspec

from elbowroom.apiserver import authorizer
from elbowroom.apiserver.authorizer import Judgement
from elbowroom.apiserver.identity import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED
from elbowroom.apiserver.statuses import ApiError, bad_request
from elbowroom.wire import ApiRequest, Impersonation

GROUP = "authentication.k8s.io"
LEGACY = "impersonate"
ACCOUNT_PREFIX = "system:serviceaccount:"
NODE_NAME = "authentication.kubernetes.io/node-name"
_EXTRA = "impersonate-extra-"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

Judge = Callable[[ApiRequest], Judgement]


def asked_for(headers: Sequence[tuple[str, str]]) -> Impersonation | None:
    """Whom ``Impersonate-*`` headers (names in lower case) ask to act as; 400 if they name groups and the like, but no user."""
    user = next((value for name, value in headers if name == "impersonate-user"), "")
    uid = next((value for name, value in headers if name == "impersonate-uid"), "")
    groups = tuple(value for name, value in headers if name == "impersonate-group")
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        if name.startswith(_EXTRA):
            key = unquote(name.removeprefix(_EXTRA))
            extra[key] = (*extra.get(key, ()), value)
    if user:
        return Impersonation(user, groups, uid, extra)
    if uid or groups or extra:
        raise bad_request(f"requested {_go_struct(uid, groups, extra)} without impersonating a user name")
    return None


def acting(request: ApiRequest, judge: Judge) -> ApiRequest:
    """The request as that of whom its user acts as; 403 if they may not."""
    wanted = request.impersonate
    if wanted is None:
        return request
    refusal: ApiError | None = None
    for mode in _modes(request, wanted):
        refused = _refusal(mode, request, wanted, judge)
        if refused is None:
            groups = _groups(wanted, mode)
            return msgspec.structs.replace(
                request, user=wanted.user, groups=groups, uid=wanted.uid, extra=wanted.extra, impersonate=None
            )
        refusal = refusal or refused
    assert refusal is not None, "the older verb is always tried"
    raise refusal


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user is; None for all others."""
    if not user.startswith(ACCOUNT_PREFIX):
        return None
    namespace, _, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not _LABEL.fullmatch(namespace) or not all(map(_LABEL.fullmatch, name.split("."))):
        return None
    return namespace, name


def groups_of_account(namespace: str) -> tuple[str, str]:
    """The groups of every service account in a namespace."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def _modes(request: ApiRequest, wanted: Impersonation) -> Iterator[str]:
    """What may allow it, in upstream's order; empty for the older verb."""
    only_name = not wanted.groups and not wanted.uid and not wanted.extra
    node = wanted.user.removeprefix(authorizer.NODE_PREFIX) if wanted.user.startswith(authorizer.NODE_PREFIX) else ""
    if node:
        if only_name and account_of(request.user) is not None and request.extra.get(NODE_NAME) == (node,):
            yield "associated-node"
        if only_name:
            yield "arbitrary-node"
    elif account_of(wanted.user) is not None:
        if only_name:
            yield "serviceaccount"
    else:
        yield "user-info"
    yield ""


def _refusal(mode: str, request: ApiRequest, wanted: Impersonation, judge: Judge) -> ApiError | None:
    """Why a mode does not let the user act so; None if it does."""
    if mode:
        on = msgspec.structs.replace(request, verb=f"impersonate-on:{mode}:{request.verb}", body=b"")
        judgement = judge(on)
        if not judgement.allowed and request.group == "elbowroom":
            return authorizer.cannot_path(on.user, on.verb, on.query.get("path", "/metrics"), judgement.reason)
        if not judgement.allowed:
            return authorizer.cannot(on, judgement.reason)
    for part in _parts(mode, request, wanted):
        judgement = judge(part)
        if not judgement.allowed:
            return authorizer.cannot(part, judgement.reason)
        if mode and (part.resource, part.name) == ("groups", MASTERS):
            return authorizer.cannot(part, f"impersonating the {MASTERS} group is not allowed")
    return None


def _parts(mode: str, request: ApiRequest, wanted: Impersonation) -> Iterator[ApiRequest]:
    """All that must be allowed of somebody who wants to act as ``wanted``."""

    def part(resource: str, name: str, *, group: str = GROUP, namespace: str = "", subresource: str = "") -> ApiRequest:
        return ApiRequest(
            f"{LEGACY}:{mode}" if mode else LEGACY,
            resource,
            group,
            namespace=namespace,
            name=name,
            subresource=subresource,
            user=request.user,
            groups=request.groups,
        )

    core = GROUP if mode else ""
    account = account_of(wanted.user)
    if account is not None:
        yield part("serviceaccounts", account[1], group=core, namespace=account[0])
    elif mode.endswith("-node"):
        yield part("nodes", "*" if mode == "associated-node" else wanted.user.removeprefix(authorizer.NODE_PREFIX))
    else:
        yield part("users", wanted.user, group=core)
    if wanted.uid:
        yield part("uids", wanted.uid)
    for group in wanted.groups:
        yield part("groups", group, group=core)
    for key, values in sorted(wanted.extra.items()):
        for value in values:
            yield part("userextras", value, subresource=key)


def _groups(wanted: Impersonation, mode: str) -> tuple[str, ...]:
    groups = wanted.groups
    account = account_of(wanted.user)
    if mode.endswith("-node"):
        groups = (authorizer.NODES,)
    elif account is not None and not groups:
        groups = groups_of_account(account[0])
    everybody = UNAUTHENTICATED if wanted.user == ANONYMOUS.user or UNAUTHENTICATED in groups else AUTHENTICATED
    return groups if everybody in groups else (*groups, everybody)


def _go_struct(uid: str, groups: Sequence[str], extra: dict[str, tuple[str, ...]]) -> str:
    """What ``%#v`` prints of upstream's ``*user.DefaultInfo`` without a name."""

    def texts(values: Sequence[str]) -> str:
        return "{" + ", ".join(map(json.dumps, values)) + "}"

    shown_groups = f"[]string{texts(groups)}" if groups else "[]string(nil)"
    pairs = ", ".join(f"{json.dumps(key)}:[]string{texts(values)}" for key, values in sorted(extra.items()))
    shown_extra = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{json.dumps(uid)}, Groups:{shown_groups}, Extra:{shown_extra}}}'
