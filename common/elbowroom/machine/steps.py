"""Labels of steps: which there are, and which of them a failpoint means."""

import re

STEPS = {
    "apiserver": "A1 to A10, B1, B2, B4, C1 to C4",
    "scheduler": "S1 to S12, with a number of the victim S6.1, S7.1, S8.1",
    "controllers": "",
    "kubelet": "K1 to K17, with a number of the container K10.1, K11.1, K13.1, K14.1, and R1 to R4",
    "runtime": "T1 to T3",
}
"""By the kind of component, in words."""

_LABELS = {
    "apiserver": r"A([1-9]|10)|B[124]|C[1-4]",
    "scheduler": r"S([1-59]|1[0-2])|S[678]\.[1-9]\d*",
    "kubelet": r"K([1-9]|12|15|16|17)|K1[0134]\.[1-9]\d*|R[1-4]",
    "runtime": r"T[1-3]",
}


def is_step(kind: str, label: str) -> bool:
    """Does a component of that kind ever pass a step of that label?"""
    return kind in _LABELS and re.fullmatch(_LABELS[kind], label) is not None


def is_passed_at_start(label: str) -> bool:
    """Is it one that a life passes when it begins, and never again?"""
    return re.match(r"[BR]\d", label) is not None


def unheard(label: str) -> None:
    """What is told of steps where nobody stops: a disk that is given it need not pass them one by one."""


def matches(label: str, step: str) -> bool:
    """Does a failpoint at ``label`` stop at ``step``? The whole label counts, or its first word: ``K4`` stops at
    ``K4 checkpoint temp written`` and at ``K4``, not at ``K4.1``."""
    return step == label or step.startswith(label + " ")
