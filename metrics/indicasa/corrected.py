"""Estimates corrected for the encoder's errors (Rogan and Gladen 1978), with their uncertainty.

Of the true stereotypes the encoder finds a share Se, of the true anti-stereotypes a share Sp; so a true share q is seen
as p = q Se + (1 - q) (1 - Sp), and q = (p + Sp - 1) / (Se + Sp - 1). The uncertainty of all three is drawn: each from
the Beta distribution of its counts with Jeffreys' prior (a Dirichlet of two classes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core.contracts.estimates import Estimate
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import Array, Flags
from .options import IndiCASAMetricOptions
from .scores import folded, mean_of
from .votes import Cell, Errors


class Corrected(NamedTuple):
    """A corrected share, and draws of its least and greatest value. They may lie beyond 0 and 1; means come first."""

    value: float | None
    """None where the encoder is no better than chance."""
    low: Array
    high: Array

    def ends(self, tail: float) -> tuple[float, float]:
        """Return the share's interval that leaves out `tail` at either end, from 0 to 1."""
        low, high = np.clip([np.quantile(self.low, tail), np.quantile(self.high, 1 - tail)], 0.0, 1.0)
        return float(low), float(high)


def correct_share(hits: int, n: int, errors: Errors, rng: np.random.Generator, draws: int) -> Corrected:
    """Return the corrected share of `hits` among `n`; a draw in which the encoder errs by half may be any share."""
    seen = rng.beta(hits + 0.5, n - hits + 0.5, draws)
    found = rng.beta(errors.ss + 0.5, errors.sa + 0.5, draws)
    spared = rng.beta(errors.aa + 0.5, errors.as_ + 0.5, draws)
    true, able = _invert(seen, found, spared)
    point, usable = _invert(*(np.array(x) for x in _observed(hits, n, errors)))
    value = float(point) if usable else None
    return Corrected(value, np.where(able, true, 0.0), np.where(able, true, 1.0))


def _observed(hits: int, n: int, errors: Errors) -> tuple[float, float, float]:
    return hits / n, errors.ss / (errors.ss + errors.sa), errors.aa / (errors.as_ + errors.aa)


def _invert(seen: Array, found: Array, spared: Array) -> tuple[Array, Flags]:
    better: Array = found + spared - 1
    able: Flags = better > 1e-9
    share: Array = (seen + spared - 1) / np.where(able, better, 1.0)
    return share, able


SHARE, BIAS = "stereotype_probability_corrected", "bias_score_corrected"
INTERVAL = "Rogan-Gladen, Beta draws of the share and of the encoder's confusion"
TOGETHER = f"{INTERVAL}; mean of the categories' at a level that holds for all (Bonferroni)"
UNABLE = "on held-out sentences the encoder is no better than chance for"
NOT_GIVEN = "no scored prompt, or no confusion of the encoder, for"


class _Column(NamedTuple):
    """One measure of all categories, and of Overall in the last place."""

    metric: str
    neutral: float
    values: Sequence[float | None]
    ends: Sequence[tuple[float, float] | None]
    overall: str
    """How the interval of Overall was made."""


def corrected(cells: Sequence[Cell], options: IndiCASAMetricOptions) -> list[Estimate]:
    """Return the corrected measures by category and Overall; none where no confusion was given."""
    if not any(cell.errors for cell in cells):
        return []
    parts = [_share(cell, place, options) for place, cell in enumerate(cells)]
    columns = (_shares(parts, options.level), _biases(parts, options.level))
    reasons = [_reason([cell], [part]) for cell, part in zip(cells, parts, strict=True)] + [_reason(cells, parts)]
    return [estimate for column in columns for estimate in _estimates(column, cells, reasons, options.level)]


def _shares(parts: Sequence[Corrected | None], level: float) -> _Column:
    shares = [*parts, _mean(parts)]
    ends = [part and part.ends((1 - level) / 2) for part in shares]
    return _Column(SHARE, 0.5, [_cut(part) for part in shares], ends, INTERVAL)


def _biases(parts: Sequence[Corrected | None], level: float) -> _Column:
    tail, scores = (1 - level) / 2, [_bias(part) for part in parts]
    ends = [part and _folded(*part.ends(tail)) for part in parts]
    together = [part and _folded(*part.ends(tail / len(parts))) for part in parts]
    known = [pair for pair in together if pair is not None]
    low, high = np.mean(known, axis=0) if len(known) == len(parts) else (None, None)
    whole = None if low is None or high is None else (float(low), float(high))
    return _Column(BIAS, 0.0, [*scores, mean_of(scores)], [*ends, whole], TOGETHER)


def _reason(cells: Sequence[Cell], parts: Sequence[Corrected | None]) -> str:
    """Say why there is no value, and for which categories; nothing where there is one."""
    named = list(zip((str(cell.group["category"]) for cell in cells), parts, strict=True))
    if unknown := [name for name, part in named if part is None]:
        return f"{NOT_GIVEN} {', '.join(unknown)}"
    unable = [name for name, part in named if part is not None and part.value is None]
    return f"{UNABLE} {', '.join(unable)}" if unable else ""


def _estimates(column: _Column, cells: Sequence[Cell], reasons: Sequence[str], level: float) -> Iterator[Estimate]:
    rows = [(dict(cell.group), cell.n) for cell in cells] + [({}, sum(cell.n for cell in cells))]
    for (group, n), value, ends, why in zip(rows, column.values, column.ends, reasons, strict=True):
        low, high = ends or (None, None)
        yield Estimate.from_flat(
            metric=column.metric,
            group=group,
            value=value,
            neutral=column.neutral,
            low=low,
            high=high,
            level=level,
            interval="" if ends is None else INTERVAL if group else column.overall,
            n=n,
            **(undefined(why) if why else {}),
        )


def _share(cell: Cell, place: int, options: IndiCASAMetricOptions) -> Corrected | None:
    if cell.errors is None or not cell.n:
        return None
    rng = np.random.default_rng([options.seed, 5, place])
    return correct_share(cell.hits, cell.n, cell.errors, rng, options.resamples)


def _mean(parts: Sequence[Corrected | None]) -> Corrected | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    low, high = (np.mean(np.stack(ends), axis=0) for ends in ([p.low for p in known], [p.high for p in known]))
    return Corrected(mean_of([part.value for part in known]), low, high)


def _cut(part: Corrected | None) -> float | None:
    return None if part is None or part.value is None else min(max(part.value, 0.0), 1.0)


def _bias(part: Corrected | None) -> float | None:
    share = _cut(part)
    return None if share is None else 100 * abs(2 * share - 1)


def _folded(low: float, high: float) -> tuple[float, float]:
    near, far = folded(low, high)
    return 200 * near - 100, 200 * far - 100
