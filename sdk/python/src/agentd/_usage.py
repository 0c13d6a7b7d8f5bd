"""What a request to a language model has used, as agentd takes it."""

from __future__ import annotations

import re
from typing import Any

_OPERATIONS = ("chat", "text_completion", "generate_content", "embeddings")
_NAME = re.compile(r"[A-Za-z0-9._:/@+-]{1,128}", re.ASCII)
_MOST_TOKENS = 1_000_000_000
_MOST_MS = 3_600_000

#: The code with which an agentd that takes no reports refuses them.
NOT_TAKEN = "not-an-operator"


def usage(provider: str, model: str, operation: str, input_tokens: int, output_tokens: int, duration_ms: int) -> dict[str, Any]:
    """The report as it is sent; raises for what agentd would refuse."""
    for what, name in (("provider", provider), ("model", model)):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{what} of a model's usage is not 1 to 128 letters, digits and ._:/@+-")
    if operation not in _OPERATIONS:
        raise ValueError(f"operation of a model's usage is none of {', '.join(_OPERATIONS)}")
    for what, n, most in (("input_tokens", input_tokens, _MOST_TOKENS), ("output_tokens", output_tokens, _MOST_TOKENS), ("duration_ms", duration_ms, _MOST_MS)):
        if type(n) is not int:
            raise TypeError(f"{what} of a model's usage is no int")
        if not 0 <= n <= most:
            raise ValueError(f"{what} of a model's usage is not from 0 to {most}")
    return {
        "provider": provider,
        "model": model,
        "operation": operation,
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "durationMs": duration_ms,
    }
