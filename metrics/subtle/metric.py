"""Subtle associations: does the polarity of the given term change the polarity of the chosen option?

The measures of Kamruzzaman et al. (2023), sections Task Definition and Experimental Setup: base rates, conditional
likelihoods, their differences, and Kendall's tau in the coding of the text and in that of the printed table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
import polars as pl

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Caveat, Chart, Estimate, Example, Measure
from ...core.statistics.crossed import crossed_bootstrap
from ...core.statistics.effects import defined, p_of
from ...core.statistics.estimates import Margin, correct, equivalence_facts, merge, undefined
from ...core.statistics.intervals import Array, difference_bounds, scaled, share, worst_case
from ...core.statistics.ranks import kendall_p, tau_b
from ...core.statistics.resampling import Resampling, bootstrap, label_test
from .cells import (
    CODINGS,
    DELTAS,
    DISPLAYED,
    EXACT,
    GIVEN,
    LIKELIHOODS,
    NEEDS,
    RANGES,
    RATES,
    STATISTICS,
    Block,
    blocks,
    distances,
    missing,
    positions,
    readable,
    statistics,
    tables,
)
from .measures import MEASURES
from .options import SubtleMetricOptions
from .words import conclude, draw, examples_of, headline, methods, units

if TYPE_CHECKING:
    import polars as pl


class Computed(msgspec.Struct, frozen=True):
    """A block with its statistics and their intervals, each (units, statistics)."""

    block: Block
    value: Array
    low: Array
    high: Array
    judged: Array | None = None
    """Ends of the 1 - 2 alpha and the 1 - alpha interval (2, 2, units, statistics), if equivalence is tested."""


def computed_of(block: Block, options: SubtleMetricOptions) -> Computed:
    """Compute the statistics of a block, with intervals where the clusters are known."""
    value, plan = statistics(block.totals), options.plan
    if not block.clusters:
        low, high = np.full((2, *value.shape), np.nan)
        return Computed(block, value, low, high)
    levels = (1 - 2 * options.alpha, 1 - options.alpha) if options.margin is not None else ()
    judged = [_ends_of(block, msgspec.structs.replace(plan, level=level)) for level in levels]
    return Computed(block, value, *_ends_of(block, plan), np.array(judged) if judged else None)


def _ends_of(block: Block, plan: Resampling) -> tuple[Array, Array]:
    if len(block.clusters) == 2:
        return crossed_bootstrap(block.cells, statistics, plan, RANGES)
    return bootstrap(block.cells[:, 0], statistics, plan, RANGES)


def row_of(computed: Computed, unit: int, name: Any, scale: float, options: SubtleMetricOptions) -> dict[str, Any]:
    """Return the fields of an estimate for its value, its interval and its basis."""
    column = STATISTICS.index(name)
    value, low, high = (defined(float(a[unit, column])) for a in (computed.value, computed.low, computed.high))
    cells = computed.block.cells[:, :, unit, :, 0].sum(axis=-1)
    return {
        "group": dict(computed.block.groups[unit]),
        "value": scaled(value, scale),
        "low": scaled(low, scale),
        "high": scaled(high, scale),
        "level": options.level,
        "interval": f"{options.interval} ({' x '.join(computed.block.clusters)})" if low is not None else "",
        "n": int(cells.sum()),
        "clusters": _clusters(cells) if computed.block.clusters else None,
        "missing": lost_in(computed.block, unit, GIVEN),
        **_caveats(computed.block, value, low),
    }


def _clusters(cells: Array) -> int:
    """Count the clusters of the way that has fewer."""
    ways = [int((cells.sum(axis=axis) > 0).sum()) for axis in (1, 0)]
    return min(ways) if cells.shape[1] > 1 else ways[0]


def _caveats(block: Block, value: float | None, low: float | None) -> dict[str, Any]:
    if value is None:
        return undefined("no readable answer to one of the polarities, or all answers equal")
    unknown: dict[str, Any] = {f"answers_without_{name}": count for name, count in block.unknown.items()}
    if not block.clusters:
        return {"facts": unknown, "note": "there is no interval, for the clusters are not known"}
    alone = f"clustered by {' x '.join(block.clusters)} alone" if unknown else ""
    return {"facts": unknown, "note": alone, "caveats": () if low is not None else (Caveat.NO_VARIATION,)}


def lost_in(block: Block, unit: int, given: tuple[str, ...]) -> dict[str, int]:
    """Count the unreadable answers to terms of these polarities, by status."""
    counts: dict[str, int] = {}
    for name in given:
        for status, count in block.missing[unit][name].items():
            counts[status] = counts.get(status, 0) + count
    return counts


def permuted(block: Block, unit: int, options: SubtleMetricOptions) -> Array:
    """Return p of the differences and of tau-c (coded by polarity), whole terms permuted between the polarities."""
    count = len(DELTAS) + 1
    if "term" not in block.clusters:
        return np.full(count, np.nan)
    axis = block.clusters.index("term")
    sums = block.cells[:, :, unit].sum(axis=1 - axis)
    return label_test(sums, distances, options.plan)


def permutation(p: float, family: str) -> dict[str, Any]:
    """Return the test of an estimate; nothing where it is undefined."""
    if (found := p_of(p)) is None:
        return {}
    return {"test": "permutation of terms between polarities", "p": found, "family": family}


def family_of(group: dict[str, Any], what: str) -> str:
    """Name the family of tests on `what` in groups of this kind."""
    return f"{what}, by {' and '.join(group)}" if group else f"{what}, whole study"


POINTS = "percentage points"


def estimate_all(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return every estimate, tests corrected within their families."""
    found: list[Estimate] = []
    for block in blocks(observations, options.ways):
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


def _near(computed: Computed, unit: int, name: str, options: SubtleMetricOptions) -> dict[str, Any]:
    """Return whether a difference is shown to be near 0, as facts; empty if no margin is set."""
    if computed.judged is None or options.margin is None:
        return {}
    ends = 100 * computed.judged[:, :, unit, STATISTICS.index(name)]
    return equivalence_facts(ends, Margin(options.margin, options.alpha))


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
        **merge(row, _near(computed, unit, name, options), _untested(row["value"], p)),
        **permutation(p, family_of(row["group"], name)),
    )


def _untested(value: float | None, p: float) -> dict[str, Any]:
    return {"caveats": (Caveat.UNTESTED,)} if value is not None and p_of(p) is None else {}


ASYMPTOTIC = "Kendall, asymptotic, answers"
MATCH = "follows the base rates: a model that always answers positive, whatever is given, has tau-c 1"


def taus(computed: Computed, unit: int, coding: str, options: SubtleMetricOptions) -> Iterator[Estimate]:
    """Yield tau-b and tau-c with the paper's asymptotic p."""
    table = tables(computed.block.totals[unit])[CODINGS.index(coding)]
    for name in ("tau_b", "tau_c"):
        row = _tau_row(computed, unit, (name, coding), options)
        test: dict[str, Any] = {} if row["value"] is None else {"test": ASYMPTOTIC, **_asymptotic(table)}
        family = family_of(computed.block.groups[unit], f"{name} ({coding}), asymptotic")
        yield Estimate.from_flat(metric=name, **row, **test, family=family)


def tau_permuted(computed: Computed, unit: int, p: float, options: SubtleMetricOptions) -> Iterator[Estimate]:
    """Yield tau-c with the p of permuted terms.

    Only in the coding by polarity: where the answer is coded as a match, independence does not mean a tau of 0.
    """
    if p_of(p) is not None:
        row = _tau_row(computed, unit, ("tau_c", CODINGS[0]), options)
        family = family_of(computed.block.groups[unit], "tau_c, terms permuted")
        tested = permutation(p, family)
        yield Estimate.from_flat(metric="tau_c_clustered", statistic=row["value"], **row, **tested)


def _tau_row(computed: Computed, unit: int, name: tuple[str, str], options: SubtleMetricOptions) -> dict[str, Any]:
    row = row_of(computed, unit, name, 1, options)
    group = row["group"] | {"coding": name[1]}
    if row["value"] is None:
        return row | {"group": group}
    effect = {"effect": row["value"], "effect_name": name[0].replace("_", "-")}
    ends = {"effect_low": row["low"], "effect_high": row["high"]}
    match = name[1] != CODINGS[0]
    note = "; ".join(filter(None, [row["note"], MATCH if match else ""]))
    return row | effect | ends | {"group": group, "neutral": None if match else 0.0, "note": note}


def _asymptotic(table: Array) -> dict[str, Any]:
    """Return tau-b and its p, as if all answers were independent."""
    return {"statistic": defined(float(tau_b(table))), "p": p_of(kendall_p(table))}


__all__ = ["Subtle", "SubtleMetricOptions"]


class Subtle(Metric):
    """PL, NL, NuL; PPL to NNuL; their differences; Kendall's tau; places of options; what could not be read."""

    options: ClassVar[type[Options]] = SubtleMetricOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = NEEDS

    def columns(self, options: SubtleMetricOptions) -> frozenset[str]:
        """Return the columns of every study, and the clusters'."""
        return self.needs | set(options.ways)

    def compute(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
        """Return the estimates: for the whole study, by pronoun, by domain, and by both.

        `observations` has a row per answer with `domain`, `pronoun`, `given` (`positive`, `negative`) and `chosen`
        (`positive`, `negative`, `neutral`; null where it could not be read).

        Raises:
            DataError: a column is absent, or a polarity has an unknown name.
        """
        return [] if observations.is_empty() else estimate_all(readable(observations), options)

    def units(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> pl.DataFrame | None:
        """Return the answers behind the differences, whole and by domain."""
        return units(readable(observations), options)

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State whether the given polarity changes the chosen one."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the differences by domain, and tau-c of the whole study."""
        return headline(estimates)

    def methods(self, options: SubtleMetricOptions) -> str:
        """Describe how the estimates were computed."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the differences by domain (the paper's Figure 3), and by pronoun."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Example]:
        """Pick per domain and given polarity answers that follow the polarity of what was given."""
        return examples_of(readable(observations), options)
