"""JSON as agentd reads and writes it: integers are exact, and there is no NaN."""

from __future__ import annotations

import itertools
import json
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_DEPTH = 500  # agentd reads no message that nests more than 520 deep


def encode(value: object) -> bytes:
    """Returns JSON on one line. Raises TypeError, ValueError or RecursionError for what agentd takes for no JSON."""
    text = _encode(value).encode()  # half of a surrogate pair is a UnicodeEncodeError, and so a ValueError
    if text.count(b"[") + text.count(b"{") > _DEPTH and _depth(value) > _DEPTH:
        raise ValueError(f"the value nests more than {_DEPTH} deep")
    return text


def decode(text: bytes) -> Any:
    """Returns the value of a JSON text. Raises ValueError or RecursionError."""
    return json.loads(text)


def _depth(value: Any) -> int:
    level: list[Any] = [value]
    for depth in itertools.count():
        level = [item for part in level if isinstance(part, (dict, list, tuple)) for item in (part.values() if isinstance(part, dict) else part)]  # pyright: ignore
        if not level:
            return depth + 1
    raise AssertionError
