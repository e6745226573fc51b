"""The associations of a run: how many there are (the paper's Table 4), how many overlap, and how many were judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import msgspec
import polars as pl

from ...core.contracts.errors import DataError
from ...core.contracts.estimates import Caveat, Estimate
from ...core.contracts.records import Scalar
from ...core.contracts.words import HITS, OF
from ...core.statistics.facets import OVER
from ...core.statistics.observations import missing_estimates, missing_groups, unreadable_kinds
from ...probes.dora.associations import Counts, count, judgements, measure_cells, with_answers
from ...probes.dora.overlap import overlap
from ...probes.dora.people import read_levels
from ...probes.dora.salience import LEAST_FIRST, METHODS
from ...probes.dora.terms import ABSENT, CELL, PAIR
from .measures import DISTINCT, IN_RANGE, IN_RANGE_P, JUDGED, OVERLAP, SALIENT, TOTAL
from .options import DoraAssociationsOptions

LONGEST = "longest_answers"
"""Fact: words of the answers about the descriptor with the longest ones, in those of the median descriptor."""


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
    people: pl.DataFrame | None = None
    """Judgements of people, as `read_levels` gives them."""


def gather(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    """Put the stages together; raises `DataError` where a column is absent, or a file cannot be used."""
    if "stage" not in observations.columns:
        raise DataError(
            "the observations have no column 'stage'. Give those of all stages, stacked.", code="data.column-missing"
        )
    counts = count(observations)
    every = with_answers(measure_cells(counts, options.salience_level, options.reading), observations)
    kept = every if options.column is None else every.filter(options.column)
    asked = tuple(observations["stage"].unique(maintain_order=True).drop_nulls().to_list())
    levels = judgements(observations)
    judged = levels.select(PAIR).unique(maintain_order=True)
    people = None if options.human is None else read_levels([options.human])
    return Associations(counts, every, kept, _of(kept, levels), judged, asked, people)


def _of(kept: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return the judgements of the pairs that count; judgements that were not requested are `ABSENT`."""
    # The study chooses what is judged and the metric what counts, by options of their own, which may differ.
    never = kept.select(PAIR).join(levels, on=PAIR, how="anti", maintain_order="left")
    rows = never.join(levels.select("judgement").unique(maintain_order=True), how="cross")
    absent = rows.select(*PAIR, "judgement", status=pl.lit(ABSENT), level=pl.lit(None, dtype=pl.Float64))
    own = levels.join(kept.select(PAIR), on=PAIR, how="semi", maintain_order="left")
    return pl.concat([own.select(absent.columns), absent], how="vertical_relaxed")


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
    facts |= _lengths(found.counts, {name: str(estimate.group[name]) for name in CELL})
    return estimate.replace(caveats=tuple(caveats), facts=facts)


def _lengths(counts: Counts, cell: Mapping[str, str]) -> dict[str, Scalar]:
    """Return how many times as many words as usual the longest answers about a descriptor have; nothing of one word.

    A longer answer holds more words, whichever it is about, and so more associations.
    """
    words = counts.pairs.filter(**cell).group_by("descriptor").agg(pl.col("count").sum())
    answers = counts.answers.filter(**cell).group_by("descriptor").agg(pl.col("answers").sum())
    rates = words.join(answers, on="descriptor").select(pl.col("count") / pl.col("answers")).to_series()
    usual = rates.median()
    if not isinstance(usual, float) or usual <= 1:
        return {}
    return {LONGEST: float(rates.max()) / usual}  # type: ignore[arg-type]


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
    """Yield by stage the share of missing answers, in all and by setting, and that of each kind that is unreadable."""
    for stage in observations["stage"].unique(maintain_order=True):
        rows = observations.filter(stage=stage)
        missing = missing_estimates(missing_groups(rows, CELL), options.level)
        for found in (*missing, *unreadable_kinds(rows, options.level)):
            yield found.replace(group={"stage": stage, **found.group})


MEND = "Set the metric's method, salience_level and salience_keep to the study's salience, -_level and -_keep."
OTHERS = "levels_of_other_associations"


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
