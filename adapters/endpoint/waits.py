"""How long to wait, and how much room is left, as an endpoint's headers say."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...core.contracts.adapter import Room

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_TOLD = ("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining")
_EPOCH = 1e9
"""A wait of more seconds than this, 31 years, is a Unix time."""
_T, _R = re.compile(r";\s*t=(\d+)"), re.compile(r";\s*r=(\d+)")
_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the waiting time that an endpoint gives, in seconds; None if it gives none.

    Looked for in this order: `retry-after-ms`, `retry-after` (seconds, an HTTP date or a Unix time), the longest reset
    of a limit that is used up (or that does not say how much is left): `x-ratelimit-reset-*`,
    `anthropic-ratelimit-*-reset`; `ratelimit` and `ratelimit-reset` of the draft of the IETF, `x-ratelimit-reset`.
    """
    if (named := read_retry_after(headers)) is not None:
        return named
    resets = [
        reset
        for what in _LIMITS
        for limit in (_openai(headers, what), _anthropic(headers, what))
        if (limit.remaining or 0.0) < 1 and (reset := limit.reset) is not None
    ]
    return max(resets, default=_of_draft(headers))


def _of_draft(headers: Mapping[str, str]) -> float | None:
    """Return the reset of a limit as draft-ietf-httpapi-ratelimit-headers names it, or without a name of its own.

    Source: its versions up to 07 have `RateLimit-Reset: 50`, later ones `RateLimit: "default";r=0;t=50`.
    """
    limits = [(_T.search(policy), _R.search(policy)) for policy in headers.get("ratelimit", "").split(",")]
    resets = [float(t[1]) for t, r in limits if t and (r is None or not int(r[1]))]
    resets += [s for n in ("ratelimit-reset", "x-ratelimit-reset") if (s := read_moment(headers.get(n))) is not None]
    return max(resets, default=None)


def read_moment(text: str | None) -> float | None:
    """Return the seconds until a moment: a span as `read_span` reads it, a Unix time in s or ms, or a date."""
    if (seconds := read_span(text)) is None:
        instant = _instant(text)
        return _until(text or "") if instant is None else instant
    return _since_now(seconds)


def _since_now(seconds: float) -> float:
    """Return a wait as it is, and a Unix time as the wait until then."""
    if seconds < _EPOCH:
        return seconds
    return max(0.0, (seconds / 1000 if seconds > 1000 * _EPOCH else seconds) - time.time())


def until_pacific_midnight() -> float | None:
    """Return the seconds until a day of Gemini's quotas ends; None where time zones are not known.

    Source: https://ai.google.dev/gemini-api/docs/rate-limits, "midnight Pacific time".
    """
    try:
        now = datetime.now(ZoneInfo("America/Los_Angeles"))
    except ZoneInfoNotFoundError:
        return None
    return (now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1) - now).total_seconds()


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait of `retry-after-ms` or `retry-after` (seconds or an HTTP date); None if there is neither."""
    if (exact := _number(headers.get("retry-after-ms"))) is not None:
        return exact / 1000
    if (named := headers.get("retry-after")) is None:
        return None
    seconds = _number(named)
    return _since_now(seconds) if seconds is not None else _until(named)


def read_room(headers: Mapping[str, str]) -> Room | None:
    """Return the rate limit of requests that an endpoint reports with an answer; None if it reports none."""
    if not any(name in headers for name in _TOLD):
        return None  # most answers: the rest need not be parsed
    for told in (_openai(headers, "requests"), _anthropic(headers, "requests")):
        if told.remaining is not None and told.reset is not None:
            return Room(remaining=told.remaining, reset_seconds=told.reset, limit=told.most or None)
    return None


class _Limit(NamedTuple):
    most: float | None
    remaining: float | None
    reset: float | None


def _openai(headers: Mapping[str, str], what: str) -> _Limit:
    most, remaining, reset = (headers.get(f"x-ratelimit-{part}-{what}") for part in ("limit", "remaining", "reset"))
    return _Limit(_number(most), _number(remaining), None if reset is None else read_moment(reset))


def _anthropic(headers: Mapping[str, str], what: str) -> _Limit:
    most, remaining, reset = (
        headers.get(f"anthropic-ratelimit-{what}-{part}") for part in ("limit", "remaining", "reset")
    )
    return _Limit(_number(most), _number(remaining), _instant(reset))


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


def _instant(date: str | None) -> float | None:
    """Return the seconds until a time as RFC 3339 writes it."""
    try:
        return max(0.0, datetime.fromisoformat(date or "").timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def read_span(text: str | None) -> float | None:
    """Return the seconds of `1.5s`, `6m0s`, `20ms`, or plain seconds; None for anything else."""
    if (plain := _number(text)) is not None:
        return plain
    parts = _SPAN.findall(text or "")
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
