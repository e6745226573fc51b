"""How long to wait, and how much room is left, as an endpoint's headers say."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from ...core.contracts.adapter import Room

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the waiting time that an endpoint gives, in seconds; None if it gives none.

    Looked for in this order: `retry-after-ms`, `retry-after` (seconds or an HTTP date), the longest
    `x-ratelimit-reset-*` of a limit that is used up (or that does not say how much is left).
    """
    if (exact := _number(headers.get("retry-after-ms"))) is not None:
        return exact / 1000
    if (named := headers.get("retry-after")) is not None:
        seconds = _number(named)
        return seconds if seconds is not None else _until(named)
    resets = [
        span
        for what in ("requests", "tokens")
        if (_number(headers.get(f"x-ratelimit-remaining-{what}")) or 0.0) < 1
        and (span := _span(headers.get(f"x-ratelimit-reset-{what}"))) is not None
    ]
    return max(resets, default=None)


def read_room(headers: Mapping[str, str]) -> Room | None:
    """Return the rate limit that an endpoint reports with an answer; None if it reports none."""
    remaining = _number(headers.get("x-ratelimit-remaining-requests"))
    reset = _span(headers.get("x-ratelimit-reset-requests")) if remaining is not None else None
    if remaining is None or reset is None:
        return None
    return Room(
        remaining=remaining, reset_seconds=reset, limit=_number(headers.get("x-ratelimit-limit-requests")) or None
    )


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _span(text: str | None) -> float | None:
    """Read `1.5s`, `6m0s`, `20ms`, or plain seconds."""
    if (plain := _number(text)) is not None:
        return plain
    parts = _SPAN.findall(text or "")
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
