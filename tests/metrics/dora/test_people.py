"""People beside the judge: their agreement, and the judge's levels corrected by them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from prejudge.metrics.dora.counts import Associations
from prejudge.metrics.dora.means import OF, rows_of
from prejudge.metrics.dora.measures import AMONG, CORRECTED
from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions
from prejudge.metrics.dora.people import agreements
from prejudge.probes.dora.content_words import lemmas
from prejudge.probes.dora.people import read_levels, rows_to_rate

from .frames import WORDS, study

STABLE = [word for word in WORDS if lemmas([word]) == [word]][:20]
"""Associations of each descriptor: words that are their own lemmas."""


def judged(seed, descriptors=40):
    """Return judgements that are 0.9 too high where people say 1 or 2, and people's own levels of all associations."""
    rng = np.random.default_rng(seed)
    shape = (descriptors, len(STABLE))
    people = np.clip(np.round(2.4 + rng.normal(0, 0.5, descriptors)[:, None] + rng.normal(0, 1, shape)), 1, 5)
    judge = np.clip(np.round(people + 0.9 * (people < 3) + rng.normal(0, 0.6, shape)), 1, 5)
    names = [(f"group{d}", word) for d in range(descriptors) for word in STABLE]
    truth = pl.DataFrame(names, schema=["descriptor", "word"], orient="row").with_columns(level=people.ravel())
    cell = {"modality": "t2t", "setting": "noun", "dimension": "age", "stage": "levels", "status": "ok"}
    fixed = [pl.lit(value).alias(name) for name, value in cell.items()]
    return truth.with_columns(*fixed, level=judge.ravel(), judgement=pl.lit(0)), truth


def annotated(levels, truth, rows, seed, path):
    """Write what people say of a drawn sheet."""
    sheet = rows_to_rate(levels, rows, seed)
    sheet.join(truth, on=["descriptor", "word"]).write_csv(path)
    return sheet


def gathered(levels, path):
    """Return a run of which these are the judgements, and what people said."""
    return Associations(None, levels, levels.clear(), levels, levels.clear(), ("levels",), read_levels([str(path)]))


def corrected(levels, path, **given):
    options, metric = DoraAssociationsOptions(**{"resamples": 399, **given}), DoraAssociations()
    rows = rows_of(gathered(levels, path), options)
    return metric.measured(rows.filter(pl.col(OF) == CORRECTED), options)


def test_sheets_have_each_level_and_dimension_and_no_judge(tmp_path):
    levels, _ = judged(0)
    levels = levels.with_columns(dimension=pl.col("descriptor").str.slice(5).cast(pl.Int64).mod(2).cast(pl.String))
    sheet = rows_to_rate(levels, 100, seed=1)
    assert sheet.columns == ["descriptor", "word"] and sheet.height == 100 == sheet.unique().height
    drawn = sheet.join(levels, on=["descriptor", "word"])
    counts = levels["level"].value_counts()
    assert drawn["level"].value_counts()["count"].min() >= min(20, counts["count"].min())
    for _, part in drawn.group_by("level"):
        assert part["dimension"].value_counts()["count"].min() > part.height / 4
    assert rows_to_rate(levels, 100, seed=1).equals(sheet) and not rows_to_rate(levels, 100, seed=2).equals(sheet)
    assert rows_to_rate(levels, 10_000, seed=1).height == levels.height


def test_corrected_level_is_the_stratified_estimate(tmp_path):
    levels, truth = judged(1)
    sheet = annotated(levels, truth, 120, 0, tmp_path / "people.csv")
    (found,) = corrected(levels, tmp_path / "people.csv")
    both = sheet.join(truth, on=["descriptor", "word"]).join(levels, on=["descriptor", "word"], suffix="_judge")
    # Of each level of the judge: the mean of people there, weighted by how many associations have it.
    means = dict(both.group_by("level_judge").agg(pl.col("level").mean()).rows())
    share = dict(levels.group_by("level").len().rows())
    assert set(means) == set(share)
    expected = sum(means[level] * count for level, count in share.items()) / levels.height
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.facts["people"] == 120 and found.n == levels.height and found.clusters == 40


def test_the_interval_has_the_error_of_the_correction(tmp_path):
    # What people would say of all associations like these is 0.9 below the judge where they say 1 or 2.
    whole = judged(10_000, descriptors=5_000)[1]["level"].mean()
    covered, plain, widths = 0, 0, []
    for seed in range(120):
        levels, truth = judged(seed)
        annotated(levels, truth, 100, seed, tmp_path / "people.csv")
        (found,) = corrected(levels, tmp_path / "people.csv", resamples=199)
        covered += found.low <= whole <= found.high
        plain += abs(levels["level"].mean() - whole) < (found.high - found.low) / 2
        widths.append(found.high - found.low)
    # 120 trials of a 95 % interval cover fewer than 107 with a chance below 1 %; the judge alone is far off.
    assert covered >= 107 and plain < 20 and np.mean(widths) < 0.6


def test_levels_that_people_did_not_judge_join_the_nearest(tmp_path):
    levels, truth = judged(2)
    truth = truth.join(levels.filter(pl.col("level") == 3).select("descriptor", "word"), on=["descriptor", "word"])
    truth.write_csv(tmp_path / "people.csv")
    (found,) = corrected(levels, tmp_path / "people.csv")
    assert found.value == pytest.approx(levels["level"].mean() + truth["level"].mean() - 3)


def test_one_association_of_people_corrects_nothing(tmp_path):
    levels, truth = judged(3)
    truth.head(1).write_csv(tmp_path / "people.csv")
    (found,) = corrected(levels, tmp_path / "people.csv")
    assert found.value is None and found.low is None and found.facts["people"] == 1


def test_people_who_agree_and_people_who_do_not(tmp_path):
    levels, truth = judged(4)
    for name, noise in (("alike", 0), ("apart", 5)):
        rng = np.random.default_rng(0)
        said = pl.concat(
            truth.head(60).with_columns(
                annotator=pl.lit(who), level=1 + (pl.col("level") - 1 + pl.Series(rng.integers(0, 1 + noise, 60))) % 5
            )
            for who in ("a", "b", "c")
        )
        said.write_csv(tmp_path / f"{name}.csv")
        found = agreements(gathered(levels, tmp_path / f"{name}.csv"), DoraAssociationsOptions(resamples=399))
        (among,) = [e for e in found if e.metric == AMONG]
        assert among.n == 60 and among.facts["raters"] == 3
        if name == "alike":
            assert among.value == 1
        else:
            assert among.low < 0.2 and among.low < among.value < among.high


def test_associations_that_one_person_judged_are_said_to_be_left_out(tmp_path):
    levels, truth = judged(5)
    twice = truth.head(30).with_columns(annotator=pl.lit("b"))
    pl.concat([truth.head(50).with_columns(annotator=pl.lit("a")), twice]).write_csv(tmp_path / "people.csv")
    found = agreements(gathered(levels, tmp_path / "people.csv"), DoraAssociationsOptions(resamples=99))
    (among,) = [e for e in found if e.metric == AMONG]
    assert (among.n, among.missing.counts) == (30, {"one judgement": 20})


def test_several_sheets_are_named_by_their_files(tmp_path):
    for name in ("anna", "berta"):
        (tmp_path / f"{name}.csv").write_text("level,descriptor,word\n2,Group a,Tired\n,group a,poor\n")
    found = read_levels([str(tmp_path / f"{name}.csv") for name in ("anna", "berta")])
    assert found["annotator"].to_list() == ["anna", "anna", "berta", "berta"]
    assert found["name"].unique().to_list() == ["group a"] and found["level"].to_list() == [2, None, 2, None]


def test_the_metric_has_both_levels(tmp_path):
    rows = [f"group{d},{WORDS[40 + d]},{1 + d % 3}" for d in range(12)]
    (tmp_path / "people.csv").write_text("\n".join(["descriptor,word,level", *rows]), encoding="utf-8")
    options = DoraAssociationsOptions(method="fisher", resamples=199, human=str(tmp_path / "people.csv"))
    frame = study(level=lambda pair, j: 2 + int(pair["descriptor"][5:]) % 3)
    found = DoraAssociations().compute(frame, options)
    values = {
        e.metric: e.value for e in found if e.metric in ("level", "level_corrected") and "dimension" not in e.group
    }
    assert values == pytest.approx({"level": 3, "level_corrected": 2})
