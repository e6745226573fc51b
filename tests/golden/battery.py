"""The battery of the house of statistics: every recipe, test and interval on data of textbooks.

Each has its paths: independent rows, few clusters whose arrangements are all tried, more that are drawn, two crossed
ways, and one level. What is computed stands in `battery.json` by the name that an estimate gives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from prejudge import statistics
from prejudge.core.catalogue.golden import digest_of, numbers_of, rounded
from prejudge.core.contracts.estimates import Estimate
from prejudge.core.statistics import components, intervals, matched, power, power_designs, ranks
from prejudge.core.statistics.clusters import spread, ways_of
from prejudge.core.statistics.estimates import MarginOptions
from prejudge.core.statistics.observations import missing_by_cell, unreadable_by

from .datasets import HAIR, MAIZE, SLEEP, SURVIVORS, WOMEN, pairs, sprays

FILE = Path(__file__).parent / "battery.json"
DIGESTS = Path(__file__).parents[2] / "core" / "statistics" / "battery.json"
"""What the package has of it."""
RESAMPLES = 199
"""Six clusters have 64 arrangements of signs, all of which are tried; twelve have more than are drawn."""
Battery = dict[str, list[list[Any]]]
FEW, MANY = "spray", "place"
CLUSTERS: dict[str, tuple[str, ...]] = {"independent": (), "few": (FEW,), "many": (MANY,), "crossed": (FEW, MANY)}
LEVELS = tuple("ABCDEF")

MEASURES = (
    statistics.Mean("mean", value="count", neutral=8.0, limits=(0.0, 30.0)),
    statistics.Mean("mean_of_signs", value=pl.col("count") - 9, neutral=0.0, size="matched-pairs rank-biserial"),
    statistics.Share("share", hit="many", neutral=50.0, margin=5.0),
    statistics.Share("share_g", hit="many", neutral=50.0, size="Cohen's g"),
    statistics.Share("share_of_decided", hit="many", tie="between", neutral=50.0),
    statistics.Share("share_alone", hit="many", neutral=50.0, independent=True),
    statistics.Ratio("ratio", above=pl.col("count") / 30, below=pl.lit(1.0), neutral=0.3, limits=(0.0, 0.6)),
    statistics.Difference("difference", value="count", first="first"),
    *(
        statistics.Difference(f"difference {size}", value="many", first="first", size=size, scale=100.0)
        for size in ("Cohen's h", "odds ratio", "risk difference")
    ),
    statistics.Ranks("ranks", value="count", first="first"),
    statistics.Groups("groups", value="count", of="half", levels=("even", "odd")),
    statistics.KruskalWallis(
        "kruskal", value="count", of="half", levels=("even", "odd"), test=statistics.kruskal_test("Kruskal-Wallis")
    ),
    statistics.Correlation("correlation", x="count", y=pl.col("place").cast(pl.Float64)),
    statistics.Mean("jackknifed", value="count", neutral=8.0, intervals="jackknife"),
    statistics.Derived("derived", of=("mean", "ratio"), by=lambda mean, share: mean - 25 * share, neutral=0.0),
)
PAIRED = (
    statistics.Matched("matched", first="one", second="two"),
    statistics.Matched(
        "risk",
        first=pl.col("one") > 18,
        second=pl.col("two") > 18,
        size="matched risk difference",
        test=statistics.MCNEMAR,
    ),
    statistics.Matched("odds", first=pl.col("one") > 18, second=pl.col("two") > 18, size="matched odds ratio"),
)


def battery() -> Battery:
    """Return what every recipe, test and function gives, by its name."""
    computed: Battery = {}
    for case, estimates in _declared():
        for estimate in estimates:
            for name, numbers in _parts(estimate):
                computed.setdefault(name, []).append([case, estimate.metric, estimate.group, numbers])
    for name, case, value in _functions():
        computed.setdefault(name, []).append([case, "", {}, _plain(value)])
    return {name: sorted(rows, key=json.dumps) for name, rows in sorted(computed.items())}


def _parts(estimate: Estimate) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of an estimate's interval, test and effect size, each with its numbers."""
    row, numbers = estimate.flat(), numbers_of(msgspec.to_builtins(estimate.flat()))
    base = {name: numbers[name] for name in ("value", "n", "missing")}
    fields = {
        "interval": ("low", "high", "bound_low", "bound_high"),
        "test": ("statistic", "p", "p_adjusted"),
        "effect_name": ("effect", "effect_low", "effect_high"),
    }
    for field, names in fields.items():
        if row[field]:
            yield name_of(row[field]), base | {name: rounded(row[name]) for name in names} | {"shown": numbers["shown"]}


def name_of(name: str) -> str:
    """Return a name without its details and without what it calls the rows."""
    return name.partition(" (")[0].removesuffix(", answers").removesuffix(", decided answers")


def _declared() -> Iterator[tuple[str, list[Estimate]]]:
    """Yield the estimates of declared metrics on every path."""
    plain, one = sprays(), sprays().filter(pl.col("spray") == "A")
    for (path, ways), method in product(CLUSTERS.items(), ("percentile", "bca", "jackknife")):
        if len(ways) < 2 or method != "bca":
            yield f"{path}, {method}", _computed(plain, ways, intervals=method)
    for correction in ("by", "holm"):
        yield f"many, {correction}", _computed(plain, (MANY,), correction=correction)
    yield "one level", _computed(one, (FEW,))
    yield "one level of two", _computed(one, (FEW, MANY))
    yield "two sprays", _computed(plain.filter(pl.col("spray").is_in(["A", "C"])), (FEW,))
    yield "macro", _computed(plain, (), macro=FEW)
    for (path, data), of in product((("maize", MAIZE), ("sleep", SLEEP)), (1, 3)):
        yield f"{path}, blocks of {of}", _computed(pairs(data, of), ("block",), PAIRED, ((),))
    yield "all the same", _computed(plain.with_columns(pl.lit(9.0).alias("count")), (MANY,))
    yield "missing", missing_by_cell(plain, ["spray"], "spray", 0.95)
    kinds = plain.with_columns(pl.col("status").replace("refused", "unreadable"))
    yield "unreadable", unreadable_by(kinds.with_columns(reason=pl.lit("no label")), "spray", 0.95)


def _computed(
    frame: pl.DataFrame,
    clusters: tuple[str, ...],
    measures: tuple[Any, ...] = MEASURES,
    groups: tuple[tuple[str, ...], ...] = ((), ("half",)),
    macro: str = "",
    **options: Any,
) -> list[Estimate]:
    if len(clusters) > 1:  # H has no clusters of two ways
        measures = tuple(measure for measure in measures if not isinstance(measure, statistics.KruskalWallis))
    declared = {"measures": measures, "groups": groups, "clusters": clusters, "macro": macro, "options": MarginOptions}
    metric = type("Textbook", (statistics.DeclaredMetric,), declared)()
    return list(metric.compute(frame, MarginOptions(resamples=RESAMPLES, margin=5.0, **options)))


def _functions() -> Iterator[tuple[str, str, Any]]:
    """Yield what functions give that metrics and commands call themselves."""
    for hits, n in ((0, 10), (3, 10), (52, 100), (711, 2201), (7, 7)):
        case = f"{hits} of {n}"
        yield "Wilson", case, intervals.wilson_interval(hits, n, 0.95)
        yield "exact", case, intervals.exact_interval(hits, n, 0.95)
        yield "exact binomial", case, [intervals.binomial_test(hits, n, chance) for chance in (0.5, 0.2)]
        yield "tail of the binomial", case, (intervals.at_most(hits, n, 0.3), intervals.at_least(hits, n, 0.3))
        yield "worst case", case, intervals.worst_case(hits, n, 2)
    hair = np.array(HAIR, dtype=np.float64)
    yield "tau-b", "hair", ranks.tau_b(hair)
    yield "tau-c", "hair", ranks.tau_c(hair)
    yield "Kendall", "hair", ranks.kendall_p(hair)
    yield "Kruskal-Wallis", "hair", ranks.kruskal_h(hair)
    yield "epsilon squared", "hair", ranks.epsilon_squared(hair)
    for name, data in (("maize", MAIZE), ("sleep", SLEEP)):
        yield "Wilcoxon signed-rank", name, matched.signed_ranks(np.array([a - b for a, b in data]))
    yield "McNemar", "counts", [matched.mcnemar_p(b, c) for b, c in ((1, 9), (12, 30), (0, 0))]
    for row in SURVIVORS:
        totals = np.array([[sum(SURVIVORS[0]), SURVIVORS[0][0]], [sum(row), row[0]]], dtype=np.float64)
        yield "risk difference", str(row), statistics.risk_difference(totals)
        yield "odds ratio", str(row), statistics.odds_ratio(totals)
        yield "Cohen's h", str(row), statistics.cohens_h(totals)
    ratings = np.array([[float(a), float(b), np.nan if a > 64 else float(a)] for a, b in WOMEN])
    for scale in ("nominal", "ordinal", "interval"):
        yield "agreement", scale, statistics.agreement(ratings, scale, statistics.Resampling(RESAMPLES, 0))
    yield "adjusted p", "Benjamini", [statistics.adjust([0.01, 0.02, 0.03, 0.5], c) for c in ("bh", "by", "holm")]
    yield from _planned()
    yield from _clusters()


def _planned() -> Iterator[tuple[str, str, Any]]:
    designs = (
        power_designs.Design(clusters=12, size=5, icc=0.1),
        power_designs.Design(clusters=12, size=5, icc=0.1, groups=2),
        power_designs.RankDesign(clusters=20),
        power_designs.RankDesign(clusters=20, groups=2),
        power_designs.CrossedDesign(levels=(8, 10), shares=(0.2, 0.1)),
    )
    for design in designs:
        yield "power", str(design), (power.power(0.4, design), power.minimum_detectable_effect(design))
    frame = sprays().drop_nulls("count")
    values = frame["count"].to_numpy()
    spray, place = (frame[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in (FEW, MANY))
    yield "pilot", "sprays", power.pilot(values, spray)
    sides = np.zeros(len(values), dtype=np.int64)
    yield "pilot", "crossed", power.crossed_pilot(values, [spray, place], sides)
    crossing = components.Crossing(sides=sides, facets=(spray, place))
    yield "forecast", "sprays", components.forecast(values, crossing, crossing, (0.5, 0.9))


def _clusters() -> Iterator[tuple[str, str, Any]]:
    ways = ways_of({"one": np.arange(30) // 5, "two": np.arange(30) % 5}, np.arange(30) % 3)
    yield "spread of clusters", "two ways", spread(ways, np.full(3, 10.0), np.array([0.2, 0.5, 0.7]), 1.0, 0.95)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    value = msgspec.to_builtins(value, enc_hook=lambda other: other.tolist())
    return rounded({"": value} if not isinstance(value, dict) else value)


def write(battery_rows: Battery) -> None:
    """Write the battery, a line per number, so that a change of one is seen as one."""
    lines = (f" {json.dumps(name, ensure_ascii=False)}: [\n{_rows(rows)}\n ]" for name, rows in battery_rows.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    digests = {name: digest_of(rows) for name, rows in battery_rows.items()}
    DIGESTS.write_text(json.dumps(digests, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _rows(rows: list[list[Any]]) -> str:
    return ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)


def stored() -> Battery:
    """Return the battery as it is written."""
    return dict(json.loads(FILE.read_text("utf-8")))
