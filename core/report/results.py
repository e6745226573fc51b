"""`Run`: the results of a run in Python: frames, conclusions, figures; and those of a run in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ..catalogue.certificates import Calibrated
from ..catalogue.study import Catalogue
from ..contracts import Chart
from ..contracts.errors import DataError
from ..engine.manifest import Manifest, in_words, read_manifest
from ..scoring.estimates_frame import estimates_frame
from ..scoring.score import Scores, measure_frame
from .notebook import run_html
from .observed import OBSERVATIONS, read_observations
from .result import Result


class Run(Result, frozen=True, dict=True):
    """A run and its results.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> list(run.conclusions), run.observations.height, run.manifest.study.name
        (['trisentbias'], 24, 'bistereo-pairs')
    """

    scores: Scores
    """What was scored: the manifest, observations, estimates, texts and figures."""

    @property
    def title(self) -> str:
        """Return the run's name, and the options that were changed when it was scored again."""
        changed = f" (scored again with {in_words(self.remeasured)})" if self.remeasured else ""
        return f"Run {self.name}{changed}"

    @property
    def conclusion(self) -> str:
        """Return the conclusions of all metrics, a line each."""
        return "\n".join(self.conclusions.values())

    @property
    def notes(self) -> list[str]:
        """Return what the study cannot tell from bias, and whether it is calibrated."""
        state = [] if self.calibration is None else [f"Calibration: {self.calibration.told}"]
        return [*self.scores.confused, *state]

    @property
    def name(self) -> str:
        """Return the run's name."""
        return self.scores.run.name

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the run."""
        return self.scores.manifest

    @property
    def calibration(self) -> Calibrated | None:
        """Return whether the study is certified as it was made, and what it cannot tell from bias."""
        return self.manifest.calibration

    @property
    def remeasured(self) -> dict[str, Any]:
        """Return the options that were changed when the run was scored, by `METRIC.option`."""
        return self.manifest.remeasured

    @cached_property
    def estimates(self) -> pl.DataFrame:
        """Return the estimates as a tidy polars frame, one row each; `.to_pandas()` needs the extra `pandas`."""
        return estimates_frame([e for estimates in self.scores.estimates.values() for e in estimates])

    @property
    def observations(self) -> pl.DataFrame:
        """Return the observations behind the estimates."""
        return self.scores.frame

    @property
    def conclusions(self) -> dict[str, str]:
        """Return the conclusion of each metric."""
        return self.scores.conclusions

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Return the figures with their titles and captions."""
        return self.scores.charts

    def _repr_html_(self) -> str:
        """Return the run for a notebook, with warnings and estimates behind a click."""
        return run_html(self)


def scores_in_folder(catalogue: Catalogue, folder: Path, assignments: Mapping[str, Any] | None) -> Scores:
    """Score the observations in a run's folder; the numbers are the same, but there are no exchanges.

    Raises:
        DataError: the folder lacks a file.
    """
    manifest = read_manifest(folder)
    try:
        observations = read_observations(folder / OBSERVATIONS)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{str(folder)!r} is not the folder of a run: {error}.", code="run.folder") from None
    return measure_frame(catalogue, manifest, observations, assignments)
