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
    stage, instrument = _first_stage(catalogue, name, model, fit.assignment)
    how = fit.how
    if stage.role == SUBJECT and stage.operation is Generate and not abilities_of(adapter).chat:
        way = instrument.by_likelihood if OPERATIONS[Likelihood] in abilities_of(adapter).operations else ""
        if not way:
            return StudyRow(name, UNLIKELY, WORDS_ONLY)
        stage, instrument = _first_stage(catalogue, name, model, way)
        roles = [part for part in fit.how.split("; ") if part.startswith("needs --model")]
        how = "; ".join([f"--set {way}: {BASE}", *roles])
    if stage.role == SUBJECT and (why := _reason(stage, failed)):
        return StudyRow(name, NO if why.startswith(BLIND) else UNKNOWN, why)
    prices, more = catalogue.registry.model(model).prices, len(instrument.stages()) > 1
    return StudyRow(name, YES, how or "by default", estimate_stage(stage, adapter, prices, more=more).words)


def _first_stage(catalogue: Catalogue, name: str, model: str, assignment: str) -> tuple[Stage, Instrument]:
    options = parse_assignments([assignment] if assignment else [])
    instrument = catalogue.instrument(catalogue.study(name, {SUBJECT: model}, options))
    return instrument.every_stage()[0], instrument


def _failed(checks: Sequence[Check]) -> dict[str, str]:
    """Return what checks say against operations, and against images: by operation, or the name of that check."""
    against: dict[str, str] = {}
    for operation in OPERATIONS.values():
        tried = [check for check in checks if check.name.startswith(f"{operation}: ") and check.verdict != "skip"]
        if tried and all(check.verdict == "fail" for check in tried):
            against[operation] = f"the check {tried[0].name!r} failed: {tried[0].detail}"
    blind = next((check for check in checks if check.name.endswith(SEES) and check.verdict != "pass"), None)
    return against | ({SEES: blind.detail} if blind is not None else {})


def _reason(stage: Stage, failed: Mapping[str, str]) -> str:
    if why := failed.get(OPERATIONS[stage.operation]):
        return why
    return failed.get(SEES, "") if stage_need(stage).images else ""
