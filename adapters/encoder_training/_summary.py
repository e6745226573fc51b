"""What the trainings of one split and loss came to, all seeds together: the parameter that the tuning part prefers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy import stats

from ._cells import Result
from ._losses import BY_TEMPERATURE, LossName
from ._parts import SplitBy
from ._similarity import Delta


class Row(msgspec.Struct, frozen=True):
    """Validation delta-sim of one category (or `overall`, or `mean` of the categories), mean over seeds."""

    category: str
    before: float | None
    before_signed: float | None
    """The same without taking absolute values: below 0, opposed sentences lie nearer than alike ones."""
    after: float | None
    after_signed: float | None
    low: float | None
    """Lower end of a 95 % interval of `after`."""
    high: float | None


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


def summarise(model: str, results: Sequence[Result]) -> list[Summary]:
    """Return a summary of each split and loss, in the order of the results."""
    groups: dict[tuple[SplitBy, LossName], dict[float, list[Result]]] = {}
    for result in results:
        by_value = groups.setdefault((result.split, result.settings.loss.name), {})
        by_value.setdefault(_value(result), []).append(result)
    return [_one(model, by_value) for by_value in groups.values()]


def _value(result: Result) -> float:
    loss = result.settings.loss
    return loss.temperature if loss.name in BY_TEMPERATURE else loss.margin


def _one(model: str, by_value: dict[float, list[Result]]) -> Summary:
    chosen = max(by_value, key=lambda value: _mean([result.tuning for result in by_value[value]]) or -1.0)
    results = by_value[chosen]
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
        parameter="temperature" if first.settings.loss.name in BY_TEMPERATURE else "margin",
        chosen=chosen,
        tuning=_mean([result.tuning for result in results]),
        seeds=tuple(result.settings.seed for result in results),
        over="seeds" if len(results) > 1 else "contexts",
        rows=tuple(rows),
    )


def _row(name: str, before: Sequence[Delta], after: Sequence[Delta]) -> Row:
    values = [delta.value for delta in after]
    low, high = (after[0].low, after[0].high) if len(after) == 1 else _t_interval(values)
    return Row(
        category=name,
        before=_mean([delta.value for delta in before]),
        before_signed=_mean([delta.signed for delta in before]),
        after=_mean(values),
        after_signed=_mean([delta.signed for delta in after]),
        low=low,
        high=high,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if one is missing, since means over different seeds do not compare."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def _t_interval(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    if any(value is None for value in values):
        return None, None
    known = np.array(values, dtype=np.float64)
    half = float(stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return float(known.mean()) - half, float(known.mean()) + half
