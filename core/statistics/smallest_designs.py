"""From the planned units of a study and the assumptions about them to designs whose power can be computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np
import polars as pl

from ..contracts import FACET, facet_columns, last_facet
from ..contracts.errors import DataError
from .components import HIGHEST, LARGEST_ERROR, LOWEST, MIDDLE, Crossing, Precision, error_of, forecast
from .power import AnyDesign, CrossedDesign, Design, GroupsDesign, RankDesign
from .smallest_known import Assumptions, answered, codes_of, known_crossed, known_means, known_ranks, limits_of

WILCOXON, MANN_WHITNEY, KRUSKAL_WALLIS, ANOVA = "wilcoxon", "mann-whitney", "kruskal-wallis", "anova"
NAMES = {
    WILCOXON: "Wilcoxon signed-rank",
    MANN_WHITNEY: "Mann-Whitney",
    KRUSKAL_WALLIS: "Kruskal-Wallis",
    ANOVA: "analysis of variance",
}
FEW_CLUSTERS = "fewer than two clusters"
EQUAL = "standard deviation from the pilot, whose answers are all equal"
TOO_FEW = "the pilot's answers do not tell what this larger design finds; use a larger pilot"


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a measure, as it is planned."""

    design: AnyDesign | None
    """None if no effect can be computed; `note` then gives the reason."""
    test: str
    note: str
    unit: str = ""
    """Unit of the effect, if it differs from that of the estimate."""
    ways: tuple[str, ...] = ()
    """Facets that cross, in the order of the design's."""
    flips: bool = True
    """Whether the test flips the signs of whole clusters, which needs enough clusters."""
    ends: tuple[AnyDesign, AnyDesign] | None = None
    """The same design at the ends of what a pilot lets expect; None without a pilot."""


def planned(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions) -> Iterator[Planned]:
    """Yield the tests of one measure and group; where facets cross there is a second one over the last of them alone.

    Raises:
        DataError: a test has a name that is not known.
    """
    test = units["test"][0]
    if test not in (None, *NAMES):
        raise DataError(
            f"test is {test!r}. Use null for a test of means, or one of {', '.join(map(repr, NAMES))}.",
            code="data.unknown-value",
        )
    if test in (WILCOXON, MANN_WHITNEY):
        yield _ranks(units, tried, stated, test)
    elif test in (KRUSKAL_WALLIS, ANOVA):
        yield _several(units, tried, stated, test)
    elif len(_facets(units)) > 1:
        yield from _crossed(units, tried, stated)
    else:
        yield _means(units, tried, stated)


def _means(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions) -> Planned:
    shape, known = _shape(units), known_means(units, tried, stated)
    if known.spread is None or shape.clusters < 2:
        note = FEW_CLUSTERS if shape.clusters < 2 else known.words
        return Planned(design=None, test="t of clusters", note=note)
    few = _too_few(units, tried)
    # A stated correlation is what the pilot cannot tell.
    if few and stated.icc is None:
        return Planned(design=None, test="t of clusters", note=few)
    if not few and (found := _forecasts(units, tried)):
        design, *ends = (_means_design(shape, precision) for precision in found)
        note = EQUAL if tried is not None and answered(tried)["value"].n_unique() == 1 else known.words
        return Planned(design=design, test="t of clusters", note=note, ends=(ends[0], ends[1]))
    design = Design(
        clusters=shape.clusters,
        size=shape.size,
        spread=known.spread,
        icc=known.icc,
        unevenness=shape.unevenness,
        groups=shape.groups,
    )
    return Planned(design=design, test="t of clusters", note=known.words)


def _means_design(shape: _Shape, precision: Precision) -> Design:
    """Return a design of this precision: one value per cluster, which is all that a test of clusters sees."""
    spread = math.sqrt(precision.facets[-1] * shape.clusters / shape.groups)
    return Design(clusters=shape.clusters, spread=spread, groups=shape.groups)


def _too_few(units: pl.DataFrame, tried: pl.DataFrame | None) -> str:
    """Return why a pilot forecasts nothing of these units; empty where it does, or where there is no pilot.

    A design that asks no more than the pilot did is not forecast: the pilot's answers say how much they vary.
    """
    if tried is None or (rows := answered(tried)).is_empty() or units.height <= rows.height:
        return ""
    if error_of(_crossing(rows), _crossing(units)) <= LARGEST_ERROR:
        return ""
    return TOO_FEW


def _forecasts(units: pl.DataFrame, tried: pl.DataFrame | None) -> list[Precision]:
    """Return what a pilot lets expect of these units: the value, and the ends of its range; nothing without a pilot."""
    if tried is None or (rows := answered(tried)).is_empty():
        return []
    if any(name not in rows.columns or rows[name].null_count() for name in facet_columns(units)):
        return []
    quantiles = (MIDDLE, LOWEST, HIGHEST)
    return forecast(rows["value"].to_numpy(), _crossing(rows), _crossing(units), quantiles, limits_of(units))


def _crossing(units: pl.DataFrame) -> Crossing:
    # The side that is added comes first.
    sides = codes_of(units, "sign", descending=True)
    return Crossing(sides=sides, facets=tuple(codes_of(units, facet) for facet in _facets(units)))


def _facets(units: pl.DataFrame) -> list[str]:
    """Return the columns of facets that can be generalised over, and the last one in any case."""
    *others, last = facet_columns(units) or [last_facet(units)]
    return [*(facet for facet in others if units[facet].n_unique() > 1), last]


def _ranks(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions, test: str) -> Planned:
    shape, signed = _shape(units), test == WILCOXON
    unit = "matched-pairs rank-biserial" if signed else "Cliff's delta"
    known = known_ranks(units, tried, stated, signed=signed)
    base = Planned(design=None, test=NAMES[test], note=FEW_CLUSTERS, unit=unit, flips=signed)
    if shape.clusters < 2 or shape.groups != (1 if signed else 2):
        return base
    if known.zeros == 1:
        return msgspec.structs.replace(base, note="all differences of the pilot are 0")
    design = RankDesign(
        clusters=shape.clusters,
        size=shape.size * (1 - known.zeros),
        icc=known.icc,
        unevenness=shape.unevenness,
        groups=1 if signed else 2,
    )
    return msgspec.structs.replace(base, design=design, note=known.words)


def _several(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions, test: str) -> Planned:
    sizes = units.group_by("level", last_facet(units)).len().sort("level")
    clusters = tuple(part.height for part in sizes.partition_by("level", maintain_order=True))
    base = Planned(design=None, test=NAMES[test], note="", unit="Cohen's f", flips=False)
    if len(clusters) < 2 or sum(clusters) <= len(clusters):
        return msgspec.structs.replace(base, note="fewer than two groups, or too few clusters")
    ranks = test == KRUSKAL_WALLIS
    known = known_ranks(units, tried, stated, signed=False) if ranks else known_means(units, tried, stated)
    counts = sizes["len"].to_numpy()
    mean = float(counts.mean())
    shape = {"size": mean, "unevenness": float(counts.std()) / mean, "icc": known.icc}
    words = f"{len(clusters)} groups of {_several_counts(clusters)}"
    told = ", ".join(filter(None, [words, known.words if ranks else ""]))
    return msgspec.structs.replace(base, design=GroupsDesign(clusters=clusters, ranks=ranks, **shape), note=told)


def _several_counts(clusters: tuple[int, ...]) -> str:
    low, high = min(clusters), max(clusters)
    return f"{low}" if low == high else f"{low} to {high}"


def _crossed(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions) -> Iterator[Planned]:
    known = known_crossed(units, tried, stated)
    names = tuple(facet.removeprefix(FACET) for facet in _facets(units))
    test = f"t of {' x '.join(names)}"
    table = _table(units)
    if known.spread is None or table is None or (few := _too_few(units, tried)):
        note = known.words
        if known.spread is not None:
            note = f"fewer than two of {' or '.join(names)}" if table is None else few
        yield Planned(design=None, test=test, note=note, ways=names, flips=False)
        return
    if found := _forecasts(units, tried):
        design, *ends = (_crossed_design(table, precision) for precision in found)
    else:
        design, ends = table.design(known.spread, known.shares), []
    every = Planned(design=design, test=test, note=known.words, ways=names, flips=False)
    yield msgspec.structs.replace(every, ends=(ends[0], ends[1])) if ends else every
    if (alone := design.last_alone) is not None:
        these = " and ".join(names[:-1])
        yield Planned(design=alone, test=f"t of {names[-1]}, for these values of {these} alone", note="")


class _Table(msgspec.Struct, frozen=True):
    """Size of a crossed design."""

    levels: tuple[int, ...]
    """On the smaller side, of every facet."""
    fill: float
    groups: int

    def design(self, spread: float, shares: tuple[float, ...]) -> CrossedDesign:
        """Return the design with what the answers are."""
        return CrossedDesign(levels=self.levels, shares=shares, spread=spread, fill=self.fill, groups=self.groups)


def _table(units: pl.DataFrame) -> _Table | None:
    """Return the size; None where a facet has fewer than two levels."""
    facets = _facets(units)
    sides = units.select("sign", *facets).unique().partition_by("sign")
    levels = tuple(min(side[facet].n_unique() for side in sides) for facet in facets)
    fill = min(side.height / math.prod(side[facet].n_unique() for facet in facets) for side in sides)
    return _Table(levels, fill, len(sides)) if min(levels) >= 2 else None


def _crossed_design(table: _Table, precision: Precision) -> CrossedDesign:
    """Return the even design in which facets and single answers add what this precision says."""
    by_facet = [own * count for own, count in zip(precision.facets, table.levels, strict=True)]
    total = sum(by_facet) + precision.single * math.prod(table.levels) * table.fill
    return table.design(math.sqrt(total / table.groups), tuple(own / total for own in by_facet))


class _Shape(msgspec.Struct, frozen=True):
    clusters: int
    """On the smaller side."""
    size: float
    unevenness: float
    groups: int


def _shape(units: pl.DataFrame) -> _Shape:
    """Return clusters and their sizes; two groups of clusters where the measure is a contrast."""
    sizes = units.group_by("sign", last_facet(units)).len()
    sides = [part["len"].to_numpy() for part in sizes.partition_by("sign")]
    mean = float(np.mean([side.mean() for side in sides]))
    uneven = math.sqrt(float(np.mean([side.var() for side in sides]))) / mean
    return _Shape(min(map(len, sides)), mean, uneven, len(sides))
