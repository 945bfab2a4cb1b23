"""What the command line says to the supervisor: one JSON line there, JSON lines back, the last of which has ``ok`` or ``error``.

The client side uses nothing but the standard library, so that ``elbowroom status`` answers at once.
"""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elbowroom.deploy.errors import UserError

LINE_BYTES_MAX = 8 * 1024 * 1024


def ask(path: Path, request: Mapping[str, Any], timeout: float = 30.0) -> dict[str, Any]:
    """The supervisor's answer; ``UserError`` if it refuses, or does not answer within ``timeout`` seconds."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer = lines.readline(LINE_BYTES_MAX)
    except TimeoutError as why:
        raise UserError(f"the supervisor did not answer within {timeout:.0f} s; 'elbowroom down' ends it by force") from why
    except OSError as why:
        raise UserError(f"the supervisor cannot be reached ({why.strerror}); is it going down?") from why
    if not answer:
        raise UserError("the supervisor went away before it answered")
    reply: dict[str, Any] = json.loads(answer)
    if "error" in reply:
        raise UserError(reply["error"])
    return reply
