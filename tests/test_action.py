"""The GitHub action: its steps are run as they stand, but for the installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from prejudge.core.contracts.installing import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
POLICY = '[[rules]]\nname = "it answers"\nmax_refused = {most}\n'


def carried_out(folder, inputs):
    """Run the steps after the installation; return the exit code of the last one that ran."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    values = {name: given.get("default", "") for name, given in ACTION["inputs"].items()} | inputs
    for name in ("Run", "Gate"):
        local = {
            variable: values[text.removeprefix("${{ inputs.").removesuffix(" }}")]
            for variable, text in STEPS[name]["env"].items()
        }
        command = ["bash", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]]
        done = subprocess.run(command, cwd=folder, env=environment | local, capture_output=True, text=True)
        if done.returncode:
            return done.returncode, done.stderr
    return 0, ""


@pytest.mark.parametrize(("study", "code"), [("crows-pairs", 2), ("subtle-sai", 0)])
def test_steps_run_a_study_and_gate_it(study, code, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY.format(most=0.5))
    options = "--set per_cell=2 --set subtle.resamples=99 -q" if study == "subtle-sai" else "--set no_such_option=1"
    inputs = {"study": study, "model": "simulated-fair", "policy": "policy.toml", "options": options}
    ended, error = carried_out(tmp_path, inputs)
    assert ended == code, error
    if code == 0:
        assert "it answers" in (tmp_path / "summary.md").read_text() and (tmp_path / "gate.xml").is_file()
        assert f"junit={tmp_path / 'gate.xml'}" in (tmp_path / "output").read_text()


def test_no_input_is_part_of_a_script():
    """Inputs reach the scripts as variables of the environment: an expression in a script runs what it contains."""
    assert not [name for name, step in STEPS.items() if "${{" in step["run"]]
