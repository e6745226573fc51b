"""`Pace`: the request rate of an endpoint, estimated from its answers.

Many 429s among the answers set the rate to the recently accepted one. The rate then rises fast until the next 429 shows
the limit. After that, each 429 sets it a little below the accepted rate; it returns along a cubic curve, and then rises
above it increasingly fast. The curve is that of CUBIC (RFC 9438, section 4.2), for a rate instead of a window: the rate
is near the limit most of the time, and an increased limit is found within some cycles.

Few 429s may be independent of the rate, for example if others use the endpoint too. So a lower rate is tried. If it
ends the 429s, there is a limit; if not, they are noise, and the rate is kept until 429s become more frequent. A
supposed limit is dropped if 429s continue at the same share while the rate falls to half.
"""

from __future__ import annotations

import math
from collections import deque

# The reasons below are measurements on a virtual clock (`benchmarks/pace.py`): effects of smaller and larger values.
# "Random 429s": 10 % of the answers of an endpoint without a limit. "A fall": the limit goes from 50 to 10 requests a
# second; measured 40 s later.
SLACK = 0.02
"""Maximum delay in seconds for which later calls compensate: a sleep of 2 ms takes 3. On a virtual clock, where sleeps
are exact, 0 and 0.2 have the same result."""
BELOW = 0.95
"""Rate after a 429, as a share of the accepted rate. At 0.99, 20 % of the requests are refused after a fall, here
none; at 0.8, a limit of 5 a second refuses twice as many (1.2 %)."""
BLIND = 0.7
"""Rate after a 429 that comes before the rate could be measured, as a share of the rate. At 0.95, 34 % are refused
after a fall; at 0.4, random 429s reduce the rate to a quarter."""
SEARCH = 1.3
"""Growth per second while no limit is known, or the known limit no longer holds. Little depends on it: from 1.05 to 2,
at least 0.94 of a limit of 5 or 50 a second is used."""
CYCLE_SECONDS, CYCLE_REQUESTS = 20.0, 100.0
"""Seconds and requests until the rate has recovered from a 429; requests too, because at low rates a 429 costs more.
With 5 s, 21 % are refused after a fall; with 80 s, an increase of the limit from 50 to 150 is not found within 40 s.
The requests matter only below 5 a second: from 20 to 500 nothing else changed."""
FIRST = 1.0
"""Minimum rate in requests per second after the first 429. At 20, a limit of 5 a second refuses 2.9 % in the first
minute, here 2.0 %; 0.1 has the same result as 1."""
BEGINNING = 1.0
"""Minimum time in seconds over which the rate before the first 429s is measured. With 0.1 s the first rate is too high,
and 4 % are refused in the first minute; with 10 s it is too low, and random 429s almost stop the run."""
SLOWEST = 1 / 60
"""Minimum rate in requests per second, so that the wait between two requests is at most a minute."""
MANY, MANY_LEAST = 0.15, 3
"""Share and number of 429s that show a limit at once. The share is above that of random 429s, which at 0.05 almost stop
the run. With 20 of them, a limit of 5 a second refuses 7.6 % in the first minute, with 3 of them 2.0 %; 1 has the same
result as 3."""
FEW, FEW_ANSWERS = 0.02, 100
"""Share of 429s, above the noise, that starts a trial of a lower rate; and minimum number of answers on each side of
a trial. A share of 0.1 misses random 429s, which then cost a third of the rate; 0.005 has the same result as 0.02.
From 20 to 500 answers nothing changed by more than 5 %."""
TRIAL = 0.8
"""Rate of a trial, as a share of the accepted rate. From 0.5 to 0.95 nothing changed by more than 2 %."""
CLEAN, ROW, FALLEN = 100, 10, 0.5
"""Number of answers without a 429 that ends a row of 429s; and length of a row, and decrease of the rate since the
third 429, that show that 429s do not depend on the rate. Rows that end after 20 answers, or must have a length of 30,
never occur, and random 429s almost stop the run. With rows that end after 500 answers, or of length 5, a true limit is
dropped: after a fall, 2.3 % and 42 % are refused. From 0.25 to 0.9 of the rate nothing changed."""
BIN, BINS = 0.1, 100
"""Seconds per bin of sent requests, and number of bins: the accepted rate is measured over at most 10 s."""


class Pace:
    """The request rate of one endpoint: None while no limit is known."""

    def __init__(self, now: float, per_minute: float | None = None, longest_seconds: float = math.inf) -> None:
        """Start at `now`; a found rate keeps the wait between two requests at most `longest_seconds`."""
        self._slowest = max(SLOWEST, 1 / longest_seconds)
        self._top = math.inf if per_minute is None else per_minute / 60
        self._low: float | None = None if per_minute is None else self._top
        self._ceiling = self._top
        self._searching = True
        self._parts = 1
        self._since = self._began = now
        self._next = self._paused = -math.inf
        self._shrunk = -math.inf
        self._asked = self._answers = self._limited = self._noise = 0.0
        self._tried: float | None = None
        self._row: list[tuple[float, int]] = []
        self._row_sent = self._row_limited = self._clean = 0
        self._sent: deque[list[float]] = deque(maxlen=BINS)

    def divide(self, parts: int) -> None:
        """Take one of so many equal parts of the rate, configured or found."""
        factor, self._parts = self._parts / parts, parts
        if factor != 1.0:
            self._top *= factor
            self._ceiling *= factor
            self._low = None if self._low is None else self._low * factor

    def wait(self, now: float) -> float:
        """Return the seconds until the next call may be sent."""
        return max(self._next, self._paused) - now

    def spend(self, now: float, requests: int) -> None:
        """Count requests that are sent now."""
        self._count(now, requests)
        self._asked += requests
        if self._low is None:
            return
        self._row_sent += requests
        if (idle := now - self._next - SLACK) > 0 and self._next > -math.inf:
            # The rate does not grow in times in which no call waited, because they show nothing about the limit.
            self._since = min(now, self._since + idle)
        self._next = max(self._next, now - SLACK) + requests / self._rate(now)

    @property
    def limited(self) -> bool:
        """Return whether the endpoint is known to have a limit."""
        return self._low is not None and self._tried is None

    def learn(self, now: float, ticket: tuple[float, int], limited: int) -> bool:
        """Adjust the rate to the number of 429s of a call (`ticket`: time, requests); return whether it was lowered.

        Calls that were sent before the last decrease are ignored, because they show nothing about the present rate.
        """
        sent, requests = ticket
        if limited:
            self._count(now, -limited)
        if sent < self._shrunk:
            return False
        if self.limited:
            self._follow(now, requests, limited)
            if limited and not self._is_noise(now):
                self._shrink(now)
            return limited > 0 and self.limited
        self._answers += requests
        self._limited += limited
        return self._look(now) if limited or self._tried is not None else False

    def _follow(self, now: float, requests: int, limited: int) -> None:
        """Record the row of 429s with few other answers between them.

        Its share is relative to sent requests: other answers take longer than 429s, and would be counted too late.
        """
        self._clean = 0 if limited else self._clean + requests
        if self._clean >= CLEAN:
            self._row, self._row_sent, self._row_limited = [], 0, 0
        self._row_limited += limited
        if limited:
            self._row.append((self._rate(now), self._row_sent))

    def _is_noise(self, now: float) -> bool:
        """Drop the limit if the 429s continued while the rate fell; return whether it was dropped."""
        if len(self._row) < ROW or self._row[-1][0] > FALLEN * self._row[2][0]:
            return False
        share, half = self._row_limited / max(1, self._row_sent), len(self._row) // 2
        # After a decrease of a true limit, 429s are many at first, and then few.
        if share >= MANY or half >= MANY * self._row[half - 1][1]:
            return False
        self._low, self._next, self._began, self._noise = None, -math.inf, now, share
        self._asked = self._answers = self._limited = 0.0
        self._row, self._row_sent, self._row_limited = [], 0, 0
        return True

    def _look(self, now: float) -> bool:
        """Examine 429s while no limit is known; return whether the rate was lowered."""
        share = self._limited / self._answers
        # With noise, relative to sent requests: a 429 arrives sooner than an answer.
        chance = self._asked * self._noise
        many = max(MANY * (self._asked if self._noise else self._answers), 2 * chance, chance + 3 * math.sqrt(chance))
        if self._limited >= max(MANY_LEAST, many):
            self._low = self._tried = None
            self._shrink(now)
        elif self._answers < FEW_ANSWERS:
            return False
        elif self._tried is not None:
            self._judge(now, share)
            return False
        elif share > 1.5 * self._noise + FEW:
            self._noise, self._tried = share, self._recently(now)
            self._change(now, TRIAL * self._tried)
        else:
            self._asked, self._answers, self._limited = self._asked / 2, self._answers / 2, self._limited / 2
            return False
        return True

    def _judge(self, now: float, share: float) -> None:
        assert self._tried is not None
        if share > self._noise / 3:
            self._low, self._next, self._began = None, -math.inf, now
        else:
            self._ceiling, self._low, self._noise, self._searching = self._tried, BELOW * self._tried, 0.0, False
        self._tried, self._since = None, now
        self._asked = self._answers = self._limited = 0.0

    def _recently(self, now: float) -> float:
        return max(FIRST, self._accepted(now, min(BIN * BINS, max(BEGINNING, now - self._began))))

    def pause(self, now: float, seconds: float) -> None:
        """Send no call for so many seconds."""
        self._paused = max(self._paused, now + seconds)

    def _shrink(self, now: float) -> None:
        if self._low is None:
            self._change(now, BELOW * self._recently(now))
            self._searching = True
        else:
            self._lower(now)
            self._change(now, self._low)

    def _change(self, now: float, rate: float) -> None:
        self._low = max(self._slowest, rate)
        self._since = self._shrunk = now
        self._next = now + 1 / self._low
        self._asked = self._answers = self._limited = 0.0

    def _lower(self, now: float) -> None:
        rate, measured = self._rate(now), now - max(self._shrunk, self._paused)
        self._searching = False
        if measured >= max(1.0, 10 / rate):
            accepted = self._accepted(now, min(measured, max(1.0, 20 / rate), BIN * BINS))
            self._ceiling = max(self._slowest, min(rate, accepted))
            self._low = BELOW * self._ceiling
        else:
            self._ceiling = max(self._slowest, BELOW * rate)
            self._low = max(self._slowest, BLIND * rate)

    def found(self, now: float) -> float | None:
        """Return the rate in requests per second; None while no limit is known."""
        return None if self._low is None else round(self._rate(now), 3)

    def _rate(self, now: float) -> float:
        assert self._low is not None
        if self._tried is not None:
            return min(self._top, self._low)
        if not self._searching:
            cycle = max(CYCLE_SECONDS, CYCLE_REQUESTS / self._ceiling)
            age = (now - self._since) / cycle
            if age <= 2:
                return min(self._top, self._ceiling + (self._ceiling - self._low) * float((age - 1) ** 3))
            # Far above the known limit without a 429: the limit has changed.
            self._low, self._since = 2 * self._ceiling - self._low, self._since + 2 * cycle
            self._searching = True
        growth: float = SEARCH ** min(now - self._since, 60.0)
        return min(self._top, self._low * growth)

    def _count(self, now: float, requests: int) -> None:
        place = now // BIN
        if self._sent and self._sent[-1][0] == place:
            self._sent[-1][1] += requests
        else:
            self._sent.append([place, requests])

    def _accepted(self, now: float, seconds: float) -> float:
        """Return the rate of requests that were sent and not refused in the last `seconds`."""
        first = (now - seconds) // BIN
        return max(0.0, sum(count for place, count in self._sent if place > first)) / seconds
