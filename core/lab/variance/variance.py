"""`Variance`: where the variance of a measure comes from, and what would make its error smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec
import polars as pl

from ...catalogue.study import SUBJECT, Catalogue
from ...compare.check import differences_between
from ...contracts.errors import DataError, UnknownNameError, UsageError
from ...engine.plan import StagePlan, plan
from ...scoring.score import Scores, opened
from ...store import Store
from .components import Cells, Components, Note, estimate
from .errors import Headline, Planned, designs, shares_of
from .outcome import VALUE, WEIGHT, Method, Outcome, VarianceOptions, outcome_of
from .restricted import restricted

HALF = 0.5
"""Of the present standard error: what the cheapest design is sought for where no error is asked for."""


class Variance(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Components, the error of the headline and its reliability, and designs."""

    runs: Mapping[str, Scores]
    """By label."""
    outcome: Outcome
    found: Components
    headline: Headline
    designs: tuple[tuple[str, int, Planned], ...]
    """A facet, how many times its levels, and the design; the run's own first."""
    wanted: float
    cheapest: Planned | None
    """The design with the fewest answers whose error is at most `wanted`."""
    asked: StagePlan
    """What `plan` says of the study as it was run, on an empty store."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return what cannot be estimated, and what still can."""
        return (*self.outcome.notes, *self.found.notes)

    def requests(self, design: Planned) -> int:
        """Return the requests of a design for one model, in proportion to its answers."""
        return round(self.asked.trials * design.times)

    def cost(self, design: Planned) -> float | None:
        """Return what they cost in US dollars by the registry's prices; None where no price is known."""
        return None if self.asked.cost is None else self.asked.cost * design.times


def variance(catalogue: Catalogue, store: Store, names: Sequence[str], choice: VarianceOptions) -> Variance:
    """Estimate the components of a measure from the observations of one run, or of runs that differ in the model.

    Raises:
        UsageError: there is no such run, measure or facet, or the runs are of different studies or designs.
        DataError: nothing can be estimated.
    """
    runs = _opened(catalogue, store, names)
    outcome = outcome_of(runs, choice)
    headline, found = analysed(outcome, choice)
    now = headline.planned({})
    wanted = choice.error if choice.error is not None else HALF * now.error
    if not wanted > 0 and choice.error is not None:
        raise UsageError(f"error is {wanted}. Give a number above 0.", code="options.value")
    return Variance(
        runs=runs,
        outcome=outcome,
        found=found,
        headline=headline,
        designs=tuple(designs(headline)),
        wanted=wanted,
        cheapest=headline.cheapest(wanted) if wanted > 0 else None,
        asked=plan(catalogue, next(iter(runs.values())).made)[0],
    )


def analysed(outcome: Outcome, choice: VarianceOptions) -> tuple[Headline, Components]:
    """Return the components of an outcome, and its headline.

    Raises:
        UsageError: there is no such method.
        DataError: no row is left for the residual; there are too many levels for REML.
    """
    if choice.method not in get_args(Method):
        raise UnknownNameError("method", choice.method, get_args(Method))
    rows = outcome.rows
    codes = {name: (rows[name].rank("dense").cast(pl.Int64) - 1).to_numpy() for name in outcome.facets}
    cells = Cells(codes, rows[VALUE].cast(pl.Float64).to_numpy(), rows[WEIGHT].to_numpy())
    most = choice.interactions or (3 if len(codes) <= 4 else 2)
    found = estimate(cells, most, choice.level)
    if choice.method == "reml":
        found = restricted(found)
    headline = Headline(
        components=found,
        shares=shares_of(found, cells, outcome.object),
        random=outcome.random,
        object=outcome.object,
        value=outcome.value,
        neutral=outcome.neutral,
        repeated=cells.replicated,
    )
    return headline, found


def _opened(catalogue: Catalogue, store: Store, names: Sequence[str]) -> dict[str, Scores]:
    """Return the runs by their models, or by their names where a model has several.

    Raises:
        UsageError: a run is named twice, or they are of different studies or designs.
    """
    found = list[Scores]()
    for name in names:
        scores, instrument = opened(catalogue, store, name)
        found.append(msgspec.structs.replace(scores, metrics=instrument.metrics, local=scores.manifest.study))
    first = found[0]
    for place, scores in enumerate(found[1:], start=1):
        pair = f"{first.run.name} and {scores.run.name}"
        if any(scores.run.name == other.run.name for other in found[:place]):
            raise UsageError(f"run {scores.run.name} is named twice. Name each once.", code="variance.twice")
        if scores.manifest.study.name != first.manifest.study.name:
            studies = f"{first.manifest.study.name!r} and {scores.manifest.study.name!r}"
            raise UsageError(
                f"{pair} are runs of different studies, {studies}: they share no facets. Analyse each study alone.",
                code="variance.studies",
            )
        if differ := [str(one) for one in differences_between(catalogue, first, scores)]:
            raise UsageError(
                f"{pair} differ: {'; '.join(differ)}. What that does and what the model does cannot be told apart; "
                "analyse each alone, or run it again with the same.",
                code="variance.design",
            )
    for scores in found:
        if scores.last.is_empty():
            raise DataError(
                f"run {scores.run.name} has no answers of its last stage. Finish it: prejudge resume {scores.run.name}",
                code="run.incomplete",
            )
    models = [scores.manifest.study.roles.get(SUBJECT, scores.run.name) for scores in found]
    labels = models if len(set(models)) == len(models) else [scores.run.name for scores in found]
    return dict(zip(labels, found, strict=True))


def component_rows(found: Variance) -> list[dict[str, Any]]:
    """Return a row per component: the variance as estimated, its interval, and its parts of the whole."""
    every = found.found.components
    squared, total = float(found.headline.added.sum()), found.found.total
    return [
        {
            "component": one.term.name,
            "levels": one.term.levels,
            "df": one.freedom,
            "variance": one.variance,
            "low": one.low,
            "high": one.high,
            "bounded": one.bounded,
            "share of variance (%)": 100 * one.bounded / total if total else None,
            "in the error": bool(error),
            "share of squared error (%)": 100 * float(added) / squared if squared else None,
        }
        for one, error, added in zip(every, found.headline.errors, found.headline.added, strict=True)
    ]


def design_rows(found: Variance) -> list[dict[str, Any]]:
    """Return a row per design: levels, error, smallest detectable effect, requests and cost; the cheapest last."""
    named = [(f"{times} x {name}" if name else "as run", design) for name, times, design in found.designs]
    if found.cheapest is not None:
        named.append((f"fewest answers for {found.wanted:.3g}", found.cheapest))
    return [
        {
            "design": name,
            **design.levels,
            "standard error": design.error,
            "detectable": design.detectable,
            "requests": found.requests(design),
            "cost (USD)": found.cost(design),
        }
        for name, design in named
    ]
