"""`prejudge run --name`: a run is called as its user says, once."""

from __future__ import annotations

import pytest

import prejudge
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code
from tests.command import call

PART = {"per_cell": 1, "domains": ["ageism"], "subtle.resamples": 99}

pytestmark = pytest.mark.usefixtures("no_figures")


def test_run_has_its_name_once_and_no_folder_outside(tmp_path):
    settings = prejudge.Settings(
        store=str(tmp_path / "prejudge.db"), runs=str(tmp_path / "runs"), name="before-release"
    )
    run = prejudge.run("subtle-sai", "simulated-fair", settings, **PART)
    assert run.name == "before-release" and (tmp_path / "runs" / "before-release" / "report.html").is_file()
    with raises_code(UsageError, "run.exists", "'before-release'", "prejudge resume before-release"):
        prejudge.run("subtle-sai", "simulated-fair", settings, **PART)
    words = ("run", "subtle-sai", "--model", "simulated-fair", "--set", "per_cell=1")
    refused = call(tmp_path, *words, "--name", "../elsewhere")
    assert refused.returncode == 2 and "cannot be the name of a run" in refused.stderr
    varied = call(tmp_path, *words, "--name", "two", "--vary", "temperature=0,1")
    assert varied.returncode == 2 and "--name" in varied.stderr
