"""The runs that a construct needs: a study per method and model, or the reason why the model cannot answer it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from ...catalogue.constructs import Construct, Method
from ...catalogue.needs import ensure_suitable
from ...catalogue.study import SUBJECT, Catalogue, Study
from ...contracts.errors import DataError, PrejudgeError, UnknownNameError, UnsupportedOperationError, UsageError
from ...scoring.score import Scores

OF_THE_METHOD = ("run.all-failing", "run.all-unreadable", "run.all-empty", "model.operation")
"""Codes of errors that concern one way of asking, so that other methods can be asked all the same."""


class Case(msgspec.Struct, frozen=True):
    """One method on one model: the study to run, or why it cannot be run."""

    construct: Construct
    name: str
    """Of the method."""
    model: str
    study: Study | None
    reason: str = ""

    @property
    def method(self) -> Method:
        """Return the method."""
        return self.construct.methods[self.name]

    def failed(self, error: str) -> Case:
        """Return the case with the error of its run, as the reason why there is no answer."""
        first = " ".join(error.split()).split(" 2. ")[0].replace("The first 3: 1. ", "The first: ")
        return msgspec.structs.replace(self, reason=first)


def cases_of(
    catalogue: Catalogue,
    constructs: Sequence[Construct],
    models: Sequence[str],
    roles: Mapping[str, str],
    assignments: Mapping[str, Any],
) -> list[Case]:
    """Return every method of the constructs on every model; nothing is asked, no weights are loaded.

    Args:
        catalogue: studies and models.
        constructs: what is measured.
        models: the models of the role `subject`.
        roles: models of other roles.
        assignments: `METHOD.option` values, of the probe, or `METHOD.METRIC.option`.

    Raises:
        UsageError: an assignment names no method, a construct or a model is named twice, or is unknown.
    """
    for what, names in (("construct", [one.name for one in constructs]), ("model", list(models))):
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"the {what} {twice[0]!r} is named twice. Name each once.", code="converge.twice")
    known = {name for construct in constructs for name in construct.methods}
    own = _by_method(assignments, known)
    cases = [
        _case(catalogue, construct, name, catalogue.named(model), roles, own.get(name, {}))
        for model in models
        for construct in constructs
        for name in construct.methods
    ]
    for one, other in combinations(cases, 2):
        _ensure_apart(catalogue, one, other)
    return cases


def _ensure_apart(catalogue: Catalogue, one: Case, other: Case) -> None:
    """Refuse two materials of one study that is asked in one way: the same answers corroborate nothing."""
    a, b = one.study, other.study
    if a is None or b is None or (one.construct.name, one.model, a.name) != (other.construct.name, other.model, b.name):
        return
    if one.method.material == other.method.material:
        return
    sizes = {*one.method.size, *other.method.size}
    first, second = (msgspec.structs.asdict(catalogue.instrument(study).options) for study in (a, b))
    if all(first[name] == second.get(name) for name in first if name not in sizes):
        raise DataError(
            f"the methods {one.name!r} and {other.name!r} of {one.construct.name} ask the same questions of {a.name}: "
            "they are one source. Give both the same `material`, or none.",
            code="construct.value",
        )


def _by_method(assignments: Mapping[str, Any], known: Iterable[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in assignments.items():
        method, dot, option = name.partition(".")
        if not dot or method not in set(known):
            raise UnknownNameError("method", method, known, "Write METHOD.OPTION=VALUE.", code="unknown-method")
        found.setdefault(method, {})[option] = value
    return found


def _case(
    catalogue: Catalogue,
    construct: Construct,
    name: str,
    model: str,
    roles: Mapping[str, str],
    assignments: Mapping[str, Any],
) -> Case:
    method = construct.methods[name]
    catalogue.registry.model(model)
    try:
        # The study's own roles come first; of the others it gets those that it has.
        study = catalogue.study(method.study, {SUBJECT: model}, {**method.wanted, **assignments})
        wanted = {stage.role for stage in catalogue.instrument(study).every_stage()}
        _ensure_measured(catalogue, study, method)
        study = msgspec.structs.replace(
            study, roles=study.roles | {role: one for role, one in roles.items() if role in wanted}
        )
        ensure_suitable(catalogue, study, catalogue.instrument(study))
    except UnsupportedOperationError as error:
        return Case(construct, name, model, None, _short(str(error)))
    except UsageError as error:
        if error.code != "study.role-missing":
            raise
        return Case(construct, name, model, None, str(error))
    return Case(construct, name, model, study)


def _ensure_measured(catalogue: Catalogue, study: Study, method: Method) -> None:
    """Refuse a measure that no metric of the study has, before anything is asked for it."""
    metrics = catalogue.instrument(study).metrics
    if method.metric and method.metric not in metrics:
        raise UnknownNameError(f"metric of {method.study}", method.metric, metrics)
    declared = [metric.measures for name, (metric, _) in metrics.items() if method.metric in ("", name)]
    known = {name for measures in declared for name in measures}
    if all(declared) and method.measure not in known:
        raise UnknownNameError(f"measure of {method.study}", method.measure, known)


def _short(said: str) -> str:
    """Return the reason without the models and options that could: the method is this way of asking."""
    return said.split(" It can with ")[0].split(" Models that can: ")[0].rstrip()


def speaks_for(catalogue: Catalogue, construct: Construct, scores: Scores) -> Iterator[str]:
    """Yield the methods of which a run is one: a run of the method's study, asked as the method says."""
    study = scores.manifest.study
    for name, method in construct.methods.items():
        if method.study != study.name:
            continue
        try:
            asked = catalogue.study(method.study, study.roles, {**study.options, **method.options})
        except PrejudgeError:
            continue  # the study has no such options now
        have, wanted = (catalogue.instrument(one).options for one in (scores.made, asked))
        if all(getattr(have, option, None) == getattr(wanted, option, None) for option in _of_probe(method)):
            yield name


def _of_probe(method: Method) -> list[str]:
    return [option for option in method.options if "." not in option]


def ensure_once(before: str, run: str, method: str, model: str) -> None:
    """Refuse a second run of a method and model: which of them counts is not for their order to say.

    Raises:
        UsageError: naming both.
    """
    if before:
        both = f"{run} is named twice" if before == run else f"{before} and {run} are both of it"
        raise UsageError(f"the method {method!r} has one run of {model}: {both}. Give one.", code="converge.twice")


def ensure_spoken(run: str, found: Sequence[str], constructs: Sequence[Construct]) -> None:
    """Refuse a run that speaks to none of the constructs.

    Raises:
        DataError: naming the studies that do.
    """
    if not found:
        studies = sorted({method.study for one in constructs for method in one.methods.values()})
        raise DataError(
            f"the run {run} is of no method of {', '.join(one.name for one in constructs)}: it is of another study "
            f"than {', '.join(studies)}, or was asked in another way.",
            code="converge.run",
            run=run,
        )
