"""Errors that an endpoint reports, as one clear line and a decision."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from ...core.contracts.errors import AuthenticationError, ModelError, PermanentError, RateLimitError, TransientError
from .filters import FLAGGED, filter_word
from .repairs import repaired
from .scrub import Scrubber
from .waits import read_moment, read_retry_after, read_wait, until_pacific_midnight
from .wire import Reply

_ACCOUNT = frozenset(
    {
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit_reached",
        "billing_error",
        "account_deactivated",
        "access_terminated",
    }
)
_KEY = frozenset({"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED"})
"""Codes of a refused key that come with the status 400 (Google)."""
_STATUSES = {
    "overloaded_error": 529,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_prompt": 400,
}
"""Status of the errors that providers report by a word inside a reply with the status 200."""
_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)
"""Anthropic's words for an account without credit, which come with the status 400."""
_LONG = re.compile(
    r"(?:maximum|max) (?:context|model) length|prompt is too long|input is too long|context (?:window|size|length)"
    r"|input token count.{0,40}exceeds",
    re.IGNORECASE,
)
_TOO_LONG = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Words of providers and servers for a prompt, or a prompt with its answer, beyond the context (status 400 or 413)."""
_TRY_AGAIN = re.compile(r"try again in ((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)", re.IGNORECASE)
"""A wait that is told in words alone: Groq's and OpenAI's."""
_DAILY = re.compile(r"\bper[ -]day\b|\bdaily\b|\b[RT]PD\b|PerDay")
"""A quota of a day: OpenAI's, Groq's and OpenRouter's words, and the names of Gemini's quotas."""
_OMISSIBLE: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "min_p": ("min_p",),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "seed": ("seed",),
}
"""What the setting `omit` may name, and the names of dialects for it."""

_WAITS = ("retry_after", "retry_after_seconds", "reset_at", "resets_at", "x_ratelimit_reset")
"""Fields of errors that say how long to wait, or until when."""
_PASSING = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.FAILED_DEPENDENCY, HTTPStatus.TOO_EARLY}
)
"""Statuses below 500 of failures that may pass; 424 is Bedrock's for a model that failed."""


class FilteredError(PermanentError):
    """Report a request that a content filter stopped; `reason` is the provider's own word, `body` the raw reply."""

    code = "endpoint.filtered"

    def __init__(self, message: str, reason: str, body: bytes = b"") -> None:
        self.reason, self.body = reason, body
        super().__init__(message)


class Problem(NamedTuple):
    """The error that an endpoint reports."""

    message: str
    codes: frozenset[str]
    wait: str | None = None
    """How long to wait, where the body says so: `34s`."""
    field: str = ""
    """The field of the request that it is about, where the body says so (OpenAI's `param`)."""


def read_json(body: bytes) -> object:
    """Return what a body holds; None if it is no JSON."""
    strict = repaired(body)
    return None if strict is None else msgspec.json.decode(strict)


def read_problem(body: bytes) -> Problem | None:
    """Read the error of a JSON body in any of the shapes servers use; None if it holds none."""
    whole = read_json(body)
    if not isinstance(whole, dict):
        return None
    error = whole.get("error", whole if {"message", "Message", "detail"} & whole.keys() else None)
    if not isinstance(error, dict):
        return Problem(str(error), frozenset()) if error else None
    inner, details = error.get("innererror"), _tables(error.get("details"))
    names = [error.get("code"), error.get("type"), error.get("status")]
    names += [inner.get("code") if isinstance(inner, dict) else None, *(one.get("reason") for one in details)]
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.keys() & {"flagged_input", "reasons"}:
        names.append(FLAGGED)
    said = _words(error)
    names += [quota.get("quotaId") for detail in details for quota in _tables(detail.get("violations"))]
    waits, field = (one.get("retryDelay") for one in details), error.get("param")
    return Problem(
        said,
        frozenset(str(name) for name in names if name is not None),
        next((str(wait) for wait in (*waits, *_waits_of(whole), *_waits_of(error)) if wait is not None), None),
        field if isinstance(field, str) else "",
    )


def _waits_of(table: Mapping[str, Any]) -> Iterator[object]:
    """Yield waits and moments in fields of an error: OpenRouter repeats its headers there."""
    metadata = table.get("metadata")
    headers = metadata.get("headers") if isinstance(metadata, dict) else None
    for fields in (table, metadata, headers):
        if isinstance(fields, dict):
            lower = {str(name).lower().replace("-", "_"): value for name, value in fields.items()}
            yield from (lower[name] for name in _WAITS if isinstance(lower.get(name), (str, int, float)))


def _tables(told: object) -> list[dict[str, Any]]:
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


def _words(error: dict[str, Any]) -> str:
    said = error.get("message") or error.get("Message") or error.get("detail") or ""
    said = said if isinstance(said, str) else json.dumps(said)
    metadata = error.get("metadata")
    # OpenRouter passes on what the provider behind it says.
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{said}: {raw}" if isinstance(raw, str) and raw else said


def explain_reply(reply: Reply, where: str, model: str, scrub: Scrubber) -> ModelError:
    """Return the error for a reply without an answer."""
    problem = read_problem(reply.body) or Problem(_plain(reply), frozenset())
    said = scrub.text(problem.message)
    status = _real_status(reply.status, problem)
    stop = "" if said.endswith((".", "!", "?")) else "."
    line = f"{where} answered {status}{_phrase(status)}{f': {said}' if said else ''}{stop}"
    word = filter_word(problem.codes, said)
    if word is not None and status != HTTPStatus.TOO_MANY_REQUESTS:
        return FilteredError(line, word, scrub.raw(reply.body))
    if problem.codes & _ACCOUNT or _CREDIT.search(said) or status == HTTPStatus.PAYMENT_REQUIRED:
        return AuthenticationError(
            f"{line} The account has no credit; no further request will be answered.", code="endpoint.account"
        )
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) or problem.codes & _KEY:
        return AuthenticationError(f"{line} Check the key and its permissions.", code="endpoint.key")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = read_wait(reply.headers)
        wait = _wait_in(problem) if wait is None else wait
        if _DAILY.search(" ".join((said, *problem.codes))):
            wait = until_pacific_midnight() if any("PerDay" in code for code in problem.codes) else wait
            return RateLimitError(f"{line} It is the quota of a day.", wait, code="endpoint.quota")
        return RateLimitError(line, wait, code="endpoint.rate-limit")
    if status in _TOO_LONG and _LONG.search(said):
        return PermanentError(f"{line} Shorten the text, or its answer.", code="request.too-long")
    if status == HTTPStatus.BAD_REQUEST:
        return PermanentError(line, code="endpoint.refused", field=problem.field)
    return _other(status, line, model, read_retry_after(reply.headers))


def _wait_in(problem: Problem) -> float | None:
    """Return the wait that the body of a reply tells, in a field or in words, in seconds."""
    words = _TRY_AGAIN.search(problem.message)
    return read_moment(problem.wait or (words[1].lower() if words else None))


def _other(status: int, line: str, model: str, wait: float | None) -> ModelError:
    if status in _PASSING or status >= 500:
        return TransientError(line, wait, code="endpoint.server")
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


def explain_field(error: ModelError, body: bytes) -> ModelError:
    """Return the error of a body that was refused for a field of the request with the mend; any other as it is."""
    if error.code != "endpoint.refused":
        return error
    said = f"{error} {error.fields.get('field', '')}"
    refused = [own for own, names in _OMISSIBLE.items() if any(_names(said, name, body) for name in names)]
    if "seed" in refused:
        return PermanentError(
            f'{error} Repeats are sent with a seed. If an endpoint knows none, put omit = ["seed"] into the model\'s '
            "entry; what it then answers is checked for draws that are alike.",
            code="endpoint.seed",
        )
    if "max_completion_tokens" in said and b'"max_tokens":' in body:
        mend, fields = 'max_tokens_field = "max_completion_tokens"', ["max_tokens_field"]
    elif refused:
        mend, fields = f"omit = {json.dumps(refused)}", refused
    else:
        return error
    return PermanentError(
        f"{error} If the model cannot take it, put {mend} into its entry.", code=error.code, mend=fields
    )


def _names(said: str, name: str, body: bytes) -> bool:
    """Return whether an error names a field that was sent; words of everyday speech must stand in quotes."""
    word = rf"[\"'`]{name}[\"'`]" if name == "stop" else rf"\b{name}\b"
    return f'"{name}":'.encode() in body and re.search(word, said) is not None


def _real_status(status: int, problem: Problem) -> int:
    """Return the status; gateways that wrap an error into a 200 name the real one as its code."""
    if status >= 300:
        return status
    numbers = [int(code) for code in problem.codes if re.fullmatch("[345][0-9]{2}", code)]
    numbers += [_STATUSES[code] for code in problem.codes & _STATUSES.keys()]
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
    if repaired(reply.body) is None:
        return TransientError(f"{where} sent broken JSON ({len(reply.body)} bytes).", code="endpoint.not-json")
    return TransientError(
        f"{where} sent JSON that is not an answer ({len(reply.body)} bytes).", code="endpoint.no-answer"
    )
