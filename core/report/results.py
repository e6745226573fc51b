"""`Run`: the results of a run in Python: frames, conclusions, figures. `load` returns an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import msgspec
import polars as pl

from ..catalogue.certificates import Calibrated
from ..catalogue.study import Catalogue
from ..contracts import Chart
from ..contracts.errors import DataError, UnknownNameError
from ..engine.manifest import Manifest, in_words, read_manifest
from ..scoring.score import Scores, estimates_frame, measure_frame, score
from ..store import Store
from ..store.urls import DEFAULT
from .figures import export
from .notebook import html_of
from .observed import OBSERVATIONS, read_observations

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Run(msgspec.Struct, frozen=True, dict=True):
    """A run and its results."""

    scores: Scores
    report: Path | None = None
    """Path of the HTML report, if it was written."""

    def __repr__(self) -> str:
        """Return the run's name, its conclusions and the path of its report."""
        others = f" (scored again with {in_words(self.remeasured)})" if self.remeasured else ""
        known = [] if self.calibration is None else [f"Calibration: {self.calibration.told}"]
        lines = [f"Run {self.name}{others}", *self.conclusions.values(), *self.scores.confused, *known]
        return "\n".join(lines if self.report is None else [*lines, f"Report: {self.report}"])

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with warnings and estimates behind a click."""
        return html_of(self)

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

    @overload
    def plot(self) -> dict[str, Figure]: ...

    @overload
    def plot(self, name: str) -> Figure: ...

    def plot(self, name: str | None = None) -> Figure | dict[str, Figure]:
        """Return the figure of this name, or all figures by name.

        Raises:
            UnknownNameError: there is no such figure.
        """
        return plotted(self.charts, name)


def plotted(charts: Sequence[Chart], name: str | None = None) -> Figure | dict[str, Figure]:
    """Return the figure of this name, or all figures by name. Raises `UnknownNameError` for an unknown name."""
    for chart in charts:
        # A notebook shows a figure that pyplot did not make only if the figure can draw itself.
        setattr(chart.figure, "_repr_png_", partial(export, chart, "png"))  # noqa: B010
    figures = {chart.name: chart.figure for chart in charts}
    if name is None:
        return figures
    if name not in figures:
        raise UnknownNameError("figure", name, figures)
    return figures[name]


def load(
    run: str | Path = "latest",
    store: str = DEFAULT,
    registry: str | None = None,
    assignments: Mapping[str, Any] | None = None,
) -> Run:
    """Return an earlier run.

    From the store it is scored with its original options, from a folder with those of the folder's last writing:
    `prejudge score --set` rewrites the folder, but not the store. `Run.remeasured` has the changed options.

    Args:
        run: its name, the beginning of it, or `latest`; or its output folder, which needs no store.
        store: a file or a SQLAlchemy URL.
        registry: your own registry file.
        assignments: options of the metrics to change, such as `{"trisentbias.resamples": 999}`.

    Raises:
        UsageError: there is no such run, store or option, or the folder lacks a file.
    """
    catalogue = Catalogue.load(registry)
    if (folder := Path(run)).is_dir():
        return Run(_from_folder(catalogue, folder, assignments))
    with Store(store, writable=False) as opened:
        return Run(score(catalogue, opened, str(run), assignments))


def _from_folder(catalogue: Catalogue, folder: Path, assignments: Mapping[str, Any] | None) -> Scores:
    """Score the observations in a run's folder; the numbers are the same, but there are no exchanges."""
    manifest = read_manifest(folder)
    try:
        observations = read_observations(folder / OBSERVATIONS)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{str(folder)!r} is not the folder of a run: {error}.", code="run.folder") from None
    return measure_frame(catalogue, manifest, observations, assignments)
