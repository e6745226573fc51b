"""Compare the ranks of models across studies, by the distance of each measure from neutral."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ..catalogue.plugins import blamed
from ..catalogue.study import SUBJECT, Catalogue
from ..contracts import Metric
from ..contracts.errors import UsageError
from ..scoring.score import Scores
from .check import by_study, ensure_comparable
from .compare import listings_of
from .differences import Difference
from .marking import marked
from .pair import key_of
from .records import CompareOptions, Comparison

MODELS, STUDIES = 3, 2
"""Minimum numbers of models and of studies for rank agreement."""


def ranks_possible(runs: Mapping[str, Scores]) -> bool:
    """Return whether the runs are of two or more studies, with three or more models in each of two."""
    return len(by_study(runs)) >= STUDIES and _enough(runs)


def rank_runs(catalogue: Catalogue, runs: Mapping[str, Scores], options: CompareOptions) -> Comparison:
    """Return Kendall's tau between each two measures of different studies, over the models that have both.

    A model's place under a measure is its mean distance from neutral over the estimates the study shows first.

    Raises:
        UsageError: fewer than two studies or three models, one model twice in a study, or runs of one study that
            differ in their options.
    """
    studies = by_study(runs)
    if not ranks_possible(runs):
        have = "; ".join(f"{study}: {len(own)}" for study, own in studies.items())
        raise UsageError(
            f"ranks need {MODELS} or more models in each of {STUDIES} or more studies; there are {have}.",
            code="compare.too-few",
        )
    notes: list[str] = []
    for own in studies.values():
        if len(own) > 1:
            notes += ensure_comparable(catalogue, own, allow_different=options.allow_different)
    name = catalogue.registry.defaults["ranks"]
    metric: Metric = catalogue.plugins.load("metric", name)()
    settings = metric.options()
    with blamed(catalogue.plugins.offers["metric"][name].plugin, f"metric {name!r}"):
        estimates = metric.compute(_places(studies), settings)
    found = tuple(Difference(e, None, None) for e in estimates)
    comparison = Comparison(
        title=f"Ranks of {len(_models(runs.values()))} models across {len(studies)} studies",
        runs=dict(runs),
        differences=found,
        headline=found,
        conclusion=metric.conclude(estimates),
        notes=tuple(notes),
        methods=(metric.methods(settings),),
        charts=tuple(metric.figures(estimates)),
        listings=listings_of(catalogue, runs),
        ranked=True,
    )
    return marked(comparison)


def _models(runs: Iterable[Scores]) -> set[str]:
    return {_model(scores) for scores in runs}


def _model(scores: Scores) -> str:
    """Return the asked model by the adapter's identity, so that one model under two names counts once."""
    identity = scores.manifest.identities.get(SUBJECT)
    own = scores.manifest.study.roles.get(SUBJECT, "")
    return own or (identity.model if identity else scores.run.name)


def _enough(runs: Mapping[str, Scores]) -> bool:
    return sum(len(_models(own.values())) >= MODELS for own in by_study(runs).values()) >= STUDIES


def _places(studies: Mapping[str, Mapping[str, Scores]]) -> pl.DataFrame:
    """Return the columns `study`, `measure`, `model` and `distance`, the mean over the groups all its models have."""
    rows: list[dict[str, Any]] = []
    for study, runs in studies.items():
        seen: dict[str, str] = {}
        distances = {}
        for scores in runs.values():
            model = _model(scores)
            if model in seen:
                raise UsageError(
                    f"{seen[model]} and {scores.run.name} are runs of {study} on one model, {model!r}.",
                    code="compare.twice",
                )
            seen[model] = scores.run.name
            distances[model] = _distances(scores)
        shared = set.intersection(*(set(own) for own in distances.values()))
        rows += [
            {"study": study, "measure": key[0], "model": model, "distance": own[key]}
            for model, own in distances.items()
            for key in own
            if key in shared
        ]
    schema = {"study": pl.String, "measure": pl.String, "model": pl.String, "distance": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema)
    return frame.group_by("study", "measure", "model", maintain_order=True).agg(pl.col("distance").mean())


def _distances(scores: Scores) -> dict[tuple[Any, ...], float]:
    return {
        key_of(e.metric, e.group): abs(e.value - e.neutral)
        for e in scores.headline
        if e.value is not None and e.neutral is not None
    }
