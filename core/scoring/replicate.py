"""Compare published with measured values: reproduced, not reproduced, or cannot be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..catalogue.published import Published, same_model, unresolved, whose
from ..catalogue.registry import Registry
from ..catalogue.study import SUBJECT, Catalogue
from ..contracts import Estimate
from ..contracts.errors import DataError, UnknownNameError, UsageError
from ..contracts.records import Scalar
from ..contracts.words import explained
from ..engine.manifest import IMPORTED, Manifest, manifest_of
from ..store import RunRow, Store, get_run
from ..store.reading import list_runs
from ..tables import Table, read_table
from .published import score_published
from .score import Scores, score

Verdict = Literal["reproduced", "not reproduced", "cannot be judged"]
REPRODUCED: Verdict = "reproduced"
NOT: Verdict = "not reproduced"
UNJUDGED: Verdict = "cannot be judged"
SEVERAL = "the run has several such measures"
MODEL_OPTION = "published_model"
"""The option of a probe that chooses the model whose rows of a published file are read."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One published value and the verdict on it."""

    study: str
    value: Published
    measured: float | None
    verdict: Verdict
    why: str = ""
    """Why it cannot be judged."""
    beside: str = ""
    """What it was compared with: a run and its model, or a file; empty if there was nothing to compare."""

    @property
    def group(self) -> Mapping[str, Scalar]:
        """Return the group that the value is for."""
        return self.value.group


class ReplicateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to compare with the published values."""

    runs: tuple[str, ...] = ()
    """Names of runs; empty takes, of each study, the latest run of each model that has published values."""
    scores: str | None = None
    """A file of published scores or counts, in place of runs."""
    model: str | None = None
    """Model whose published values to compare with, if several models have them."""
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
        raise UsageError(
            f"no value is published for {', '.join(found)}: add [[studies.{found[0]}.published]].",
            code="published.none",
        )
    return published


def replicate(catalogue: Catalogue, name: str, options: ReplicateOptions, store: Store | None) -> list[Judged]:
    """Compare a study, or a family of studies, with its published values.

    Raises:
        UnknownNameError: there is no such study or run.
        UsageError: there is no run to compare, or several models have published values and none is chosen.
        DataError: the file has nothing of any model that has published values.
    """
    studies = family(catalogue.registry, catalogue.adopt(name))
    if options.scores is not None:
        return [judged for study in studies for judged in _of_file(catalogue, study, options)]
    runs = [] if store is None else list_runs(store)
    if store is None or not any(run.study in studies for run in runs):
        first = studies[0]
        mend = f"Ask a model (prejudge run {first} --model NAME), import answers (prejudge import {first})"
        raise UsageError(
            f"there is no run of {' or '.join(studies)} to compare. {mend}, or give --scores FILE.",
            code="published.no-run",
        )
    chosen = [get_run(store, one) for one in options.runs] or latest_runs(
        catalogue.registry, studies, runs, options.model
    )
    found = [judged for run in chosen for judged in _of_run(catalogue, store, run, options)]
    without = [] if options.runs else [study for study in studies if study not in {run.study for run in chosen}]
    for study in without:
        why = f"there is no run of {study} by this model"
        wanted = {judged.value.model for judged in found}
        values = [v for v in catalogue.registry.studies[study].published if v.model and v.model in wanted]
        found.extend(_unjudged(value, study, why) for value in values)
    return found


def judge(values: Sequence[Published], study: str, scores: Scores, beside: str = "") -> list[Judged]:
    """Compare published values with the estimates of one scored run."""
    estimates = [estimate for group in scores.estimates.values() for estimate in group]
    return [msgspec.structs.replace(_judge(value, study, estimates), beside=beside) for value in values]


def _judge(value: Published, study: str, estimates: Sequence[Estimate]) -> Judged:
    matches = [e for e in estimates if e.metric == value.measure and e.group == value.group]
    if len(matches) != 1:
        return _unjudged(value, study, _unmatched(value, estimates) if not matches else SEVERAL)
    measured = matches[0].flat()[value.of]
    if measured is None:
        return _unjudged(value, study, explained(matches[0]) or "the measure is undefined here")
    if (agrees := value.agrees(measured)) is None:
        return _unjudged(value, study, value.reading or "no tolerance is given", measured)
    if why := unresolved(value, matches[0]):
        return _unjudged(value, study, why, measured)
    return Judged(study=study, value=value, measured=measured, verdict=REPRODUCED if agrees else NOT)


def _unmatched(value: Published, estimates: Sequence[Estimate]) -> str:
    """Describe what the run has instead of the published measure and group."""
    alike = [e for e in estimates if e.metric == value.measure]
    if not alike:
        return "the run has no such measure"
    nearest = max(alike, key=lambda e: len(e.group.items() & value.group.items()))
    cells = ", ".join(f"{name} = {level!r}" for name, level in nearest.group.items()) or "the whole"
    return f"the run has this measure for other groups, such as {cells}"


def _unjudged(value: Published, study: str, why: str, measured: float | None = None) -> Judged:
    return Judged(study=study, value=value, measured=measured, verdict=UNJUDGED, why=why)


def _of_file(catalogue: Catalogue, study: str, options: ReplicateOptions) -> list[Judged]:
    """Score a file once per model that has published values, if the probe has an option to choose the model.

    A CSV file with the columns `metric` and `value` is a table of estimates already, such as an exported one.
    """
    published, path = catalogue.registry.studies[study].published, str(options.scores)
    if path.endswith(".csv") and {"metric", "value"} <= set((table := read_table(path)).columns):
        return _of_estimates(table, study, published, options)
    # Measures that no metric of the study gives can only be in such a table.
    metrics = [catalogue.plugins.load("metric", name) for name in catalogue.registry.studies[study].metrics]
    given = {measure for metric in metrics for measure in metric.measures}
    published = tuple(value for value in published if not given or value.measure in given) or published
    probe = catalogue.plugins.load("probe", catalogue.registry.studies[study].probe)
    told = MODEL_OPTION in probe.options.__struct_fields__ and MODEL_OPTION not in options.assignments
    if not told:
        resolved = catalogue.study(study, {}, options.assignments)
        model = _one(_models(published, options.model), f"{path} does not name its model")
        return judge(_values(published, model), study, score_published(catalogue, resolved, path), path)
    found = []
    for model in _models(published, options.model):
        resolved = catalogue.study(study, {}, {**options.assignments, MODEL_OPTION: model})
        values = _values(published, model)
        try:
            found.extend(judge(values, study, score_published(catalogue, resolved, path), f"{model} in {path}"))
        except DataError as error:
            found.extend(_unjudged(value, study, str(error)) for value in values)
    if not any(one.beside for one in found):
        raise DataError(found[0].why, code="published.file")
    return found


def _of_estimates(table: Table, study: str, published: Sequence[Published], options: ReplicateOptions) -> list[Judged]:
    """Compare a table of estimates: a row each, with `metric`, `value`, perhaps `p` and `model`, and its group."""
    factors = dict.fromkeys(name for value in published for name in value.group if name in table.columns)
    levels = {(name, str(level)): level for value in published for name, level in value.group.items()}
    found = dict[str, list[Estimate]]()
    for row in table.rows:
        group = {name: levels.get((name, row.cells[name]), row.cells[name]) for name in factors if row.cells[name]}
        try:
            value, p = (float(cell) if (cell := row.cells.get(name, "")) else None for name in ("value", "p"))
        except ValueError:
            raise row.fault(f"value or p is not a number: {dict(row.cells)}", "published.row") from None
        estimate = Estimate.from_flat(metric=row.cells["metric"], group=group, value=value, p=p)
        found.setdefault(row.cells.get("model", ""), []).append(estimate)
    judged = []
    for name, estimates in found.items():
        own = _models(published, options.model)
        if options.model is None:
            own = whose(published, name, imported=False) or own
        beside = f"{name or 'estimates'} in {table.path}"
        values = _values(published, _one(own, f"{table.path} is of {name!r}"))
        judged += [msgspec.structs.replace(_judge(value, study, estimates), beside=beside) for value in values]
    return judged


def _of_run(catalogue: Catalogue, store: Store, run: RunRow, options: ReplicateOptions) -> list[Judged]:
    scores = score(catalogue, store, run.name, {**as_published(catalogue, run.study), **options.assignments})
    study = scores.manifest.study
    published = catalogue.registry.study(study.name).published
    name, imported = study.roles.get(SUBJECT, ""), scores.manifest.mode == IMPORTED
    own = published_of(catalogue.registry, scores.manifest, published)
    model = _one(
        _models(published, options.model) if options.model else own or _models(published, None),
        f"run {run.name} is of {name!r}",
    )
    material = f", about {', '.join(own_data)}" if (own_data := scores.manifest.study.own_data) else ""
    beside = f"run {run.name} of {name!r}{', imported' if imported else ''}{material}"
    judged = judge(_values(published, model), study.name, scores, beside)
    if not model or any(same_model(model, one) for one in own):
        return judged
    why = f"the values are those of {model}, the run is of {name!r}"
    return [msgspec.structs.replace(one, verdict=UNJUDGED, why=why) for one in judged]


def as_published(catalogue: Catalogue, study: str) -> Mapping[str, Any]:
    """Return the options by which answers are read as in the paper: none where a study has one reading."""
    options = catalogue.plugins.load("probe", catalogue.registry.study(study).probe).options
    return {"reading": "paper"} if "reading" in options.rereads else {}


def published_of(registry: Registry, manifest: Manifest, published: Sequence[Published]) -> list[str]:
    """Return the models with published values that are the model of a run: one, none, or several.

    A model goes by its name in the run, the name of its weights, or another name that the catalogue has for these.
    """
    called, identity = manifest.study.roles.get(SUBJECT, ""), manifest.identities.get(SUBJECT)
    names = {called: None}
    if identity is not None and manifest.mode != IMPORTED:
        alike = (name for name, entry in registry.models.items() if entry.settings.get("model") == identity.model)
        names |= dict.fromkeys([*alike, identity.model, identity.model.rpartition("/")[2]])
    found = (whose(published, name, imported=manifest.mode == IMPORTED) for name in names)
    return next((own for own in found if own), [])


def _models(published: Sequence[Published], wanted: str | None) -> list[str]:
    models = list(dict.fromkeys(value.model for value in published if value.model))
    if wanted is None:
        return models
    if wanted not in models:
        raise UnknownNameError("model with published values", wanted, models)
    return [wanted]


def _one(models: Sequence[str], what: str) -> str:
    if len(models) > 1:
        raise UsageError(
            f"{what}; values are published for {', '.join(models)}. Choose one with --model.",
            code="published.model",
        )
    return models[0] if models else ""


def _values(published: Sequence[Published], model: str) -> list[Published]:
    """Return the published values of a model; values without a model (the size of a design) are not results."""
    return [value for value in published if value.model == model]


def latest_runs(registry: Registry, studies: Sequence[str], runs: Sequence[RunRow], wanted: str | None) -> list[RunRow]:
    """Return per study the latest run of each model with published values, or of the wanted one.

    Without such runs they are the latest runs of all.
    """
    known: list[RunRow] = []
    latest: list[RunRow] = []
    for study in studies:
        published = registry.studies[study].published
        own = [run for run in runs if run.study == study and run.is_result]
        latest += own[-1:]
        named = any(value.model for value in published)
        by_model = dict(_by_model(registry, published, own))
        known += [run for model, run in by_model.items() if wanted in (None, model)] if named else own[-1:]
    return known or latest


def _by_model(
    registry: Registry, published: Sequence[Published], runs: Sequence[RunRow]
) -> Iterator[tuple[str, RunRow]]:
    for run in runs:
        found = published_of(registry, manifest_of(run), published)
        if len(found) == 1:
            yield found[0], run
