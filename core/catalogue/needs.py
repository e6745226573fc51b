"""Check, before the first call, that a study asks anything, and that the models offer the operations it needs."""

from __future__ import annotations

from typing import NamedTuple

from ..contracts import Stage
from ..contracts.abilities import OPERATIONS, Need
from ..contracts.errors import DataError, PrejudgeError, UnknownNameError, UnsupportedOperationError, UsageError
from ..contracts.probe import stage_need
from .instrument import Instrument
from .study import SUBJECT, Catalogue, Study


def ensure_asked(study: Study, stage: Stage, trials: int) -> None:
    """Refuse an empty design: a first stage without a trial.

    Raises:
        DataError: with what the material lacks.
    """
    if not trials:
        chosen = ", ".join(f"{name} = {value}" for name, value in study.options.items())
        why = stage.shortage() or f"Check the options{f' ({chosen})' if chosen else ''} and the data that they name."
        raise DataError(
            f"study {study.name!r} asks nothing: its stage {stage.name!r} has no trial. {why}",
            code="study.empty",
            stage=stage.name,
        )


def ensure_roles(study: Study, instrument: Instrument) -> None:
    """Refuse a model for a role that the study does not have.

    Raises:
        UnknownNameError: with the roles that it has.
    """
    roles = [stage.role for stage in instrument.every_stage()]
    for role in study.roles:
        if role not in roles:
            raise UnknownNameError(f"role of {study.name}", role, roles)


def ensure_suitable(catalogue: Catalogue, study: Study, instrument: Instrument, *, planned: bool = False) -> None:
    """Refuse, before the first call, a study whose roles lack a model or whose models cannot do what a stage needs.

    Args:
        catalogue: with the models.
        study: with the models of its roles.
        instrument: the probe of the study.
        planned: allow roles without a model, as in a plan.

    Raises:
        UsageError: a role without a model.
        UnknownNameError: a model for a role that the study does not have.
        UnsupportedOperationError: with the models that could do it.
    """
    for stage in instrument.stages():
        if stage.role not in study.roles and not planned:
            named = "NAME" if stage.role == SUBJECT else f"{stage.role}=NAME"
            raise UsageError(
                f"study {study.name!r} needs a model for the role {stage.role!r}: --model {named}.",
                code="study.role-missing",
            )
    ensure_roles(study, instrument)
    for stage in instrument.stages():
        model, need = study.roles.get(stage.role), stage_need(stage)
        if model is not None and (why := catalogue.abilities(model).missing(need)):
            raise _unable(catalogue, study, model, need, why)


def _unable(catalogue: Catalogue, study: Study, model: str, need: Need, why: str) -> UnsupportedOperationError:
    able = sorted(name for name in catalogue.registry.models if catalogue.is_suited(name, need))
    options = [f"--set {name}={value}" for name, value in catalogue.proposals(study)]
    with_options = f" It can with {' or '.join(options)}." if options else ""
    return UnsupportedOperationError(
        f"study {study.name!r} needs {need}, which model {model!r} cannot do: {why}{with_options} "
        f"Models that can: {', '.join(able) or 'none in the registry'}.",
        code="study.operation",
        able=able,
        options=options,
        needs=str(need).replace("'", ""),
    )


class Way(NamedTuple):
    """How a study asks by an operation."""

    role: str
    how: str
    """The options with which it does; empty by default."""


def ways_of(catalogue: Catalogue, name: str, operation: str) -> list[Way]:
    """Return how a study asks by an operation: of which roles, and with which options; nothing if it does not.

    Raises:
        UsageError: it cannot be told, such as of a study that needs a file to have any stage.
    """
    study = catalogue.study(name, {}, {})
    roles = [
        stage.role for stage in catalogue.instrument(study).every_stage() if OPERATIONS[stage.operation] == operation
    ]
    ways = [Way(role, "") for role in dict.fromkeys(roles)]
    for option, value, stages in catalogue.varied(study):
        asked = dict.fromkeys(stage.role for stage in stages if OPERATIONS[stage.operation] == operation)
        ways += [Way(role, f"--set {option}={value}") for role in asked if Way(role, "") not in ways]
    return ways


NEEDS = "needs "
"""Begins the reason why a model cannot answer a study: the operation that it lacks."""


class Fit(NamedTuple):
    """Whether a model can answer a study."""

    able: bool | None
    """None: it cannot be told, such as of a study that needs a file."""
    how: str
    """The options with which it can, or the reason why it cannot."""
    assignment: str = ""
    """The option that must be set so that it can; empty: it can by default."""


def fit_of(catalogue: Catalogue, name: str, model: str) -> Fit:
    """Return whether a model can answer the subject's questions of a study."""
    try:
        study = catalogue.study(name, {SUBJECT: model}, {})
        instrument = catalogue.instrument(study)
        ensure_suitable(catalogue, study, instrument, planned=True)
    except UnsupportedOperationError as error:
        options = error.fields.get("options")
        if isinstance(options, list) and options:
            return Fit(True, " or ".join(options), options[0].removeprefix("--set "))
        return Fit(False, f"{NEEDS}{error.fields.get('needs')}")
    except PrejudgeError as error:
        return Fit(None, str(error))
    options = [f"--set {option}={study.options[option]}, chosen by itself" for option in study.followed]
    roles = {stage.role for stage in instrument.stages()} - set(study.roles)
    return Fit(True, "; ".join([*options, *(f"needs --model {role}=NAME too" for role in sorted(roles))]))
