"""Stereotype probability and Bias Score corrected for the encoder's errors on held-out sentences.

Rogan and Gladen (1978): the share that was seen and both rates of the encoder are drawn from Beta distributions
(Jeffreys), so that an interval has all three uncertainties. A draw with an encoder at chance may be any share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.contracts.estimates import Estimate
from ...core.statistics.error_matrix import draw_rates, true_shares
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import Array, Flags
from .measures import IndiCASAMetricOptions
from .scores import bias_score, folded, hits_of, mean_of

SHARE, BIAS = "stereotype_probability_corrected", "bias_score_corrected"
INTERVAL = "Rogan-Gladen, Beta draws of the share and of the encoder's confusion"
JEFFREYS = 0.5
TOGETHER = f"{INTERVAL}; mean of the categories' at a level that holds for all (Bonferroni)"
UNABLE = "on held-out sentences the encoder is no better than chance for"
NOT_GIVEN = "no scored prompt, or no confusion of the encoder, for"


class Errors(NamedTuple):
    """Held-out sentences by true class, then by the class the encoder gave (s: stereotype, a: anti-stereotype)."""

    ss: int
    sa: int
    as_: int
    aa: int


class Corrected(NamedTuple):
    """A corrected share, and draws of its least and greatest value. They may lie beyond 0 and 1; means come first."""

    value: float | None
    """None where the encoder is no better than chance."""
    low: Array
    high: Array

    @property
    def cut(self) -> float | None:
        """Return the share within 0 and 1."""
        return None if self.value is None else min(max(self.value, 0.0), 1.0)

    def ends(self, tail: float) -> tuple[float, float]:
        """Return the share's interval that leaves out `tail` at either end, from 0 to 1."""
        low, high = np.clip([np.quantile(self.low, tail), np.quantile(self.high, 1 - tail)], 0.0, 1.0)
        return float(low), float(high)


def correct_share(hits: int, n: int, errors: Errors, rng: np.random.Generator, draws: int) -> Corrected:
    """Return the corrected share of `hits` among `n`; draws with an encoder at chance may be any share."""
    # The class that is drawn first comes first, so that draws stay those of a Beta distribution.
    shares = draw_rates(np.array([[hits, n - hits]]), JEFFREYS, rng, draws)[:, 0]
    stereotypes = draw_rates(np.array([[errors.ss, errors.sa]]), JEFFREYS, rng, draws)
    anti_stereotypes = draw_rates(np.array([[errors.aa, errors.as_]]), JEFFREYS, rng, draws)[..., ::-1]
    true, able = _corrected(shares, np.concatenate([stereotypes, anti_stereotypes], axis=1))
    counts = np.array([[errors.ss, errors.sa], [errors.as_, errors.aa]], dtype=np.float64)
    share, usable = _corrected(np.array([hits, n - hits]) / n, counts / counts.sum(axis=1, keepdims=True))
    return Corrected(float(share) if usable else None, np.where(able, true, 0.0), np.where(able, true, 1.0))


def _corrected(shares: Array, rates: Array) -> tuple[Array, Flags]:
    """Return the share of stereotypes, and where the encoder is better than chance."""
    able: Flags = rates[..., 0, 0] + rates[..., 1, 1] - 1 > 1e-9
    return true_shares(shares, np.where(able[..., None, None], rates, np.eye(2)))[..., 0], able


def corrected(
    parts: Sequence[Estimate], errors: Mapping[str, Errors], options: IndiCASAMetricOptions
) -> Iterator[Estimate]:
    """Yield the corrected measures by category and Overall, from the probabilities; none where no errors are given."""
    drawn: dict[str, Corrected | None] = {}
    for place, part in enumerate(parts):
        name = str(part.group["category"])
        rng = np.random.default_rng([options.seed, 5, place])
        known = part.n and name in errors
        drawn[name] = correct_share(hits_of(part), part.n, errors[name], rng, options.resamples) if known else None
    for metric in (SHARE, BIAS) if errors else ():
        for part in parts:
            name = str(part.group["category"])
            yield _estimate(metric, part.n, {name: drawn[name]}, options.level).replace(group=dict(part.group))
        yield _estimate(metric, sum(part.n for part in parts), drawn, options.level)


def _estimate(metric: str, n: int, drawn: Mapping[str, Corrected | None], level: float) -> Estimate:
    """Return the mean of categories, or of one, without its group."""
    known = [part for part in drawn.values() if part is not None]
    lacking = [name for name, part in drawn.items() if part is None]
    unable = [name for name, part in drawn.items() if part is not None and part.value is None]
    why = f"{NOT_GIVEN} {', '.join(lacking)}" if lacking else f"{UNABLE} {', '.join(unable)}" if unable else ""
    value, ends, tail = None, None, (1 - level) / 2
    if not lacking:
        whole = Corrected(mean_of([part.value for part in known]), *np.mean([part[1:] for part in known], axis=0))
        value, ends = whole.cut, whole.ends(tail)
    if metric == BIAS and not lacking:
        scores = [None if part.cut is None else float(bias_score(np.array(part.cut))) for part in known]
        far = [bias_score(np.array(folded(*part.ends(tail / len(known))))) for part in known]
        low, high = np.mean(far, axis=0)
        value, ends = mean_of(scores), (float(low), float(high))
    how = TOGETHER if metric == BIAS and len(drawn) > 1 else INTERVAL
    return Estimate.from_flat(
        metric=metric,
        group={},
        value=value,
        neutral=0.5 if metric == SHARE else 0.0,
        low=ends and ends[0],
        high=ends and ends[1],
        level=level,
        interval=how if ends else "",
        n=n,
        **(undefined(why) if why else {}),
    )
