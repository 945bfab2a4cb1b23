"""Who asks: certificates, tokens from a file, tokens of service accounts, and nobody."""

import base64
import hmac
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elbowroom.apiserver import identity
from elbowroom.apiserver.drivers.certificates import make_credentials, tokens_of_file
from elbowroom.apiserver.drivers.tokens import TokenKey
from elbowroom.apiserver.identity import BadTokenError, of_subject
from elbowroom.apiserver.tokens import ISSUER
from elbowroom.machine import Instant

from .whole import Scenario, Whole, bearer, play

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
NOW = Instant(1_800_000_000 * 1_000_000_000)
Serve = Callable[..., None]


@pytest.fixture
def serve(pki: Path, tmp_path: Path) -> Serve:
    def run(scenario: Scenario, **facade: Any) -> None:
        play(scenario, pki, tmp_path, **facade)

    return run


def user_of(answer: Any) -> dict[str, Any]:
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json()["status"]["userInfo"]
    return found


def claims_of(token: str) -> dict[str, Any]:
    middle = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    return found


async def a_token(it: Whole, account: str = "robot", **spec: Any) -> dict[str, Any]:
    """A TokenRequest's answer, for a new account."""
    await it.ask("POST", ACCOUNTS, {"metadata": {"name": account}})
    found: dict[str, Any] = await it.create(f"{ACCOUNTS}/{account}/token", {"spec": spec})
    return found


# ---------------------------------------------------------------- certificates


def test_a_client_certificate_says_user_and_groups(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        connection = await it.connect("ann", "ops", "dev")
        answer = await connection.ask("POST", WHO, {"Content-Type": "application/json"}, b"{}")
        assert user_of(answer) == {"username": "ann", "groups": ["ops", "dev", "system:authenticated"]}
        refused = await connection.ask("GET", "/api/v1/nodes")
        assert refused.status == 403 and refused.json()["message"].startswith('nodes is forbidden: User "ann" cannot list')

    serve(scenario)


def test_a_kubelet_over_https_is_the_node_that_its_certificate_names(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        for name in ("n1", "n2"):
            await it.create("/api/v1/nodes", {"metadata": {"name": name}})
        kubelet = await it.connect("system:node:n1", "system:nodes")
        assert (await kubelet.ask("GET", "/api/v1/nodes/n1")).status == 200
        other = await kubelet.ask("GET", "/api/v1/nodes/n2")
        assert other.status == 403 and "only its own Node object" in other.json()["message"]

    serve(scenario)


def test_a_master_by_certificate_may_do_everything(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        root = await it.connect("root", "system:masters")
        assert (await root.ask("GET", "/api/v1/nodes")).status == 200
        # A certificate counts before a token does.
        assert (await root.ask("GET", "/api/v1/nodes", bearer("nonsense"))).status == 200

    serve(scenario)


def test_a_certificate_of_another_authority_or_out_of_its_time_is_not_let_in(serve: Serve, tmp_path: Path) -> None:
    strangers = make_credentials(tmp_path / "other")

    async def scenario(it: Whole) -> None:
        ours, it.credentials = it.credentials, strangers
        with pytest.raises(ssl.SSLError):
            await it.connect("root", "system:masters")  # it does not trust the server either
        it.credentials = ours
        for user, days in (("old", -1),):
            with pytest.raises((ssl.SSLError, ConnectionError, IndexError, ValueError)):
                connection = await it.connect(user, "system:masters", days=days)
                await connection.ask("GET", "/api/v1/nodes")
        assert (await it.ask("GET", "/api/v1/nodes")).status == 200

    serve(scenario)


@pytest.mark.parametrize(
    ("subject", "user", "groups"),
    [
        (((("organizationName", "ops"),), (("commonName", "ann"),)), "ann", ("ops", "system:authenticated")),
        (((("commonName", "ann"),),), "ann", ("system:authenticated",)),
        (((("organizationName", "system:masters"),),), None, ()),
        ((), None, ()),
    ],
)
def test_a_subject_without_a_common_name_is_nobody(subject: Any, user: str | None, groups: tuple[str, ...]) -> None:
    found = of_subject(subject)
    assert (None if found is None else (found.user, found.groups)) == (None if user is None else (user, groups))


# ---------------------------------------------------------------- token files


def test_a_token_file_names_users_and_groups(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    assert tokens_of_file(path) == []
    path.write_text('t1,ann,u1\nt2, bob ,u2,"ops, dev"\n\nonly,two\n,nobody,u3\n')
    assert tokens_of_file(path) == [
        {"token": "t1", "user": "ann", "groups": []},
        {"token": "t2", "user": "bob", "groups": ["ops", "dev"]},
    ]


def test_a_token_is_compared_with_every_known_one_whichever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes says nothing of which it was, or how much of it was right."""
    compared: list[tuple[bytes, bytes]] = []
    compare = hmac.compare_digest

    def compare_digest(known: bytes, given: bytes) -> bool:
        compared.append((known, given))
        return compare(known, given)

    monkeypatch.setattr(hmac, "compare_digest", compare_digest)
    tokens = [{"token": f"token-{number}", "user": f"user-{number}"} for number in range(5)]
    authenticator = identity.Authenticator(tokens, lambda token: identity.Identity("signed", ()))
    for token, user in (("token-0", "user-0"), ("token-4", "user-4"), ("token-", "signed"), ("x" * 5000, "signed")):
        compared.clear()
        assert authenticator.identify(f"Bearer {token}").user == user
        assert len(compared) == 5 and {len(one) for pair in compared for one in pair} == {32}, "digests of one length"


def test_who_bears_a_token_of_the_file_is_let_in(tmp_path: Path) -> None:
    pki = tmp_path / "pki"
    make_credentials(pki)
    (pki / "tokens.csv").write_text('secret-of-bob,bob,u2,"ops"\n')

    async def scenario(it: Whole) -> None:
        answer = await it.ask("POST", WHO, {}, bearer("secret-of-bob"))
        assert user_of(answer) == {"username": "bob", "groups": ["ops", "system:authenticated"]}

    play(scenario, pki, tmp_path)


# ---------------------------------------------------------------- tokens of service accounts


def test_a_service_account_asks_by_its_token(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        asked = await a_token(it)
        account = (await it.ask("GET", f"{ACCOUNTS}/robot")).json()
        assert asked["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
        assert (asked["metadata"]["name"], asked["metadata"]["uid"]) == ("robot", account["metadata"]["uid"])
        token = asked["status"]["token"]
        claims = claims_of(token)
        assert claims["exp"] - claims["iat"] == 3600 and claims["sub"] == "system:serviceaccount:default:robot"
        answer = await it.ask("POST", WHO, {}, bearer(token))
        assert user_of(answer) == {
            "username": "system:serviceaccount:default:robot",
            "uid": account["metadata"]["uid"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]},
        }
        assert (await it.ask("GET", "/api/v1/pods", headers=bearer(token))).status == 403

    serve(scenario)


def test_a_token_ends_with_its_account_even_if_another_of_that_name_comes(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        token = (await a_token(it))["status"]["token"]
        await it.ask("DELETE", f"{ACCOUNTS}/robot")
        for _ in range(2):
            answer = await it.ask("POST", WHO, {}, bearer(token))
            assert (answer.status, answer.json()["message"]) == (401, "Unauthorized")
            watch = await it.ask("GET", "/api/v1/pods?watch=1", headers=bearer(token))
            assert watch.status == 401
            assert (await it.ask("GET", "/api", headers=bearer(token))).status == 401
            await it.create(ACCOUNTS, {"metadata": {"name": "robot"}}) if _ == 0 else None

    serve(scenario)


def test_a_token_bound_to_a_pod_says_so_and_ends_with_it(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        pod = {"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
        made = await it.create("/api/v1/namespaces/default/pods", pod)
        await it.create(ACCOUNTS, {"metadata": {"name": "default"}})
        reference = {"kind": "Pod", "apiVersion": "v1", "name": "a"}
        token = (await a_token(it, "default", boundObjectRef=reference))["status"]["token"]
        extra = user_of(await it.ask("POST", WHO, {}, bearer(token)))["extra"]
        assert extra["authentication.kubernetes.io/pod-uid"] == [made["metadata"]["uid"]]
        assert extra["authentication.kubernetes.io/node-name"] == ["n1"]
        await it.ask("DELETE", "/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0")
        assert (await it.ask("POST", WHO, {}, bearer(token))).status == 401
        refused = await it.ask("POST", f"{ACCOUNTS}/default/token", {"spec": {"boundObjectRef": reference}})
        assert (refused.status, refused.json()["message"]) == (404, 'pods "a" not found')

    serve(scenario)


@pytest.mark.parametrize(
    ("account", "body", "code", "words"),
    [
        (
            "robot", {"spec": {"expirationSeconds": 599}}, 422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a '
            "duration less than 10 minutes",
        ),
        (
            "robot", {"spec": {"expirationSeconds": 2**32 + 1}}, 422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify '
            "a duration larger than 2^32 seconds",
        ),
        ("nobody", {}, 404, 'serviceaccounts "nobody" not found'),
        (
            "robot", {"metadata": {"name": "other"}}, 422,
            'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service '
            "account name if specified",
        ),
        (
            "robot", {"spec": {"boundObjectRef": {"kind": "Service", "apiVersion": "v1", "name": "s"}}}, 400,
            "cannot bind token to object of type /v1, Kind=Service",
        ),
        (
            "robot", {"spec": {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n1", "uid": "x"}}}, 409,
            'Operation cannot be fulfilled on Node "n1": the UID in the bound object reference (x) does not match the UID in '
            "record. The object might have been deleted and then recreated",
        ),
        (
            "robot", {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "a"}}}, 400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
    ],
)  # fmt: skip
def test_a_token_request_that_makes_no_sense_is_refused(
    serve: Serve, account: str, body: dict[str, Any], code: int, words: str
) -> None:
    async def scenario(it: Whole) -> None:
        await it.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        await it.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await it.create("/api/v1/namespaces/default/pods", pod)
        answer = await it.ask("POST", f"{ACCOUNTS}/{account}/token", body)
        assert (answer.status, answer.json()["message"]) == (code, words)

    serve(scenario)


def test_a_token_for_another_audience_is_none_for_the_api(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        token = (await a_token(it, audiences=["vault"]))["status"]["token"]
        assert (await it.ask("POST", WHO, {}, bearer(token))).status == 401
        mine = await it.create(REVIEWS, {"spec": {"token": token}})
        assert mine["status"]["error"] == (
            f'[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]]'
        )
        vaults = await it.create(REVIEWS, {"spec": {"token": token, "audiences": ["vault", "other"]}})
        assert vaults["status"]["authenticated"] is True and vaults["status"]["audiences"] == ["vault"]

    serve(scenario)


def test_a_review_says_who_bears_a_token(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        robot = (await a_token(it))["status"]["token"]
        good = await it.create(REVIEWS, {"spec": {"token": robot}})
        assert good["status"]["user"]["username"] == "system:serviceaccount:default:robot"
        admin = await it.create(REVIEWS, {"spec": {"token": it.credentials.tokens["admin"]}})
        assert admin["status"]["user"]["groups"] == ["system:masters", "system:authenticated"]
        for bad in ("nonsense", f"{robot[:-4]}AAAA", "a.b.c"):
            found = await it.create(REVIEWS, {"spec": {"token": bad}})
            assert found["status"] == {"user": {}, "error": "invalid bearer token"}
        await it.ask("DELETE", f"{ACCOUNTS}/robot")
        gone = await it.create(REVIEWS, {"spec": {"token": robot}})
        assert gone["status"]["error"] == '[invalid bearer token, serviceaccounts "robot" not found]'
        empty = await it.ask("POST", REVIEWS, {"spec": {}})
        assert (empty.status, empty.json()["message"]) == (400, "token is required for TokenReview in authentication")

    serve(scenario)


# ---------------------------------------------------------------- the key


def a_key(folder: Path) -> TokenKey:
    return TokenKey(make_credentials(folder).account_key)


def some_claims(**changes: Any) -> dict[str, Any]:
    begun = NOW // 10**9
    private = {"namespace": "a", "serviceaccount": {"name": "b", "uid": "u"}}
    claims = {"aud": [ISSUER], "exp": begun + 600, "iat": begun, "nbf": begun, "iss": ISSUER, "sub": "system:serviceaccount:a:b"}
    return {**claims, "kubernetes.io": private, **changes}


def later(seconds: float) -> Instant:
    return Instant(NOW + int(seconds * 10**9))


def test_a_token_counts_in_its_time_and_a_minute_beyond(tmp_path: Path) -> None:
    key = a_key(tmp_path)
    token = key.sign(some_claims())
    for at in (-60, 0, 600, 660):
        assert key.read(token, later(at))[0].user == "system:serviceaccount:a:b"
    with pytest.raises(BadTokenError, match="has expired"):
        key.read(token, later(661))
    with pytest.raises(BadTokenError, match="not valid yet"):
        key.read(token, later(-61))


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://elsewhere"},
        {"sub": "system:serviceaccount:a:c"},
        {"sub": "admin"},
        {"kubernetes.io": {"namespace": "x", "serviceaccount": {"name": "b", "uid": "u"}}},
        {"kubernetes.io": {"namespace": "a", "serviceaccount": {"name": "b"}}},
        {"kubernetes.io": 7},
        {"exp": "soon"},
        {"aud": ISSUER},
    ],
)
def test_claims_that_do_not_agree_prove_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    key = a_key(tmp_path)
    with pytest.raises(BadTokenError, match="invalid bearer token"):
        key.read(key.sign(some_claims(**changes)), NOW)


def test_no_forged_token_is_believed_and_none_takes_long(tmp_path: Path) -> None:
    key, other = a_key(tmp_path / "a"), a_key(tmp_path / "b")
    good = key.sign(some_claims())
    head, body, signature = good.split(".")

    def text(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    forged = [
        other.sign(some_claims()),
        f"{text({'alg': 'none'})}.{body}.",
        f"{text({'alg': 'HS256'})}.{body}.{signature}",
        f"{head}.{text(some_claims(sub='system:serviceaccount:kube-system:root'))}.{signature}",
        f"{head}.{body}.{signature[:-2]}",
        f"{head}.{body}.{text('0' * 46)}",
        f"{head}.{body}.{signature}.{signature}",
        f"{head}={'.' + body}.{signature}",
        ".".join(["A" * 100_000] * 3),
        "..",
        "é.é.é",
        f"{text([[]] * 1000)}.{body}.{signature}",
    ]
    began = time.process_time()
    for token in forged:
        with pytest.raises(BadTokenError, match="invalid bearer token"):
            key.read(token, NOW)
    assert time.process_time() - began < 0.5
    assert key.read(good, NOW)[1] == (ISSUER,)
