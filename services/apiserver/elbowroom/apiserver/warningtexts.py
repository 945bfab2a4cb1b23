"""How much of its warnings a request is told: each once, and 4096 characters in all.

Where that does not suffice, each warning is cut to 256 characters, those before the limit too; once cut ones reach the limit,
what follows is left out (upstream's WithWarningRecorder). HTTP clients refuse answers with very large or very many headers.
"""

from collections.abc import Iterable

TOTAL_CHARACTERS_MAX = 4 * 1024
CUT_CHARACTERS = 256


def told(warnings: Iterable[str]) -> list[str]:
    """The texts that are sent, in order."""
    texts = list(dict.fromkeys(text for text in warnings if text))
    if sum(map(len, texts)) <= TOTAL_CHARACTERS_MAX:
        return texts
    kept: list[str] = []
    plain = _fitting(texts)  # the one after these is where upstream starts to cut, and repeats all up to it
    for number, text in enumerate(texts):
        if number > plain and sum(map(len, kept)) >= TOTAL_CHARACTERS_MAX:
            break
        kept.append(text[:CUT_CHARACTERS])
    return kept


def _fitting(texts: list[str]) -> int:
    """How many texts fit whole, from the first on."""
    written = 0
    for number, text in enumerate(texts):
        written += len(text)
        if written > TOTAL_CHARACTERS_MAX:
            return number
    return len(texts)
