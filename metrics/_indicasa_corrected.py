"""Estimates as they would be with an encoder that never errs, with its uncertainty in the interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.estimates import Estimate
from ..core.records import Scalar
from ._arrays import Array
from ._indicasa_cells import Cell
from ._indicasa_correction import Corrected, correct_share
from ._indicasa_options import IndiCASAMetricOptions
from ._indicasa_scores import mean_of

METRICS = {"stereotype_probability_corrected": 0.5, "bias_score_corrected": 0.0}
"""With their neutral values."""
INTERVAL = "Rogan-Gladen, Beta draws of the share and of the encoder's confusion"
UNABLE = "undefined: on held-out sentences the encoder is no better than chance"
NOT_GIVEN = "undefined: no scored prompt, or no confusion of the encoder for it"


def corrected(cells: Sequence[Cell], options: IndiCASAMetricOptions) -> list[Estimate]:
    """Return the corrected measures by category and Overall; none where no confusion was given."""
    if not any(cell.errors for cell in cells):
        return []
    shares = [_share(cell, place, options) for place, cell in enumerate(cells)]
    found = []
    for metric, neutral in METRICS.items():
        parts = [one if one is None or neutral else one.bias() for one in shares]
        for cell, part in zip(cells, parts, strict=True):
            found.append(_estimate(metric, cell.group, part, cell.n, options))
        found.append(_estimate(metric, {}, _mean(parts), sum(cell.n for cell in cells), options))
    return found


def _share(cell: Cell, place: int, options: IndiCASAMetricOptions) -> Corrected | None:
    if cell.errors is None or not cell.n:
        return None
    rng = np.random.default_rng([options.seed, 5, place])
    return correct_share(cell.hits, cell.n, cell.errors, rng, options.resamples)


def _mean(parts: Sequence[Corrected | None]) -> Corrected | None:
    there = [part for part in parts if part is not None]
    if len(there) < len(parts):
        return None
    low, high = (np.mean(np.stack(ends), axis=0) for ends in ([p.low for p in there], [p.high for p in there]))
    return Corrected(mean_of([part.value for part in there]), low, high)


def _estimate(
    metric: str, group: dict[str, Scalar], part: Corrected | None, n: int, options: IndiCASAMetricOptions
) -> Estimate:
    tail = (1 - options.level) / 2
    low, high = (None, None) if part is None else (_quantile(part.low, tail), _quantile(part.high, 1 - tail))
    return Estimate(
        metric=metric,
        group=dict(group),
        value=None if part is None else part.value,
        neutral=METRICS[metric],
        low=low,
        high=high,
        level=options.level,
        interval="" if part is None else INTERVAL,
        n=n,
        note=NOT_GIVEN if part is None else UNABLE if part.value is None else "",
    )


def _quantile(draws: Array, level: float) -> float:
    return float(np.quantile(draws, level))
