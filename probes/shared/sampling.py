"""Checks of sampling options, shared by several probes."""

from __future__ import annotations

import math

from ...core.contracts import Options
from ...core.contracts.errors import UsageError

TEMPERATURES = ("temperature", "judge_temperature")


def ensure_drawable(options: Options) -> None:
    """Refuse an invalid temperature, `top_p` or `max_tokens`; None: the model's default.

    Raises:
        UsageError: a temperature is below 0 or not finite, `top_p` not above 0 and at most 1, `max_tokens` below 1.
    """
    for name in TEMPERATURES:
        value = getattr(options, name, None)
        if value is not None and not 0 <= value < math.inf:
            raise UsageError(
                f"{name} is {value}. Give 0 (always the most likely token) or a finite number above it.",
                code="options.value",
            )
    top_p, most = getattr(options, "top_p", None), getattr(options, "max_tokens", None)
    if top_p is not None and not 0 < top_p <= 1:
        raise UsageError(
            f"top_p is {top_p}. Give a number above 0, at most 1 (1 excludes no token).", code="options.value"
        )
    if most is not None and most < 1:
        raise UsageError(
            f"max_tokens is {most}. Give 1 or more: the maximum length of an answer.", code="options.value"
        )
