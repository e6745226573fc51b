"""The verbs that ask nothing and need no run: plan, smallest_effects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..engine.plan import StagePlan
from ..engine.plan import plan as plan_study
from ..report.result import Result
from ..report.results import Run
from ..scoring.score import score as score_run
from ..scoring.sensitivity import ASSUMED, Assumed, Detectable, ensure_apart
from ..scoring.sensitivity import smallest_effects as detect
from ..store import Store
from .settings import Settings
from .studies import resolve


class DetectableEffects(Result, frozen=True):
    """The smallest effects that a study can detect, and the assumptions behind them.

    Example:
        >>> import prejudge
        >>> result = prejudge.smallest_effects("bistereo-pairs", per_cell=20, axes=["height"])
        >>> "value" in result.estimates.columns, "80 % power" in result.title
        (True, True)
    """

    detectable: Detectable
    """The effects by metric, the level and the power of the tests, and what was assumed."""

    @property
    def title(self) -> str:
        """Return the power and the level, in a line."""
        return self.detectable.lines[0]

    @property
    def conclusion(self) -> str:
        """Return the smallest effect of each measure, and the assumptions, a line each."""
        return "\n".join(self.detectable.lines[1:])

    @property
    def estimates(self) -> pl.DataFrame:
        """Return a row per effect: `value` (a distance from neutral), `unit`, `test`, `note`."""
        return self.detectable.frame


def plan(
    study: str, model: str | Mapping[str, str] | None = None, settings: Settings | None = None, **options: Any
) -> list[StagePlan]:
    """Count the requests of a study, and those with a stored answer. For detectable effects, see `smallest_effects`.

    Args:
        study: a study's name, or a study file.
        model: the model of the role `subject`, or a model per role; without it nothing is looked up in the store.
        settings: paths of the store and the registry.
        options: options of the probe, such as `per_cell=60`.

    Returns:
        A plan per stage that does not depend on earlier answers: `.trials`, `.requests`, `.cached`, `.cost`.

    Raises:
        UsageError: an error that the user can fix, such as an unknown name or option.

    Example:
        >>> import prejudge
        >>> (stage,) = prejudge.plan("bistereo-pairs", per_cell=2, axes=["height"])
        >>> stage.units, stage.requests
        (12, 24)
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    resolved = resolve(catalogue, study, model, options)
    probe_options = catalogue.plugins.load("probe", resolved.probe).options.__struct_fields__
    if misplaced := [name for name in ASSUMED if name in options and name not in probe_options]:
        raise UsageError(
            f"plan has no setting {misplaced[0]!r}. Pass it to smallest_effects({study!r}, ...).", code="plan.choice"
        )
    if model is None or not ("://" in settings.store or Path(settings.store).exists()):
        return plan_study(catalogue, resolved)
    with Store(settings.store, writable=False) as store:
        return plan_study(catalogue, resolved, store)


def smallest_effects(
    study: str,
    model: str | Mapping[str, str] | None = None,
    settings: Settings | None = None,
    *,
    pilot: str | Run | None = None,
    **options: Any,
) -> DetectableEffects:
    """Return the smallest effects that a study can detect, and the assumptions behind them. No model is asked.

    Args:
        study: a study's name, such as `bistereo-pairs`, or a study file.
        model: a model per role; needed if the stages depend on it.
        settings: paths of the store, which has the pilot, and of the registry.
        pilot: a run of the same study, or its name; it gives standard deviations and correlations.
        options: as on the command line: `spread`, a unit's standard deviation for measures without limits; `icc`, the
            correlation of units in one cluster; `row_icc`, the same of units in one row; `power`, by default 0.8;
            `effects`, by measure, for which the levels needed of each crossed facet are computed. All others are
            options of the probe, such as `per_cell=60`, or of a metric.

    Returns:
        The effects: `.conclusion`, `.estimates` (a row per effect).

    Raises:
        UsageError: an error that the user can fix, such as a pilot of another study, or both a spread and a pilot.

    Example:
        >>> import prejudge
        >>> result = prejudge.smallest_effects("bistereo-pairs", per_cell=20, axes=["height"], icc=0.1)
        >>> result.title
        'Smallest effect this design can detect (80 % power, tests at 5 %, not corrected):'
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    assumptions = {name: options.pop(name) for name in ASSUMED[1:] if options.get(name) is not None}
    ensure_apart(pilot, assumptions.get("spread"))
    resolved = resolve(catalogue, study, model, options)
    scores = pilot.scores if isinstance(pilot, Run) else None
    if isinstance(pilot, str):
        with Store(settings.store, writable=False) as store:
            scores = score_run(catalogue, store, pilot)
    return DetectableEffects(detect(catalogue, resolved, Assumed(pilot=scores, **assumptions)))
