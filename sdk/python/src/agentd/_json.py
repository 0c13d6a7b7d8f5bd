"""JSON as agentd reads and writes it: integers are exact, and there is no NaN."""

from __future__ import annotations

import json
from typing import Any

_plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_escaped = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def encode(value: object) -> bytes:
    """Returns JSON on one line. Raises TypeError, ValueError or RecursionError for what is no JSON."""
    try:
        return _plain(value).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: JSON can have it, UTF-8 cannot
        return _escaped(value).encode()


def decode(text: bytes) -> Any:
    """Returns the value of a JSON text. Raises ValueError or RecursionError."""
    return json.loads(text)
