"""Requests made from the API server's own OpenAPI: whatever fits the schema, or breaks it, is answered, and never with 500.

``make fuzz`` runs it for minutes against a cluster of its own; the tests run a short, seeded part of it. Names and namespaces are
drawn from a few, so that requests meet the objects of others; watches are left out, since they only end with their time.
"""

import argparse
import base64
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode

from elbowroom.client import HttpClient
from elbowroom.testing.cluster import running

FEW = {"namespace": ["default", "kube-system"], "name": ["a", "b", "default"]}
LEFT_OUT = ("watch", "timeoutSeconds", "allowWatchBookmarks")
SECONDS_A_REQUEST = 10
ERRORS = 500
AS_UPSTREAM = re.compile(
    r"\[?target\.(kind|name): |strconv\.ParseUint: parsing |resourceVersion should not be set on objects to be created"
)
"""What upstream answers with 500, too: a binding to nothing, an update from a revision that is no number, a create from any."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A request that was answered with a server's error, or with something that is no Status."""

    method: str
    path: str
    body: str
    answer: str


@dataclass(slots=True)
class Tally:
    """What was asked, by status, and what was found."""

    statuses: Counter[int] = field(default_factory=Counter)
    operations: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


class Target:
    """An API server, by its kubeconfig."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self.server: str = config["clusters"][0]["cluster"]["server"]
        ca = folder / "ca.pem"
        ca.write_bytes(base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]))
        self.session = requests.Session()
        self.session.trust_env = False  # an authority that the environment names would win
        self.authority = str(ca)
        self.session.headers["Authorization"] = f"Bearer {config['users'][0]['user']['token']}"
        self._client = HttpClient(kubeconfig)

    def documents(self) -> Iterator[dict[str, Any]]:
        """The OpenAPI of each group, narrowed."""
        groups = self._client.get("/openapi/v3").document["paths"]
        for _, place in sorted(groups.items()):
            yield narrowed(self._client.get(place["serverRelativeURL"]).document)


def narrowed(document: dict[str, Any]) -> dict[str, Any]:
    """The same OpenAPI with few names, no watches, and bodies whose kind is the path's."""
    for path in document["paths"].values():
        for operation in [path, *(o for o in path.values() if isinstance(o, dict))]:
            kept = [p for p in operation.get("parameters", ()) if p["name"] not in LEFT_OUT]
            if "parameters" in operation:
                operation["parameters"] = kept
            for parameter in kept:
                if parameter["in"] == "path" and parameter["name"] in FEW:
                    parameter["schema"] = {"type": "string", "enum": FEW[parameter["name"]]}
    for schema in document["components"]["schemas"].values():
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1 and "apiVersion" in schema.get("properties", {}):
            known = kinds[0]
            version = f"{known['group']}/{known['version']}" if known.get("group") else known["version"]
            schema["properties"]["apiVersion"] = {"type": "string", "enum": [version]}
            schema["properties"]["kind"] = {"type": "string", "enum": [known["kind"]]}
    return document


def explore(target: Target, number: int, examples: int, until: float, tally: Tally) -> None:
    """So many requests for each operation, valid and broken ones, while time lasts; ``number`` seeds them and their order."""
    operations = [
        made.ok() for document in target.documents() for made in schemathesis.openapi.from_dict(document).get_all_operations()
    ]
    turns = [(operation, mode) for operation in operations for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]
    random.Random(number).shuffle(turns)
    for operation, mode in turns:
        if time.monotonic() > until:
            return
        _ask(operation, mode, target, number, examples, until, tally)


def _ask(operation: Any, mode: GenerationMode, target: Target, number: int, examples: int, until: float, tally: Tally) -> None:
    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Case) -> None:
        if time.monotonic() > until:
            return
        case.query.setdefault("fieldValidation", "Strict") if case.method in ("POST", "PUT", "PATCH") else None
        answer = case.call(base_url=target.server, session=target.session, verify=target.authority, timeout=SECONDS_A_REQUEST)
        tally.statuses[answer.status_code] += 1
        tally.operations.add(operation.label)
        if is_fault(answer.status_code, answer.content):
            shown = answer.content.decode(errors="replace")[:600]
            tally.findings.append(
                Finding(case.method, str(answer.request.url), repr(case.body)[:2000], f"{answer.status_code} {shown}")
            )

    try:
        one()
    except Unsatisfiable:  # nothing can be broken about it
        return


def is_fault(status: int, body: bytes) -> bool:
    """Is the answer a server's error that upstream would not give, or an error that no Status tells of?"""
    if status < 400:
        return False
    try:
        document = json.loads(body)
    except ValueError:
        return True
    if not isinstance(document, dict) or document.get("kind") != "Status" or document.get("code") != status:
        return True
    return status >= ERRORS and not AS_UPSTREAM.match(document.get("message", ""))


def main() -> int:
    parser = argparse.ArgumentParser(description="Requests from our own OpenAPI; exit 1 if one is answered with 500.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--examples", type=int, default=50, help="requests for an operation in each round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    until, tally, number = time.monotonic() + chosen.minutes * 60, Tally(), chosen.seed
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "--nodes", "0", "--store", "memory") as cluster:
        target = Target(cluster.kubeconfig, Path(folder))
        while time.monotonic() < until:
            explore(target, number, chosen.examples, until, tally)
            number += 1
        restarts = cluster.restarts("apiserver")
    told = ", ".join(f"{status}: {count}" for status, count in sorted(tally.statuses.items()))
    sys.stdout.write(
        f"seeds {chosen.seed} to {number - 1}, {len(tally.operations)} operations; {told}; {restarts} deaths of the API server\n"
    )
    for finding in tally.findings[:20]:
        sys.stdout.write(f"\n{finding.method} {finding.path}\n  {finding.body}\n  {finding.answer}\n")
    return 1 if tally.findings or restarts else 0


if __name__ == "__main__":
    sys.exit(main())
