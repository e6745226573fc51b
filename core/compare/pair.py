"""Pair the units of two runs, and check that their means equal the estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ..catalogue.plugins import blamed
from ..catalogue.study import Catalogue
from ..contracts import UNIT_COLUMNS, facet_columns, factors_of
from ..contracts.errors import PluginError
from ..contracts.estimates import Estimate, Key
from ..scoring.score import Scores

ABSENT = "absent"
"""Status of a unit that occurs in one run only."""
RESERVED = ("run", "against", "family", "first", "second", "first_status", "second_status")
"""Columns of paired units: no factor may have one of these names."""
CLOSE = 1e-9


class Units(NamedTuple):
    """The units of one metric in one run."""

    frame: pl.DataFrame
    factors: tuple[str, ...]


def units_of(catalogue: Catalogue, scores: Scores, name: str) -> Units | None:
    """Return the units whose means are the estimates of the metric `name`, checked; None if it states none.

    Raises:
        PluginError: a column is absent, or a mean of units is not the estimate.
    """
    metric, options = catalogue.instrument(scores.made, scores.manifest.design).metrics[name]
    owner = catalogue.plugins.offers["metric"][name].plugin
    with blamed(owner, f"units of metric {name!r}"):
        frame = metric.units(scores.seen_by(metric), options)
    return None if frame is None or frame.is_empty() else checked_units(name, frame, scores.estimates[name], owner)


def checked_units(name: str, frame: pl.DataFrame, estimates: Sequence[Estimate], owner: str) -> Units:
    """Return the units that the metric `name` of the plugin `owner` gives, if its estimates are their means.

    Raises:
        PluginError: a column is absent, or a mean of units is not the estimate.
    """
    if lacking := [column for column in UNIT_COLUMNS if column not in frame.columns]:
        raise PluginError(
            owner, f"the units of metric {name!r} have no column {', '.join(lacking)}.", code="plugin.units"
        )
    units = Units(frame, tuple(factors_of(frame)))
    if taken := [name for name in units.factors if name in RESERVED]:
        raise PluginError(
            owner,
            f"a factor of metric {name!r} is called {taken[0]!r}, which comparisons need. Rename it.",
            code="plugin.units",
        )
    _ensure_means(units, estimates, owner)
    return units


def key_of(metric: str, group: Mapping[str, Any]) -> Key:
    """Return what names an estimate in every run."""
    return metric, tuple(sorted((name, level) for name, level in group.items() if level is not None))


def parts_of(units: pl.DataFrame | None) -> Iterator[tuple[Key, pl.DataFrame]]:
    """Yield the rows of every estimate that is a mean, with the key of the estimate."""
    if units is None or units.is_empty():
        return
    factors = factors_of(units)
    for levels, part in units.partition_by("metric", *factors, as_dict=True, maintain_order=True).items():
        yield key_of(str(levels[0]), dict(zip(factors, levels[1:], strict=True))), part


def groups_in(units: Units) -> set[Key]:
    """Return the keys of the estimates that the units stand for."""
    rows = units.frame.select("metric", *units.factors).unique().to_dicts()
    return {key_of(row.pop("metric"), row) for row in rows}


def widest(units: Units) -> dict[Key, float]:
    """Return how far two runs can be apart in each estimate whose units have limits, by the estimate's key.

    An estimate is a mean of its units, less that of the units of the other sign, so it moves between their limits.
    """
    by = ["metric", *units.factors]
    width = (pl.col("greatest").max() - pl.col("least").min()).cast(pl.Float64)
    sides = units.frame.group_by(*by, "sign").agg(width.alias("width"))
    found: dict[Key, float] = {}
    for row in sides.group_by(*by).agg(pl.col("width").sum(), known=pl.col("width").is_not_null().all()).to_dicts():
        total, known = row.pop("width"), row.pop("known")
        if known:
            found[key_of(row.pop("metric"), row)] = total
    return found


def pair(first: Units, second: Units, *, shared_only: bool) -> pl.DataFrame:
    """Join two runs' units: `first`, `second` and their statuses.

    A unit of one run only is `absent` in the other; with `shared_only` it is left out.
    """
    keys = ["metric", *first.factors, "unit"]
    facets = [name for name in facet_columns(first.frame) if name in second.frame.columns]
    fixed = ["sign", "least", "greatest", *facets]
    own = [*keys, *fixed, "value", "status"]
    left = first.frame.select(own).rename({"value": "first", "status": "first_status"})
    there = {"value": "second", "status": "second_status"} | {name: f"_{name}" for name in fixed}
    right = second.frame.select(own).rename(there)
    how: Any = "inner" if shared_only else "full"
    joined = left.join(right, on=keys, how=how, nulls_equal=True, coalesce=True, maintain_order="left_right")
    return joined.with_columns(
        *(pl.coalesce(name, f"_{name}").alias(name) for name in fixed),
        pl.col("first_status", "second_status").fill_null(ABSENT),
    ).select(*keys, *fixed, "first", "second", "first_status", "second_status")


def families(estimates: Sequence[Estimate]) -> dict[Key, str]:
    """Return, for each estimate, the family of hypotheses in which its difference is corrected.

    The metric's own families, measure by measure: what it tests together is compared together.
    """
    members: dict[tuple[str, str], list[Estimate]] = {}
    for e in estimates:
        members.setdefault((e.metric, e.test.family), []).append(e)
    return {key_of(e.metric, e.group): _family(e.metric, part) for part in members.values() for e in part}


def _family(metric: str, members: Sequence[Estimate]) -> str:
    levels: dict[str, set[Any]] = {}
    for e in members:
        for name, level in e.group.items():
            levels.setdefault(name, set()).add(level)
    fixed = [f"{name} {next(iter(found))}" for name, found in levels.items() if len(found) == 1]
    free = [name for name, found in levels.items() if len(found) > 1]
    return " ".join(filter(None, [f"difference in {metric}", f"by {', '.join(free)}" if free else "", *fixed]))


def _ensure_means(units: Units, estimates: Sequence[Estimate], owner: str) -> None:
    """Refuse units whose means are not the estimates."""
    values = {key_of(e.metric, e.group): e.value for e in estimates}
    for key, mean in _means(units).items():
        if key not in values:
            raise PluginError(
                owner, f"there are units of {key[0]} {dict(key[1])}, but no such estimate.", code="plugin.units"
            )
        value = values[key]
        both = value is not None and mean is not None
        if not (math.isclose(value, mean, rel_tol=CLOSE, abs_tol=CLOSE) if both else value is mean):  # type: ignore[arg-type]
            raise PluginError(
                owner,
                f"the units of {key[0]} {dict(key[1])} give {mean}, but its estimate is {value}.",
                code="plugin.units",
            )


def _means(units: Units) -> dict[Key, float | None]:
    by = ["metric", *units.factors]
    means = units.frame.group_by(*by, "sign").agg(pl.col("value").filter(pl.col("status") == "ok").mean())
    found: dict[Key, float | None] = {}
    for row in means.to_dicts():
        sign, mean = row.pop("sign"), row.pop("value")
        key = key_of(row.pop("metric"), row)
        before = found.get(key, 0.0)
        found[key] = None if mean is None or before is None else before + sign * mean
    return found
