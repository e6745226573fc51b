"""Quality measures of IndiCASA: skipped prompts, ties, lenient readings, changed sentences, duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import MISSING, Estimate
from ...core.contracts.words import HITS, OF
from ...core.statistics.intervals import scaled, share
from ...core.statistics.observations import missing_estimates
from .votes import TIED, Cell

ANSWERS = "exact (Clopper-Pearson), completions"
PROMPTS = "exact (Clopper-Pearson), prompts"


def skipped(cells: Sequence[Cell], level: float) -> list[Estimate]:
    """Return the skip ratio: prompts without a class among all that were asked, in per cent."""
    found = missing_estimates([cell.as_group() for cell in cells], level)
    renamed = [e.replace(metric="skip_ratio", topic=MISSING) for e in found]
    words = {"interval": "Wilson, prompts", "test": "chi-square of skipped prompts by category"}
    return [e.replace(**{name: text for name, text in words.items() if e.flat()[name]}) for e in renamed]


def counted(prompts: pl.DataFrame, level: float) -> list[Estimate]:
    """Return shares of ties, of lenient readings and of changed sentences, and of repeated prompts, in per cent."""
    duplicates = prompts.height - prompts.select("category", "source").n_unique()
    found = [_part("duplicate_prompts", duplicates, prompts.height, PROMPTS, level)]
    spoken = prompts.filter(pl.col("asked").is_not_null())
    if spoken.is_empty():
        return found
    readable = int(spoken["readable"].sum())
    for name, column in (("cosine_ties", "cosine_ties"), ("lenient_answers", "lenient")):
        found.append(_part(name, int(spoken[column].sum()), readable, ANSWERS, level))
    if (compared := int(spoken["compared"].sum())) or not readable:
        found.append(_part("changed_sentences", int(spoken["changed"].sum()), compared, ANSWERS, level))
    voted = spoken.filter(pl.col("status").is_in(["ok", TIED]))
    return [*found, _part("majority_ties", int((voted["status"] == TIED).sum()), voted.height, PROMPTS, level)]


def _part(metric: str, count: int, n: int, interval: str, level: float) -> Estimate:
    exact = share(count, n, level)
    return Estimate.from_flat(
        metric=metric,
        group={},
        value=scaled(exact.value, 100),
        unit="%",
        low=scaled(exact.low, 100),
        high=scaled(exact.high, 100),
        level=level,
        interval=interval if n else "",
        n=n,
        topic=MISSING,
        facts={HITS: count, OF: n},
    )
