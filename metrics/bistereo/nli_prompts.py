"""Accuracy of each prompt on pairs whose label is known, and the best prompt against every other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Estimate
from ...core.statistics.estimates import TestingOptions, correct, undefined
from ...core.statistics.intervals import scaled, share, worst_case
from ...core.statistics.matched import mcnemar
from ...core.statistics.observations import missing_by_cell as missing
from ...core.statistics.observations import missing_by_status, require_columns
from ...core.statistics.templates import rendered
from .measures import PROMPTS

if TYPE_CHECKING:
    from ...core.statistics.intervals import Array

__all__ = ["NLIPrompts", "NLIPromptsMetricOptions"]


class NLIPromptsMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for the tests."""


class NLIPrompts(Metric):
    """Accuracy by prompt, with an exact interval; McNemar's test of the best against every other."""

    options: ClassVar[type[Options]] = NLIPromptsMetricOptions
    needs: ClassVar[frozenset[str]] = frozenset({"item", "prompt", "truth", "label", "status"})
    measures = PROMPTS

    def compute(self, observations: pl.DataFrame, options: NLIPromptsMetricOptions) -> list[Estimate]:
        """Return accuracies in per cent. An unreadable answer counts as wrong, since the model gave no label.

        Raises:
            DataError: a column is absent.
        """
        require_columns(observations, set(self.needs))
        answered = pl.col("status").is_in(["ok", "unreadable"])
        right = (pl.col("label").cast(pl.String) == pl.col("truth")).fill_null(False)
        frame = observations.with_columns(pl.when(answered).then(right.cast(pl.Float64)).alias("right"))
        parts = {str(name): part for (name,), part in frame.partition_by("prompt", as_dict=True).items()}
        found = [_accuracy(name, part, options) for name, part in parts.items()]
        best = max((e for e in found if e.value is not None), key=lambda e: e.value or 0.0, default=None)
        if best is not None:
            chosen = str(best.group["prompt"])
            found += [
                _against(parts[chosen], part, (chosen, name), options) for name, part in parts.items() if name != chosen
            ]
        corrected = correct(found, options.correction, options.alpha, "prompts")
        return [*corrected, *missing(frame, ("prompt", "truth"), "prompt", options.level)]

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """Name the most accurate prompt, and those that are not significantly less accurate."""
        known = [e for e in estimates if e.metric == "accuracy" and e.value is not None]
        best = max(known, key=lambda e: e.value or 0.0, default=None)
        others = [e for e in estimates if e.metric == "less_accurate"]
        return rendered(str(__package__), "nli_prompts.conclusion.md.j2", best=best, others=others)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the accuracies and the differences."""
        return [e for e in estimates if e.metric in ("accuracy", "less_accurate")]

    def methods(self, options: NLIPromptsMetricOptions) -> str:
        """Describe how the estimates were computed."""
        return rendered(str(__package__), "nli_prompts.methods.md.j2", options=options)


def _accuracy(name: str, part: pl.DataFrame, options: NLIPromptsMetricOptions) -> Estimate:
    there = part["right"].drop_nulls()
    hits, n = int(there.sum()), len(there)
    exact = share(hits, n, options.level)
    lost = {status: count for status, count in missing_by_status(part).items() if status != "unreadable"}
    low, high = worst_case(hits, n, sum(lost.values()))
    return Estimate.from_flat(
        metric="accuracy",
        group={"prompt": name},
        value=scaled(exact.value, 100),
        unit="%",
        low=scaled(exact.low, 100),
        high=scaled(exact.high, 100),
        level=options.level,
        interval="exact (Clopper-Pearson), pairs" if n else "",
        n=n,
        missing=lost,
        bound_low=scaled(low, 100),
        bound_high=scaled(high, 100),
    )


def _against(
    best: pl.DataFrame, part: pl.DataFrame, names: tuple[str, str], options: NLIPromptsMetricOptions
) -> Estimate:
    both = best.select("item", first="right").join(part.select("item", second="right"), on="item", how="inner")
    first, second = (_values(both[name]) for name in ("first", "second"))
    tested, _ = mcnemar(first, second, np.arange(len(first)), options.plan)
    size, odds = tested.effects[0], tested.effects[-1]
    return Estimate.from_flat(
        metric="less_accurate",
        group={"prompt": names[1], "than": names[0]},
        value=scaled(size.value, 100),
        neutral=0.0,
        unit="percentage points",
        low=scaled(size.low, 100),
        high=scaled(size.high, 100),
        level=options.level,
        interval="bootstrap (pairs)" if size.low is not None else "",
        n=tested.n,
        test=f"{tested.test}, pairs" if tested.p is not None else "",
        statistic=tested.statistic if tested.p is not None else None,
        p=tested.p,
        family="best prompt against the others",
        effect=odds.value,
        effect_name=odds.name if odds.value is not None else "",
        effect_low=odds.low,
        effect_high=odds.high,
        **(undefined(tested.undefined) if tested.undefined else {}),
    )


def _values(values: pl.Series) -> Array:
    found: Array = values.fill_null(np.nan).to_numpy()
    return found
