"""The answers of a stage in shares, over all and by group: what a scoring recomputes from the store."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from ..contracts.records import Scalar
from ..statistics.intervals import stats
from .answers import FitAnswer
from .watch import ENOUGH

SAME, SEEN = 0.95, 20
"""Share of one value, of so many answers, from which on answers are said not to vary."""
FEW_VALUES = 12
"""Most values of an outcome that is a choice among options."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of answers; failed calls and those that a provider's filter stopped are not among them."""

    asked: int
    read: int
    refused: int
    looked: int = 0
    """Unreadable answers whose text was looked at; the next four are of these."""
    cut: int = 0
    echo: int = 0
    empty: int = 0
    misplaced: int = 0
    values: dict[str, dict[str, int]] = {}
    """By outcome that is a choice among few values: how often each was given."""
    mass: float | None = None
    """Median probability of all options together, of answers by likelihood."""

    @property
    def answered(self) -> float:
        """Return the share of answered questions; 1 of none."""
        return (self.read + self.refused) / self.asked if self.asked else 1.0

    @property
    def usable(self) -> float:
        """Return the share of answers that could be read; 1 of none."""
        return self.read / self.asked if self.asked else 1.0

    @property
    def unread(self) -> int:
        """Return the number of answers that could not be read."""
        return self.asked - self.read - self.refused

    def share(self, kind: str) -> float:
        """Return the share of all answers that were `cut`, `echo` or `empty`, by those that were looked at."""
        looked: int = getattr(self, kind)
        return looked / self.looked * self.unread / self.asked if self.looked and self.asked else 0.0

    def constant(self) -> dict[str, tuple[str, int, int]]:
        """Return the outcomes that do not vary: the value, how often it was given, and of how many answers."""
        same = {}
        for name, counts in self.values.items():
            total = sum(counts.values())
            value, most = max(counts.items(), key=lambda item: item[1], default=("", 0))
            if total >= SEEN and most >= SAME * total:
                same[name] = (value, most, total)
        return same


class StageFitness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a model can do the task of a stage."""

    stage: str
    role: str
    every: Profile
    groups: dict[str, Profile] = {}
    """By level of the factor that is compared."""

    @property
    def fit(self) -> bool:
        """Return whether at least half of the questions were answered."""
        return self.every.answered >= ENOUGH


def entropy(counts: Mapping[str, int]) -> float:
    """Return the entropy of a distribution, in bits; 0 where all are one value."""
    total = sum(counts.values())
    return -sum(n / total * math.log2(n / total) for n in counts.values() if n) + 0.0 if total else 0.0


def difference_in_refusals(groups: Mapping[str, Profile]) -> float | None:
    """Return p of a chi-square test that groups decline equally often; None where all or none of the answers do."""
    table = [[group.refused, group.asked - group.refused] for group in groups.values() if group.asked]
    if len(table) < 2 or not all(sum(column) for column in zip(*table, strict=True)):
        return None
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def profile_of(answers: Sequence[FitAnswer]) -> Profile:
    """Return the shares of answers."""
    counted = [answer for answer in answers if answer.counts]
    values = choices(answer.values for answer in counted if answer.status == "ok")
    return profile_from(Counter(answer.status for answer in counted), counted, values)


def profile_from(
    counts: Mapping[str, int], looked: Sequence[FitAnswer] = (), values: dict[str, dict[str, int]] | None = None
) -> Profile:
    """Return the shares of answers, of which `counts` have each status and the texts of some were `looked` at.

    `values`: by outcome that is a choice among few values, how often each was given.
    """
    unread = [answer for answer in looked if answer.status == "unreadable"]
    masses = [answer.mass for answer in looked if answer.mass is not None]
    return Profile(
        asked=sum(counts.values()),
        read=counts.get("ok", 0),
        refused=counts.get("refused", 0),
        looked=len(unread),
        cut=sum(answer.cut for answer in unread),
        echo=sum(answer.echo for answer in unread),
        empty=sum(answer.empty for answer in unread),
        misplaced=sum(answer.misplaced for answer in unread),
        values=values or {},
        mass=median(masses) if masses else None,
    )


def choices(rows: Iterable[Mapping[str, Scalar]]) -> dict[str, dict[str, int]]:
    """Return how often each value of the outcomes was given that are a choice among few: words and positions."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                counts.setdefault(name, Counter())[str(value)] += 1
    return {name: dict(values) for name, values in counts.items() if len(values) <= FEW_VALUES}
