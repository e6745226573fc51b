"""What the trainings of one split and loss came to, all seeds together: the parameter that the tuning part prefers.

Seeds are put together by their differences with the sign, so that opposite ones cancel; absolute values come last.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy import stats

from .cells import Result
from .losses import LossName
from .parts import SelectOn, SplitBy
from .similarity import Delta, fold


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Validation delta-sim of one category (or `overall`, or `mean` of the categories), all seeds together."""

    category: str
    before: float | None
    """Absolute value of `before_signed`; in `mean` the mean of the categories' absolute values."""
    before_signed: float | None
    """Mean over seeds of the difference with its sign: below 0, opposed sentences lie nearer than alike ones."""
    before_low: float | None = None
    before_high: float | None = None
    after: float | None
    after_signed: float | None
    low: float | None
    """Lower end of the 95 % interval of `after_signed`, folded at 0."""
    high: float | None


class Tried(msgspec.Struct, frozen=True):
    """One value of the parameter."""

    value: float
    tuning: float | None
    """Mean over seeds of the highest delta-sim of the tuning part."""
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    """Of each seed's best encoder; 0 is the encoder as it was given."""


class Summary(msgspec.Struct, frozen=True):
    """One split and loss."""

    model: str
    split: SplitBy
    loss: LossName
    parameter: str
    """`temperature` or `margin`."""
    chosen: float
    """Its value with the highest mean delta-sim of the tuning parts; validation has no say."""
    tuning: float | None
    seeds: tuple[int, ...]
    over: str
    """What the intervals are over: `seeds` (Student's t), or `contexts` (bootstrap) where there is one seed."""
    rows: tuple[Row, ...]
    tried: tuple[Tried, ...] = ()
    """All values of the parameter, the chosen one among them."""
    select: SelectOn = "inner"
    """`validation`: stopped and chosen on the very part that is reported."""

    @property
    def epochs(self) -> tuple[int, ...]:
        """Return the epoch of each seed's best encoder."""
        return next((one.epochs for one in self.tried if one.value == self.chosen), ())


def summarise(model: str, results: Sequence[Result], select: SelectOn = "inner") -> list[Summary]:
    """Return a summary of each split and loss, in the order of the results."""
    groups: dict[tuple[SplitBy, LossName], dict[float, list[Result]]] = {}
    for result in results:
        by_value = groups.setdefault((result.split, result.settings.loss.name), {})
        by_value.setdefault(result.settings.loss.chosen, []).append(result)
    return [_one(model, by_value, select) for by_value in groups.values()]


def _one(model: str, by_value: dict[float, list[Result]], select: SelectOn) -> Summary:
    tried = [_tried(value, results) for value, results in by_value.items()]
    best = max(tried, key=lambda one: rank(one.tuning))
    results = by_value[best.value]
    first = results[0]
    rows = [_row(name, [r.before[name] for r in results], [r.after[name] for r in results]) for name in first.after]
    means = [row for row in rows if row.category != "overall"]
    columns = ("before", "before_signed", "after", "after_signed")
    average = {name: _mean([getattr(row, name) for row in means]) for name in columns}
    rows.append(Row(category="mean", low=None, high=None, **average))
    return Summary(
        model=model,
        split=first.split,
        loss=first.settings.loss.name,
        parameter=first.settings.loss.parameter,
        chosen=best.value,
        tuning=best.tuning,
        seeds=best.seeds,
        over="seeds" if len(results) > 1 else "contexts",
        rows=tuple(rows),
        tried=tuple(tried),
        select=select,
    )


def _tried(value: float, results: Sequence[Result]) -> Tried:
    seeds, epochs = tuple(r.settings.seed for r in results), tuple(r.best for r in results)
    return Tried(value, _mean([result.tuning for result in results]), seeds, epochs)


def _row(name: str, before: Sequence[Delta], after: Sequence[Delta]) -> Row:
    was, is_now = _mean([delta.signed for delta in before]), _mean([delta.signed for delta in after])
    (before_low, before_high), (low, high) = _interval(before), _interval(after)
    return Row(
        category=name,
        before=_absolute(was),
        before_signed=was,
        before_low=before_low,
        before_high=before_high,
        after=_absolute(is_now),
        after_signed=is_now,
        low=low,
        high=high,
    )


def rank(tuning: float | None) -> float:
    """Return a key by which a missing tuning value comes last."""
    return float("-inf") if tuning is None else tuning


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if one is missing, since means over different seeds do not compare."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def _absolute(value: float | None) -> float | None:
    return None if value is None else abs(value)


def _interval(of_seeds: Sequence[Delta]) -> tuple[float | None, float | None]:
    """Return that of one seed as it is; for several Student's of the differences with their signs, folded at 0."""
    if len(of_seeds) == 1:
        return of_seeds[0].low, of_seeds[0].high
    signed = [delta.signed for delta in of_seeds if delta.signed is not None]
    if len(signed) < len(of_seeds):
        return None, None
    middle, half = float(np.mean(signed)), float(stats.t.ppf(0.975, len(signed) - 1) * stats.sem(signed))
    return fold(middle - half, middle + half)
