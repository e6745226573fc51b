"""`Pace`: the request rate of an endpoint, estimated from its answers.

Many 429s among the answers set the rate to what the endpoint accepted of late. It then rises fast until another 429 has
shown where the limit is. From there on it falls a little below the accepted rate at each 429, comes back to it along a
cubic curve, and probes above it ever faster. The curve is that of CUBIC (RFC 9438, section 4.2), with a rate in place
of a window: most time is spent near the limit, and a limit that rose is found within some cycles.

Few 429s may have nothing to do with the rate: others use the endpoint too, or it is ill. So a lower rate is tried for a
while. A limit lets all of that pass; where 429s go on, they are noise, and lower nothing until there are more of them.
What was taken for a limit is given up again where 429s follow the rate down: few, but as many at half the rate.
"""

from __future__ import annotations

import math
from collections import deque

# The reasons below are measurements on a virtual clock (`benchmarks/pace.py`): what a smaller and a larger value did.
# "Random 429s" are 10 % of the answers of an endpoint without a limit; "a fall" is a limit that goes from 50 to 10
# requests a second, seen 40 s later.
SLACK = 0.02
"""Seconds by which calls may be late and still make up for it: a sleep of 2 ms takes 3. On a virtual clock, where
sleeps are exact, 0 and 0.2 do the same."""
BELOW = 0.95
"""Share of the accepted rate to go on with after a 429. At 0.99 a fall leaves 20 % of the requests turned away, here
none; at 0.8 a limit of 5 a second turns twice as many away (1.2 %)."""
BLIND = 0.7
"""Share of the rate to go on with after a 429 that comes before the rate could be measured. At 0.95 a fall leaves 34 %
turned away; at 0.4 random 429s take the pace down to a quarter."""
SEARCH = 1.3
"""Growth per second while no limit is known, or the known one is no more. Little depends on it: from 1.05 to 2 a limit
of 5 or 50 a second is used to 0.94 or more."""
CYCLE_SECONDS, CYCLE_REQUESTS = 20.0, 100.0
"""The rate is back where it was after so long, and after so many requests: a 429 is dear where requests are few. With
5 s a fall leaves 21 % turned away; with 80 s a limit that rose from 50 to 150 is not found within 40 s. The requests
decide below 5 a second only: from 20 to 500 nothing else changed."""
FIRST = 1.0
"""Requests per second that are tried after the first 429, however little was accepted before it. At 20, a limit of 5
a second turns 2.9 % away in the first minute, here 2.0 %; 0.1 does the same as 1."""
BEGINNING = 1.0
"""Seconds that the first 429s are taken to have come after, at least. With 0.1 s the first rate is too high, and 4 %
are turned away in the first minute; with 10 s it is too low, and random 429s bring the pace to a stop."""
SLOWEST = 1 / 60
"""Requests per second that are always tried, so that no wait between two is longer than a minute."""
MANY, MANY_LEAST = 0.15, 3
"""Share and number of 429s that show a limit at once. The share lies above random 429s, which at 0.05 bring the pace
to a stop. With 20 of them a limit of 5 a second turns 7.6 % away in the first minute, with 3 of them 2.0 %; 1 does as
3 does."""
FEW, FEW_ANSWERS = 0.02, 100
"""Share of 429s, beyond the noise, that is looked into; and answers that each side of a trial needs. A share of 0.1
misses random 429s, which then cost a third of the pace; 0.005 does the same as 0.02. From 20 to 500 answers changed
nothing by more than 5 %."""
TRIAL = 0.8
"""Share of the accepted rate that is tried. From 0.5 to 0.95 nothing changed by more than 2 %."""
CLEAN, ROW, FALLEN = 100, 10, 0.5
"""Answers without a 429 that end a row of them; how long a row must be, and how far the rate must have fallen since its
third, to show that the 429s do not depend on the rate. Rows that end after 20 answers, or must be 30 long, are never
seen, and random 429s bring the pace to a stop. Rows that end after 500, or need 5 only, let a limit be given up that is
one: a fall leaves 2.3 % and 42 % turned away. From 0.25 to 0.9 of the rate nothing changed."""
BIN, BINS = 0.1, 100
"""Seconds per bin of what was sent, and bins kept: the rate that was accepted is measured over 10 s at most."""


class Pace:
    """The rate of one endpoint: None until it is known to have one."""

    def __init__(self, now: float, per_minute: float | None = None) -> None:
        self._top = math.inf if per_minute is None else per_minute / 60
        self._low: float | None = None if per_minute is None else self._top
        self._ceiling = self._top
        self._searching = True
        self._since = self._began = now
        self._next = self._paused = -math.inf
        self._shrunk = -math.inf
        self._asked = self._answers = self._limited = self._noise = 0.0
        self._tried: float | None = None
        self._row: list[tuple[float, int]] = []
        self._row_sent = self._row_limited = self._clean = 0
        self._sent: deque[list[float]] = deque(maxlen=BINS)

    def wait(self, now: float) -> float:
        """Return the seconds until the next call may go."""
        return max(self._next, self._paused) - now

    def spend(self, now: float, requests: int) -> None:
        """Count requests that go now."""
        self._count(now, requests)
        self._asked += requests
        if self._low is None:
            return
        self._row_sent += requests
        if (idle := now - self._next - SLACK) > 0 and self._next > -math.inf:
            # Time in which the rate held nothing back says nothing of the limit, so it does not let the rate grow.
            self._since = min(now, self._since + idle)
        self._next = max(self._next, now - SLACK) + requests / self._rate(now)

    @property
    def limited(self) -> bool:
        """Say whether the endpoint is known to have a limit."""
        return self._low is not None and self._tried is None

    def learn(self, now: float, ticket: tuple[float, int], limited: int) -> bool:
        """Hear how many of the requests of a call (sent when, how many) met a 429; say if that lowered the rate.

        Calls that were sent before the rate was last lowered say nothing of it.
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
        """Keep the row of 429s that come with few clean answers in between.

        Its share is of what was sent: clean answers take longer, and would be heard of too late.
        """
        self._clean = 0 if limited else self._clean + requests
        if self._clean >= CLEAN:
            self._row, self._row_sent, self._row_limited = [], 0, 0
        self._row_limited += limited
        if limited:
            self._row.append((self._rate(now), self._row_sent))

    def _is_noise(self, now: float) -> bool:
        """Give the limit up if the 429s went on while the rate fell; say so."""
        if len(self._row) < ROW or self._row[-1][0] > FALLEN * self._row[2][0]:
            return False
        share, half = self._row_limited / max(1, self._row_sent), len(self._row) // 2
        # A limit that fell turns many away at first, and then few.
        if share >= MANY or half >= MANY * self._row[half - 1][1]:
            return False
        self._low, self._next, self._began, self._noise = None, -math.inf, now, share
        self._asked = self._answers = self._limited = 0.0
        self._row, self._row_sent, self._row_limited = [], 0, 0
        return True

    def _look(self, now: float) -> bool:
        """Look into 429s while no limit is known; say if the rate was lowered."""
        share = self._limited / self._answers
        # Beside noise, of what was sent: a 429 is heard of sooner than an answer.
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
        """Let nothing go for so long."""
        self._paused = max(self._paused, now + seconds)

    def _shrink(self, now: float) -> None:
        if self._low is None:
            self._change(now, BELOW * self._recently(now))
            self._searching = True
        else:
            self._lower(now)
            self._change(now, self._low)

    def _change(self, now: float, rate: float) -> None:
        self._low = max(SLOWEST, rate)
        self._since = self._shrunk = now
        self._next = now + 1 / self._low
        self._asked = self._answers = self._limited = 0.0

    def _lower(self, now: float) -> None:
        rate, measured = self._rate(now), now - max(self._shrunk, self._paused)
        self._searching = False
        if measured >= max(1.0, 10 / rate):
            accepted = self._accepted(now, min(measured, max(1.0, 20 / rate), BIN * BINS))
            self._ceiling = max(SLOWEST, min(rate, accepted))
            self._low = BELOW * self._ceiling
        else:
            self._ceiling, self._low = max(SLOWEST, BELOW * rate), max(SLOWEST, BLIND * rate)

    def found(self, now: float) -> float | None:
        """Return the rate in requests per second; None if there is none."""
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
            # Well above the limit that was, and no 429: there is another one now.
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
        """Return the requests per second that were sent and not turned away in the last so many seconds."""
        first = (now - seconds) // BIN
        return max(0.0, sum(count for place, count in self._sent if place > first)) / seconds
