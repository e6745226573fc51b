"""Sound answers with something around them: a byte-order mark, NaN and halves of characters in unread fields."""

from __future__ import annotations

import time

import msgspec
import pytest

from prejudge.adapters.endpoint.errors import explain_reply
from prejudge.adapters.endpoint.repairs import repaired
from prejudge.adapters.endpoint.scrub import Scrubber
from prejudge.adapters.endpoint.waits import read_moment, read_wait
from prejudge.adapters.endpoint.wire import Reply
from prejudge.core.contracts.errors import RateLimitError

CHAT = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "(b)"}, "finish_reason": "stop"}]%s}'


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + CHAT % b"",
        CHAT % b', "timings": {"per_token_ms": NaN, "left": -Infinity}',
        CHAT % b', "note": "half of a smile \\ud83d"',
        CHAT % b', "note": "bytes \xff\xfe"',
    ],
)
def test_answer_is_read_whatever_stands_in_fields_that_nobody_reads(body):
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        msgspec.json.decode(body)
    assert msgspec.json.decode(repaired(body))["choices"][0]["message"]["content"] == "(b)"


def test_half_a_character_in_an_answer_is_replaced_and_whole_ones_stay():
    assert msgspec.json.decode(repaired(b'{"a": "\\ud83d\\ude00 x \\ude00"}')) == {"a": "\U0001f600 x \ufffd"}


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": ', b"[" * 100_000])
def test_what_is_no_json_stays_none(body):
    assert repaired(body) is None


def limited(body, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    error = explain_reply(Reply(429, names, msgspec.json.encode(body)), "host", "tiny", Scrubber(None))
    assert isinstance(error, RateLimitError)
    return error


def test_waits_as_a_unix_time_a_date_and_the_drafts_of_the_ietf():
    soon = time.time() + 90
    date = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(soon))
    assert read_wait({"x-ratelimit-reset": str(int(1000 * soon))}) == pytest.approx(90, abs=2)
    assert read_wait({"x-ratelimit-reset": str(int(soon))}) == pytest.approx(90, abs=2)
    assert read_wait({"retry-after": str(int(soon))}) == pytest.approx(90, abs=2)
    assert read_wait({"ratelimit-reset": "50"}) == 50
    assert read_wait({"ratelimit": '"burst";r=10;t=5, "day";r=0;t=70'}) == 70
    assert read_wait({"ratelimit": '"default";r=10;t=5'}) is None
    assert read_moment(date) == pytest.approx(90, abs=2)
    assert read_moment("tomorrow") is None


def test_waits_in_the_body_as_a_unix_time():
    soon = time.time() + 90
    router = {"error": {"message": "Slow down", "code": 429, "metadata": {"headers": {}}}}
    router["error"]["metadata"]["headers"]["X-RateLimit-Reset"] = str(int(1000 * soon))
    assert limited(router).retry_after == pytest.approx(90, abs=2)
    assert limited({"error": {"message": "Slow down", "resets_at": int(soon)}}).retry_after == pytest.approx(90, abs=2)
    assert limited({"error": {"message": "Slow down", "retry_after": 7}}).retry_after == 7
    assert limited({"error": {"message": "Slow down"}}).retry_after is None


def test_quota_of_a_day_is_told_from_one_of_a_minute():
    assert limited({"error": {"message": "Rate limit exceeded: free-models-per-day"}}).code == "endpoint.quota"
    assert limited({"error": {"message": "Rate limit reached on requests per min (RPM)"}}).code == "endpoint.rate-limit"
    gemini = {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
                {"retryDelay": "34s"},
            ],
        }
    }
    error = limited(gemini)
    # Its delay is that of a minute's quota: the day ends at midnight in California.
    assert error.code == "endpoint.quota" and error.retry_after != 34 and 0 < error.retry_after <= 25 * 3600
