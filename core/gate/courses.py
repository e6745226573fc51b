"""Which units a study is asked in, in which order, and the means of an estimate over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from ..compare.pair import key_of, parts_of
from ..contracts import FACET, Metric, Stage, Trial, facet_columns
from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.estimates import Estimate, Key
from ..contracts.words import counted, level_word
from ..design import Roles
from ..scoring.planned_units import planned_design
from ..statistics.betting import Array, Mean

LEVEL = "_level"
SHOWN = 5
"""Estimates that an error names."""


class Home(msgspec.Struct, frozen=True):
    """Where the units of an estimate say their level of a facet."""

    column: str
    """A column of `Metric.units`."""
    levels: Mapping[str, str] | None = None
    """The level by the column's value; None: the value is the level."""

    def of(self, units: pl.DataFrame) -> pl.Series:
        """Return the level of each unit."""
        values = units[self.column].cast(pl.String)
        return values if self.levels is None else values.replace_strict(self.levels, default=None)


class Followed(msgspec.Struct, frozen=True):
    """An estimate by the design: what its means are of."""

    metric: str
    """The metric that gives it."""
    estimate: Estimate
    """As it is before an answer, with its neutral value."""
    home: Home
    """Where its units say their level of the facet."""
    sides: Literal["one", "within", "apart"]
    """One mean; a difference within each level; or a difference between levels."""
    least: float
    greatest: float
    most: tuple[float, ...]
    """Largest number of answers of a level, of each mean."""
    typical: tuple[float, ...]


class Course(msgspec.Struct, frozen=True):
    """The levels of one facet, in the order in which they are asked as whole units."""

    facet: str
    declared: bool
    """Whether the study declares that its levels are a sample; else the claim is for these levels only."""
    levels: tuple[str, ...]
    trials: Mapping[str, int]
    """Number of trials of each level."""
    followed: Mapping[Key, Followed]

    def level_of(self, trial: Trial) -> str | None:
        """Return the level of a trial; None for one that belongs to no unit, and is asked first."""
        level = trial.factors.get(self.facet)
        return None if level is None else level_word(level)

    @property
    def claim(self) -> str:
        """Return whom a result is about."""
        return f"for other levels of {self.facet}" if self.declared else f"for these levels of {self.facet} only"

    def asked(self, observations: pl.DataFrame) -> tuple[str, ...]:
        """Return the levels whose trials are recorded, in order; one that was left half asked is none."""
        there = dict(observations.group_by(pl.col(self.facet).cast(pl.String)).len().iter_rows())
        found = [level for level in self.levels if level in there]
        if found and there[found[-1]] < self.trials[found[-1]]:
            found.pop()
        return tuple(found)

    def means(
        self, metrics: Mapping[str, tuple[Metric, Any]], observations: pl.DataFrame
    ) -> dict[Key, tuple[Mean, ...]]:
        """Return the means of every followed estimate, of the levels that were asked."""
        order = {level: place for place, level in enumerate(self.asked(observations))}
        found: dict[Key, tuple[Mean, ...]] = {}
        for name, (metric, options) in metrics.items():
            if all(one.metric != name for one in self.followed.values()):
                continue
            for key, rows in parts_of(metric.units(observations, options)):
                if (one := self.followed.get(key)) is not None and one.metric == name:
                    found[key] = _means(one, rows, order)
        return found


def in_order(levels: Sequence[str], seed: int) -> list[str]:
    """Return levels in a random order that follows from the seed, whatever order they came in."""
    return sorted(levels, key=lambda level: sha256(f"{seed}:{level}".encode()).digest())


def course_of(
    stages: Sequence[Stage],
    metrics: Mapping[str, tuple[Metric, Any]],
    wanted: Callable[[Sequence[Estimate], Metric], Collection[Key]],
    facet: str = "",
    seed: int = 0,
    varied: Roles | None = None,
) -> Course:
    """Return the course of a study for some of its estimates, before anything is asked.

    Args:
        stages: of the study.
        metrics: with their options.
        wanted: returns the keys of the estimates to follow, of those of a metric.
        facet: the factor whose levels are the units; by default the declared one with the most levels.
        seed: of the order.
        varied: what the study declares that it varies.

    Raises:
        UsageError: the study has several stages; an estimate is no mean of bounded rows, or no factor of the trials
            names the levels of its units.
    """
    if len(stages) > 1:
        names = ", ".join(stage.name for stage in stages)
        raise UsageError(
            f"the study asks in {len(stages)} stages ({names}), and what a later one asks follows from all answers of "
            "the earlier ones. Run it whole, then use prejudge gate.",
            code="anytime.stages",
        )
    design = planned_design(stages, None, varied)
    frame = design.observations
    assert frame is not None
    parts: dict[Key, tuple[str, pl.DataFrame]] = {}
    blank: dict[Key, Estimate] = {}
    declared = () if varied is None else varied.facets()
    ways, there = dict.fromkeys(facet.name for facet in declared), dict[str, None]()
    for name, (metric, options) in metrics.items():
        made = metric.compute(frame, options)
        there |= dict.fromkeys(f"{e.metric} (by {', '.join(e.group) or 'nothing'})" for e in made)
        chosen_keys = wanted(made, metric)
        every = {key: e for e in made if (key := key_of(e.metric, e.group)) in chosen_keys}
        rows = {key: part for key, part in parts_of(metric.units(frame, options)) if key in every}
        ensure_means(every, rows)
        _ensure_bounded(rows)
        blank |= every
        parts |= {key: (name, part) for key, part in rows.items()}
        ways |= dict.fromkeys(_declared(options, rows.values()))
    if not parts:
        raise UsageError(
            f"no rule selects an estimate of this study. There are {'; '.join(there)}.", code="anytime.nothing"
        )
    factors = _Factors(frame)
    chosen = _facet(factors, stages[0].factors, ways, [part for _, part in parts.values()], facet)
    counts = dict(frame.group_by(pl.col(chosen).cast(pl.String)).len().iter_rows())
    levels = in_order([level for level in counts if level is not None], seed)
    if len(levels) < 2:
        raise UsageError(
            f"{chosen!r} has {counted(len(levels), 'level')}, and a run may end after each. Name a factor with more.",
            code="anytime.unit",
        )
    followed = {
        key: _followed(blank[key], name, part, factors.home(part, chosen)) for key, (name, part) in parts.items()
    }
    return Course(chosen, chosen in ways, tuple(levels), counts, followed)


def ensure_means(every: Collection[Key], rows: Mapping[Key, object]) -> None:
    """Refuse estimates that are not among those that can be followed.

    Raises:
        UsageError: naming the first ones, and what can be.
    """
    if lost := [key for key in every if key not in rows]:
        known = "; ".join(_named(key) for key in list(rows)[:SHOWN]) or "none"
        raise UsageError(
            f"{'; '.join(_named(key) for key in lost[:SHOWN])}: no mean of rows that the design has, so no bound on it "
            f"holds at every look. Of what the rules select, these are such means: {known}. Select only those.",
            code="anytime.measure",
        )


def _named(key: Key) -> str:
    group = ", ".join(f"{name} {level}" for name, level in key[1])
    return f"{key[0]} ({group})" if group else str(key[0])


def _ensure_bounded(rows: Mapping[Key, pl.DataFrame]) -> None:
    free = {str(key[0]) for key, part in rows.items() if part["least"].null_count() or part["greatest"].null_count()}
    if free:
        raise UsageError(
            f"{', '.join(sorted(free))}: an answer has no least and greatest value, and a bound that holds at every "
            "look needs both. Let the rules name a share instead.",
            code="anytime.unbounded",
        )


def _declared(options: Any, parts: Any) -> Iterator[str]:
    """Yield the facets whose levels are declared to be a sample."""
    over = getattr(options, "over", ())
    yield from (over,) if isinstance(over, str) else over or ()
    for part in parts:
        yield from (name.removeprefix(FACET) for name in facet_columns(part))


class _Factors:
    """The levels of the factors of trials, and which follow from those of another; each is worked out once."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self._levels: dict[str, frozenset[str]] = {}
        self._following: dict[tuple[str, str], dict[str, str] | None] = {}
        self._texts = [name for name, kind in frame.schema.items() if kind == pl.String]

    def levels(self, name: str) -> frozenset[str]:
        """Return the levels of a factor, as texts."""
        if name not in self._levels:
            self._levels[name] = frozenset(self._frame[name].unique().drop_nulls().cast(pl.String))
        return self._levels[name]

    def home(self, part: pl.DataFrame, facet: str) -> Home | None:
        """Return where units say their level of a facet: in a column of levels, or in one that these follow from."""
        columns = [name for name in (*reversed(facet_columns(part)), "unit") if not part[name].is_empty()]
        values = {name: set(part[name].unique().cast(pl.String)) for name in columns}
        for name in columns:
            if values[name] <= self.levels(facet):
                return Home(name)
        for name in columns:
            for factor in self._texts:
                if factor != facet and values[name] <= self.levels(factor):
                    if (levels := self._follows(factor, facet)) is not None:
                        return Home(name, levels)
        return None

    def _follows(self, factor: str, facet: str) -> dict[str, str] | None:
        """Return the level of a facet by that of a factor; None where the factor does not tell it."""
        if (factor, facet) not in self._following:
            pairs = self._frame.select(factor, pl.col(facet).cast(pl.String)).unique().drop_nulls()
            is_one = pairs[factor].n_unique() == pairs.height
            self._following[factor, facet] = dict(pairs.iter_rows()) if is_one else None
        return self._following[factor, facet]


def _facet(
    factors: _Factors, names: Sequence[str], ways: Mapping[str, None], parts: Sequence[pl.DataFrame], asked: str
) -> str:
    """Return the factor whose levels are the units."""
    fit = [name for name in names if all(factors.home(part, name) is not None for part in parts)]
    best = sorted(fit, key=lambda name: (name not in ways, -len(factors.levels(name))))
    if asked and asked not in best:
        raise UnknownNameError("unit", asked, best, code="anytime.unit")
    if not best:
        raise UsageError(
            f"no factor of the requests ({', '.join(names)}) names the units of every estimate that the rules look "
            "at. Let them look at fewer estimates.",
            code="anytime.unit",
        )
    return asked or best[0]


def _followed(estimate: Estimate, metric: str, part: pl.DataFrame, home: Home | None) -> Followed:
    assert home is not None
    order = {level: place for place, level in enumerate(sorted(set(home.of(part))))}
    signs = part["sign"].n_unique()
    counts = _sums(part.with_columns(pl.lit(0.0).alias("value"), pl.lit("ok").alias("status")), home, order)[1]
    both = bool(signs > 1 and (counts > 0).all(axis=0).mean() >= 0.5)  # half of the levels
    sides: Literal["one", "within", "apart"] = "one" if signs == 1 else "within" if both else "apart"
    sizes = [_weights(counts)] if sides == "within" else counts[:1] if sides == "one" else counts
    least, greatest = float(part["least"].min()), float(part["greatest"].max())  # type: ignore[arg-type]  # numbers
    return Followed(
        metric=metric,
        estimate=estimate,
        home=home,
        sides=sides,
        least=least,
        greatest=greatest,
        most=tuple(float(own.max()) for own in sizes),
        typical=tuple(float(own[own > 0].mean()) for own in sizes),
    )


def _weights(counts: Array) -> Array:
    """Return what the difference within each level counts: the harmonic mean of its answers on either side."""
    total = counts.sum(axis=0)
    weights: Array = 2 * counts[0] * counts[1] / np.where(total > 0, total, 1)
    return weights


def _sums(part: pl.DataFrame, home: Home, order: Mapping[str, int]) -> tuple[Array, Array]:
    """Return sums and counts of answers, shape (2, levels): the side that is added, and the one that is subtracted."""
    known = part.filter((pl.col("status") == "ok") & pl.col("value").is_not_null())
    known = known.with_columns(home.of(known).replace_strict(order, default=None).alias(LEVEL))
    found = known.drop_nulls(LEVEL).group_by(LEVEL, "sign").agg(pl.col("value").sum().alias("sum"), pl.len())
    sums, counts = np.zeros((2, len(order))), np.zeros((2, len(order)))
    side = (found["sign"] < 0).cast(pl.Int64).to_numpy()
    level = found[LEVEL].to_numpy()
    sums[side, level], counts[side, level] = found["sum"].to_numpy(), found["len"].to_numpy()
    return sums, counts


def _means(one: Followed, part: pl.DataFrame, order: Mapping[str, int]) -> tuple[Mean, ...]:
    """Return the means of an estimate: those of its sides, or that of the differences within levels."""
    sums, counts = _sums(part, one.home, order)
    least, greatest = one.least, one.greatest
    if one.sides == "within":
        weights, span = _weights(counts), greatest - least
        means = sums / np.where(counts > 0, counts, 1)
        sums, counts = (weights * (means[0] - means[1]))[None], weights[None]
        least, greatest = -span, span
    return tuple(
        Mean(sums=own, sizes=size, least=least, greatest=greatest, most=most, typical=typical)
        for own, size, most, typical in zip(sums, counts, one.most, one.typical, strict=False)
    )
