"""How many associations there are (the paper's Table 4), how many are documented, and how people judge them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.estimates import MISSING, Caveat, Estimate
from ...core.contracts.records import Scalar
from ...core.contracts.words import HITS, OF
from ...core.statistics.estimates import undefined
from ...core.statistics.facets import OVER
from ...core.statistics.intervals import Limits
from ...core.statistics.observations import missing_estimates, missing_groups, percent
from ...core.statistics.ranks import agreement, rating_table
from ...probes.dora.associations import Counts, count, judgements, measure_cells, with_answers
from ...probes.dora.documented import mark_documented
from ...probes.dora.overlap import overlap
from ...probes.dora.salience import LEAST_FIRST, METHODS
from ...probes.dora.terms import ABSENT, CELL, PAIR, PLACE
from .options import DoraAssociationsOptions


class Associations(msgspec.Struct, frozen=True):
    """The associations of a run."""

    counts: Counts
    every: pl.DataFrame
    """Each pair as `prejudge.probes.dora.salience.measure` gives it, with what `with_answers` adds."""
    kept: pl.DataFrame
    """Those that count, by the option `method`."""
    levels: pl.DataFrame
    """One row per judgement of these: `PAIR`, `judgement`, `level`, `status`; `ABSENT` if the judge was not asked."""
    judged: pl.DataFrame
    """The pairs that the judge was asked about, whether they count or not."""
    asked: tuple[str, ...]
    """Stages that were asked."""


class Averaged(msgspec.Struct, frozen=True, kw_only=True):
    """What is averaged."""

    name: str
    rows: pl.DataFrame
    unit: str = "%"
    limits: Limits = (0.0, 100.0)
    group: dict[str, Scalar] = {}
    """What the group of each estimate has besides its cell."""


def gather(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    """Put the stages together; raises `DataError` where a column is absent."""
    counts = count(observations)
    every = with_answers(measure_cells(counts, options.salience_level, options.reading), observations)
    kept = every if options.column is None else every.filter(options.column)
    asked = tuple(observations["stage"].unique(maintain_order=True).drop_nulls().to_list())
    levels = judgements(observations)
    return Associations(counts, every, kept, _of(kept, levels), levels.select(PAIR).unique(maintain_order=True), asked)


def _of(kept: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return the judgements of the pairs that count; judgements that were not requested are `ABSENT`."""
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
            kept = _count(SALIENT, {**group, "method": method}, int(part[f"salient_{column}"].sum()), part.height)
            yield kept if method not in LEAST_FIRST else _what_it_covers(kept, found, method, int(part["wordings"][0]))


def _what_it_covers(estimate: Estimate, found: Associations, method: str, wordings: int) -> Estimate:
    """Return the count with what its tests generalise over, and whether repeats of prompts were of use."""
    asked = found.counts.answers.filter(**{name: estimate.group[name] for name in CELL})
    several, equal = ((asked["answers"] > 1).sum(), (asked["distinct"] < asked["answers"]).sum())
    over = "wording" if method == "exact" and wordings > 1 else "answer"
    caveats = [Caveat.ONE_LEVEL] if wordings == 1 else []
    caveats += [Caveat.EQUAL_REPEATS] if 2 * equal > several else []
    facts = {OVER: over, "wordings": wordings, "repeated_prompts": several, "equal_repeats": equal}
    return estimate.replace(caveats=tuple(caveats), facts=facts)


def _count(metric: str, group: dict[str, Scalar], value: int, n: int) -> Estimate:
    return Estimate(metric=metric, group=group, value=float(value), unit="count", n=n)


def overlap_estimates(found: Associations, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the overlap of each two settings, of one modality or of two (the paper's Figure 1)."""
    for first, second in combinations(found.every.select(CELL).unique(maintain_order=True).rows(), 2):
        cells = [dict(zip(CELL, cell, strict=True)) for cell in (first, second)]
        ours, theirs = (found.kept.filter(**cell) for cell in cells)
        asked = found.counts.descriptors(cells[0]) & found.counts.descriptors(cells[1])
        shared = overlap(ours, theirs, asked, options.resamples, options.seed)
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
            facts={"shared": shared.shared, "first": shared.first, "second": shared.second},
        )


def missing_by_stage(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the share of unreadable answers of each stage, in all and by setting."""
    for stage in observations["stage"].unique(maintain_order=True):
        rows = observations.filter(pl.col("stage") == stage)
        groups = missing_groups(rows, CELL)
        for found in missing_estimates(groups, options.level):
            yield found.replace(group={"stage": stage, **found.group})


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


MEND = "Set the metric's method, salience_level and salience_keep to the study's salience, -_level and -_keep."
STEPS = ("not at all", "slightly", "moderately", "highly", "extremely")
"""The paper, footnote 6: 1 to 5."""
SHARE, AGREEMENT = "level_share", "level_agreement"
SEPARATOR = "\x1f"
PAIRS = ("descriptor", "word")
JUDGED = "judged"
OTHERS = "levels_of_other_associations"


def share_measures(found: Associations) -> Iterator[Averaged]:
    """Yield the share of judgements on each step."""
    if "levels" not in found.asked:
        return
    for step, name in enumerate(STEPS, 1):
        value = percent(pl.col("level").round() == step)
        rows = found.levels.select(*PLACE, value=value, status=pl.col("status"))
        yield Averaged(name=SHARE, rows=rows, group={"level": name})


def judged_estimates(found: Associations) -> Iterator[Estimate]:
    """Yield how many of the associations that count the judge was asked about, by setting."""
    if "levels" not in found.asked:
        return
    for modality, setting in found.every.select(CELL).unique(maintain_order=True).rows():
        kept, judged = (part.filter(modality=modality, setting=setting) for part in (found.kept, found.judged))
        both = judged.join(kept, on=PAIR, how="semi").height
        same = both == kept.height == judged.height
        yield Estimate(
            metric=JUDGED,
            group={"modality": modality, "setting": setting},
            value=100 * both / kept.height if kept.height else None,
            unit="%",
            n=kept.height,
            facts={HITS: both, OF: kept.height, "others_judged": judged.height - both, OTHERS: not same},
            note="" if same else MEND,
        )


def agreement_estimates(found: Associations, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield Krippendorff's alpha of the judgements of one association, by setting."""
    for (modality, setting), part in found.levels.group_by(*CELL, maintain_order=True):
        named = part.with_columns(unit=pl.concat_str("descriptor", *PAIR, separator=SEPARATOR))
        table = rating_table(named, ("unit", "judgement", "level"), order=(1.0, 2.0, 3.0, 4.0, 5.0))
        clusters = [unit.split(SEPARATOR)[0] for unit in np.unique(named["unit"].to_numpy())]
        found_ = agreement(table, "ordinal", options.plan, clusters)
        left_out = {"one judgement": found_.single, "no judgement": found_.unrated}
        yield Estimate.from_flat(
            metric=AGREEMENT,
            group={"modality": modality, "setting": setting},
            value=found_.alpha,
            unit="Krippendorff's alpha, ordinal",
            low=found_.low,
            high=found_.high,
            level=options.level,
            interval=f"{options.interval} (descriptor)" if found_.low is not None else "",
            n=found_.units,
            clusters=len(set(clusters)),
            missing={name: count for name, count in left_out.items() if count},
            **({} if found_.alpha is not None else undefined("no two judgements of one association, or all equal")),
        )


UNDOCUMENTED = "undocumented"


def undocumented(found: Associations, path: str) -> Averaged:
    """Return the share of associations that the list does not have."""
    marked = mark_documented(found.kept, path)
    value = 100.0 * (~pl.col("documented")).cast(pl.Float64)
    return Averaged(name=UNDOCUMENTED, rows=marked.select(*PLACE, value=value, status=pl.lit("ok")))
