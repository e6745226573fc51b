"""`Run`: the results of a run in Python: frames, conclusions, figures. `load` loads an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import msgspec
import polars as pl

from ..catalogue.study import Catalogue
from ..contracts import Chart
from ..contracts.errors import DataError, UnknownNameError
from ..engine.manifest import Manifest, in_words, read_manifest
from ..scoring.score import Scores, estimates_frame, measure_frame, score
from ..store import Store
from ..store.urls import DEFAULT
from .figures import export

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBSERVATIONS = "observations.parquet"


class Run(msgspec.Struct, frozen=True, dict=True):
    """A run and what was measured: just made, or loaded."""

    scores: Scores
    report: Path | None = None
    """The HTML report, where one was written with it."""

    def __repr__(self) -> str:
        """Return the run's name, its conclusions and where its report is."""
        others = f" (scored again with {in_words(self.remeasured)})" if self.remeasured else ""
        lines = [f"Run {self.name}{others}", *self.conclusions.values()]
        return "\n".join(lines if self.report is None else [*lines, f"Report: {self.report}"])

    @property
    def name(self) -> str:
        """Return the run's name."""
        return self.scores.run.name

    @property
    def manifest(self) -> Manifest:
        """Return what the run was."""
        return self.scores.manifest

    @property
    def remeasured(self) -> dict[str, Any]:
        """Return `METRIC.option` and value of what was set when it was scored, otherwise than the run had it."""
        return self.manifest.remeasured

    @cached_property
    def estimates(self) -> pl.DataFrame:
        """Return the estimates as a tidy frame, one row each."""
        return estimates_frame([e for estimates in self.scores.estimates.values() for e in estimates])

    @property
    def observations(self) -> pl.DataFrame:
        """Return the observations behind the estimates."""
        return self.scores.frame

    @property
    def conclusions(self) -> dict[str, str]:
        """Return one sentence per metric."""
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
    """Return the figure of this name, or all by name. Raises `UnknownNameError` for a figure there is not."""
    for chart in charts:
        # A figure that pyplot did not make is shown by a notebook only if it can draw itself.
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
    """Return a run that was made before.

    From the store it is measured as it was when it was made, from a folder as it was when that folder was written:
    `prejudge score --set` writes the folder anew, and leaves the store alone. `Run.remeasured` says what was set.

    Args:
        run: its name, the beginning of it, or `latest`; or the folder it left, which needs no store.
        store: a file, or any SQLAlchemy url.
        registry: a registry.toml of your own.
        assignments: how it is to be measured now, such as `{"trisentbias.resamples": 999}`.

    Raises:
        UsageError: there is no such run, store or option, or the folder lacks a file.
    """
    catalogue = Catalogue.load(registry)
    if (folder := Path(run)).is_dir():
        return Run(_from_folder(catalogue, folder, assignments))
    with Store(store, writable=False) as opened:
        return Run(score(catalogue, opened, str(run), assignments))


def _from_folder(catalogue: Catalogue, folder: Path, assignments: Mapping[str, Any] | None) -> Scores:
    """Measure the observations that a run left again; the same numbers, without the exchanges behind them."""
    manifest = read_manifest(folder)
    try:
        observations = pl.read_parquet(folder / OBSERVATIONS)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{str(folder)!r} is not the folder of a run: {error}.", code="run.folder") from None
    return measure_frame(catalogue, manifest, observations, assignments)
