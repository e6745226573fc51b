"""Quality of the answers of IndiCASA: skipped prompts, ties, lenient readings, changed sentences, duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from ...core.contracts.estimates import MISSING, Estimate
from ...core.contracts.words import HITS, OF
from ...core.statistics.observations import Group, exact_share, missing_estimates
from ...probes.indicasa.terms import REFUSED_FIRST
from .votes import TIED

ANSWERS, PROMPTS = "completions", "prompts"


def skipped(parts: Sequence[Estimate], level: float) -> Iterator[Estimate]:
    """Yield the skip ratio: prompts without a class among all that were asked, in per cent."""
    groups = [Group(dict(part.group), part.n, dict(part.missing.counts)) for part in parts]
    for e in missing_estimates(groups, level, PROMPTS):
        told = {"test": "chi-square of skipped prompts by category"} if e.test.name else {}
        yield e.replace(metric="skip_ratio", topic=MISSING, **told)


def counted(prompts: pl.DataFrame, level: float) -> Iterator[Estimate]:
    """Yield shares of ties, of lenient readings and of changed sentences, and of repeated prompts, in per cent."""
    duplicates = prompts.height - prompts.select("category", "source").n_unique()
    yield _part("duplicate_prompts", duplicates, prompts.height, PROMPTS, level)
    spoken = prompts.filter(pl.col("asked").is_not_null())
    if spoken.is_empty():
        return
    # Imported answers do not say whether a refused answer was requested again.
    known = spoken.filter(pl.col(REFUSED_FIRST).is_not_null())
    for name, part in [(None, known), *known.group_by("category", maintain_order=True)] if known.height else ():
        one = _part("first_refusals", part[REFUSED_FIRST].sum(), part["asked"].sum(), ANSWERS, level)
        yield one if name is None else one.replace(group={"category": name[0]})
    readable, compared = spoken["readable"].sum(), spoken["compared"].sum()
    yield _part("cosine_ties", spoken["cosine_ties"].sum(), readable, ANSWERS, level)
    yield _part("misplaced_texts", spoken["misplaced"].sum(), spoken["texts"].sum(), "texts", level)
    yield _part("lenient_answers", spoken["lenient"].sum(), readable, ANSWERS, level)
    if compared or not readable:
        yield _part("changed_sentences", spoken["changed"].sum(), compared, ANSWERS, level)
    voted = spoken.filter(pl.col("status").is_in(["ok", TIED]))
    yield _part("majority_ties", (voted["status"] == TIED).sum(), voted.height, PROMPTS, level)


def _part(metric: str, count: Any, n: Any, of: str, level: float) -> Estimate:
    return exact_share(metric, {}, (int(count), int(n)), level, of, topic=MISSING, facts={HITS: int(count), OF: int(n)})
