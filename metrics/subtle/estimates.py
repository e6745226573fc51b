"""The estimates of the subtle-bias studies: base rates, conditional likelihoods, differences, Kendall's tau."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.blocks import merge
from ...core.statistics.bounds import difference_bounds
from ...core.statistics.effects import p_of
from ...core.statistics.equivalence import Margin, noted
from ...core.statistics.families import correct
from ...core.statistics.proportions import scaled, share, worst_case
from .artifacts import EXACT, missing, positions
from .cells import CODINGS, DELTAS, DISPLAYED, GIVEN, LIKELIHOODS, RATES, STATISTICS, blocks
from .options import SubtleMetricOptions
from .rows import Computed, computed_of, family_of, lost_in, permutation, permuted, row_of
from .tau import tau_permuted, taus

POINTS = "percentage points"


def estimate_all(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return every estimate, tests corrected within their families."""
    found: list[Estimate] = []
    for block in blocks(observations, options.cluster):
        found.extend(_of_block(computed_of(block, options), options))
    corrected = correct(found, options.correction, options.alpha, "tests")
    return [*corrected, *positions(observations, options), *missing(observations, options)]


def _of_block(computed: Computed, options: SubtleMetricOptions) -> Iterator[Estimate]:
    for unit in range(len(computed.block.groups)):
        yield from (_share(computed, unit, name, options) for name in (*RATES, *LIKELIHOODS))
        p = permuted(computed.block, unit, options)
        yield from (_delta(computed, unit, place, p[place], options) for place in range(len(DELTAS)))
        if "pronoun" not in computed.block.groups[unit]:
            for coding in CODINGS:
                yield from taus(computed, unit, coding, options)
            yield from tau_permuted(computed, unit, p[len(DELTAS)], options)


def _share(computed: Computed, unit: int, name: str, options: SubtleMetricOptions) -> Estimate:
    """Return a base rate or a conditional likelihood in per cent."""
    sides = GIVEN if name in RATES else ("positive",) if LIKELIHOODS.index(name) < 3 else ("negative",)
    place = (RATES.index(name) if name in RATES else LIKELIHOODS.index(name)) % 3
    totals = computed.block.totals[unit, [GIVEN.index(side) for side in sides]].sum(axis=0)
    n, hits = int(totals[0]), int(totals[DISPLAYED[place]])
    missing = lost_in(computed.block, unit, sides)
    row = row_of(computed, unit, name, 100, options) | {"n": n, "missing": missing}
    if not computed.block.clusters:
        exact = share(hits, n, options.level)
        row |= {"low": scaled(exact.low, 100), "high": scaled(exact.high, 100)}
        row |= {"interval": EXACT, "note": ""} if n else {}
    low, high = worst_case(hits, n, sum(missing.values()))
    return Estimate.from_flat(metric=name, unit="%", bound_low=scaled(low, 100), bound_high=scaled(high, 100), **row)


def _near(computed: Computed, unit: int, name: str, options: SubtleMetricOptions) -> dict[str, str]:
    """Return whether a difference is shown to be near 0, as a note; nothing where no margin is given."""
    if computed.judged is None or options.margin is None:
        return {}
    ends = 100 * computed.judged[:, :, unit, STATISTICS.index(name)]
    return noted(ends, Margin(options.margin, options.alpha), POINTS)


def _delta(computed: Computed, unit: int, place: int, p: float, options: SubtleMetricOptions) -> Estimate:
    name = DELTAS[place]
    row = row_of(computed, unit, name, 100, options)
    hits = computed.block.totals[unit][:, [0, DISPLAYED[place]]][::-1]
    bounds = [
        worst_case(int(side[1]), int(side[0]), sum(computed.block.missing[unit][given].values()))
        for side, given in zip(hits, GIVEN[::-1], strict=True)
    ]
    low, high = difference_bounds(*bounds)
    return Estimate.from_flat(
        metric=name,
        unit=POINTS,
        neutral=0.0,
        bound_low=scaled(low, 100),
        bound_high=scaled(high, 100),
        statistic=row["value"] if p_of(p) is not None else None,
        effect=scaled(row["value"], 0.01),
        effect_name="risk difference" if row["value"] is not None else "",
        effect_low=scaled(row["low"], 0.01),
        effect_high=scaled(row["high"], 0.01),
        **merge(row, _near(computed, unit, name, options)),
        **permutation(p, family_of(row["group"], name)),
    )
