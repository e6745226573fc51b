"""The attractiveness study in words: conclusion, headline, methods, examples; and the units of its gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ...core.contracts import HEADLINE
from ...core.contracts.estimates import MISSING, Estimate, Example
from ...core.statistics.templates import rendered
from .filter import FILTER, GAP
from .options import AttractivenessMetricOptions
from .scores import Scores
from .shares import HALO, HALO_SHARE, JUDGED, PAPER, ROBUST, SHARE, STRONGER, STRONGEST


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the halo, and the shares of scenarios in all and by category.

    For a model that never answers: the missing answers, and the halo and the gaps, which have only bounds.
    """
    if not any(e.value is not None for e in estimates if e.metric == SHARE):
        lost = [e for e in estimates if e.metric in ("missing", "unreadable")]
        return [*lost, *(e for e in estimates if e.metric == HALO), *_plain_gaps(estimates)][:HEADLINE]
    chosen = [e for e in estimates if e.metric in (HALO, HALO_SHARE)]
    chosen += [e for e in estimates if e.metric == SHARE and "kind" not in e.group and e.group["by"] == FILTER]
    chosen += [e for e in estimates if e.metric == SHARE and set(e.group) == {"by", JUDGED} and e.group["by"] != FILTER]
    return chosen + [e for e in estimates if e.metric in (STRONGER, STRONGEST) and e.group.get(JUDGED) != "H"][:9]


def conclude(estimates: Sequence[Estimate]) -> str:
    """State in how many scenarios the filter changes the judgement, and whether there is a halo."""
    shares = {str(e.group[JUDGED]): e for e in estimates if e.metric == SHARE and _plain(e)}
    robust, halo = shares.get(ROBUST), next((e for e in estimates if e.metric == HALO), None)
    missing = next((e for e in estimates if e.metric == MISSING and not e.group), None)
    tested = robust is not None and robust.value is not None
    return rendered(
        str(__package__),
        "conclusion.md.j2",
        robust=robust if tested else None,
        paper=shares.get(PAPER),
        halo=halo if tested and halo is not None and halo.value is not None else None,
        undone=halo is not None and _undone(halo),
        missing=missing if missing is not None and missing.value else None,
        gaps=None if tested else _bounds(estimates),
    )


def _undone(halo: Estimate) -> bool:
    low, high = halo.bound_low, halo.bound_high
    possible = low is not None and high is not None and low <= 0 <= high
    return halo.shown and possible and halo.missing.total > 0


def _plain_gaps(estimates: Sequence[Estimate]) -> list[Estimate]:
    return [e for e in estimates if e.metric == GAP and set(e.group) == {"scenario"}]


def _bounds(estimates: Sequence[Estimate]) -> tuple[float, float] | None:
    """Return the range of possible gaps over all values of the missing answers."""
    ends = [(e.bound_low, e.bound_high) for e in _plain_gaps(estimates)]
    lows, highs = ([x for x in side if x is not None] for side in zip(*ends, strict=True)) if ends else ([], [])
    return (min(lows), max(highs)) if lows and highs else None


def _plain(estimate: Estimate) -> bool:
    return set(estimate.group) == {"by", JUDGED} and estimate.group["by"] == FILTER


def methods(options: AttractivenessMetricOptions) -> str:
    """Describe how the estimates were computed."""
    return rendered(str(__package__), "methods.md.j2", options=options)


def examples_of(observations: pl.DataFrame, scores: Scores, options: AttractivenessMetricOptions) -> list[Example]:
    """Pick the scenarios with the widest gaps, and in each the face that changes most: all its exchanges."""
    change = scores.change
    counts = (~np.isnan(change)).sum(axis=1)
    gaps = np.where(counts > 0, np.nansum(change, axis=1) / np.maximum(counts, 1), 0.0)
    found = []
    for number in np.argsort(-np.abs(gaps), kind="stable")[: options.examples]:
        own = np.nan_to_num(change[number]) * np.sign(gaps[number])
        face = int(np.argmax(own))
        if own[face] <= 0:
            continue
        scenario = scores.scenarios[number].id
        rows = observations.filter((pl.col("scenario") == scenario) & (pl.col("face") == scores.faces[face]))
        rows = rows.filter(pl.col("key").is_not_null()).unique(["variant"], keep="first", maintain_order=True)
        found.append(
            Example(
                title=f"{scenario}: the face whose answers the filter changes most",
                group={"scenario": scenario},
                keys=tuple(rows["key"]),
                value=float(change[number, face]),
                caption=f"Face {scores.faces[face]}: one answer to each image, of {rows.height} shown.",
            )
        )
    return found


def units(scores: Scores) -> pl.DataFrame:
    """Return the change of each face in each scenario, whose means are the gaps."""
    change = scores.change
    shape = change.shape
    lost = scores.lost.max(axis=2).ravel()
    status = ["ok" if code < 0 else scores.statuses[code] for code in lost]
    values = pl.Series("value", change.ravel()).fill_nan(None)
    faces = list(scores.faces) * shape[0]
    return pl.DataFrame(
        {
            "metric": pl.repeat(GAP, change.size, eager=True),
            "scenario": [s.id for s in scores.scenarios for _ in range(shape[1])],
            "unit": faces,
            "cluster": faces,
            "sign": pl.repeat(1, change.size, dtype=pl.Int8, eager=True),
            "value": values,
            "least": pl.repeat(-1.0, change.size, eager=True),
            "greatest": pl.repeat(1.0, change.size, eager=True),
            "status": status,
        }
    )
