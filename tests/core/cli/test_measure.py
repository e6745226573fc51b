"""`prejudge measure`: a table from the command line, and what other commands make of its run."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli

ARGUMENTS = ("--outcome", "rating", "--group", "gender", "--between", "male,female", "--sampled", "advert,name")


def rating(advert, number, gender, gap):
    return advert % 3 + gap * (gender == "male") + (advert * number + len(gender)) % 3 % 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with two tables of the same columns."""
    monkeypatch.chdir(tmp_path)
    for name, gap in (("one", 0), ("two", 3)):
        lines = ["advert,name,gender,rating,verdict"]
        lines += [
            f"a{advert},{gender}{number},{gender},{rating(advert, number, gender, gap)},x"
            for advert in range(12)
            for gender in ("female", "male")
            for number in range(10)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    return tmp_path


def called(*words):
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def gap(path):
    """Return the mean rating of men less that of women."""
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    sides = [[float(row["rating"]) for row in rows if row["gender"] == gender] for gender in ("male", "female")]
    return sum(sides[0]) / len(sides[0]) - sum(sides[1]) / len(sides[1])


def runs(folder):
    return sorted(path.name for path in (folder / "runs").iterdir())


def test_first_screen_says_verdict_nesting_and_what_is_not_known(folder):
    shown = " ".join(called("measure", "two.csv", *ARGUMENTS, "--limit", "0.5", "--because", "half a grade").split())
    assert "Does rating differ between male and female? Yes." in shown
    assert f"rating is greater where gender is male: {gap(folder / 'two.csv'):.3f}" in shown
    assert "name lies within gender." in shown
    assert "does not say what was asked" in shown
    assert "Smallest detectable effect" in shown
    assert "half a grade" in (folder / "runs" / runs(folder)[0] / "manifest.json").read_text("utf-8")


def test_options_come_from_a_file_too(folder):
    (folder / "measure.toml").write_text(
        'outcome = "rating"\nsampled = ["advert"]\n[[measures]]\nname = "high"\nmean = "outcome"\n'
    )
    assert "Mean of outcome" in called("measure", "one.csv", "--declared", "measure.toml")


def test_other_commands_accept_its_runs(folder):
    for name in ("one", "two"):
        called("measure", f"{name}.csv", *ARGUMENTS, "--model", name)
    first, second = runs(folder)
    assert "Head:" in called("score", first)
    called("export", second, "--format", "json", "--out", "second.json")
    rows = json.loads((folder / "second.json").read_text("utf-8"))
    assert [row["value"] for row in rows if row["metric"] == "difference"] == pytest.approx([gap(folder / "two.csv")])
    compared = called("compare", first, second)
    assert f"{gap(folder / 'two.csv') - gap(folder / 'one.csv'):.3f}".rstrip("0").rstrip(".") in compared
    policy = called("gate", second, "--suggest")
    (folder / "policy.toml").write_text(policy)
    assert "3 of 3 rules passed" in called("gate", first, "--policy", "policy.toml", "--require", "verified")


def test_without_samples_it_says_how_to_get_an_interval(folder):
    words = ("measure", "two.csv", "--outcome", "rating", "--group", "gender")
    shown = " ".join(called(*words).split())
    assert "no interval" in shown and "--sampled name,template" in shown
    assert "No interval" not in called(*words, "--independent")
    assert "No interval" not in called(*words, "--sampled", "advert")
