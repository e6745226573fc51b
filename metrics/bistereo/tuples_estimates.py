"""The estimates of BIStereo-Tuples: biased preferences by gender and dimension, and women against men."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.effects import Tested
from ...core.statistics.estimates import POINTS, correct
from ...core.statistics.intervals import Codes, paired_bounds, scaled, share, worst_case
from ...core.statistics.matched import mcnemar, sign_test
from ...core.statistics.observations import missing_by_cell as missing
from .tuples_tests import GENDERS, SCORINGS, BIStereoTuplesMetricOptions, has_likelihoods

EXACT = "exact (Clopper-Pearson), tests"
GROUPINGS = (("gender",), ("gender", "dimension"))
RAW = "no single value is neutral: B stands in the prompt, which favours the unbiased end"


def estimate_all(rows: pl.DataFrame, options: BIStereoTuplesMetricOptions) -> list[Estimate]:
    """Return every estimate, tests corrected within their families."""
    own = rows.filter(pl.col("validated"))
    scorings = SCORINGS if has_likelihoods(rows) else SCORINGS[:1]
    found: list[Estimate] = []
    for factors in GROUPINGS:
        for values, part in own.partition_by(*factors, as_dict=True, maintain_order=True).items():
            group = dict(zip(factors, values, strict=True))
            found += [_preference(part, group, scoring, options) for scoring in scorings]
            if not has_likelihoods(rows):
                found.append(_others(part, group, options))
    for scoring in scorings:
        found += _genders(rows, scoring, options)
    corrected = correct(found, options.correction, options.alpha, "groups")
    return [*corrected, *missing(rows, ("gender", "dimension"), "gender", options.level)]


def _share(part: pl.DataFrame, column: str, status: str, options: BIStereoTuplesMetricOptions) -> dict[str, Any]:
    lost = part.filter(pl.col(status) != "ok").group_by(status).len().sort(status)
    absent = dict(lost.iter_rows())
    there = part.filter(pl.col(status) == "ok")
    hits, n = int((there[column] == 100).sum()), there.height
    exact = share(hits, n, options.level)
    low, high = worst_case(hits, n, sum(absent.values()))
    return {
        "value": scaled(exact.value, 100),
        "unit": "%",
        "low": scaled(exact.low, 100),
        "high": scaled(exact.high, 100),
        "level": options.level,
        "interval": EXACT if n else "",
        "n": n,
        "clusters": there[options.cluster].n_unique(),
        "missing": absent,
        "bound_low": scaled(low, 100),
        "bound_high": scaled(high, 100),
    }


def _preference(
    part: pl.DataFrame, group: dict[str, Any], scoring: str, options: BIStereoTuplesMetricOptions
) -> Estimate:
    row = _share(part, f"biased{scoring}", f"status{scoring}", options)
    metric = f"biased_preference{scoring}"
    if not scoring:
        return Estimate.from_flat(metric=metric, group=group, note=RAW, **row)
    tested = sign_test(part["shift"].fill_null(np.nan).to_numpy(), _codes(part, options), options.plan)
    family = f"{metric}, by {' and '.join(group)}"
    return Estimate.from_flat(metric=metric, group=group, neutral=50.0, family=family, **row, **tested.row())


def _others(part: pl.DataFrame, group: dict[str, Any], options: BIStereoTuplesMetricOptions) -> Estimate:
    """Return how often a written answer is neither end."""
    return Estimate.from_flat(metric="other_answers", group=group, **_share(part, "other", "status", options))


def _codes(part: pl.DataFrame, options: BIStereoTuplesMetricOptions) -> Codes:
    codes: Codes = part[options.cluster].cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    return codes


def _genders(rows: pl.DataFrame, scoring: str, options: BIStereoTuplesMetricOptions) -> Iterator[Estimate]:
    """Yield women less men over the items asked of both: by McNemar's exact test, and by whole clusters."""
    women, men = (rows.filter(pl.col("gender") == name) for name in GENDERS)
    column, status = f"biased{scoring}", f"status{scoring}"
    other = men.select("item", pl.col(column).alias("_men"), pl.col(status).alias("_status"))
    both = women.join(other, on="item", how="inner", maintain_order="left")
    if both.is_empty():
        return
    first, second = (both[name].fill_null(np.nan).to_numpy() / 100 for name in (column, "_men"))
    exact, _ = mcnemar(first, second, _codes(both, options), options.plan)
    lost = pl.when(pl.col(status) != "ok").then(status).when(pl.col("_status") != "ok").then("_status")
    absent = dict(both.select(lost.alias("lost")).drop_nulls().group_by("lost").len().sort("lost").iter_rows())
    low, high = paired_bounds(100 * first, 100 * second, (0.0, 100.0))
    for name, tests in (("", _exact(exact)), ("_clustered", exact.row(len(exact.effects) - 1))):
        metric = f"gender_difference{scoring}{name}"
        risk = exact.effects[0]
        yield Estimate.from_flat(
            metric=metric,
            group={},
            value=scaled(risk.value, 100),
            neutral=0.0,
            unit=POINTS,
            low=scaled(risk.low, 100),
            high=scaled(risk.high, 100),
            level=options.level,
            interval=f"{options.interval} ({options.cluster})" if risk.low is not None else "",
            n=exact.n,
            clusters=exact.clusters,
            missing=absent,
            bound_low=low,
            bound_high=high,
            family=f"gender difference{name.replace('_', ', ')}",
            **tests,
        )


def _exact(tested: Tested) -> dict[str, Any]:
    row = tested.row(len(tested.effects) - 1)
    test = {"test": f"{tested.test}, tests", "statistic": tested.statistic, "p": tested.p}
    return {**row, **(test if tested.p is not None else {"test": "", "statistic": None, "p": None})}
