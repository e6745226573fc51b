"""`BEHAVIOURS`: every way in which an endpoint misbehaves, by name, and what a sound adapter takes it for."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from .http import Call, Json, Reply
from .tiny import chat, problem

Taken = Literal["answer", "refused", "filtered", "rate_limit", "transient", "permanent", "authentication"]
"""An answer with the status `ok`, `refused` or `filtered`, or an error with that `RetryDecision`."""
Make = Callable[[Call], Reply]
ATTACK = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m\u202egnp\u2066\u200f\x08\r[link=http://evil.invalid]x[/link]\x85"
"""A text with control characters that move a cursor, and with marks that reorder a line."""
MANY_BYTES = 20 << 20
"""Size of a `huge` reply, decompressed."""
SECONDS = 1.0
"""Seconds that a `drip` or a `slow` answer takes, and that a refusing server stays away."""


@dataclass(frozen=True)
class Behaviour:
    """One way to misbehave."""

    name: str
    taken: Taken | Literal[""]
    """What it is to be taken for; of a reply of your own, nothing."""
    reply: Make


def _broken(**more: Any) -> Make:
    """Return a way to break the good answer on its way."""
    return lambda call: replace(call.well, **more)


def _error(status: int, code: object = None, message: str = "as told", **headers: str) -> Make:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"error": {"message": message, "type": "error", "code": code, "param": None}}
    return lambda call: Reply(status, body, named)


def _body(body: Json | bytes | str, content_type: str = "application/json", status: int = 200) -> Make:
    return lambda call: Reply(status, body, content_type=content_type)


def _edited(change: Callable[[Json], object]) -> Make:
    """Return a way to change the body of the good answer."""

    def reply(call: Call) -> Reply:
        body = copy.deepcopy(call.well.body)
        if isinstance(body, dict):
            change(body)
        return replace(call.well, body=body)

    return reply


def _choice(change: Callable[[Json], object]) -> Make:
    """Return a way to change the first choice of the good answer."""
    return _edited(lambda body: change(body["choices"][0]) if body.get("choices") else None)


def _said(content: object, finish: str = "stop", **message: Any) -> Make:
    """Return a way to put another message in the place of the good answer."""
    made = {"role": "assistant", "content": content, **message}
    return _choice(lambda choice: choice.update(message=made, text=content, finish_reason=finish))


def _usage(usage: object) -> Make:
    return _edited(lambda body: body.update(usage=usage))


def _limits(**headers: str) -> Make:
    """Return a way to answer well, beside headers about limits."""
    return _broken(headers={name.replace("_", "-"): value for name, value in headers.items()})


def scores(change: Callable[[float], object]) -> Make:
    """Return a way to change every log-probability of the good answer, wherever it stands."""

    def walk(value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {key: walk(inner, "logprob" if name == "top_logprobs" else key) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, name) for inner in value]
        return change(value) if isinstance(value, float) and "logprob" in name else value

    return _edited(lambda body: body.update(walk(body)))


def _add_second(body: Json) -> None:
    decoy = copy.deepcopy(body["choices"][0])
    body["choices"] = [
        decoy | {"index": 1, "message": {"content": "the second"}, "text": "the second"},
        *body["choices"],
    ]


def _stream(call: Call) -> Reply:
    parts = [json.dumps({"choices": [{"index": 0, "delta": {"content": letter}}]}) for letter in "yes"]
    return Reply(body="".join(f"data: {part}\n\n" for part in [*parts, "[DONE]"]), content_type="text/event-stream")


def _echo_key(call: Call) -> Reply:
    return Reply(400, problem("bad", f"Incorrect API key provided: {call.key}. Authorization: Bearer {call.key}"))


def _say_key(call: Call, hide: Callable[[str], str] = str) -> Reply:
    raw = json.dumps(chat("the key is THEKEY")).replace("THEKEY", hide(call.key))
    return Reply(body=raw)


def _escape(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


def _empty_of_nothing(call: Call) -> Reply:
    return Reply(body={**chat(""), "usage": {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}})


@cache
def _filler() -> bytes:
    return b'{"choices": [], "filler": "' + b"x" * MANY_BYTES + b'"}'


@cache
def _bomb(status: int) -> Reply:
    return Reply(status, gzip.compress(_filler()), {"Content-Encoding": "gzip"})


_DIGITS = "9" * 5000
_HOST = "http://other.invalid/v1/chat/completions"
_TRANSPORT: dict[str, tuple[Taken, Make]] = {
    "refused": ("transient", lambda call: Reply(way="reset", down_seconds=SECONDS)),
    "reset": ("transient", _broken(way="reset")),
    "cut": ("transient", _broken(way="cut")),
    "half": ("transient", _broken(way="half")),
    "short-length": ("transient", _broken(way="short")),
    "drip": ("answer", _broken(way="drip", delay=SECONDS)),
    "endless": ("transient", _broken(way="endless")),
    "hang": ("transient", _broken(way="hang")),
    "slow": ("answer", _broken(delay=SECONDS)),
    "not-http": ("transient", _broken(way="noise")),
    "huge-header": ("transient", lambda call: replace(call.well, headers={"X-Filler": "x" * (1 << 20)})),
    "huge": ("permanent", lambda call: Reply(body=_filler())),
    "huge-error": ("permanent", lambda call: Reply(500, _filler())),
    "gzip-bomb": ("permanent", lambda call: _bomb(200)),
    "gzip-bomb-error": ("permanent", lambda call: _bomb(500)),
    "gzip-broken": ("transient", lambda call: replace(call.well, headers={"Content-Encoding": "gzip"})),
}
_CONTENT: dict[str, tuple[Taken, Make]] = {
    "empty-body": ("transient", _body(b"")),
    "no-content": ("transient", _body(b"", status=204)),
    "html": ("transient", _body("<html>log in</html>", "text/html")),
    "json-as-text": ("answer", _broken(content_type="text/plain")),
    "invalid-json": ("transient", _body('{"choices": [')),
    "invalid-utf8": ("answer", _body(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}')),
    "deep-json": ("transient", _body('{"choices": ' + "[" * 100_000)),
    "deep-json-closed": ("transient", _body('{"a": ' * 50_000 + "1" + "}" * 50_000)),
    "deep-error": ("permanent", _body("[" * 100_000, status=400)),
    "list": ("transient", _body(b"[]")),
    "null": ("transient", _body(b"null")),
    "other-json": ("transient", _body({"hello": 1})),
    "no-choices": ("transient", _body({"choices": []})),
    "no-message": ("transient", _body({"choices": [{"index": 0, "finish_reason": "stop"}]})),
    "stream": ("transient", _stream),
    "error-200": ("transient", _error(200, 503, "provider overloaded")),
    "error-beside-answer": ("transient", _edited(lambda body: body.update(problem("overloaded")))),
    "error-in-choice": ("transient", _choice(lambda choice: choice.update(error={"code": 502, "message": "upstream"}))),
    "error-finish": ("transient", _said("half an ans", "error")),
    "error-as-text": ("transient", _body({"error": "something went wrong"})),
    "error-200-limit": ("rate_limit", _error(200, 429, "upstream is busy")),
    "error-code-digits": ("permanent", _body(f'{{"error": {{"message": "no", "code": {_DIGITS}}}}}', status=400)),
    "error-code-digits-200": ("transient", _body(f'{{"error": {{"message": "no", "code": {_DIGITS}}}}}')),
    "error-code-text-digits": ("transient", _error(200, _DIGITS)),
    "error-code-superscript": ("transient", _error(200, "²")),
    "error-code-object": ("permanent", _error(400, {"a": [1]})),
    "choices-unordered": ("answer", _edited(lambda body: _add_second(body) if body.get("choices") else None)),
    "other-model": ("answer", _edited(lambda body: body.update(model="another-model-9b"))),
    "usage-missing": ("answer", _edited(lambda body: body.pop("usage", None))),
    "usage-null": ("answer", _usage({"prompt_tokens": None, "completion_tokens": None})),
    "usage-zero": ("answer", _usage({"prompt_tokens": 0, "completion_tokens": 0})),
    "usage-negative": ("answer", _usage({"prompt_tokens": -5, "completion_tokens": -1})),
    "usage-huge": ("answer", _usage({"prompt_tokens": 10**18, "completion_tokens": 10**30})),
    "usage-fraction": ("answer", _usage({"prompt_tokens": 7.5, "completion_tokens": 3.0})),
    "usage-text": ("answer", _usage({"prompt_tokens": "many", "completion_tokens": "3"})),
    "usage-list": ("answer", _usage([7, 3])),
    "empty-no-tokens": ("transient", _empty_of_nothing),
    "empty-length": ("answer", _said("", "length")),
    "empty-null": ("answer", _said(None)),
    "control-answer": ("answer", _said(ATTACK)),
    "nul-answer": ("answer", _said("a\x00b")),
    "surrogate-answer": ("answer", _body('{"choices": [{"index": 0, "message": {"content": "\\ud800"}}]}')),
    "long-answer": ("answer", _said("word " * 100_000)),
    "key-in-answer": ("permanent", _say_key),
    "key-escaped-in-answer": ("permanent", lambda call: _say_key(call, _escape)),
    "key-in-error": ("permanent", _echo_key),
    "control-error": ("permanent", _error(400, ATTACK, ATTACK)),
    "refusal-words": ("answer", _said("I'm sorry, but I can't help with that.")),
    "refusal-field": ("refused", _said(None, refusal="No, thank you.")),
    "refusal-part": ("refused", _said([{"type": "refusal", "refusal": "No."}])),
    "refusal-finish": ("refused", _said("I would rather not.", "refusal")),
    "filter-finish": ("filtered", _said("half a", "content_filter")),
    "filter-safety": ("filtered", _said(None, "SAFETY")),
    "filter-error": ("filtered", _error(400, "content_filter", "the prompt was filtered")),
    "filter-permission": (
        "filtered",
        _body({"code": "no permission", "error": "Content violates usage guidelines. Failed check: BIO"}, status=403),
    ),
    "filter-inner": (
        "filtered",
        _body({"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, status=400),
    ),
    "logprobs-missing": (
        "answer",
        _choice(lambda choice: choice.update(logprobs=None, prompt_logprobs=None)),
    ),
    "logprobs-null": ("answer", scores(lambda value: None)),
    "logprobs-clipped": ("answer", scores(lambda value: -9999.0)),
    "logprobs-positive": ("answer", scores(lambda value: 0.5)),
    "logprobs-nan": ("answer", scores(lambda value: float("nan"))),
    "logprobs-constant": ("answer", scores(lambda value: -1.0)),
}
_STATUS: dict[str, tuple[Taken, Make]] = {
    "400": ("permanent", _error(400, "context_length_exceeded")),
    "401": ("authentication", _error(401, "invalid_api_key")),
    "402": ("authentication", _error(402)),
    "403": ("authentication", _error(403)),
    "404": ("permanent", _error(404, "model_not_found")),
    "408": ("transient", _error(408)),
    "409": ("transient", _error(409)),
    "413": ("permanent", _error(413)),
    "422": ("permanent", _error(422)),
    "500": ("transient", _error(500)),
    "502-page": ("transient", _body("<html>bad gateway</html>", "text/html", 502)),
    "503": ("transient", _error(503)),
    "503-retry-after": ("transient", _error(503, retry_after="1e9")),
    "529": ("transient", _error(529, "overloaded_error")),
    "999": ("transient", _error(999)),
    "redirect": ("permanent", lambda call: Reply(302, b"", {"Location": _HOST})),
    "redirect-kept": ("permanent", lambda call: Reply(308, b"", {"Location": _HOST})),
    "quota": ("authentication", _error(429, "insufficient_quota")),
    "429": ("rate_limit", _error(429, "rate_limit_exceeded")),
    "429-now": ("rate_limit", _error(429, retry_after="0")),
    "429-seconds": ("rate_limit", _error(429, retry_after="0.5")),
    "429-milliseconds": ("rate_limit", _error(429, retry_after_ms="300")),
    "429-negative": ("rate_limit", _error(429, retry_after="-5")),
    "429-nan": ("rate_limit", _error(429, retry_after="nan")),
    "429-infinite": ("rate_limit", _error(429, retry_after="inf")),
    "429-words": ("rate_limit", _error(429, retry_after="soon")),
    "429-past": ("rate_limit", _error(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")),
    "429-date": ("rate_limit", _error(429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT")),
    "429-bad-date": ("rate_limit", _error(429, retry_after="Fri, 99 Foo 9999 99:99:99 GMT")),
    "429-for-years": ("rate_limit", _error(429, retry_after="1e9")),
    "429-reset-for-years": (
        "rate_limit",
        _error(429, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="99999999s"),
    ),
    "429-reset-words": (
        "rate_limit",
        _error(429, x_ratelimit_remaining_tokens="none", x_ratelimit_reset_tokens="later"),
    ),
    "reset-for-years": (
        "answer",
        _limits(x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="99999999s"),
    ),
    "limits-odd": (
        "answer",
        _limits(
            x_ratelimit_limit_requests="-1", x_ratelimit_remaining_requests="nan", x_ratelimit_reset_requests="-7s"
        ),
    ),
}


BEHAVIOURS = {
    name: Behaviour(name, taken, reply) for name, (taken, reply) in {**_TRANSPORT, **_CONTENT, **_STATUS}.items()
}
"""By name."""
