"""Inference over what a claim is to hold for: one facet, such as templates, or several, such as words and phrases.

One facet is resampled and permuted whole. Several have the jackknife's intervals and t tests over all at once
(`multiway.infer`), so that a claim holds for other templates and other words. A facet with one level cannot be
generalised over: the inference is then over the others alone, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..contracts import PROMPT_KEY, harmless
from ..contracts.errors import UsageError
from ..contracts.estimates import Caveat, Estimate
from ..contracts.words import listed
from .estimates import MarginOptions, TestingOptions, interval_caveats, number, tested
from .intervals import Array, Codes, Flags, Ranges
from .multiway import Cells, infer
from .resampling import METHODS, Resampling, Statistics, bootstrap


class FacetOptions(MarginOptions, frozen=True, kw_only=True):
    """The same, for a metric whose claim is to hold beyond the templates and words at hand."""

    option_effects = harmless("over")

    over: str | tuple[str, ...] = ()
    """What the claim is to hold for beyond the values at hand: one column is resampled whole, several are crossed. By
    default all that the study declares to be a sample."""
    moderated: bool = False
    """Whether the variances over several facets of the groups of a family are drawn towards what they have in common
    (empirical Bayes). It finds more with few answers a level; with few levels it finds too much."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        if len(set(self.ways)) < len(self.ways):
            raise UsageError(
                f"over is {', '.join(self.ways)}. Give one column, or several different ones.",
                code="options.value",
            )
        if len(self.ways) > 1 and self.intervals == "bca":
            raise UsageError(
                f"intervals is 'bca', which is not available over several facets ({' and '.join(self.ways)}). "
                "Leave it out, or name one facet.",
                code="options.conflict",
            )
        if self.moderated and len(self.ways) == 1:
            raise UsageError(
                f"moderated is true, which needs several facets, and over is {self.ways[0]}. Leave one of the two out.",
                code="options.conflict",
            )

    @property
    def ways(self) -> tuple[str, ...]:
        """Return the facets, as columns."""
        return (self.over,) if isinstance(self.over, str) else self.over


OVER = "over"
"""Fact of an estimate: the facets its interval and test generalise over, such as `template x attribute`."""
FIXED = "fixed"
"""Fact of an estimate: the fixed levels that it averages over, as a clause such as `in these four forms`."""
FEW_LEVELS = 6
"""Below so many levels of a facet, estimates have a caveat."""


class Inference(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals and tests of some units; arrays (units, statistics)."""

    ways: tuple[str, ...]
    plan: Resampling
    low: Array
    high: Array
    p: Array
    """NaN where nothing is tested."""
    t: Array | None = None
    """Distance from neutral in standard errors, of several ways."""
    test: str = ""
    """Name of the permutation test, where there is one."""
    permuted: Flags
    """Shape (units, statistics): whether p is that of the permutation test."""
    levels: Codes
    """Shape (units, ways): levels on the side that has the fewest."""
    clusters: Codes
    """Shape (units, ways): levels on all sides together."""
    moderated: Flags | None = None
    """Shape (units,): whether the variance was drawn towards those of other units; None: no."""

    @property
    def family(self) -> str:
        """Return what tests a family of hypotheses, for its name."""
        return "cluster permutation" if len(self.ways) == 1 else "crossed t test"

    def over(self, unit: int) -> tuple[str, ...]:
        """Return the facets that the unit's inference generalises over."""
        if len(self.ways) == 1:
            return self.ways
        return tuple(way for way, count in zip(self.ways, self.levels[unit], strict=True) if count > 1)

    def method(self, unit: int) -> str:
        """Return the name of the unit's interval."""
        if len(self.ways) == 1:
            return f"{METHODS[self.plan.method]} ({self.ways[0]})"
        over = self.over(unit)
        drawn = ", moderated" if self.moderated is not None and self.moderated[unit] else ""
        return f"{'crossed' if len(over) > 1 else 'cluster'} jackknife ({' x '.join(over)}){drawn}"

    def counted(self, unit: int) -> int:
        """Return the count of clusters: of crossed facets that of the one with fewer."""
        return min((int(self.clusters[unit, self.ways.index(way)]) for way in self.over(unit)), default=1)

    def caveats(self, unit: int) -> tuple[Caveat, ...]:
        """Return what to know of an interval over so many clusters, or levels of crossed facets."""
        levels = [int(count) for count in self.levels[unit] if count > 1]
        if len(self.ways) == 1 or not levels:
            return interval_caveats(self.counted(unit), 0.0)
        few = (Caveat.FEW_LEVELS,) if min(levels) < FEW_LEVELS else interval_caveats(self.counted(unit), 0.0)
        return (*few, *((Caveat.ONE_LEVEL,) if len(levels) == 1 else ()))

    def tested(self, unit: int, column: int, options: TestingOptions) -> dict[str, Any]:
        """Return the test of a statistic and what it generalises over; nothing where it is undefined."""
        if (p := number(self.p[unit, column])) is None:
            return {}
        over = self.over(unit)
        facts = {OVER: " x ".join(over)}
        if not self.permuted[unit, column]:
            return {"test": f"t test, {self.method(unit)}", "p": p, "facts": facts}
        found = tested(f"{self.test} ({' and '.join(over)})", p, self.counted(unit), options)
        return found | {"facts": facts | found.get("facts", {})}


class Permutation(NamedTuple):
    """A test that permutes whole clusters of one way."""

    name: str
    p: Callable[[Array], Array]
    """From sums (clusters, units, sides, columns) to p (units, places)."""
    places: Sequence[int]
    """The statistics that it tests."""
    flips: bool = True
    """Whether it flips signs; else it exchanges two sides."""


def infer_over(
    ways: Sequence[str],
    cells: Cells,
    statistics: Statistics,
    ranges: Ranges,
    plan: Resampling,
    neutral: float = 0.0,
    permutation: Permutation | None = None,
) -> Inference:
    """Return intervals over one or several ways of clustering, and the tests of several.

    Args:
        ways: names of the columns.
        cells: sums by the levels of every way; of one way a cell each.
        statistics: from totals (..., units, sides, columns) to statistics (..., units, statistics).
        ranges: what each statistic can be.
        plan: how to resample one way; of several ways its level counts.
        neutral: what the tests of several ways compare statistics with.
        permutation: the test of one way. Of several ways it stands in where all levels of each agree, and no variance
            can be estimated: p is then the largest of those of any way.
    """
    levels, clusters = cells.levels
    if len(ways) == 1:
        low, high = bootstrap(cells.by_facet[0], statistics, plan, ranges)
        p, t, agree = np.full(low.shape, np.nan), None, np.ones(low.shape, dtype=np.bool_)
    else:
        low, high, t, p, agree = msgspec.structs.astuple(infer(cells, statistics, plan.level, ranges, neutral))
    permuted = np.zeros(p.shape, dtype=np.bool_)
    if permutation is not None:
        alone = np.flatnonzero(agree[:, permutation.places].any(axis=1))
        by_way = np.full((len(ways), *p.shape), np.nan)
        for way in range(len(ways)):
            units = alone if len(ways) == 1 else alone[levels[alone, way] > 1]
            if units.size:
                place = np.ix_(units, np.asarray(permutation.places))
                by_way[way][place] = permutation.p(cells.of(units).by_facet[way])
        permuted = agree & ~np.isnan(by_way).all(axis=0)
        p = np.where(permuted, np.fmax.reduce(by_way), p)
        if permutation.flips and len(ways) > 1:
            p[alone] = np.where(permuted[alone], np.fmax(p[alone], _least_p(cells.of(alone))[:, None]), p[alone])
    return Inference(
        ways=tuple(ways),
        plan=plan,
        low=low,
        high=high,
        p=p,
        t=t,
        test="" if permutation is None else permutation.name,
        permuted=permuted,
        levels=levels,
        clusters=clusters,
    )


def without(ways: Sequence[str], cells: Cells, statistics: Statistics, plan: Resampling) -> Inference:
    """Return how many clusters there are, with neither interval nor test; arguments as of `infer_over`."""
    none = np.full(statistics(cells.totals).shape, np.nan)
    levels, clusters = cells.levels
    return Inference(
        ways=tuple(ways),
        plan=plan,
        low=none,
        high=none,
        p=none,
        permuted=np.zeros(none.shape, dtype=np.bool_),
        levels=levels,
        clusters=clusters,
    )


def _least_p(cells: Cells) -> Array:
    """Return the chance (units,) that all cells agree in sign under the hypothesis.

    Cells that share no level are independent of each other; of so many all agree with 2^(1 - number). Of two ways the
    number is the largest there is; of more it is a count of some such cells, so that the chance is not understated.
    """
    asked = cells.sums[..., 0].sum(axis=2) > 0
    count = _matched if cells.facets == 2 else _apart
    disjoint = np.array([count(cells.codes[asked[:, unit]]) for unit in range(asked.shape[1])], dtype=np.float64)
    return 2.0 ** np.minimum(1 - disjoint, 0.0)


def _matched(codes: Codes) -> int:
    from scipy.sparse import csr_array  # scipy.sparse takes a while to import, and is rarely needed
    from scipy.sparse.csgraph import maximum_bipartite_matching

    table = csr_array((np.ones(len(codes), dtype=np.bool_), (codes[:, 0], codes[:, 1])))
    return int((maximum_bipartite_matching(table) >= 0).sum())


def _apart(codes: Codes) -> int:
    """Count cells no two of which share a level; those whose levels are the rarest are taken first."""
    frequency = np.stack([np.bincount(way)[way] for way in codes.T], axis=-1).max(axis=1)
    taken: list[set[int]] = [set() for _ in codes.T]
    count = 0
    for row in codes[np.argsort(frequency, kind="stable")].tolist():
        if all(level not in seen for level, seen in zip(row, taken, strict=True)):
            count += 1
            for level, seen in zip(row, taken, strict=True):
                seen.add(level)
    return count


WORDS = {
    **dict.fromkeys(("attribute", "meaning", "term", "word"), "words"),
    **dict.fromkeys(("disadvantaged", "people"), "groups"),
    **dict.fromkeys(("positive", "negative", "neutral"), "options"),
    PROMPT_KEY: "prompts",
}
"""What the levels of a facet are called; else the facet's own name."""


def population(estimates: Sequence[Estimate]) -> str:
    """Return what the tests of these estimates generalise over, and what they hold for alone, in words.

    Either is left out where the estimates differ in it.
    """
    over = {str(estimate.facts.get(OVER, "")) for estimate in estimates}
    facets = over.pop().split(" x ") if len(over) == 1 else []
    words = sorted({WORDS.get(facet, f"{facet.replace('_', ' ')}s") for facet in facets if facet != "template"} - {"s"})
    if "template" in facets:
        whom = f"for {listed(words)} like these in sentences like these" if words else TEMPLATES_ALONE
    else:
        whom = f"for {listed(words)} like these{ALONE if words == ['words'] else ''}" if words else ""
    fixed = {str(estimate.facts.get(FIXED, "")) for estimate in estimates}
    return ", ".join(filter(None, [whom, *(fixed if len(fixed) == 1 and whom else ())]))


TEMPLATES_ALONE = "for these words only, in sentences like these"
ALONE = ", in these sentences only"
