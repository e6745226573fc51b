"""A table of outcomes: what is read of it, what it shows of its design, and the run that it becomes."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest

import prejudge
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.probes.own_table.incidence import nesting, outermost, sentences
from prejudge.probes.own_table.probe import OwnTable, OwnTableOptions
from prejudge.testing import raises_code

NAMES, TEMPLATES = 10, 11


@pytest.fixture
def settings(tmp_path):
    return prejudge.Settings(store=str(tmp_path / "store.db"), runs=str(tmp_path / "runs"))


def answers(effect=0.0, seed=0):
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "template": f"t{t}",
            "gender": gender,
            "name": f"{gender}{n}",
            "rating": round(t + effect * (gender == "male") + draw.normal(0, 0.3), 3),
            "hired": "yes" if draw.random() < 0.5 + 0.3 * (gender == "male") else "no",
        }
        for t in range(TEMPLATES)
        for gender in ("female", "male")
        for n in range(NAMES)
    )


def measured(frame, settings, **declared):
    known = {"outcome": "rating", "group": "gender", "between": ["male", "female"], "sampled": ["template", "name"]}
    return prejudge.measure(frame, settings, **(known | declared))


def one(run, metric):
    (row,) = run.estimates.filter(metric=metric).iter_rows(named=True)
    return row


def test_nesting_is_found_from_incidence():
    frame = answers().with_columns(item=pl.col("template") + pl.col("name"))
    assert nesting(frame, ["template", "name", "gender"]) == [("name", "gender")]
    assert set(nesting(frame, ["item", "template", "name"])) == {("item", "template"), ("item", "name")}
    assert outermost(frame, ["item", "template", "name"]) == ["template", "name"]
    assert "name lies within gender." in sentences(frame, ["template", "name"], "gender")


def test_of_columns_that_go_one_to_one_the_first_counts():
    frame = answers().with_columns(again=pl.col("template").str.to_uppercase())
    assert outermost(frame, ["template", "again"]) == ["template"]
    assert outermost(frame, ["again", "template"]) == ["again"]


def test_a_table_becomes_a_run_with_the_digest_of_its_file(settings, tmp_path):
    path = tmp_path / "answers.csv"
    answers(effect=1.0).write_csv(path)
    run = measured(path, settings)
    frame = pl.read_csv(path)
    means = dict(frame.group_by("gender").agg(pl.col("rating").mean()).iter_rows())
    row = one(run, "difference")
    assert row["value"] == pytest.approx(means["male"] - means["female"])
    assert row["verdict"] == "above"
    assert hashlib.sha256(path.read_bytes()).hexdigest() in run.manifest.data.values()
    path.unlink()
    again = prejudge.score(run.name, settings)
    assert again.estimates.equals(run.estimates)
    assert again.manifest.head == run.manifest.head != ""


def test_a_fair_table_whose_templates_differ_is_not_convicted(settings):
    row = one(measured(answers(), settings, limit=0.5, because="half a point"), "difference")
    assert row["verdict"] == "near"


def test_repeats_of_a_condition_leave_the_interval_as_it_is(settings):
    frame = answers(effect=0.2)
    once = one(measured(frame, settings), "difference")
    run = measured(pl.concat([frame] * 3), settings)
    thrice = one(run, "difference")
    # Copies are no evidence: only the answers' own part of the variance, which both facets hold, is counted again.
    assert (thrice["value"], thrice["clusters"]) == (pytest.approx(once["value"]), once["clusters"])
    assert thrice["high"] - thrice["low"] >= 0.95 * (once["high"] - once["low"])
    assert any("repeats of one condition" in note for note in run.manifest.notes)


def test_missing_outcomes_are_counted_by_group(settings):
    frame = answers().with_columns(
        rating=pl.when((pl.col("gender") == "male") & (pl.col("name") == "male0")).then(None).otherwise("rating")
    )
    run = measured(frame, settings)
    missing = {row["gender"]: row["value"] for row in run.estimates.filter(metric="missing").iter_rows(named=True)}
    assert missing["male"] == pytest.approx(100 / NAMES)
    assert missing["female"] == 0


def test_a_text_among_numbers_could_not_be_read(settings):
    frame = answers().with_columns(pl.col("rating").cast(pl.String))
    frame[0, "rating"] = "I cannot rate people"
    run = measured(frame, settings)
    assert run.observations.filter(status="unreadable").height == 1
    assert one(run, "difference")["n"] == frame.height - 1


def test_texts_need_to_be_told_apart(settings):
    frame = answers().with_columns(
        hired=pl.when(pl.col("hired") == "yes").then(pl.lit("hired")).otherwise(pl.lit("not"))
    )
    with raises_code(DataError, "data.number", "--positive"):
        measured(frame, settings, outcome="hired")
    run = measured(frame, settings, outcome="hired", positive=["hired"])
    rates = {
        gender: 100 * frame.filter(gender=gender).filter(hired="hired").height / frame.filter(gender=gender).height
        for gender in ("male", "female")
    }
    found = {row["gender"]: row["value"] for row in run.estimates.filter(metric="ratio_rate").iter_rows(named=True)}
    assert found == pytest.approx(rates)
    assert one(run, "difference")["value"] == pytest.approx(rates["male"] - rates["female"])
    assert one(run, "difference")["unit"] == "percentage points"
    assert one(run, "ratio")["value"] == pytest.approx(
        min(rates.values()) / max(rates.values())
        if rates["male"] > rates["female"]
        else rates["male"] / rates["female"]
    )


def test_yes_and_no_need_no_option(settings):
    assert one(measured(answers(), settings, outcome="hired"), "difference")["unit"] == "percentage points"


def test_without_a_sample_nothing_is_judged(settings):
    row = one(measured(answers(effect=2), settings, sampled=[]), "difference")
    assert (row["low"], row["p"], row["verdict"]) == (None, None, None)
    alone = one(measured(answers(effect=2), settings, sampled=[], independent=True), "difference")
    assert alone["low"] < alone["value"] < alone["high"]


def test_a_table_without_a_group_has_a_mean(settings):
    run = measured(answers(), settings, group="", between=[], sampled=["template"])
    assert one(run, "mean")["value"] == pytest.approx(answers()["rating"].mean())


def test_declared_measures_and_questions_take_the_place_of_the_usual(settings):
    measures = [{"name": "high", "share": "outcome"}, {"name": "gap", "ranks": "gender"}]
    frame = answers().with_columns(rating=(pl.col("rating") > 3).cast(pl.Int64))
    questions = [{"asks": "Is the rank higher?", "measure": "gap", "limit": {"value": 0.1, "because": "small"}}]
    run = measured(frame, settings, measures=measures, questions=questions)
    assert {*run.estimates["metric"]} == {"high", "gap", "missing"}
    (question,) = run.manifest.study.questions
    assert (question.measure, question.limit, question.side) == ("gap", 0.1, "above")


@pytest.mark.parametrize(
    ("declared", "error", "code", "named"),
    [
        ({"outcome": "score"}, DataError, "data.column-missing", "score"),
        ({"group": "sex"}, DataError, "data.column-missing", "sex"),
        ({"sampled": ["template", "nam"]}, DataError, "data.column-missing", "nam"),
        ({"sampled": ["gender"]}, UsageError, "options.conflict", "gender"),
        ({"independent": True}, UsageError, "options.conflict", "template"),
        ({"group": "rating"}, UsageError, "options.conflict", "rating"),
        ({"group": "", "sampled": []}, UsageError, "options.missing", "--group"),
        ({"grop": "gender"}, UnknownNameError, "unknown-key", "group"),
        ({"between": ["male", "woman"]}, DataError, "data.unknown-value", "woman"),
        ({"by": ["status"]}, UsageError, "options.reserved", "status"),
    ],
)
def test_what_contradicts_the_table_is_refused(settings, declared, error, code, named):
    with raises_code(error, code, named):
        measured(answers(), settings, **declared)


def test_a_table_of_one_level_is_refused(settings):
    with raises_code(DataError, "data.unknown-value", "gender"):
        measured(answers().filter(gender="male"), settings, between=[])


def test_a_table_without_outcomes_gives_no_number(settings):
    frame = answers().with_columns(rating=pl.lit(None, pl.Float64))
    row = one(measured(frame, settings), "difference")
    assert (row["value"], row["n"]) == (None, 0)


def test_a_numeric_factor_is_a_number(tmp_path):
    answers().with_columns(years=pl.lit(4)).write_csv(tmp_path / "table.csv")
    options = OwnTableOptions(outcome="rating", factors=("gender", "years"))
    schema = OwnTable().import_scores(str(tmp_path / "table.csv"), options).observations.schema
    assert (schema["years"], schema["gender"]) == (pl.Float64, pl.String)
