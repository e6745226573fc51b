"""Which studies a model can answer, how, and in what time: the table at the end of `prejudge doctor MODEL`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..catalogue.instrument import Instrument
from ..catalogue.needs import fit_of
from ..catalogue.study import SUBJECT, Catalogue
from ..contracts import Stage
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import abilities_of
from ..contracts.errors import PrejudgeError
from ..contracts.options import parse_assignments
from ..contracts.probe import stage_need
from ..contracts.records import Generate, Likelihood
from .model import BLIND, SEES, Check
from .pace import Timed, estimate_stage

YES, NO, UNLIKELY, UNKNOWN = "yes", "no", "unlikely", "not known"
BASE = "it has no chat template, so ask it by likelihood"
WORDS_ONLY = "it has no chat template, and this study asks in words only. Take a model that follows instructions."


class StudyRow(NamedTuple):
    """Whether a model can answer a study."""

    study: str
    able: str
    """One of `YES`, `NO`, `UNLIKELY`, `UNKNOWN`."""
    how: str
    """The setting with which it can, or the reason why it cannot."""
    takes: str = ""
    """Time, cost and requests of the study with its defaults."""


def study_rows(catalogue: Catalogue, model: str, adapter: Timed, checks: Sequence[Check]) -> Iterator[StudyRow]:
    """Yield a row per study of the registry; nothing is asked.

    Args:
        catalogue: with the studies, those of other packages among them.
        model: the name of the model.
        adapter: the model, after its checks.
        checks: their results.
    """
    failed = _failed(checks)
    for name in sorted(catalogue.registry.studies):
        try:
            yield _row(catalogue, name, model, adapter, failed)
        except PrejudgeError as error:
            yield StudyRow(name, UNKNOWN, str(error))
        except Exception as error:  # a probe of another package may raise what it likes
            yield StudyRow(name, UNKNOWN, f"the study raised {type(error).__name__}: {error}")


def _row(catalogue: Catalogue, name: str, model: str, adapter: Timed, failed: Mapping[str, str]) -> StudyRow:
    fit = fit_of(catalogue, name, model)
    if not fit.able:
        return StudyRow(name, NO if fit.able is False else UNKNOWN, fit.how)
    able, how, asked = abilities_of(adapter), fit.how, _asked(catalogue, name, model, fit.assignment)
    if asked.stage.operation is Generate and not able.chat:
        way = asked.instrument.by_likelihood if OPERATIONS[Likelihood] in able.operations else ""
        if not way:
            return StudyRow(name, UNLIKELY, WORDS_ONLY)
        asked = _asked(catalogue, name, model, way)
        roles = [part for part in fit.how.split("; ") if part.startswith("needs --model")]
        how = "; ".join([f"--set {way}: {BASE}", *roles])
    if why := _reason(asked.stage, failed):
        return StudyRow(name, NO if why.startswith(BLIND) else UNKNOWN, why)
    return StudyRow(name, YES, how or "by default", _takes(catalogue, model, adapter, asked))


class Asked(NamedTuple):
    """What a study asks its subject."""

    instrument: Instrument
    stage: Stage
    """The first of its subject whose answers are measured."""


def _asked(catalogue: Catalogue, name: str, model: str, assignment: str) -> Asked:
    options = parse_assignments([assignment] if assignment else [])
    instrument = catalogue.instrument(catalogue.study(name, {SUBJECT: model}, options))
    return Asked(instrument, _first(instrument, role=SUBJECT))


def _first(instrument: Instrument, role: str | None = None) -> Stage:
    """Return the first stage, of a role or of all, that does not only prepare the next."""
    stages = [stage for stage in instrument.every_stage() if role is None or stage.role == role]
    return next((stage for stage in stages if not stage.rules.auxiliary), stages[0])


def _takes(catalogue: Catalogue, model: str, adapter: Timed, asked: Asked) -> str:
    first = _first(asked.instrument)
    if asked.stage is not first:
        return f"time not known: what it is asked depends on the answers of the role {first.role!r}"
    prices, more = catalogue.registry.model(model).prices, asked.stage is not asked.instrument.stages()[-1]
    return estimate_stage(asked.stage, adapter, prices, more=more).words


def _failed(checks: Sequence[Check]) -> dict[str, str]:
    """Return what checks say against operations, and against images: by operation, or the name of that check."""
    against: dict[str, str] = {}
    blind = next((check for check in checks if check.name.endswith(SEES) and check.verdict != "pass"), None)
    for operation in OPERATIONS.values():
        tried = [c for c in checks if c.name.startswith(f"{operation}: ") and c.verdict != "skip" and c is not blind]
        if tried and all(check.verdict == "fail" for check in tried):
            against[operation] = f"the check {tried[0].name!r} failed: {tried[0].detail}"
    return against | ({SEES: blind.detail} if blind is not None else {})


def _reason(stage: Stage, failed: Mapping[str, str]) -> str:
    if why := failed.get(OPERATIONS[stage.operation]):
        return why
    return failed.get(SEES, "") if stage_need(stage).images else ""
