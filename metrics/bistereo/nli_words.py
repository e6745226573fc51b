"""BIStereo-NLI in words: conclusion, headline, methods, examples; and the units behind the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.statistics.observations import Measure, unit_rows
from ...core.statistics.templates import rendered
from ...probes.bistereo.terms import LABELS
from .nli_pairs import CELL, CONTEXT, GROUPINGS, BIStereoNLIMetricOptions, Contrast, contrasts, side_by_side

EFFECTS = ("halo", "horn")


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the halo and horn effects of the whole study, and by gender and kind of attribute."""
    return [e for e in estimates if e.metric in EFFECTS and set(e.group) in (set(), set(CONTEXT[:2]))]


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence whether a halo and a horn effect were shown, where, and how neutral the model is."""
    whole = {e.metric: e for e in estimates if e.metric in EFFECTS and not e.group and e.value is not None}
    effects = [(whole[name], _shown_groups(estimates, name)) for name in EFFECTS if name in whole]
    neutral = [e for e in estimates if e.metric == "neutral" and e.value is not None]
    total = sum(e.n for e in neutral)
    lost = next((e for e in estimates if e.metric == "missing" and not e.group), None)
    return rendered(
        str(__package__),
        "nli.conclusion.md.j2",
        effects=effects,
        neutral=sum((e.value or 0.0) * e.n for e in neutral) / total if total else None,
        missing=lost.missing.total if lost is not None else 0,
        asked=lost.n if lost is not None else 0,
    )


def _shown_groups(estimates: Sequence[Estimate], name: str) -> list[Estimate]:
    own = (e for e in estimates if e.metric == name and set(e.group) == set(CONTEXT[:2]))
    return [e for e in own if e.verdict is Verdict.ABOVE]


def methods(options: BIStereoNLIMetricOptions) -> str:
    """Describe how the estimates were made."""
    return rendered(str(__package__), "nli.methods.md.j2", options=options)


def units(frame: pl.DataFrame, options: BIStereoNLIMetricOptions) -> pl.DataFrame:
    """Return the pairs behind the contrasts, and the answers behind the shares of labels."""
    rows: list[pl.DataFrame] = []
    for contrast, pairs in contrasts(side_by_side(frame, options.cluster)):
        measure = Measure(contrast.name, pl.col("value"), -100.0, 100.0)
        for factors in GROUPINGS:
            rows += unit_rows(pairs, [measure], factors, options.cluster)
    shares = [Measure(name, pl.col(name), 0.0, 100.0) for name in LABELS]
    return pl.concat([*rows, *unit_rows(frame, shares, CELL, options.cluster)], how="diagonal").drop("threshold")


def examples_of(frame: pl.DataFrame, options: BIStereoNLIMetricOptions) -> list[Example]:
    """Pick pairs whose label is entailment for one skin tone only, in the direction of the halo and horn effects."""
    if "key" not in frame.columns:
        return []
    pairs = side_by_side(frame, options.cluster)
    return [e for c, part in contrasts(pairs) if c.name in EFFECTS for e in _examples(c, part, options)]


def _examples(contrast: Contrast, pairs: pl.DataFrame, options: BIStereoNLIMetricOptions) -> Iterator[Example]:
    found = pairs.filter(pl.col("value") > 0).unique(
        ["gender", "kind", options.cluster], keep="first", maintain_order=True
    )
    for row in found.group_by("gender", "kind", maintain_order=True).head(options.examples).iter_rows(named=True):
        keys = (row[f"key_{contrast.first}"], row[f"key_{contrast.second}"])
        yield Example(
            title=f"{row['kind']} of {row['gender']}: entailed for {contrast.first} skin only",
            group={"gender": row["gender"], "kind": row["kind"]},
            keys=tuple(key for key in keys if key is not None),
            caption=f"Pair {row['pair']}, {row['category']}, {row['direction']}.",
        )
