"""Labels of steps, and which of them a failpoint means."""


def matches(label: str, step: str) -> bool:
    """Does a failpoint at ``label`` stop at ``step``? The whole label counts, or its first word: ``K4`` stops at
    ``K4 checkpoint temp written`` and at ``K4``, not at ``K4.1``."""
    return step == label or step.startswith(label + " ")
