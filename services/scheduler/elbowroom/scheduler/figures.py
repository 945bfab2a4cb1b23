"""Which figures the vectorised twin reckons with, and what its codes mean; apart from it, so that small clusters need no NumPy."""

from collections.abc import Iterable, Sequence

EXACT_MAX = 2**53
"""Up to here no product overflows and a float holds a figure exactly, so that fractions round as they do in Python and in Go."""
TOO_MANY_PODS, UNRESOLVABLE, FIRST_RESOURCE = 0, 1, 2
"""The bits of a code: no slot for the pod; the whole node would not be enough; and one for each resource that is short."""
RESOURCES_MAX = 60
ASK = -1
"""The code of a node that the plain rule has to judge."""
Wanted = Sequence[tuple[str, int]]
"""Resources and how much is asked for."""
Weighted = Sequence[tuple[str, int, int]]
"""Resources, their weights and how much is asked for."""


def is_exact(amounts: Iterable[int]) -> bool:
    """Can these figures be reckoned with?"""
    return all(-EXACT_MAX <= amount <= EXACT_MAX for amount in amounts)
