"""A verdict comes before the report: nothing that figures need, and no fault of theirs, stands in its way."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import DataError
from prejudge.metrics.subtle.metric import Subtle

from ...command import blank_figure

HEAVY = {"matplotlib", "torch", "openai"}
# At the first word of the verdict, say which of the heavy packages are there.
WATCH = f"""
import sys
from prejudge.core.cli import main
import prejudge.core.cli.results as results
shown = results.show
def show(*words):
    shown(*words)
    print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)
    from matplotlib.figure import Figure
    Figure.savefig = lambda figure, file, **how: file.write(b"<svg/>")
results.show = show
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return the options of a folder with one small run."""
    folder = tmp_path_factory.mktemp("run")
    where = ["--store", str(folder / "s.db"), "--runs", str(folder / "runs")]
    asked = ["--model", "simulated-biased", "--set", "per_cell=1", "--set", "domains=beauty", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
        assert CliRunner().invoke(cli, ["run", "subtle-sai", *asked, *where]).exit_code == 0
    return where


def test_verdict_needs_no_drawing_and_no_heavy_package(place):
    words = [sys.executable, "-c", WATCH, "score", *place]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"
    assert "Report:" in result.stdout


@pytest.mark.usefixtures("no_figures")
def test_error_in_a_figure_does_not_hide_the_verdict(place, monkeypatch):
    whole = CliRunner().invoke(cli, ["score", *place])

    def broken(*_):
        raise DataError("no figure", code="test.figure")

    monkeypatch.setattr(Subtle, "figures", broken)
    result = CliRunner().invoke(cli, ["score", *place])
    assert isinstance(result.exception, DataError)
    assert result.stdout and whole.stdout.startswith(result.stdout)
    assert "Report:" in whole.stdout and "Report:" not in result.stdout
