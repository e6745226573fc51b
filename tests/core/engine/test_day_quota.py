"""The quota of a day ends a run at once, with the time to resume; a wait that is allowed is heeded."""

from __future__ import annotations

import re
import time

import pytest

from prejudge.core.contracts.adapter import Limits
from prejudge.core.contracts.errors import RateLimitError
from prejudge.core.engine.limiter import Limiter, Ticket


def halt_after(**error):
    limiter = Limiter(Limits(concurrency=4), longest_seconds=900)
    limiter.leave(Ticket(time.monotonic(), 1), [RateLimitError("no more today.", **error)])
    return limiter.halt


def test_quota_of_a_day_stops_at_once_and_says_when_to_resume():
    halt = halt_after(retry_after=5 * 3600.0, code="endpoint.quota")
    assert halt.code == "endpoint.quota"
    (told,) = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", str(halt))
    assert abs(time.mktime(time.strptime(told, "%Y-%m-%d %H:%M")) - time.time() - 5 * 3600) <= 61
    assert halt_after(code="endpoint.quota").code == "endpoint.quota"


@pytest.mark.parametrize("error", [{"retry_after": 432.5, "code": "endpoint.quota"}, {"retry_after": 5 * 3600.0}])
def test_short_wait_and_other_limits_stop_nothing_at_once(error):
    assert halt_after(**error) is None
