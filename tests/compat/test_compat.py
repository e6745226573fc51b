"""What an older version left still works: stores, run folders, bundles, policies, study files, registries.

The fixtures were written by version 0.1.0 before its insides were rearranged (`fixtures/expected.json` says what it
printed of them). Everything goes through the public door and the command line, and is held to numbers,
fields and codes.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import prejudge

from .. import command

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED: dict[str, Any] = json.loads((FIXTURES / "expected.json").read_text("utf-8"))
RUNS: dict[str, dict[str, Any]] = EXPECTED["runs"]
NAME: dict[str, str] = EXPECTED["names"]
"""Names of the runs by what they are called here: fair, biased, sai, my-study, my-subtle."""
LEFT = [key for key, run in RUNS.items() if run["folder"]]
"""The runs whose folders are among the fixtures."""
# The user's metric makes its estimates of flat fields, as metrics did.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Estimate:DeprecationWarning"),
    pytest.mark.usefixtures("no_figures"),
]
WORDS = {"note"}
"""Columns that hold sentences."""
ANEW = {"low", "high", "level", "interval", "clusters", "test", "statistic", "p", "p_adjusted", "family", "correction"}
ANEW |= {"effect_low", "effect_high"}
"""What changed on purpose for the subtle-bias studies: intervals and tests are both those of templates and terms."""
BOUNDS = {"bound_low", "bound_high"}
"""Where nothing is missing they are the value, also of measures that had none."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a copy of the fixtures, in which the user is, and their module on the path."""
    folder = tmp_path / "work"
    shutil.copytree(FIXTURES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PREJUDGE_PLUGINS", "none")
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    assert command.call(folder, "trust", "--yes").returncode == 0
    return folder


def call(*words: str) -> command.Done:
    """Run a command in the folder the user stands in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        return command.call(Path.cwd(), *words)


def start(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as a user does."""
    path = os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": path, "COLUMNS": "200", "PREJUDGE_PLUGINS": "none"}
    started = [sys.executable, "-m", "prejudge.core.cli", *words]
    return subprocess.run(started, env=env, capture_output=True, text=True, timeout=280, check=False)


def ensure_same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Compare all columns that were there: numbers within 1e-12, labels but for wording; more columns may follow."""
    assert set(expected.columns) <= set(found.columns)
    anew = "metric" in expected.columns and "delta_PL" in expected["metric"]
    if anew:
        keys = [
            name for name in ("metric", "domain", "pronoun", "coding", "position", "given", "kind") if name in expected
        ]
        # Measures were added since.
        found = found.join(expected, on=keys, how="semi", nulls_equal=True)
        found, expected = found.sort(keys), expected.sort(keys)
    assert found.height == expected.height
    for name in expected.columns:
        if name in WORDS or (anew and name in ANEW | BOUNDS):
            continue
        for row, (was, now) in enumerate(zip(expected[name].to_list(), found[name].to_list(), strict=True)):
            assert alike(was, now) or alike(reworded(was), now), f"{expected.row(row, named=True)}: {name} is {now!r}"


def alike(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=1e-12, abs_tol=1e-12) or (math.isnan(was) and math.isnan(now))
    return bool(was == now)


def left(key: str) -> Path:
    return Path("runs") / NAME[key]


def estimates_left(key: str) -> pl.DataFrame:
    """Return the estimates that the old version left in the run's folder."""
    return pl.read_parquet(FIXTURES / "runs" / NAME[key] / "estimates.parquet")


def ensure_listed(frame: pl.DataFrame, told: Mapping[str, Any], rows: str = "estimates") -> None:
    """Look for each row of `told`, with every field but sentences."""
    for row in told[rows]:
        match = frame.filter(
            pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in ("metric", *told["factors"]))
        )
        assert match.height == 1, row
        for name, value in row.items():
            given = match[name].item()
            if "coding" in told["factors"] and (name in ANEW or (name in BOUNDS and value is None)):
                continue
            assert name in WORDS or alike(value, given) or alike(reworded(value), given), (row, name, given)


def reworded(value: Any) -> Any:
    """Return a label as it is written now: what is counted was called pairs in every study, and one test `tests`.

    TriSentBias is declared: its tests and families are named as those of every declared metric.
    """
    if not isinstance(value, str):
        return value
    value = re.sub(r", cluster permutation(?=[,:])", "", re.sub(r"(: \d+) cells$", r"\1 tests", value))
    value = value.replace("permutation of positive and negative within cluster", "permutation of the two sides")
    value = value.replace("matched-pairs risk", "matched risk")
    return re.sub(r": 1 \w+( \w+)*$", ": 1 test", re.sub(r"^(Wilson|chi-square .*), pairs$", r"\1, answers", value))


@pytest.mark.parametrize("key", RUNS)
def test_run_is_scored_from_the_store(key, place):
    run = RUNS[key]
    scored = prejudge.score(NAME[key], prejudge.Settings(runs="new"))
    assert scored.name == NAME[key] and set(scored.conclusions) == set(run["conclusions"])
    assert dict(Counter(scored.observations["status"])) == run["statuses"]
    more = scored.estimates.height - run["rows"]
    assert more == 0 or (more > 0 and "coding" in run["factors"])
    ensure_listed(scored.estimates, run)
    if run["folder"]:
        ensure_same(scored.estimates, estimates_left(key))
        ensure_same(
            pl.read_parquet(f"new/{NAME[key]}/observations.parquet"),
            pl.read_parquet(left(key) / "observations.parquet"),
        )
    written = json.loads((Path("new") / NAME[key] / "manifest.json").read_text("utf-8"))
    assert written["study"]["name"] == run["study"] and scored.report.exists()


def test_command_scores_a_run_and_others_of_its_options(place):
    done = call("score", NAME["biased"], "--runs", "new", "--set", "trisentbias.cluster=attribute")
    assert done.returncode == 0, done.stderr
    frame = pl.read_parquet(f"new/{NAME['biased']}/estimates.parquet")
    kept = estimates_left("biased")
    assert all(alike(was, now) for was, now in zip(kept["value"], frame["value"], strict=True))
    assert frame["clusters"].to_list() != kept["clusters"].to_list()
    manifest = json.loads(Path(f"new/{NAME['biased']}/manifest.json").read_text("utf-8"))
    assert manifest["remeasured"] == {"trisentbias.cluster": "attribute"}


@pytest.mark.parametrize("key", LEFT)
def test_folder_of_a_run_is_loaded_without_the_store(key, place):
    Path("prejudge.db").unlink()
    loaded = prejudge.load(left(key))
    assert loaded.name == NAME[key] and loaded.remeasured == {}
    assert set(loaded.conclusions) == set(RUNS[key]["conclusions"])
    ensure_same(loaded.estimates, estimates_left(key))
    ensure_same(loaded.observations, pl.read_parquet(left(key) / "observations.parquet"))
    assert loaded.manifest.run == NAME[key]


def test_bundle_is_imported_and_scored(place):
    assert call("cache", "import", "pairs.zip", "--store", "other.db").returncode == 0
    scored = prejudge.score(NAME["biased"], prejudge.Settings(store="other.db", runs="new"))
    ensure_same(scored.estimates, estimates_left("biased"))
    assert call("cache", "verify", "--store", "other.db").returncode == 0


def test_bundle_is_scored_without_a_store(place):
    assert call("score", "--bundle", "pairs.zip", "--runs", "new").returncode == 0
    ensure_same(pl.read_parquet(f"new/{NAME['biased']}/estimates.parquet"), estimates_left("biased"))


def test_bundle_that_is_exported_anew_has_the_same_content(place):
    assert call("cache", "export", NAME["biased"], "--out", "new.zip").returncode == 0
    digests = []
    for path in ("pairs.zip", "new.zip"):
        with zipfile.ZipFile(path) as archive:
            digests.append(json.loads(archive.read("bundle.json"))["content"])
    assert digests[0] == digests[1]


def test_keys_of_the_store_are_what_they_were(place):
    assert call("cache", "verify").returncode == 0


@pytest.mark.parametrize("key", ["sai", "my-study"])
def test_same_run_says_the_same(key, place):
    run = RUNS[key]
    # The simulated model has a newer version since, so it is asked again; what it says here has not changed.
    former: dict[str, Any] = {"sai": {"orders": "random"}}.get(key, {})
    again = prejudge.run(run["study"], run["model"], prejudge.Settings(runs="new"), **run["options"], **former)
    assert again.name != NAME[key]
    ensure_same(again.estimates, prejudge.load(NAME[key]).estimates)


def test_run_that_recorded_its_options_is_not_changed_by_another_default(place):
    path = left("biased") / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    told = prejudge.load(NAME["biased"]).scores.options.metrics["trisentbias"]
    manifest["options"] = {"probe": {"per_cell": 8}, "metrics": {"trisentbias": {**told, "alpha": 0.01, "gone": 1}}}
    path.write_text(json.dumps(manifest), "utf-8")
    assert prejudge.load(left("biased")).scores.options.metrics["trisentbias"]["alpha"] == 0.01


@pytest.mark.parametrize("policy", EXPECTED["gates"])
def test_gate_says_the_same_of_every_rule(policy, place):
    told = EXPECTED["gates"][policy]
    done = call("gate", NAME[told["run"]], "--policy", told["policy"], "--junit", "gate.xml")
    assert done.returncode == told["exit"], done.stdout + done.stderr
    if told["exit"] == 2:
        assert not Path("gate.xml").exists()
        return
    rules: dict[str, list[bool]] = {}
    for case in ET.parse("gate.xml").iter("testcase"):
        rules.setdefault(str(case.get("classname")), []).append(case.find("failure") is None)
    assert rules.keys() == told["rules"].keys()
    for name, (checks, kept) in told["rules"].items():
        # Measures were added to those of my-subtle since.
        assert sum(rules[name]) == kept and len(rules[name]) >= checks, name
        assert len(rules[name]) == checks or told["run"] == "my-subtle", name


def test_policy_with_a_misspelt_key_is_refused(place):
    text = Path("gate-pass.toml").read_text("utf-8").replace("max_distance", "max_distanse")
    Path("wrong.toml").write_text(text, "utf-8")
    assert call("gate", NAME["biased"], "--policy", "wrong.toml").returncode == 2


def test_study_file_is_valid_and_planned(place):
    assert call("validate", "heights.toml").returncode == 0
    assert call("plan", "heights.toml").returncode == 0
    (stage,) = prejudge.plan("heights.toml")
    assert [stage.role, stage.units, stage.trials] == EXPECTED["heights"]["plan"]


def test_study_file_is_run(place):
    pytest.importorskip("torch", reason="needs the extra hf")
    # The words that its time asked; `attributes` has another default since.
    run = prejudge.run("heights.toml", None, prejudge.Settings(runs="new"), attributes="paper")
    told = EXPECTED["heights"]
    assert set(run.conclusions) == set(told["conclusions"]) and run.estimates.height == told["rows"]
    # The model is asked anew where the store does not know; the numbers are those of this machine's arithmetic.
    for row in told["estimates"]:
        match = run.estimates.filter(
            pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in ("metric", *told["factors"]))
        )
        assert match.height == 1 and match["n"].item() == row["n"]
        assert match["value"].item() == pytest.approx(row["value"], rel=1e-3, abs=1e-3)


def test_registry_of_a_user_is_honoured(place):
    for kind, names in {
        "studies": ("my-study", "my-subtle"),
        "probes": ("my-words",),
        "metrics": ("my-difference",),
        "models": ("my-model", "my-bert"),
    }.items():
        done = call("list", kind)
        assert done.returncode == 0 and all(name in done.stdout for name in names), done.stderr
    assert start("plan", "my-study", "--model", "my-model").returncode == 0
    moved = Path("elsewhere.toml")
    Path("registry.toml").rename(moved)
    assert call("plan", "my-study").returncode == 2
    assert call("plan", "my-study", "--registry", str(moved)).returncode == 0


def test_study_and_probe_of_a_user_run_on_a_model_of_a_user(place):
    settings = prejudge.Settings(store="new.db", runs="new")
    run = prejudge.run("my-study", "my-model", settings)
    ensure_same(run.estimates, prejudge.load(NAME["my-study"]).estimates)
    smaller = prejudge.run("my-study", "my-model", settings, **{"per_theme": 1, "my-difference.scale": 1.0})
    assert smaller.observations.height == 4
    subtle = prejudge.run("my-subtle", "my-model", settings)
    ensure_same(subtle.estimates, estimates_left("my-subtle"))


def test_published_values_of_a_user_are_judged(place):
    done = call("replicate", "my-study", "--run", NAME["my-study"])
    assert done.returncode == EXPECTED["replicate"]["exit"], done.stdout + done.stderr


def test_runs_are_compared(place):
    done = call("compare", NAME["fair"], NAME["biased"], "--runs", "new")
    assert done.returncode == 0, done.stderr
    (found,) = Path("new").glob("compare-*/differences.parquet")
    told = EXPECTED["compare"]
    frame = pl.read_parquet(found)
    assert frame.height == told["rows"]
    ensure_listed(frame, told, "differences")


def test_finished_run_is_resumed_without_asking(place):
    done = call("resume", NAME["sai"], "--runs", "new", "--quiet")
    assert done.returncode == 0, done.stderr
    ensure_same(pl.read_parquet(f"new/{NAME['sai']}/estimates.parquet"), estimates_left("sai"))


def test_tables_and_card_are_written(place):
    assert call("export", NAME["biased"], "--format", "json", "--out", "table.json").returncode == 0
    rows = json.loads(Path("table.json").read_text("utf-8"))
    assert len(rows) == estimates_left("biased").height
    assert call("card", NAME["biased"], "--out", "card").returncode == 0
    assert Path("card/model-card.md").exists() and Path("card/data-sheet.md").exists()
