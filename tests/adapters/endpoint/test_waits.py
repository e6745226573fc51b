"""The waits that endpoints name."""

from __future__ import annotations

import datetime
from email.utils import format_datetime

import pytest

from prejudge.adapters.endpoint.waits import read_wait


def test_wait_may_be_a_date():
    date = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)
    wait = read_wait({"retry-after": format_datetime(date, usegmt=True)})
    assert wait is not None
    assert 25 < wait <= 30


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({"x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "500"}, None),
        ({"x-ratelimit-reset-tokens": "2s", "x-ratelimit-reset-requests": "1s"}, 2.0),
        ({"x-ratelimit-reset-tokens": "later"}, None),
        ({"x-ratelimit-reset-tokens": "9s", "retry-after": "1"}, 1.0),
    ],
)
def test_wait_is_read(headers, seconds):
    assert read_wait(headers) == seconds
