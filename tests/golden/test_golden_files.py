"""Golden files and the battery are those of the code: stored responses give the stored numbers, words and readings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prejudge import statistics
from prejudge.core.catalogue import golden as identity
from prejudge.core.catalogue.certificates import changed_since
from prejudge.core.catalogue.filed import Filed, read_certificate
from prejudge.core.catalogue.golden import STATED, digest_of_numbers, is_close, read_head
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.version import VERSION
from prejudge.core.lab.calibration.certify import Recipe
from prejudge.core.lab.calibration.golden import compute, stated_campaign
from prejudge.core.lab.calibration.golden_file import differences, read, settle
from prejudge.core.lab.calibration.numbers import differing_studies
from prejudge.core.statistics import measures

from . import __main__ as command
from . import battery
from .__main__ import CHANGELOG, add_line, golden_files, main

FILES = golden_files()


@pytest.mark.parametrize("study", FILES)
def test_stored_responses_give_the_stored_numbers(study: str):
    before = read(FILES[study])
    with stated_campaign(Recipe.load(study, {})) as stated:
        after = settle(before, compute(stated, before, ask=False))
    assert [str(one) for one in differences(before, after)][:10] == [], "run `make numbers`"
    assert before.head.cases == {n: digest_of_numbers(c.estimates.values()) for n, c in before.cases.items()}
    assert before.head == after.head and before.head.prejudge == VERSION
    assert after.unknown == 0


@pytest.mark.parametrize("study", FILES)
def test_a_golden_file_has_every_case_of_the_options(study: str):
    """Counted from the file of the study and the records of options, without the product's cases."""
    entry, head = Catalogue.load().registry.study(study), read_head(FILES[study])
    choices = entry.multiverse.choices
    for name, values in choices.items():
        if not name.startswith(("measure", "group.", "model.")):
            there = {STATED} | {f"{name}={json.dumps(value)}" for value in values}
            assert len(there & head.cases.keys()) == len(values), f"{study}: {name}"
    for options in ("resamples", "alpha", "level", "correction", "intervals", "seed"):
        varied = [name for name in head.cases if f".{options}=" in name]
        assert varied, f"{study}: {options}"


@pytest.mark.parametrize("study", FILES)
def test_the_spot_studies_of_a_packaged_certificate_find_the_same(study: str):
    made = read_certificate(FILES[study].parent / f"{study}.json")
    filed = Filed(made, FILES[study], read_head(FILES[study]))
    if not made.spots or made.data:  # of data that are not included nothing can be asked here
        assert changed_since(filed) or made.data
        return
    assert [why for _, why in differing_studies(Recipe.load(study, {}), filed) if why] == []


def test_the_stored_responses_have_every_status():
    statuses = {row["status"] for path in FILES.values() for row in read(path).cases[STATED].readings.values()}
    assert statuses == {"ok", "refused", "filtered", "unreadable", "failed"}


def test_the_battery_is_that_of_the_code():
    stored, computed = battery.stored(), json.loads(json.dumps(battery.battery()))
    assert stored.keys() == computed.keys()
    different = [name for name in stored if not is_close(stored[name], computed[name])]
    assert different == [], "run `make numbers`"
    assert identity.battery() == {name: identity.digest_of(rows) for name, rows in stored.items()}


def test_the_battery_has_every_statistic_that_metrics_may_name():
    """Every recipe, interval and test of the house, as its modules name them."""
    names = set(battery.stored())
    assert {
        "bootstrap",
        "cluster bootstrap",
        "cluster bootstrap, BCa",
        "cluster jackknife",
        "crossed jackknife",
    } <= names
    assert {"sign-flip permutation", "permutation of the two sides", "permutation of the groups"} <= names
    assert {
        "exact",
        "exact binomial",
        "Wilson",
        "McNemar, exact",
        "Kruskal-Wallis",
        "t test, crossed jackknife",
    } <= names
    recipes = {kind for kind in vars(measures).values() if isinstance(kind, type)} & {
        type(measure) for measure in (*battery.MEASURES, *battery.PAIRED)
    }
    declared = (statistics.Mean, statistics.Share, statistics.Ratio, statistics.Correlation, statistics.Derived)
    assert set(declared) <= recipes | {statistics.Statistic}


def test_a_changed_statistic_changes_its_own_part_of_the_battery(monkeypatch):
    cohens_h = statistics.cohens_h
    monkeypatch.setattr("prejudge.core.statistics.measures_compared.cohens_h", lambda t: cohens_h(t) * (1 + 1e-6))
    stored, computed = battery.stored(), json.loads(json.dumps(battery.battery()))
    assert [name for name in stored if not is_close(stored[name], computed[name])] == ["Cohen's h"]


def test_numbers_are_not_written_where_nobody_reads_them(monkeypatch, capsys):
    monkeypatch.setattr(command, "changed_battery", lambda: iter(["Wilson: 1 -> 2"]))
    monkeypatch.setattr(command, "golden_files", dict)
    written = []
    monkeypatch.setattr(battery, "write", written.append)
    monkeypatch.setenv("CI", "true")
    assert main("a reason") == 1 and "1 -> 2" in capsys.readouterr().out
    monkeypatch.delenv("CI")
    assert main("") == 1 and not written


def test_numbers_are_written_with_a_line_of_the_changelog(tmp_path: Path, monkeypatch):
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\nWords.\n\n## 0.1.0\n\n- First.\n", "utf-8")
    monkeypatch.setattr(command, "changed_battery", lambda: iter(["Wilson: 1 -> 2"]))
    monkeypatch.setattr(command, "golden_files", dict)
    monkeypatch.setattr(command, "CHANGELOG", changelog)
    written = []
    monkeypatch.setattr(battery, "write", written.append)
    monkeypatch.delenv("CI", raising=False)
    assert main("Wilson's interval is corrected.") == 0 and len(written) == 1
    lines = changelog.read_text("utf-8").splitlines()
    assert lines[4:] == ["## 0.1.0", "", "- Numbers: Wilson's interval is corrected.", "- First."]
    assert add_line(changelog.read_text("utf-8"), "Another.").count("- Numbers: ") == 2


def test_every_change_of_numbers_has_its_line_in_the_changelog():
    reasons = {reason for path in FILES.values() if (reason := read_head(path).reason)}
    text = CHANGELOG.read_text("utf-8")
    assert [reason for reason in reasons if f"- Numbers: {reason}" not in text] == []
