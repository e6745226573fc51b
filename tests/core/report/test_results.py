"""`load`: a run in a notebook, from the store and from its folder."""

from __future__ import annotations

import pytest
from fakes import MeanLength
from matplotlib.figure import Figure

import prejudge
from prejudge import load
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Options
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.core.contracts.estimates import Chart, Estimate
from prejudge.core.engine.manifest import MANIFEST, remeasured_in
from prejudge.testing import raises_code


@pytest.fixture
def made(catalogue, monkeypatch, tmp_path):
    """Return a run that was made before, with a figure, and its settings."""
    monkeypatch.setattr(Catalogue, "load", classmethod(lambda cls, registry=None: catalogue))
    monkeypatch.setattr(MeanLength, "figures", lambda self, estimates: [Chart("bars", "Bars", "", Figure())])
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))
    return prejudge.run("count", "fake", settings, n=4), settings


@pytest.mark.parametrize("place", ["store", "folder"])
def test_loaded_run_is_the_run(made, place):
    run, settings = made
    loaded = load(run.name, settings) if place == "store" else load(run.report.parent)
    assert loaded.name == run.name and loaded.manifest.study.name == "count"
    assert loaded.estimates.equals(run.estimates) and loaded.observations.equals(run.observations)
    told = "The mean length is 3.0.\nCalibration: uncalibrated: it has no certificate"
    assert repr(loaded) == f"Run {run.name}\n{told}"
    assert loaded.calibration.state == "uncalibrated"


def test_folder_that_was_scored_again_says_so(made, monkeypatch):
    run, settings = made
    monkeypatch.setattr(MeanLength, "options", Scaled)
    monkeypatch.setattr(MeanLength, "compute", scaled)
    prejudge.score(run.name, settings, {"mean.times": 2})
    folder, store = load(run.report.parent), load(run.name, settings)
    assert (folder.estimates["value"].item(), store.estimates["value"].item()) == (2.0, 1.0)
    assert folder.remeasured == {"mean.times": 2} and store.remeasured == {}
    assert remeasured_in(run.report.parent) == {"mean.times": 2} and remeasured_in(run.report.parent / "none") == {}
    assert repr(folder).startswith(f"Run {run.name} (scored again with mean.times = 2)\n")
    again = load(run.name, settings, assignments={"mean.times": 2})
    assert again.estimates.equals(folder.estimates) and again.remeasured == folder.remeasured


class Scaled(Options, frozen=True, kw_only=True):
    times: int = 1


def scaled(self, observations, options):
    return [Estimate.from_flat(metric="mean_length", group={}, value=float(options.times))]


def test_plot_gives_all_figures_or_one(made):
    run, settings = made
    loaded = load("latest", settings)
    assert list(loaded.plot()) == ["bars"] and isinstance(loaded.plot("bars"), Figure)
    assert isinstance(run.plot("bars"), Figure)
    with raises_code(UnknownNameError, "unknown-figure", "'bars'"):
        loaded.plot("bar")


def test_folder_needs_no_store(made):
    run, settings = made
    (run.report.parents[2] / "s.db").unlink()
    assert load(run.report.parent).estimates.height == 1
    with raises_code(UsageError, "store.missing"):
        load(run.name, settings)


def test_folder_has_no_head(made):
    """Its files can be changed, and nothing in them shows it."""
    run, settings = made
    assert load(run.name, settings).manifest.head and not load(run.report.parent).manifest.head


def test_folder_of_something_else_is_refused(tmp_path):
    with raises_code(DataError, "run.folder"):
        load(tmp_path)
    (tmp_path / MANIFEST).write_text("{}")
    with raises_code(DataError, "run.folder"):
        load(tmp_path)


def test_api_compares(made, catalogue):
    run, settings = made
    other = prejudge.run("count", "other", settings, n=4)
    paired = Plugged("paired-difference", "prejudge.metrics.general.paired:PairedDifference")
    catalogue.plugins.offers["metric"][paired.name] = Registered(paired, "tests")
    compared = prejudge.compare(run.name, other.name, settings=settings)
    assert compared.estimates["value"].to_list() == [0.0] and compared.report.exists()
    assert "2 runs compared" in repr(compared) and compared.plot() is not None


def test_figure_can_draw_itself_in_a_notebook(made):
    run, _ = made
    assert run.plot("bars")._repr_png_().startswith(b"\x89PNG")
