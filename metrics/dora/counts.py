"""How many associations there are: the paper's Table 4, and as many columns as there are methods."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import msgspec
import polars as pl

from ...core.contracts.estimates import MISSING, Estimate
from ...core.contracts.records import Scalar
from ...core.contracts.words import HITS, OF
from ...core.statistics.observations import Group, missing_estimates
from ...probes.dora.associations import count_pairs, judgements, measure_cells, mentions, with_answers
from ...probes.dora.overlap import overlap
from ...probes.dora.salience import METHODS
from ...probes.dora.terms import ABSENT, CELL, PAIR
from .options import DoraAssociationsOptions


class Associations(msgspec.Struct, frozen=True):
    """What a run found."""

    every: pl.DataFrame
    """Each pair as `prejudge.probes.dora.salience.measure` gives it, with what `with_answers` adds."""
    kept: pl.DataFrame
    """Those that count, by the option `method`."""
    levels: pl.DataFrame
    """One row per judgement of these: `PAIR`, `judgement`, `level`, `status`; `ABSENT` where nobody was asked."""
    judged: pl.DataFrame
    """The pairs that the judge was asked about, whether they count or not."""
    asked: tuple[str, ...]
    """Stages that were asked."""


def gather(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    """Put the stages together; raises `DataError` where a column is absent."""
    counted = count_pairs(mentions(observations))
    every = with_answers(measure_cells(counted, options.salience_level, options.reading), observations)
    kept = every if options.column is None else every.filter(options.column)
    asked = tuple(observations["stage"].unique(maintain_order=True).drop_nulls().to_list())
    levels = judgements(observations)
    return Associations(every, kept, _of(kept, levels), levels.select(PAIR).unique(maintain_order=True), asked)


def _of(kept: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return the judgements of the pairs that count; of one that the judge was not asked about, each is absent."""
    # The study chooses what is judged and the metric what counts, by options of their own, which may differ.
    never = kept.select(PAIR).join(levels, on=PAIR, how="anti", maintain_order="left")
    rows = never.join(levels.select("judgement").unique(maintain_order=True), how="cross")
    absent = rows.select(*PAIR, "judgement", status=pl.lit(ABSENT), level=pl.lit(None, dtype=pl.Float64))
    own = levels.join(kept.select(PAIR), on=PAIR, how="semi", maintain_order="left")
    return pl.concat([own.select(absent.columns), absent], how="vertical_relaxed")


TOTAL, DISTINCT, SALIENT = "mentions", "associations", "salient"
IN_RANGE, IN_RANGE_P = "in_range", "p_value_significant"
"""The second and the third column of Table 4."""
OVERLAP = "overlap"


def count_estimates(found: Associations) -> Iterator[Estimate]:
    """Yield the counts of each setting; Table 4 has the mentions, `in_range` and `p_value_significant`."""
    for (modality, setting), part in found.every.group_by(*CELL, maintain_order=True):
        group: dict[str, Scalar] = {"modality": modality, "setting": setting}
        yield _count(TOTAL, group, int(part["count"].sum()), part.height)
        yield _count(DISTINCT, group, part.height, part.height)
        yield _count(IN_RANGE, group, int(part["in_range"].sum()), part.height)
        yield _count(IN_RANGE_P, group, int(part["salient_tf_idf"].sum()), part.height)
        for method, column in METHODS.items():
            yield _count(SALIENT, {**group, "method": method}, int(part[f"salient_{column}"].sum()), part.height)


def _count(metric: str, group: dict[str, Scalar], value: int, n: int) -> Estimate:
    return Estimate(metric=metric, group=group, value=float(value), unit="count", n=n)


def overlap_estimates(found: Associations, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield what each two settings share, of one modality or of two (the paper's Figure 1)."""
    parts = {cell: part for cell, part in found.kept.group_by(*CELL, maintain_order=True)}
    for first, second in combinations(parts, 2):
        shared = overlap(parts[first], parts[second], options.resamples, options.seed)
        union = shared.first + shared.second - shared.shared
        yield Estimate.from_flat(
            metric=OVERLAP,
            group={"modality": first[0], "setting": first[1], "against": " ".join(map(str, second))},
            value=shared.jaccard,
            neutral=shared.expected,
            unit="Jaccard",
            n=union,
            clusters=shared.descriptors,
            test="permutation of descriptors, upper tail" if shared.p is not None else "",
            statistic=float(shared.shared) if shared.p is not None else None,
            p=shared.p,
            family=OVERLAP,
            facts={"shared": shared.shared, "of the first": shared.first, "of the second": shared.second},
        )


def missing_by_stage(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield how much each stage could not read, in all and by setting."""
    for stage in observations["stage"].unique(maintain_order=True):
        rows = observations.filter(pl.col("stage") == stage)
        groups = [
            Group(
                {"modality": modality, "setting": setting},
                int((part["status"] == "ok").sum()),
                dict(part.filter(pl.col("status") != "ok")["status"].value_counts().sort("status").rows()),
            )
            for (modality, setting), part in rows.group_by(*CELL, maintain_order=True)
        ]
        for estimate in missing_estimates(groups, options.level):
            yield estimate.replace(group={"stage": stage, **estimate.group})


def unreadable_kinds(observations: pl.DataFrame) -> Iterator[Estimate]:
    """Yield the share of each kind of unreadable answer among the answers of its stage."""
    totals = dict(observations["stage"].value_counts().rows())
    rows = observations.filter((pl.col("status") == "unreadable") & pl.col("reason").is_not_null())
    for stage, reason, n in rows.group_by("stage", "reason", maintain_order=True).len().rows():
        yield Estimate(
            metric="unreadable",
            group={"stage": stage, "kind": reason},
            value=100 * n / totals[stage],
            unit="%",
            n=totals[stage],
            facts={HITS: n, OF: totals[stage]},
            topic=MISSING,
        )
