"""`run`: ask a study of a model, score the run and write its report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..catalogue.study import Catalogue
from ..engine.runs import execute
from ..report.output import ReportParts, write_output
from ..report.results import Run
from ..scoring.score import Scores
from ..scoring.score import score as score_run
from ..store import Store
from .blocking import blocking
from .settings import Settings
from .studies import resolve


async def arun(
    study: str, model: str | Mapping[str, str] | None = None, settings: Settings | None = None, **options: Any
) -> Run:
    """Run a study on a model, score it, and write its report.

    Every answer is stored before it counts, and a stored answer is not asked for again. `run` blocks, also in a
    notebook; `arun` is awaited.

    Args:
        study: a study's name, such as `bistereo-pairs`, or a study file.
        model: the model of the role `subject`, or a model per role.
        settings: paths, cache mode, budget.
        options: options of the probe, such as `per_cell=60`.

    Returns:
        The run: `.conclusion`, `.estimates`, `.observations`, `.report`, `.plot()`.

    Raises:
        UsageError: an error that the user can fix, such as an unknown name, a spent budget or a run that was halted.
            All answers are stored, and the same call continues.

    Example:
        >>> import prejudge
        >>> result = await prejudge.arun("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> result.estimates.filter(metric="favouritism").height
        6
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    resolved = resolve(catalogue, study, model, options)
    with Store(settings.store, later=True) as store:
        name = await execute(catalogue, resolved, store, settings.run_options, settings.progress)
        return reported(score_run(catalogue, store, name), store, settings)


run = blocking(arun)


def reported(scores: Scores, store: Store | None, settings: Settings) -> Run:
    """Write the report of a run, and return the run.

    Raises:
        UsageError: the folder cannot be written.
    """
    return Run(scores, report=write_output(scores, store, Path(settings.runs), ReportParts(settings.leave_out)))
