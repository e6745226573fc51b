"""Paired tests of a model's earlier and present answers (pure functions).

Each outcome a study reads is tested by itself: categories by McNemar's exact test (two categories) or a permutation
test of marginal homogeneity (more), numbers by Wilcoxon's signed-rank test. p is corrected over all of them (Holm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..contracts.records import AnyResponse, Scalar, Usage
from ..statistics.estimates import adjust
from ..statistics.intervals import stats

RESAMPLES = 9_999
Outcomes = Mapping[str, Scalar]
Compared = tuple[str, str]
"""Stage and outcome."""


class Pair(NamedTuple):
    """A trial, asked twice."""

    stage: str
    before: AnyResponse
    after: AnyResponse | None
    """None if the model did not answer now."""
    read: tuple[Outcomes, Outcomes]
    """What the study reads from both answers, with `status`."""


class Comparison(NamedTuple):
    """The comparison of one outcome before and now."""

    stage: str
    outcome: str
    test: str
    n: int
    """Pairs that have the outcome both times."""
    changed: int
    """Pairs in which it differs; numbers by more than the tolerance."""
    largest: float | None
    """Largest absolute difference of numbers."""
    effect: float
    """Share that changed, or for numbers the matched-pairs rank-biserial correlation (now above before: positive)."""
    p: float
    p_adjusted: float


class Drift(NamedTuple):
    """The result of asking again."""

    asked: int
    missing: int
    """Trials that the model did not answer now; they are not compared."""
    same: int
    """Answers that are the same, numbers within the tolerance."""
    same_low: float
    same_high: float
    """Wilson's 95 % interval of the share of same answers."""
    comparisons: tuple[Comparison, ...]

    @property
    def share(self) -> float | None:
        """Return the share of same answers, or None if there is none to compare."""
        answered = self.asked - self.missing
        return self.same / answered if answered else None

    def drifted(self, alpha: float) -> bool:
        """Return whether an outcome changed significantly, corrected over all outcomes, at this level."""
        return any(comparison.p_adjusted < alpha for comparison in self.comparisons)


def compare(pairs: Sequence[Pair], tolerance: float) -> Drift:
    """Compare answers pair by pair.

    Args:
        pairs: every trial that was asked again.
        tolerance: numbers that differ by no more than this are the same: a batch of another size rounds otherwise.
    """
    answered = [pair for pair in pairs if pair.after is not None]
    same = sum(_same(_plain(pair.before), _plain(pair.after), tolerance) for pair in answered)
    low, high = stats.binomtest(same, len(answered)).proportion_ci(method="wilson") if answered else (0.0, 1.0)
    columns: dict[Compared, tuple[list[Scalar], list[Scalar]]] = {}
    for pair in answered:
        before, after = pair.read
        for name in dict.fromkeys([*before, *after]):
            both = columns.setdefault((pair.stage, name), ([], []))
            both[0].append(before.get(name))
            both[1].append(after.get(name))
    found = [_compare(*place, *both, tolerance) for place, both in columns.items()]
    return Drift(len(pairs), len(pairs) - len(answered), same, float(low), float(high), tuple(_holm(found)))


def _compare(stage: str, name: str, before: list[Scalar], after: list[Scalar], tolerance: float) -> Comparison:
    pairs = [(b, a) for b, a in zip(before, after, strict=True) if b is not None and a is not None]
    if pairs and all(isinstance(v, int | float) and not isinstance(v, bool) for pair in pairs for v in pair):
        return _numbers(stage, name, np.array(pairs, dtype=float), tolerance)
    return _categories(stage, name, [(str(b), str(a)) for b, a in pairs])


def _numbers(stage: str, name: str, pairs: np.ndarray[Any, Any], tolerance: float) -> Comparison:
    difference = pairs[:, 1] - pairs[:, 0]
    largest = float(np.abs(difference).max())
    moved = difference[np.abs(difference) > tolerance]
    p, effect = 1.0, 0.0
    if moved.size:
        ranks = stats.rankdata(np.abs(moved))
        effect = float((ranks * np.sign(moved)).sum() / ranks.sum())
        p = float(stats.wilcoxon(moved).pvalue)
    return Comparison(stage, name, "Wilcoxon signed-rank", len(pairs), len(moved), largest, effect, p, p)


def _categories(stage: str, name: str, pairs: list[tuple[str, str]]) -> Comparison:
    changed = [(before, after) for before, after in pairs if before != after]
    levels = sorted({level for pair in changed for level in pair})
    p = 1.0
    if len(levels) == 2:
        p = float(stats.binomtest(sum(after == levels[0] for _, after in changed), len(changed)).pvalue)
    elif changed:
        p = _marginal_homogeneity(changed, levels)
    test = "McNemar, exact" if len(levels) <= 2 else "permutation of marginal homogeneity"
    return Comparison(stage, name, test, len(pairs), len(changed), None, len(changed) / max(1, len(pairs)), p, p)


def _marginal_homogeneity(changed: list[tuple[str, str]], levels: list[str]) -> float:
    """Exchange before and now within pairs: under the null hypothesis each exchange is equally likely."""
    codes = np.array([[levels.index(level) for level in pair] for pair in changed])
    numbers = np.arange(len(levels))

    def spread(before: Any, after: Any, axis: int = -1) -> Any:
        counts = [(after == level).sum(axis=axis) - (before == level).sum(axis=axis) for level in numbers]
        return sum(count**2 for count in counts)

    found = stats.permutation_test(
        (codes[:, 0], codes[:, 1]),
        spread,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def _holm(found: Sequence[Comparison]) -> list[Comparison]:
    adjusted = adjust([comparison.p for comparison in found], "holm")
    return [comparison._replace(p_adjusted=p) for comparison, p in zip(found, adjusted, strict=True)]


def _plain(response: AnyResponse | None) -> Any:
    """Return a response as plain values, without its token counts."""
    return msgspec.to_builtins(msgspec.structs.replace(response, usage=Usage())) if response is not None else None


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return abs(one - other) <= tolerance
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name], tolerance) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    return bool(one == other)
