"""Assumptions about future answers: from a pilot, from their limits, or as stated."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ..contracts import FACET, facet_columns, last_facet
from ..contracts.words import percent
from .intervals import Array, Codes, stats
from .power import CrossedPilot, Pilot, crossed_pilot, pilot

SIDE = ("sign", "level")
"""Factors that distinguish the sides of a contrast; each side has its own mean."""
NOT_KNOWN = "not known, taken as 0: the effect may be larger"
UNSTATED = "not known without --spread or --pilot: the measure has no limits"


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    """Stated assumptions, used if a pilot does not give the value."""

    spread: float | None = None
    icc: float | None = None
    row_icc: float | None = None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Spread and correlations of units, with their source in words."""

    words: str
    """Reason for a missing spread."""
    spread: float | None = None
    icc: float = 0.0
    shares: tuple[float, ...] = ()
    """Of the variance, by facet, where several cross."""
    zeros: float = 0.0
    """Share of the units that are 0, which signed ranks leave out."""


def known_means(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions) -> Known:
    """Return spread and correlation of units in one kind of cluster."""
    found = Pilot(None, None, 0, 0) if tried is None else pilot(*_centred(tried))
    spread, words = _spread(units, found.spread, _fault(tried), stated)
    icc, told = _correlation(units, found.icc, stated.icc)
    return Known(spread=spread, icc=icc, words=words if spread is None else ", ".join(filter(None, [words, told])))


def known_ranks(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions, *, signed: bool) -> Known:
    """Return the correlation of ranks; of signed ranks also the share of zeros."""
    found, zeros = Pilot(None, None, 0, 0), 0.0
    if tried is not None:
        values, codes = _signed(tried) if signed else _centred(_ranked(tried))
        zeros = float(np.mean(values == 0)) if signed and len(values) else 0.0
        found = pilot(values[values != 0], codes[values != 0]) if signed else pilot(values, codes)
    icc, told = _correlation(units, found.icc, stated.icc, "of ranks within clusters")
    left_out = f"{percent(zeros, 0)} of the pilot's differences are 0 and left out" if zeros else ""
    return Known(icc=icc, zeros=zeros, words=", ".join(filter(None, [told, left_out])))


def known_crossed(units: pl.DataFrame, tried: pl.DataFrame | None, stated: Assumptions) -> Known:
    """Return the spread of crossed units, and the share of each facet in its variance."""
    facets = facet_columns(units)
    found = CrossedPilot(None, None) if tried is None else _crossed(tried, facets)
    spread, words = _spread(units, found.spread, _fault(tried), stated)
    if spread is None:
        return Known(words=words)
    # Stated are the share of the last facet, and that of the others together.
    told = found.shares is not None
    others = None if stated.row_icc is None else stated.row_icc / (len(facets) - 1)
    shares: Sequence[float | None] = found.shares or (*[others] * (len(facets) - 1), stated.icc)
    by = ", ".join(
        f"by {facet.removeprefix(FACET)} {share or 0:.2f} ({_source(told, share)})"
        for facet, share in zip(facets, shares, strict=True)
    )
    words = f"{words}, share of its variance {by}"
    return Known(spread=spread, shares=tuple(share or 0.0 for share in shares), words=words)


def _spread(units: pl.DataFrame, tried: float | None, fault: str, stated: Assumptions) -> tuple[float | None, str]:
    """Return the spread and its source, or the reason why there is none; `fault` is the reason of the pilot."""
    if tried:
        return tried, "standard deviation from the pilot"
    if (limits := limits_of(units)) is not None:
        limit = (limits[1] - limits[0]) / 2
        return limit, f"maximum standard deviation, because {fault}" if fault else "maximum standard deviation"
    if stated.spread is not None:
        return stated.spread, "standard deviation as stated"
    return None, f"{fault}, and the measure has no limits" if fault else UNSTATED


def limits_of(units: pl.DataFrame) -> tuple[float, float] | None:
    """Return the least and the greatest value of an answer; None where it has no limits."""
    least, greatest = units.select(pl.col("least").first(), pl.col("greatest").first()).row(0)
    return None if least is None or greatest is None else (float(least), float(greatest))


def _fault(tried: pl.DataFrame | None) -> str:
    """Return the reason why a pilot gives no spread; empty without a pilot."""
    if tried is None:
        return ""
    alike = answered(tried).height > 1
    return "the pilot's answers are all equal" if alike else "the pilot has fewer than two readable answers"


def _correlation(
    units: pl.DataFrame, tried: float | None, stated: float | None, what: str = "within clusters"
) -> tuple[float, str]:
    if (facet := last_facet(units)) == "unit" or units[facet].n_unique() == units.height:
        # With one unit per cluster, the correlation within clusters has no effect.
        return 0.0, ""
    icc = stated if tried is None else tried
    return icc or 0.0, f"correlation {what} {icc or 0:.2f} ({_source(tried is not None, icc)})"


def _source(tried: bool, share: float | None) -> str:
    return "the pilot" if tried else "stated" if share is not None else NOT_KNOWN


def answered(tried: pl.DataFrame) -> pl.DataFrame:
    """Return the units of a pilot that have a value."""
    there = (pl.col("status") == "ok") & pl.col("value").is_not_null()
    return tried.filter(there).with_columns(pl.col("value").cast(pl.Float64))


def _centred(tried: pl.DataFrame) -> tuple[Array, Codes]:
    """Return the values minus the mean of their side, and the clusters.

    A cluster with both sides counts as two: the common part of its sides cancels, and this choice is conservative.
    """
    rows = answered(tried).with_columns(pl.col("value") - pl.col("value").mean().over(*SIDE))
    return rows["value"].to_numpy(), codes_of(rows, last_facet(rows), *SIDE)


def _ranked(tried: pl.DataFrame) -> pl.DataFrame:
    rank = pl.col("value").rank().over(*SIDE) / pl.len().over(*SIDE)
    return answered(tried).with_columns(value=rank)


def _signed(tried: pl.DataFrame) -> tuple[Array, Codes]:
    """Return signed ranks of the differences other than 0, and the clusters."""
    rows = answered(tried)
    values = rows["value"].to_numpy()
    ranks: Array = np.zeros(len(values))
    moved = values != 0
    ranks[moved] = stats.rankdata(np.abs(values[moved])) * np.sign(values[moved])
    return ranks, codes_of(rows, last_facet(rows))


def _crossed(tried: pl.DataFrame, facets: Sequence[str]) -> CrossedPilot:
    rows = answered(tried)
    return crossed_pilot(rows["value"].to_numpy(), [codes_of(rows, facet) for facet in facets], codes_of(rows, "sign"))


def codes_of(rows: pl.DataFrame, *names: str, descending: bool = False) -> Codes:
    """Return the number of each row's level among those of some columns."""
    return (
        rows.select(pl.struct(*names).rank("dense", descending=descending) - 1).to_series().to_numpy().astype(np.int64)
    )
