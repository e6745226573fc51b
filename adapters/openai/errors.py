"""Errors of an endpoint, as one clear line and a decision. All errors of other libraries pass through here.

No key leaves this module: it is removed from error texts of other libraries and servers, and an answer that holds it
is refused. Answers are never changed.
"""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from ...core.contracts.adapter import Room
from ...core.contracts.errors import AuthenticationError, ModelError, PermanentError, RateLimitError, TransientError
from ...core.contracts.secrets import HIDDEN, LEAST, hide

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of a body that is not JSON, or is nested too deeply."""
_SHOWN = 300
_ACCOUNT = frozenset(
    {
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit_reached",
        "account_deactivated",
        "access_terminated",
    }
)
_FILTER = frozenset(
    {"content_filter", "content_policy_violation", "moderation_blocked", "ResponsibleAIPolicyViolation"}
)
_ESCAPED = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|/)")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Reply(NamedTuple):
    """The reply of an endpoint."""

    status: int
    headers: Mapping[str, str]
    """Looked up in lower case."""
    body: bytes


class FilteredError(PermanentError):
    """Report a request that a content filter stopped; `reason` is the provider's own word."""

    code = "endpoint.filtered"

    def __init__(self, message: str, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


class Problem(NamedTuple):
    """The error that an endpoint reports."""

    message: str
    codes: frozenset[str]


class Scrubber:
    """Removes a key from error texts, and finds it in answers, however it is written there."""

    def __init__(self, key: str | None) -> None:
        forms: set[str] = set()
        if key is not None:
            coded = base64.b64encode(key.encode()).decode()
            forms = {key, quote(key, safe=""), json.dumps(key)[1:-1], coded, coded.rstrip("=")}
        self._forms = sorted(forms, key=len, reverse=True)
        self._raw = [form.encode() for form in self._forms] if len(key or "") >= LEAST else []

    def __repr__(self) -> str:
        """Show nothing of the key."""
        return "Scrubber()"

    def text(self, text: str) -> str:
        """Return another program's text as one short line without keys or text that looks like a key."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        line = " ".join(hide(text).split())
        return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."

    def finds(self, body: bytes) -> bool:
        """Return whether the body of an answer holds the key, if that has `LEAST` characters or more."""
        return bool(self._raw) and (self._holds(body) or (bool(_ESCAPED.search(body)) and self._holds(_plainly(body))))

    def _holds(self, body: bytes) -> bool:
        return any(form in body for form in self._raw)


def _plainly(body: bytes) -> bytes:
    """Return JSON text with its escapes of printable ASCII characters resolved, which a key could hide behind."""
    return _ESCAPED.sub(lambda found: b"/" if found[1] is None else bytes([int(found[1], 16)]), body)


def read_problem(body: bytes) -> Problem | None:
    """Read the error of a JSON body in any of the shapes servers use; None if it holds none."""
    try:
        whole = msgspec.json.decode(body)
    except UNREADABLE:
        return None
    if not isinstance(whole, dict):
        return None
    error = whole.get("error", whole if {"message", "detail"} & whole.keys() else None)
    if not isinstance(error, dict):
        return Problem(str(error), frozenset()) if error else None
    inner = error.get("innererror")
    names = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    return Problem(_words(error), frozenset(str(name) for name in names if name is not None))


def _words(error: dict[str, Any]) -> str:
    said = error.get("message") or error.get("detail") or ""
    return said if isinstance(said, str) else json.dumps(said)


def explain_reply(reply: Reply, where: str, model: str, scrub: Scrubber) -> ModelError:
    """Return the error for a reply without an answer."""
    problem = read_problem(reply.body) or Problem(_plain(reply), frozenset())
    said = scrub.text(problem.message)
    status = _real_status(reply.status, problem)
    stop = "" if said.endswith((".", "!", "?")) else "."
    line = f"{where} answered {status}{_phrase(status)}{f': {said}' if said else ''}{stop}"
    if problem.codes & _FILTER and status != HTTPStatus.TOO_MANY_REQUESTS:
        return FilteredError(line, min(problem.codes & _FILTER))
    if problem.codes & _ACCOUNT or status == HTTPStatus.PAYMENT_REQUIRED:
        return AuthenticationError(
            f"{line} The account has no credit; no further request will be answered.", code="endpoint.account"
        )
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AuthenticationError(f"{line} Check the key and its permissions.", code="endpoint.key")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimitError(line, read_wait(reply.headers), code="endpoint.rate-limit")
    return _other(status, line, model)


def _other(status: int, line: str, model: str) -> ModelError:
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY) or status >= 500:
        return TransientError(line, code="endpoint.server")
    if status == HTTPStatus.NOT_FOUND:
        return PermanentError(
            f"{line} Does the endpoint offer model {model!r}, and does base_url end where /v1 does?",
            code="endpoint.not-found",
        )
    if 300 <= status < 400:
        return PermanentError(
            f"{line} Redirects are not followed; set base_url to the target address.", code="endpoint.redirect"
        )
    return PermanentError(line, code="endpoint.refused")


def _real_status(status: int, problem: Problem) -> int:
    """Return the status; gateways that wrap an error into a 200 name the real one as its code."""
    if status >= 300:
        return status
    numbers = [int(code) for code in problem.codes if re.fullmatch("[345][0-9]{2}", code)]
    return min(numbers) if numbers else int(HTTPStatus.INTERNAL_SERVER_ERROR)


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _plain(reply: Reply) -> str:
    kind = reply.headers.get("content-type", "")
    return "" if "html" in kind else reply.body[:1000].decode("utf-8", "replace")


def explain_leak(where: str) -> ModelError:
    """Return the error for an answer that holds the key: it is not stored, and not changed either."""
    return PermanentError(
        f"{where} sent the key back in its answer, which is therefore refused. Does a proxy or a test server echo "
        "requests? Replace the key if others can read it.",
        code="endpoint.key-echoed",
    )


def explain_unreadable(reply: Reply, where: str, model: str, scrub: Scrubber) -> ModelError:
    """Return the error of a successful reply that is not a valid answer."""
    if read_problem(reply.body) is not None:
        return explain_reply(reply, where, model, scrub)
    kind = reply.headers.get("content-type", "nothing").partition(";")[0].strip()
    if "json" not in kind:
        return TransientError(
            f"{where} sent {scrub.text(kind)} where JSON was expected. Is base_url right?", code="endpoint.not-json"
        )
    try:
        msgspec.json.decode(reply.body)
    except UNREADABLE:
        return TransientError(f"{where} sent broken JSON ({len(reply.body)} bytes).", code="endpoint.not-json")
    return TransientError(
        f"{where} sent JSON that is not an answer ({len(reply.body)} bytes).", code="endpoint.no-answer"
    )


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
