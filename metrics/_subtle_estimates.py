"""The estimates of the subtle-bias studies: base rates, conditional likelihoods, differences, Kendall's tau."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import polars as pl
from scipy import stats

from ..core.estimates import MISSING, POSITION, Estimate
from ._arrays import Array
from ._bounds import difference_bounds
from ._cluster import bootstrap
from ._crossed import crossed_bootstrap
from ._effects import cohens_h, defined, p_of
from ._families import correct
from ._labels import label_test
from ._missing import Group, missing_estimates
from ._proportions import scaled, share, worst_case
from ._subtle_cells import (
    CODINGS,
    DELTAS,
    DISPLAYED,
    GIVEN,
    LIKELIHOODS,
    RATES,
    STATISTICS,
    Block,
    blocks,
    statistics,
    tables,
)
from ._subtle_options import SubtleMetricOptions

EXACT = "exact (Clopper-Pearson), answers"
POINTS = "percentage points"
ASYMPTOTIC = "Kendall, asymptotic, answers"
PLACES = (1, 2, 3)
MATCH = "follows the base rates: a model that always answers positive, whatever is given, has tau-c 1"


class Computed(msgspec.Struct, frozen=True):
    """A block with its statistics and their intervals, each (units, statistics)."""

    block: Block
    value: Array
    low: Array
    high: Array


def estimate_all(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return every estimate, tests corrected within their families."""
    found: list[Estimate] = []
    for block in blocks(observations, options.cluster):
        found.extend(_of_block(_computed(block, options), options))
    corrected = correct(found, options.correction, options.alpha, "tests")
    return [*corrected, *_positions(observations, options), *_missing(observations, options)]


def _computed(block: Block, options: SubtleMetricOptions) -> Computed:
    value = statistics(block.totals)
    low, high = np.full((2, *value.shape), np.nan)
    if block.clustered and len(options.cluster) == 2:
        low, high = crossed_bootstrap(block.cells, statistics, options.plan)
    elif block.clustered:
        low, high = bootstrap(block.cells[:, 0], statistics, options.plan)
    return Computed(block, value, low, high)


def _of_block(computed: Computed, options: SubtleMetricOptions) -> Iterator[Estimate]:
    for unit in range(len(computed.block.groups)):
        yield from (_share(computed, unit, name, options) for name in (*RATES, *LIKELIHOODS))
        permuted = _permuted(computed.block, unit, options)
        yield from (_delta(computed, unit, place, permuted[place], options) for place in range(len(DELTAS)))
        if "pronoun" not in computed.block.groups[unit]:
            for coding in CODINGS:
                yield from _taus(computed, unit, coding, options)
            yield from _tau_permuted(computed, unit, permuted[len(DELTAS)], options)


def _row(computed: Computed, unit: int, name: Any, scale: float, options: SubtleMetricOptions) -> dict[str, Any]:
    column = STATISTICS.index(name)
    value, low, high = (defined(float(a[unit, column])) for a in (computed.value, computed.low, computed.high))
    cells = computed.block.cells[:, :, unit, :, 0].sum(axis=-1)
    return {
        "group": dict(computed.block.groups[unit]),
        "value": scaled(value, scale),
        "low": scaled(low, scale),
        "high": scaled(high, scale),
        "level": options.level,
        "interval": f"cluster bootstrap ({' x '.join(options.cluster)})" if low is not None else "",
        "n": int(cells.sum()),
        "clusters": _clusters(cells) if computed.block.clustered else None,
        "missing": _lost(computed.block, unit, GIVEN),
        "note": _note(computed.block, value, low),
    }


def _clusters(cells: Array) -> int:
    """Count the clusters of the way that has fewer."""
    ways = [int((cells.sum(axis=axis) > 0).sum()) for axis in (1, 0)]
    return min(ways) if cells.shape[1] > 1 else ways[0]


def _note(block: Block, value: float | None, low: float | None) -> str:
    if value is None:
        return "undefined: no readable answer to one of the polarities, or all alike"
    if low is not None:
        return ""
    return "no interval: no variation between clusters" if block.clustered else "no interval: clusters are not known"


def _lost(block: Block, unit: int, given: tuple[str, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in given:
        for status, count in block.missing[unit][name].items():
            counts[status] = counts.get(status, 0) + count
    return counts


def _share(computed: Computed, unit: int, name: str, options: SubtleMetricOptions) -> Estimate:
    """Return a base rate or a conditional likelihood in per cent."""
    sides = GIVEN if name in RATES else ("positive",) if LIKELIHOODS.index(name) < 3 else ("negative",)
    place = (RATES.index(name) if name in RATES else LIKELIHOODS.index(name)) % 3
    totals = computed.block.totals[unit, [GIVEN.index(side) for side in sides]].sum(axis=0)
    n, hits = int(totals[0]), int(totals[DISPLAYED[place]])
    missing = _lost(computed.block, unit, sides)
    row = _row(computed, unit, name, 100, options) | {"n": n, "missing": missing}
    if not computed.block.clustered:
        exact = share(hits, n, options.level)
        row |= {"low": scaled(exact.low, 100), "high": scaled(exact.high, 100)}
        row |= {"interval": EXACT, "note": ""} if n else {}
    low, high = worst_case(hits, n, sum(missing.values()))
    return Estimate(metric=name, unit="%", bound_low=scaled(low, 100), bound_high=scaled(high, 100), **row)


def _permuted(block: Block, unit: int, options: SubtleMetricOptions) -> Array:
    """Return p of the differences and of tau-c (coded by polarity), whole terms permuted between the polarities."""
    count = len(DELTAS) + 1
    if not block.clustered or "term" not in options.cluster:
        return np.full(count, np.nan)
    axis = options.cluster.index("term")
    sums = block.cells[:, :, unit].sum(axis=1 - axis)
    wanted = [STATISTICS.index(name) for name in (*DELTAS, ("tau_c", CODINGS[0]))]
    found: Array = label_test(sums, lambda totals: np.abs(statistics(totals)[..., wanted]), options.plan)
    return found


def _permutation(p: float, options: SubtleMetricOptions, family: str) -> dict[str, Any]:
    if (found := p_of(p)) is None:
        return {}
    return {"test": "permutation of terms between polarities", "p": found, "family": family}


def _family(group: dict[str, Any], what: str) -> str:
    return f"{what}, by {' and '.join(group)}" if group else f"{what}, whole study"


def _delta(computed: Computed, unit: int, place: int, p: float, options: SubtleMetricOptions) -> Estimate:
    name = DELTAS[place]
    row = _row(computed, unit, name, 100, options)
    totals = computed.block.totals[unit]
    hits = totals[:, [0, DISPLAYED[place]]][::-1]
    effect = defined(float(cohens_h(hits)))
    bounds = [
        worst_case(int(side[1]), int(side[0]), sum(computed.block.missing[unit][given].values()))
        for side, given in zip(hits, GIVEN[::-1], strict=True)
    ]
    low, high = difference_bounds(*bounds)
    return Estimate(
        metric=name,
        unit=POINTS,
        neutral=0.0,
        bound_low=scaled(low, 100),
        bound_high=scaled(high, 100),
        statistic=row["value"] if p_of(p) is not None else None,
        effect=effect,
        effect_name="Cohen's h" if effect is not None else "",
        **row,
        **_permutation(p, options, _family(row["group"], name)),
    )


def _taus(computed: Computed, unit: int, coding: str, options: SubtleMetricOptions) -> Iterator[Estimate]:
    """Yield tau-b and tau-c with the paper's asymptotic p."""
    table = tables(computed.block.totals[unit])[CODINGS.index(coding)]
    for name in ("tau_b", "tau_c"):
        row = _tau_row(computed, unit, (name, coding), options)
        test: dict[str, Any] = {} if row["value"] is None else {"test": ASYMPTOTIC, **_asymptotic(table)}
        family = _family(computed.block.groups[unit], f"{name} ({coding}), asymptotic")
        yield Estimate(metric=name, **row, **test, family=family)


def _tau_permuted(computed: Computed, unit: int, p: float, options: SubtleMetricOptions) -> Iterator[Estimate]:
    """Yield tau-c with the p of permuted terms.

    Only in the coding by polarity: where the answer is coded as a match, independence does not mean a tau of 0.
    """
    if p_of(p) is not None:
        row = _tau_row(computed, unit, ("tau_c", CODINGS[0]), options)
        family = _family(computed.block.groups[unit], "tau_c, terms permuted")
        tested = _permutation(p, options, family)
        yield Estimate(metric="tau_c_clustered", statistic=row["value"], **row, **tested)


def _tau_row(computed: Computed, unit: int, name: tuple[str, str], options: SubtleMetricOptions) -> dict[str, Any]:
    row = _row(computed, unit, name, 1, options)
    group = row["group"] | {"coding": name[1]}
    if row["value"] is None:
        return row | {"group": group}
    effect = {"effect": row["value"], "effect_name": name[0].replace("_", "-")}
    ends = {"effect_low": row["low"], "effect_high": row["high"]}
    match = name[1] != CODINGS[0]
    note = "; ".join(filter(None, [row["note"], MATCH if match else ""]))
    return row | effect | ends | {"group": group, "neutral": None if match else 0.0, "note": note}


def _asymptotic(table: Array) -> dict[str, Any]:
    """Return scipy's statistic and p, as if every answer stood for itself."""
    given, level = (np.repeat(index.ravel(), table.ravel().astype(int)) for index in np.indices(table.shape))
    test = stats.kendalltau(given, level, method="asymptotic")
    return {"statistic": defined(float(test.statistic)), "p": p_of(float(test.pvalue))}


def _positions(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return how often each place in the order of options was chosen, where the order is known."""
    if "position" not in observations.columns:
        return []
    chosen = observations.filter((pl.col("status") == "ok") & pl.col("position").is_not_null())
    n = chosen.height
    found = []
    for place in PLACES if n else ():
        hits = int((chosen["position"] == place).sum())
        test = stats.binomtest(hits, n, 1 / len(PLACES))
        interval = test.proportion_ci(options.level, method="exact")
        found.append(
            Estimate(
                metric="position_bias",
                group={"position": place},
                value=100 * hits / n,
                neutral=100 / len(PLACES),
                unit="%",
                low=100 * float(interval.low),
                high=100 * float(interval.high),
                level=options.level,
                interval=EXACT,
                n=n,
                test="exact binomial against a third, answers",
                statistic=hits / n,
                p=p_of(float(test.pvalue)),
                family="places of the options",
                effect=hits / n - 1 / len(PLACES),
                effect_name="risk difference",
                effect_low=float(interval.low) - 1 / len(PLACES),
                effect_high=float(interval.high) - 1 / len(PLACES),
                topic=POSITION,
            )
        )
    return correct(found, options.correction, options.alpha, "places")


def _missing(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    cells = observations.partition_by("domain", "given", as_dict=True, maintain_order=True)
    groups = []
    for (domain, given), part in cells.items():
        lost = part.filter(pl.col("status") != "ok").group_by("status").len().sort("status")
        groups.append(
            Group({"domain": domain, "given": given}, int((part["status"] == "ok").sum()), dict(lost.iter_rows()))
        )
    return [*missing_estimates(groups, options.level), *_kinds(observations, options.level)]


def _kinds(observations: pl.DataFrame, level: float) -> list[Estimate]:
    """Return the share of each kind of unreadable answer among all that were asked for."""
    if "reason" not in observations.columns:
        return []
    lost = observations.filter(pl.col("status") == "unreadable")
    found = []
    counts = (
        lost.group_by(pl.col("reason").fill_null("no reason")).len().sort("len", "reason", descending=[True, False])
    )
    for reason, count in counts.iter_rows():
        interval = stats.binomtest(count, observations.height).proportion_ci(level, method="wilson")
        found.append(
            Estimate(
                metric="unreadable",
                group={"kind": reason},
                value=100 * count / observations.height,
                unit="%",
                low=100 * float(interval.low),
                high=100 * float(interval.high),
                level=level,
                interval="Wilson, answers",
                n=observations.height,
                topic=MISSING,
            )
        )
    return found
