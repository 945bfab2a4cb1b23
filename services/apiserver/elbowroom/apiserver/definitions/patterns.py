"""Patterns as Go's library reads them, carried out by Python's.

Where both write a thing alike and mean another, or one of them does not know it, the text is translated: classes by name, ``\\z``,
``$`` (the very end in Go), quoted parts (``\\Q...\\E``), and flags that hold for the rest of a group. What Go refuses, such as
looking ahead and references back, is refused. Go promises linear time, Python does not: a pattern made for it takes long here.
"""

import re
from functools import lru_cache

_CLASSES = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "lower": "a-z", "upper": "A-Z", "word": r"\w"}
_CLASSES |= {"space": r"\s", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f"}
_CLASSES |= {"ascii": r"\x00-\x7f", "graph": "!-~", "print": " -~"}
_FLAGS = re.compile(r"\(\?(-?[ims]+(?:-[ims]+)?)\)")
_NAME = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")
_OPENS = ("(?:", "(?i", "(?m", "(?s", "(?-")


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of Go's; ``re.error`` if it is none, or none that Python could carry out."""
    return re.compile(_translated(pattern), re.ASCII)


def _translated(pattern: str) -> str:
    end = "$" if re.search(r"\(\?[is]*m", pattern) else r"\Z"
    made: list[str] = []
    groups: list[str] = [""]
    """The flags that hold in each open group, as they are reopened in its next alternative."""
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            text, at = _escaped(pattern, at)
        elif letter == "[":
            text, at = _class(pattern, at)
        elif letter == "$":
            text, at = end, at + 1
        elif letter == "|":
            text, at = f"){'|'}{groups[-1]}" if groups[-1] else "|", at + 1
        elif letter == ")":
            if len(groups) == 1:
                raise re.error("unexpected )", pattern, at)
            text, at = ("))" if groups.pop() else ")"), at + 1
        elif (flags := _FLAGS.match(pattern, at)) is not None:
            text = ")" if groups[-1] else ""
            groups[-1] = f"(?{flags[1]}:"
            text, at = text + groups[-1], flags.end()
        elif letter == "(":
            text, at = _opened(pattern, at)
            groups.append("")
        else:
            text, at = letter, at + 1
        made.append(text)
    return "".join(made) + (")" if groups[0] else "")


def _opened(pattern: str, at: int) -> tuple[str, int]:
    """The beginning of a group."""
    name = _NAME.match(pattern, at)
    if name is not None:
        return f"(?P<{name[1]}>", name.end()
    if pattern[at + 1 : at + 2] != "?":
        return "(", at + 1
    end = pattern.find(":", at)
    if pattern[at : at + 3] not in _OPENS or end < 0:
        raise re.error(f"invalid or unsupported Perl syntax: `{pattern[at : at + 3]}`", pattern, at)
    return pattern[at : end + 1], end + 1


def _escaped(pattern: str, at: int) -> tuple[str, int]:
    following = pattern[at + 1 : at + 2]
    match following:
        case "z":
            return r"\Z", at + 2
        case "Q":
            end = pattern.find(r"\E", at)
            inside = pattern[at + 2 :] if end < 0 else pattern[at + 2 : end]
            return re.escape(inside), len(pattern) if end < 0 else end + 2
        case "x" if pattern[at + 2 : at + 3] == "{":
            end = pattern.find("}", at)
            return re.escape(chr(int(pattern[at + 3 : end], 16))), end + 1
        case "Z" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
            raise re.error(f"invalid escape sequence: `\\{following}`", pattern, at)
    return pattern[at : at + 2], at + 2


def _class(pattern: str, at: int) -> tuple[str, int]:
    """A class in brackets, whole."""
    made = ["["]
    start = at
    at += 1
    if pattern[at : at + 1] == "^":
        made.append("^")
        at += 1
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        named = re.compile(r"\[:(\^?)(\w+):\]").match(pattern, at)
        if named is not None and not named[1] and named[2] in _CLASSES:
            text, at = _CLASSES[named[2]], named.end()
        elif pattern[at] == "\\":
            text, at = _escaped(pattern, at)
        else:
            text, at = ("\\" + pattern[at] if pattern[at] in "[&~|" or (first and pattern[at] == "]") else pattern[at]), at + 1
        made.append(text)
        first = False
    if at >= len(pattern):
        raise re.error("missing closing ]", pattern, start)
    return "".join(made) + "]", at + 1
