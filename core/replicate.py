"""Published values beside measured ones: which of them came out again, which did not, and which nobody can judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from .contracts import Estimate
from .errors import DataError, UnknownNameError, UsageError
from .records import Scalar
from .registry import Published, Registry
from .scoring import Scores, score, score_published
from .store import Store
from .store.reading import list_runs
from .study import SUBJECT, Catalogue

Verdict = Literal["reproduced", "not reproduced", "cannot be judged"]
REPRODUCED: Verdict = "reproduced"
NOT: Verdict = "not reproduced"
UNJUDGED: Verdict = "cannot be judged"
MODEL_OPTION = "published_model"
"""The option by which a probe is told whose rows of a published file to read."""
SLACK = 1e-9
"""60.48 - 60.47 is not 0.01 in binary."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One published value, and what this project says of it."""

    study: str
    measure: str
    group: dict[str, Scalar]
    published: float
    measured: float | None
    tolerance: float | None
    verdict: Verdict
    why: str = ""
    """Why it cannot be judged."""
    model: str = ""
    source: str = ""


class ReplicateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to compare with the published values."""

    runs: tuple[str, ...] = ()
    """Names of runs; empty takes the latest run of each study."""
    scores: str | None = None
    """A file of published scores or counts, in place of runs."""
    model: str | None = None
    """Whose published values to compare with, where several models have some."""
    assignments: Mapping[str, Any] = {}


def family(registry: Registry, name: str) -> tuple[str, ...]:
    """Return the studies of a name: the study itself, or all that begin with it and a hyphen.

    Raises:
        UnknownNameError: there is no such study.
        UsageError: none of them has published values.
    """
    found = [name] if name in registry.studies else [s for s in registry.studies if s.startswith(f"{name}-")]
    if not found:
        raise UnknownNameError("study", name, registry.studies)
    published = tuple(study for study in found if registry.studies[study].published)
    if not published:
        raise UsageError(f"no value is published for {', '.join(found)}: add [[studies.{found[0]}.published]].")
    return published


def replicate(catalogue: Catalogue, name: str, options: ReplicateOptions, store: Store | None) -> list[Judged]:
    """Compare a study, or a family of studies, with its published values.

    Raises:
        UnknownNameError: there is no such study or run.
        UsageError: there is no run to compare, or it is not said with whose values to compare it.
        DataError: the file has nothing of any model that has published values.
    """
    studies = family(catalogue.registry, name)
    if options.scores is not None:
        return [judged for study in studies for judged in _of_file(catalogue, study, options)]
    if store is None:
        raise UsageError("there is nothing to compare: give runs of a store, or a file with --scores.")
    runs = _runs(store, studies, options.runs)
    return [judged for run in runs for judged in _of_run(catalogue, store, run, options)]


def judge(values: Sequence[Published], study: str, scores: Scores) -> list[Judged]:
    """Compare published values with the estimates of one scored run."""
    estimates = [estimate for group in scores.estimates.values() for estimate in group]
    return [_judge(value, study, estimates) for value in values]


def _judge(value: Published, study: str, estimates: Sequence[Estimate]) -> Judged:
    matches = [e for e in estimates if e.metric == value.measure and e.group == value.group]
    measured = matches[0].value if len(matches) == 1 else None
    verdict, why = UNJUDGED, ""
    if len(matches) != 1:
        why = "the run has no such measure" if not matches else "the run has several such measures"
    elif measured is None:
        why = matches[0].note or "the measure is undefined here"
    elif value.tolerance is None:
        why = "no tolerance is given"
    else:
        verdict = REPRODUCED if abs(measured - value.value) <= value.tolerance + SLACK else NOT
    judged = _unjudged(value, study, why)
    return msgspec.structs.replace(judged, measured=measured, verdict=verdict)


def _unjudged(value: Published, study: str, why: str) -> Judged:
    return Judged(
        study=study,
        measure=value.measure,
        group=dict(value.group),
        published=value.value,
        measured=None,
        tolerance=value.tolerance,
        verdict=UNJUDGED,
        why=why,
        model=value.model,
        source=value.source,
    )


def _of_file(catalogue: Catalogue, study: str, options: ReplicateOptions) -> list[Judged]:
    """Score a file once per model that has published values, where the probe can be told which to read."""
    published = catalogue.registry.studies[study].published
    chosen = _models(published, options.model)
    probe = catalogue.plugins.load("probe", catalogue.registry.studies[study].probe)
    told = MODEL_OPTION in probe.options.__struct_fields__ and MODEL_OPTION not in options.assignments
    if not told:
        resolved = catalogue.study(study, {}, options.assignments)
        return judge(_values(published, _one(chosen)), study, score_published(catalogue, resolved, str(options.scores)))
    found = []
    for model in chosen:
        resolved = catalogue.study(study, {}, {**options.assignments, MODEL_OPTION: model})
        values = _values(published, model)
        try:
            found.extend(judge(values, study, score_published(catalogue, resolved, str(options.scores))))
        except DataError as error:
            found.extend(_unjudged(value, study, str(error)) for value in values)
    if all(one.why for one in found):
        raise DataError(found[0].why)
    return found


def _of_run(catalogue: Catalogue, store: Store, run: str, options: ReplicateOptions) -> list[Judged]:
    scores = score(catalogue, store, run, options.assignments)
    study = scores.manifest.study
    published = catalogue.registry.study(study.name).published
    models = _models(published, options.model)
    own = [model for model in models if model.lower() == study.roles.get(SUBJECT, "").lower()]
    return judge(_values(published, _one(own or models)), study.name, scores)


def _models(published: Sequence[Published], wanted: str | None) -> list[str]:
    models = list(dict.fromkeys(value.model for value in published if value.model))
    if wanted is None:
        return models
    if wanted not in models:
        raise UnknownNameError("model with published values", wanted, models)
    return [wanted]


def _one(models: Sequence[str]) -> str:
    if len(models) > 1:
        raise UsageError(f"values are published for {', '.join(models)}. Say with whose to compare: --model NAME.")
    return models[0] if models else ""


def _values(published: Sequence[Published], model: str) -> list[Published]:
    """Return what is published of a model; what is said of no model (the size of a design) is no result."""
    return [value for value in published if value.model == model]


def _runs(store: Store, studies: Sequence[str], wanted: Sequence[str]) -> list[str]:
    if wanted:
        return list(wanted)
    latest = {run.study: run.name for run in list_runs(store)}
    if not (found := [latest[study] for study in studies if study in latest]):
        raise UsageError(f"the store has no run of {', '.join(studies)}. Run or import one first, or give --scores.")
    return found
