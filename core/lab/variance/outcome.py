"""What is analysed: the rows of one declared measure with their facets, and their weights in the headline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from ...contracts import PROMPT_KEY
from ...contracts.errors import DataError, UnknownNameError, UsageError
from ...contracts.estimates import Measure
from ...scoring.score import Scores
from ...statistics.declaration import Declaration
from ...statistics.declared import DeclaredMetric
from ...statistics.declared_rows import ROW, UNIT, Table, choose, parts, prepared, repeated, settled
from ...statistics.measures import SummedMeasure
from ...statistics.measures_compared import Matched
from .components import Note

MODEL, SIDE, PROMPT = "model", "side", "prompt"
VALUE, WEIGHT, UNITS = "_value", "_weight", "_units"
Method = Literal["moments", "reml"]
KNOWN = ("order", "wording", "prompt", "judge", "judge_model", "seed")
"""Factors that change how a thing is asked, by the names that probes give them: facets wherever they vary."""
SAMPLED = ("prompt", "seed")
"""Of these, those whose levels are samples."""
MOST_FACETS = 6
SHOWN = 10
"""Levels that an error names."""


class VarianceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The measure of an analysis of variance, its facets, and which of them are samples."""

    metric: str = ""
    """By default the first of the study that declares its measures."""
    measure: str = ""
    """By default the first mean of the metric that has a neutral value."""
    facets: tuple[str, ...] = ()
    """By default the declared clusters and groupings, the models, and what changes how a thing is asked."""
    random: tuple[str, ...] = ()
    """Facets to generalise over besides the declared clusters."""
    fixed: tuple[str, ...] = ()
    """Facets not to generalise over."""
    object: str = ""
    """The facet whose levels are told apart; by default the models, of several runs."""
    where: Mapping[str, str] = {}
    """Only the rows with these levels."""
    interactions: int | None = None
    """Most facets of an interaction; by default 3 of up to four facets, and 2 of more."""
    method: Method = "moments"
    """`moments`: ANOVA, or Henderson's method 1 where cells are unequal; `reml`: restricted maximum likelihood."""
    level: float = 0.95
    error: float | None = None
    """The standard error that is wanted; by default half of what the run has."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one measure, of one run or several."""

    metric: str
    measure: str
    words: Measure
    neutral: float | None
    rows: pl.DataFrame
    """A row each: `_value`, `_weight`, and the facets as texts."""
    facets: tuple[str, ...]
    random: frozenset[str]
    object: str
    missing: int
    """Rows without a value, which are left out."""
    value: float | None
    """The headline; of several models that of the mean model."""
    naive: float | None
    """Standard error if all rows were independent."""
    notes: tuple[Note, ...]


def outcome_of(runs: Mapping[str, Scores], choice: VarianceOptions) -> Outcome:
    """Return the rows of the chosen measure, of runs of one study by label.

    Raises:
        UsageError: there is no such metric, measure or facet, or no mean is measured, or no row has a value.
    """
    first = next(iter(runs.values()))
    name, metric, options = _metric(first, choice)
    frames, found = [], None
    for label, scores in runs.items():
        made = _rows(metric, options, scores, choice)
        found = found or made
        frames.append(made[2].with_columns(pl.lit(label).alias(MODEL)) if len(runs) > 1 else made[2])
    assert found is not None
    design, measure, _ = found
    rows = pl.concat(frames, how="diagonal_relaxed")
    for factor, level in choice.where.items():
        rows = _with_level(rows, factor, level, measure.name)
    known = rows.filter(pl.col(VALUE).is_not_null())
    if known.height < 2:
        raise DataError(
            f"{measure.name} has {known.height} rows with a value; 2 are needed at least.", code="variance.nothing"
        )
    facets, notes = _facets(known, design, measure, choice, len(runs) > 1)
    random = {name for name in facets if name in (*design.clusters, *SAMPLED)} | set(choice.random) & set(facets)
    asked = choice.object or (MODEL if len(runs) > 1 and MODEL in facets else "")
    if asked and asked not in facets:
        raise UnknownNameError("facet", asked, facets, code="variance.facet")
    weighted = known.with_columns(_weights(known, asked).alias(WEIGHT))
    objects = weighted[asked].n_unique() if asked else 1
    value = float((weighted[VALUE] * weighted[WEIGHT]).sum()) / objects
    return Outcome(
        metric=name,
        measure=measure.name,
        words=measure.words,
        neutral=measure.neutral,
        rows=weighted.select(VALUE, WEIGHT, *(pl.col(own).cast(pl.String).fill_null("") for own in facets)),
        facets=facets,
        random=frozenset(random - set(choice.fixed)),
        object=asked,
        missing=rows.height - known.height,
        value=value if np.isfinite(value) else None,
        naive=_naive(weighted, objects),
        notes=tuple(notes),
    )


def _metric(scores: Scores, choice: VarianceOptions) -> tuple[str, DeclaredMetric, Any]:
    known = scores.metrics
    if choice.metric and choice.metric not in known:
        raise UnknownNameError("metric", choice.metric, known)
    for name in [choice.metric] if choice.metric else known:
        metric, options = known[name]
        if isinstance(metric, DeclaredMetric):
            return name, metric, options
    names = ", ".join(repr(name) for name in ([choice.metric] if choice.metric else known))
    raise UsageError(
        f"metric {names} does not declare what its rows and facets are (statistics.DeclaredMetric), so no components "
        "can be estimated.",
        code="variance.undeclared",
    )


def _rows(
    metric: DeclaredMetric, options: Any, scores: Scores, choice: VarianceOptions
) -> tuple[Declaration, SummedMeasure, Any]:
    """Return the design of the chosen measure, the measure, and its rows with every column."""
    observations = scores.seen_by(metric)
    made = metric.rows(observations, options)
    found = metric.design_of(made, options)
    designs = (found,) if isinstance(found, Declaration) else tuple(found)
    means = [(design, m) for design in designs for m in design.summed if m.is_mean and m.report]
    ranked = sorted(means, key=lambda one: (not one[1].main, one[1].neutral is None))
    if choice.measure:
        ranked = [one for one in means if one[1].name == choice.measure]
        if not ranked:
            raise UnknownNameError("measure", choice.measure, dict.fromkeys(m.name for _, m in means))
    if not ranked:
        raise UsageError("the metric has no measure that is a mean of rows.", code="variance.no-mean")
    design, measure = ranked[0]
    own = made if design.rows is None else design.rows(made)
    over = settled(design, own)
    table = Table(prepared(own, over))
    part = next(iter(parts(table, over, ())))
    chosen = choose(measure, part)
    values = measure.scale * chosen.sample.values
    value = values[:, 0] - values[:, 1] if isinstance(measure, Matched) else values[:, 0]
    rows = _told(table.frame[chosen.rows], observations, over, choice)
    sides = chosen.sample.sides
    units: Any = np.arange(rows.height)
    if over.macro and not measure.independent:
        units = rows[UNIT]
    return (
        over,
        measure,
        rows.with_columns(
            pl.Series(VALUE, value).fill_nan(None),
            pl.Series(UNITS, units).cast(pl.String),
            # Levels that count alike are no sides: they are a facet by their own name.
            pl.Series(
                SIDE, np.where(sides == 0, "first", "second") if measure.recipe().sides else np.full(len(rows), "")
            ),
            (pl.col(measure.average).cast(pl.String) if measure.average else pl.lit("")).alias("_average"),
        ),
    )


def _told(rows: pl.DataFrame, observations: pl.DataFrame, design: Declaration, choice: VarianceOptions) -> pl.DataFrame:
    """Return rows with the factors that pivoting left out, where a row has one level of them."""
    index = design.identity
    asked = [*choice.facets, *choice.where, *KNOWN]
    lost = [n for n in dict.fromkeys(asked) if n not in rows.columns and n in observations.columns]
    if repeated(rows) and PROMPT not in rows.columns:
        rows = rows.with_columns(pl.col(PROMPT_KEY).alias(PROMPT))
    if not lost or index not in observations.columns:
        return rows
    found = observations.group_by(index).agg(
        *(pl.col(name).first() for name in lost), *(pl.col(name).n_unique().alias(f"_n {name}") for name in lost)
    )
    one = [name for name in lost if (found[f"_n {name}"] == 1).all()]
    return rows.join(
        found.select(pl.col(index).cast(pl.String).alias(ROW), *one), on=ROW, how="left", maintain_order="left"
    )


def _column(rows: pl.DataFrame, name: str) -> str:
    if name.startswith("_") or name not in rows.columns:
        known = [column for column in rows.columns if not column.startswith("_") and "." not in column]
        raise UnknownNameError("facet", name, known, code="variance.facet")
    return name


def _with_level(rows: pl.DataFrame, factor: str, level: str, measure: str) -> pl.DataFrame:
    """Return the rows with a level of a factor.

    Raises:
        DataError: there are none.
    """
    known = rows[_column(rows, factor)].cast(pl.String)
    if rows.height and not (known == level).any():
        there = known.drop_nulls().unique().sort()
        told = f"{', '.join(there.head(SHOWN))}{' ...' if len(there) > SHOWN else ''}"
        raise DataError(
            f"{measure} has no row with {factor} = {level!r}. Its levels are {told}.", code="variance.nothing"
        )
    return rows.filter(known == level)


def _facets(
    rows: pl.DataFrame, design: Declaration, measure: SummedMeasure, choice: VarianceOptions, several: bool
) -> tuple[tuple[str, ...], list[Note]]:
    """Return the facets to analyse, each with levels of its own, and what was left out."""
    sided = [SIDE] if rows[SIDE].n_unique() > 1 else []
    ways = () if measure.independent else design.clusters
    declared = [*([MODEL] if several else []), *ways, *(n for n in KNOWN if n in rows.columns), *design.factors]
    asked = [_column(rows, name) for name in choice.facets] or list(dict.fromkeys(declared))
    for name in (*choice.random, *choice.fixed):
        if name not in asked:
            raise UnknownNameError("facet", name, asked, code="variance.facet")
    kept, notes = list[str](), list[Note]()
    places = {name: rows[name].cast(pl.String).fill_null("").rank("dense") for name in (*asked, *sided)}
    for name in (*sided, *asked):
        count = places[name].n_unique()
        same = next((other for other in kept if _same(places[name], places[other])), None)
        if count < 2:
            level = rows[name][0]
            notes.append(Note("variance.one-level", f"{name} has one level ({level}): nothing is known of others."))
        elif same is not None and same != SIDE:
            text = f"{name} and {same} change together: what {same} does here is of both."
            notes.append(Note("variance.confounded", text))
        elif same == SIDE:
            kept[kept.index(SIDE)] = name
        elif len(kept) < MOST_FACETS:
            kept.append(name)
        else:
            text = f"{name} is not analysed: at most {MOST_FACETS} facets are. Name those you want with --facets."
            notes.append(Note("variance.facets", text))
    if choice.facets and not set(kept) & set(asked):
        text = "; ".join(note.text for note in notes)
        raise DataError(f"no facet is left: {text}", code="variance.facets")
    return tuple(kept), notes


def _same(one: pl.Series, other: pl.Series) -> bool:
    pairs = pl.DataFrame({"one": one, "other": other}).n_unique()
    return pairs == one.n_unique() == other.n_unique()


def _weights(rows: pl.DataFrame, asked: str) -> pl.Expr:
    """Return the weight of every row in the headline of its object: sides, averaged levels and units count alike."""
    about = [asked] if asked else []
    level = [*about, SIDE, "_average"]
    unit = [*level, UNITS]
    sign = pl.when(pl.col(SIDE) == "second").then(-1.0).otherwise(1.0)
    averaged = pl.col("_average").n_unique().over([*about, SIDE])
    return sign / pl.len().over(unit) / pl.col(UNITS).n_unique().over(level) / averaged


def _naive(rows: pl.DataFrame, objects: int) -> float | None:
    """Return the standard error of the headline of rows that were independent."""
    left = rows[VALUE] - rows.select(pl.col(VALUE).mean().over([SIDE]))[VALUE]
    free = rows.height - rows[SIDE].n_unique()
    if free < 1:
        return None
    variance = float((left**2).sum()) / free
    return float(np.sqrt(variance * float((rows[WEIGHT] ** 2).sum()) / objects))
