"""Options and declared measures of the attractiveness study, after Gulati et al. (2025), sections 3.4 and 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.errors import UsageError
from ...core.contracts.estimates import POSITION, Measure
from ...core.statistics.declaration import Declaration
from ...core.statistics.facets import FacetOptions, Permutation
from ...core.statistics.intervals import CONTRAST, Array, Codes
from ...core.statistics.matched import signed_ranks
from ...core.statistics.measures import BISERIAL, DeclaredMeasure, Mean, SummedMeasure
from ...core.statistics.measures_compared import KruskalWallis, kruskal_test
from ...core.statistics.ranks import epsilon_squared, levels_of
from ...core.statistics.recipes import EffectSize, Recipe, Test
from ...core.statistics.resampling import Resampling, swap_test
from ...probes.attractiveness.terms import BETWEEN, TRAITS, VARIANTS
from .scores import Scores

LEAST = 99
"""Minimum number of resamples for an interval."""
FACETS = ("scenario", "face")


class AttractivenessMetricOptions(FacetOptions, frozen=True, kw_only=True):
    """Options for the effects of a filter."""

    over: str | tuple[str, ...] = FACETS
    """What the halo is to hold for beyond those at hand: other scenarios, other faces, or both.

    What is said of one scenario, of their number and of the labels is for these scenarios and other faces.
    """
    effect_resamples: int = 999
    """Resamples behind the intervals of rank statistics (epsilon squared, rank-biserial, rank correlations).

    0 makes no such intervals.
    """
    splits: int = 200
    """Number of random splits of the human raters for the highest expected agreement."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if unknown := [way for way in self.ways if way not in FACETS]:
            raise UsageError(f"over is {unknown[0]!r}. Use 'scenario', 'face' or both.", code="options.choice")
        if self.effect_resamples and self.effect_resamples < LEAST:
            raise UsageError(
                f"effect_resamples is {self.effect_resamples}. Give at least {LEAST}, or 0 for none.",
                code="options.value",
            )
        if self.splits < 1:
            raise UsageError(f"splits is {self.splits}. Give at least 1.", code="options.value")


GAP, WILCOXON, SCORE = "gap", "gap_signed_ranks", "score"
HALO, POSITIONS = "halo", "position_bias"
KRUSKAL, BY_FACE, CHANGE, MOVED = "kruskal_wallis", "kruskal_wallis_faces", "bias_change", "filter_between_groups"
AGREEMENT, CEILING, CHECK = "human_agreement", "human_ceiling", "rated_more_attractive"
SHARE, HALO_SHARE, STRONGEST, STRONGER = "share_significant", "halo_scenarios", "strongest_group", "stronger_bias"
FILTER, PAIR = "filter", "race pair"
"""Values of the group `by`: what Kruskal and Wallis's test compares."""
JUDGED = "judged by"
PAPER, ADJUSTED = "Kruskal-Wallis, p as in the paper", "Kruskal-Wallis, adjusted p"
ROBUST = "paired or by face, adjusted p"
POSITIVE, STEREOTYPE = "positive_option", "stereotype"
"""Facts: which option the score counts, and whom a stereotype sets apart."""

EPSILON, LABEL, INSTRUCTION = "epsilon squared", "label (a)", "(a) named first in the instruction"
WHOLE = ("scenario",)


def _halo() -> Mean:
    return Mean(
        HALO,
        value="change",
        ends=("least", "greatest"),
        neutral=0,
        limits=CONTRAST,
        unit="share",
        family=lambda by: HALO,
        meaning="Mean change of the score with the beauty filter, over the scenarios with a positive option and the "
        "faces.",
        direction="more positive judgements with the filter",
    )


def _gaps(resamples: int, groups: Sequence[tuple[str, ...]]) -> Iterator[Mean]:
    """Yield the gap with its test of signs, and again with that of signed ranks."""

    def ranks(rows: Array) -> tuple[float | None, float | None]:
        return signed_ranks(rows[:, 0]) if len(rows) else (None, None)

    for name, test, family, meaning in (
        (GAP, None, "gap, sign flip", "Mean over faces of the score of the filtered image minus that of the original."),
        (
            WILCOXON,
            Test("Wilcoxon signed-rank, faces", ranks, of_rows=True, planned="wilcoxon"),
            "gap, Wilcoxon",
            "The same mean gap, tested by Wilcoxon's signed ranks over faces.",
        ),
    ):
        yield Mean(
            name,
            value="change",
            ends=("least", "greatest"),
            neutral=0,
            limits=CONTRAST,
            size=BISERIAL,
            resamples_of_effect=resamples,
            test=test,
            repeats=GAP if test is not None else "",
            groups=tuple(groups),
            apart=TRAITS,
            family=lambda by, family=family: family,  # type: ignore[misc]
            label="Gap, signed ranks" if test is not None else "",
            meaning=meaning,
            unit="share",
            direction="more choices of the counted option with the filter",
        )


def _score(value: str, groups: Sequence[tuple[str, ...]]) -> Mean:
    return Mean(
        SCORE,
        value=value,
        groups=tuple(groups),
        limits=(0, 1),
        unit="share",
        meaning="Share of the answers that choose the positive option (the first, where neither is positive), averaged "
        "over the four orders.",
        direction="more choices of the counted option",
    )


def _images(
    of: str, levels: Sequence[str], resamples: int, by: str, groups: Sequence[tuple[str, ...]]
) -> KruskalWallis:
    """Return H over images, as in the paper."""
    return KruskalWallis(
        KRUSKAL,
        value="score",
        of=of,
        levels=tuple(levels),
        test=kruskal_test("Kruskal-Wallis, images"),
        group={"by": by},
        groups=tuple(groups),
        resamples_of_effect=resamples,
        apart=(*TRAITS, "variant"),
        family=lambda _: f"{KRUSKAL}, {by}",
        label="Kruskal-Wallis H, images",
        meaning="Rank statistic of the difference in scores between variants or groups, each image being one unit, as "
        "in the paper.",
        direction="larger differences between the compared groups",
    )


def _between(by: str, levels: Sequence[str], resamples: int) -> Iterator[SummedMeasure]:
    """Yield the differences between groups of faces, with one number for each face."""
    told: dict[str, Any] = {"group": {"by": by}, "groups": (WHOLE,)}
    for name, value, least, test, label, meaning, direction in (
        (
            BY_FACE,
            "mean",
            0.0,
            "Kruskal-Wallis, means of faces",
            "Kruskal-Wallis H, faces",
            "Rank statistic of the difference in scores between groups of faces, each face being one unit.",
            "larger differences between the compared groups",
        ),
        (
            MOVED,
            "change",
            -1.0,
            "Kruskal-Wallis of the change of each face, by group",
            "Effect of the filter between groups",
            "Rank statistic of the difference between groups of faces in what the filter changes, each face being one "
            "unit; their bias need not become stronger by it.",
            "larger differences in the effect of the filter",
        ),
    ):
        yield KruskalWallis(
            name,
            value=value,
            of=by,
            levels=tuple(levels),
            limits=(least, 1.0),
            test=kruskal_test(test, planned="kruskal-wallis"),
            resamples_of_effect=resamples,
            family=lambda _, name=name: f"{name}, {by}",  # type: ignore[misc]
            label=label,
            meaning=meaning,
            direction=direction,
            **told,
        )
    yield change_of(by, levels)


def change_of(by: str, levels: Sequence[str]) -> Change:
    """Return how much stronger a bias between groups of faces is with the filter."""
    return Change(
        CHANGE,
        of=by,
        levels=tuple(levels),
        group={"by": by},
        groups=(WHOLE,),
        neutral=0.0,
        intervals="jackknife",
        unit=EPSILON,
        family=lambda _: f"{CHANGE}, {by}",
        label="Change of bias",
        meaning="Epsilon squared between groups of faces with the filter minus that without it.",
        direction="a stronger bias with the filter",
    )


class Change(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """How much stronger a bias between groups of faces is with the filter, over faces that have both scores.

    Value, interval and test are of one number, the difference of epsilon squared. That the filter moves the groups
    differently is another question: it may turn a bias around and leave it as strong.
    """

    of: str
    levels: tuple[str, ...]

    def recipe(self) -> Recipe:
        """Return counts by group, score and variant, and the difference between the variants."""

        def counts(values: Array, place: Codes, places: int) -> Array:
            level = levels_of(values.T.ravel()).reshape(2, -1)
            width = 2 * (int(level.max(initial=-1)) + 1)
            flat = np.concatenate([place * width + 2 * level[side] + side for side in (0, 1)])
            found = np.bincount(flat, minlength=places * width).reshape(places, width)
            return np.concatenate([np.bincount(place, minlength=places)[:, None], found], axis=-1).astype(np.float64)

        def split(totals: Array) -> Array:
            """Return the counts (..., variants, groups, scores)."""
            table = totals[..., 1:].reshape(*totals.shape[:-1], -1, 2)
            return np.moveaxis(table, -1, -3)

        def change(totals: Array) -> Array:
            both = _epsilon(split(totals))
            return both[..., 1] - both[..., 0]

        def exchanged(plan: Resampling) -> Permutation:
            """Return the test for faces of which none has any influence: the images of whole faces are exchanged."""

            def p(sums: Array) -> Array:
                sides = split(sums)
                flat = sides.reshape(*sides.shape[:-2], -1)

                def apart(totals: Array) -> Array:
                    both = _epsilon(totals[..., 1:].reshape(*totals.shape[:-1], *sides.shape[-2:]))
                    return (both[..., 1] - both[..., 0])[..., None]

                return swap_test(np.concatenate([flat.sum(axis=-1, keepdims=True), flat], axis=-1), apart, plan)

            return Permutation("permutation of the two images", p, [0], flips=False)

        size = EffectSize("difference of epsilon squared, filtered - original", lambda value: value, CONTRAST, True)
        return Recipe(
            inputs=("score", "score_filtered"),
            columns=lambda values: (),
            value=change,
            range=CONTRAST,
            effect=size,
            levels=(self.of, self.levels),
            tabulated=counts,
            permuted=exchanged,
        )


def _epsilon(table: Array) -> Array:
    """Return epsilon squared of counts (..., groups, scores); 0 where all scores are alike."""
    found = epsilon_squared(table)
    several = (table.sum(axis=-1) > 0).sum(axis=-1) > 1
    return np.where(several, np.nan_to_num(found), np.nan)


def _position(place: str, value: str, limits: tuple[float, float], unit: str) -> Mean:
    return Mean(
        POSITIONS,
        value=value,
        neutral=sum(limits) / 2,
        limits=limits,
        scale=100,
        size="risk difference",
        group={"position": place},
        topic=POSITION,
        family=lambda _: "places of the labels",
        meaning="Percentage of the answers (a), and its rise where the instruction names (a) first.",
        unit=unit,
        direction="more answers (a)",
    )


POSITION_BIAS = (
    _position(LABEL, "p_a", (0, 100), "%"),
    _position(INSTRUCTION, "rise", (-100, 100), "percentage points"),
)


def halo_of(scores: Scores, options: AttractivenessMetricOptions) -> Declaration:
    """Return what is measured of the halo, over the facets that the options name."""
    positive = scores.faces.filter(pl.col("positive").is_not_null())
    directed = _complete(positive) if options.ways == ("face",) else positive
    return Declaration(measures=(_halo(),), clusters=options.ways, row="face", rows=lambda _: directed)


def designs_of(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Declaration]:
    """Yield what is measured, of which rows; whatever is not of the halo draws faces."""
    resamples, levels = options.effect_resamples, {by: scores.levels(by) for by in TRAITS}
    compared = [by for by in TRAITS if len(levels[by]) > 1]
    within, labelled = ([(*WHOLE, by) for by in own] for own in (compared, [by for by in TRAITS if levels[by]]))
    variant = (*WHOLE, "variant")

    def design(
        rows: pl.DataFrame, *measures: SummedMeasure, groups: Sequence[tuple[str, ...]], main: bool
    ) -> Declaration:
        own: dict[str, Any] = {"clusters": ("face",), "row": "face", "rows": lambda _: rows}
        return Declaration(measures=measures, groups=tuple(groups), compared=main, **own)

    yield halo_of(scores, options)
    between = (measure for by in compared for measure in _between(by, levels[by], resamples))
    yield design(scores.faces, *_gaps(resamples, [WHOLE]), *between, groups=[WHOLE], main=True)
    of_groups = (*_gaps(resamples, within), _score("mean", labelled))
    yield design(scores.faces, *of_groups, groups=labelled, main=False)
    of_images = (
        _images("variant", VARIANTS, resamples, FILTER, [WHOLE, *within]),
        *(_images(by, levels[by], resamples, by, [WHOLE, variant]) for by in compared),
        _score("score", [variant]),
    )
    yield design(scores.images, *of_images, groups=[WHOLE, variant, *within], main=False)
    if levels["race"]:
        # The two races that a pair of jobs is said to belong to (the paper's Table 7).
        named = scores.images.filter(pl.col("stereotype").str.split(BETWEEN).list.contains(pl.col("race")))
        pair = _images("race", levels["race"], resamples, PAIR, [WHOLE])
        yield design(named, pair, groups=[WHOLE], main=False)
    faces = scores.images.unique("face", maintain_order=True).with_columns(status=pl.lit("ok"))
    yield design(faces, *POSITION_BIAS, groups=[()], main=False)


def _complete(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per face: the mean change over the scenarios.

    A face that lacks a scenario would be compared on other scenarios than the rest.
    """
    lost = pl.col("change").is_null().any()
    ends = (pl.col(name).mean() for name in ("least", "greatest"))
    found = rows.group_by("face", maintain_order=True).agg(
        pl.when(~lost).then(pl.col("change").mean()).alias("change"),
        *ends,
        pl.when(lost).then(pl.lit("incomplete")).otherwise(pl.lit("ok")).alias("status"),
    )
    return found


OTHERS = {
    HALO_SHARE: Measure(
        "Scenarios with a halo",
        "Percentage of the scenarios with a positive option whose gap is significantly above 0 after correction.",
        "% of scenarios",
        "more scenarios with a halo",
    ),
    SHARE: Measure(
        "Significant scenarios",
        "Percentage of the scenarios with answers in which the scores differ significantly, by the filter or between "
        "groups.",
        "% of scenarios",
        "more biased scenarios",
    ),
    STRONGEST: Measure(
        "Strongest effect of the filter",
        "Number of scenarios in which the filter's Kruskal-Wallis H is largest for this group (Figures 5 and 6).",
        "scenarios",
        "more scenarios in which the filter affects this group most",
    ),
    STRONGER: Measure(
        "Stronger bias",
        "Number of scenarios in which the bias by gender, age group or race is stronger with the filter, without it, "
        "or not shown to change (Table 1).",
        "scenarios",
    ),
    CHECK: Measure(
        "Faces rated more attractive",
        "Percentage of the rated faces whose filtered image people rate more attractive than the original.",
        "%",
        "a filter that makes more faces attractive",
    ),
    AGREEMENT: Measure(
        "Agreement with people",
        "Spearman's correlation over faces between the scores and the mean human ratings; 0 is no agreement.",
        "Spearman's rho",
        "more agreement",
    ),
    CEILING: Measure(
        "Highest expected agreement",
        "Root of the reliability of the mean human rating, from random halves of the raters (Spearman and Brown).",
        direction="more reliable ratings",
    ),
}
"""Words of what follows from the declared measures, and from people's ratings."""


def _declared() -> Iterator[DeclaredMeasure]:
    yield from (
        _halo(),
        *_gaps(0, ()),
        _images("variant", VARIANTS, 0, FILTER, ()),
        *_between(TRAITS[0], (), 0),
        _score("mean", ()),
    )
    yield POSITION_BIAS[0]


MEASURES = {HALO: _halo().words, **OTHERS, **{measure.name: measure.words for measure in _declared()}}
