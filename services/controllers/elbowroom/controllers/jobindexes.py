"""The indexes of a job's completions (``completionMode: Indexed``): each is done once, by a pod that bears its number.

In a status they stand as text, ``0,2-5``.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from elbowroom.api.objects import Pod

INDEX = "batch.kubernetes.io/job-completion-index"
VARIABLE = "JOB_COMPLETION_INDEX"


def parsed(text: str, completions: int) -> list[int]:
    """The indexes that a text names, below ``completions``; parts that are no numbers name none."""
    found: dict[int, None] = {}
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found |= dict.fromkeys(range(int(first), min(int(last or first) + 1, completions)))
    return sorted(found)


def text_of(indexes: Iterable[int]) -> str:
    """``0,2-5``; two neighbours stand for themselves."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 2 else ",".join(map(str, p)) for p in parts)


def index_of(pod: Pod, completions: int) -> int | None:
    """The index that a pod is for; None if it bears none of the job's."""
    said = pod.metadata.annotations.get(INDEX, "")
    return int(said) if said.isdigit() and len(said) < 10 and int(said) < completions else None


def indexes_of(pods: Iterable[Pod], completions: int) -> set[int]:
    """The indexes that pods are for."""
    return {index for pod in pods if (index := index_of(pod, completions)) is not None}


def sorted_out(active: Sequence[Pod], completed: Sequence[int], completions: int) -> tuple[list[Pod], list[Pod]]:
    """The pods that are for something, one for each index that is not done, and those that are too many."""
    taken = set(completed)
    kept: list[Pod] = []
    surplus: list[Pod] = []
    for pod in sorted(active, key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name)):
        index = index_of(pod, completions)
        (surplus if index is None or index in taken else kept).append(pod)
        if index is not None:
            taken.add(index)
    return kept, surplus


def free(count: int, completions: int, taken: Iterable[int]) -> list[int]:
    """The first indexes, so many, that nobody has done or works on."""
    not_these = set(taken)
    found: list[int] = []
    for index in range(completions):
        if len(found) >= count:
            break
        if index not in not_these:
            found.append(index)
    return found


def marked(document: dict[str, Any], name: str, index: int) -> dict[str, Any]:
    """A pod of job ``name``, made out for an index: label, annotation, hostname and environment say so."""
    metadata, spec = document["metadata"], document["spec"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), INDEX: str(index)}
    metadata["labels"] = {**(metadata.get("labels") or {}), INDEX: str(index)}
    metadata["generateName"] = f"{name}-{index}-"
    spec.setdefault("hostname", f"{name}-{index}")
    source = {"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_variable(container, source) for container in spec[kind]]
    return document


def _with_variable(container: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    known = container.get("env") or []
    return container if any(one.get("name") == VARIABLE for one in known) else {**container, "env": [*known, source]}
