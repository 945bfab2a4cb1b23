"""Single-line mutations that no test can tell from the code, and why: each is the same in all that anybody sees."""

SURVIVORS: dict[str, str] = {}
