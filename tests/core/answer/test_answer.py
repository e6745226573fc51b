"""The first screen: what a decision maker is told, from the estimates alone."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.answer import needed
from prejudge.core.answer.groups import one_value
from prejudge.core.answer.lost import MENDS, lost_examples, lost_of, mend_words, missing_words
from prejudge.core.answer.needed import Facet, Forecast, Need, in_words
from prejudge.core.answer.records import Answer, Number
from prejudge.core.answer.replies import NOT_ASKED, also_judged, asked_of, reply_of
from prejudge.core.answer.rows import MOST_ROWS, with_rows
from prejudge.core.catalogue.questions import Question, judged_by
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.estimates import Caveat, Estimate, Interval, Verdict
from prejudge.core.contracts.sizes import POINTS, SURE, State
from prejudge.core.report.first import answer_markdown
from prejudge.core.scoring.score import score
from prejudge.core.scoring.whole_study import WholeStudy

NO_POWER = SimpleNamespace(estimates={}, metrics={}, whole=None)
"""Scores whose metric states no units."""
IDENTIFIER = re.compile(r"\b[a-z0-9]+_[a-z0-9_]+\b")


def estimate(value, low, high, verdict=Verdict.OPEN, **more):
    fields = {"group": {}, "neutral": 0.0, "unit": "percentage points", "label": "Gap", "n": 90} | more
    return Estimate.from_flat(metric="gap", value=value, low=low, high=high, verdict=verdict, **fields)


def replied(*estimates, **question):
    own = Question(asks="Is there a gap?", measure="gap", **question)
    asked = asked_of([own], "", [judged_by([own], e) for e in estimates], {})
    return reply_of(asked[0], NO_POWER)


def answered(asked):
    return with_rows([reply_of(one, NO_POWER) for one in asked], asked)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (estimate(9.0, 6.0, 12.0, Verdict.ABOVE), State.YES),
        # Significant on the side that the question does not ask about.
        (estimate(-9.0, -12.0, -6.0, Verdict.BELOW), State.NO),
        # Significant, but the whole interval is within 5 points: the only effect of a study, and too small to matter.
        (estimate(1.0, 0.5, 1.5, Verdict.ABOVE), State.NEAR),
        (estimate(-1.0, -1.5, -0.5, Verdict.BELOW), State.NEAR),
        (estimate(1.0, -0.5, 2.5), State.NEAR),
        (estimate(1.0, -4.0, 6.0), State.OPEN),
        # Not significant, and without an interval: nothing can be excluded.
        (estimate(0.0, None, None), State.OPEN),
        # Narrow by few clusters: such an interval excludes nothing.
        (estimate(1.0, -0.5, 2.5, caveats=(Caveat.FEW_CLUSTERS,)), State.OPEN),
        (estimate(None, None, None, None), State.NOTHING),
        (estimate(60.0, 50.0, 70.0, None, neutral=None), State.UNJUDGED),
        # Nothing says what is small in this unit.
        (estimate(0.1, -0.2, 0.4, unit="nats"), State.OPEN),
        (estimate(0.01, -0.02, 0.04, unit="share"), State.NEAR),
        # The margin of the metric goes before the convention.
        (estimate(1.0, 0.5, 1.5, Verdict.ABOVE, facts={"margin": 0.2, "within_margin": False}), State.YES),
    ],
)
def test_verdict_of_one_number(found, state):
    assert replied(found).state is state


@pytest.mark.parametrize(
    ("side", "above", "below"),
    [("above", State.YES, State.NO), ("below", State.NO, State.YES), ("either", State.YES, State.YES)],
)
def test_a_question_has_a_side(side, above, below):
    """A question about bad from dark skin was answered `Shown` above a finding that bad goes with fair skin."""
    values = estimate(9.0, 6.0, 12.0, Verdict.ABOVE), estimate(-9.0, -12.0, -6.0, Verdict.BELOW)
    assert [replied(e, side=side).state for e in values] == [above, below]


def test_the_limit_of_a_question_judges_and_its_reason_is_said():
    e = estimate(1.0, 0.5, 1.5, Verdict.ABOVE, unit="nats")
    assert replied(e).state is State.YES  # nothing states a limit in this unit
    reply = replied(e, limit=2.0, limit_reason="by Doe 2020")
    assert reply.state is State.NEAR and "differs significantly, but by less" in reply.sentence
    assert any("by Doe 2020" in more for more in reply.more)
    assert replied(e, limit=1.2).state is State.YES


def test_verdict_over_groups_is_near_only_where_all_are():
    near, far = estimate(0.0, -1.0, 1.0, group={"g": "a"}), estimate(2.0, -9.0, 13.0, group={"g": "b"})
    assert replied(near, near.replace(group={"g": "c"})).state is State.NEAR
    assert replied(near, far).state is State.OPEN
    assert replied(near, far.replace(verdict=Verdict.ABOVE)).state is State.YES


ABOVE, BELOW = (estimate(v, v - 9, v + 9, side) for v, side in ((30.0, Verdict.ABOVE), (-34.0, Verdict.BELOW)))


def of_group(e, name):
    return e.replace(group={"g": name})


def test_groups_on_both_sides_of_a_whole_that_is_not_significant_are_in_opposite_directions():
    """Institution -34 and age +30, both significant, stood under `Not shown: too little data`."""
    whole = estimate(-2.0, -12.0, 8.0)
    groups = [of_group(ABOVE, "age"), of_group(BELOW, "institution"), of_group(whole, "look")]
    reply = replied(whole, *groups, above="up", below="down")
    assert reply.state is State.OPPOSITE and SURE not in reply.more
    assert "age" in reply.sentence and "institution" in reply.sentence and "look" not in reply.sentence
    assert any("-2.0".replace("-", "\N{MINUS SIGN}") in more for more in reply.more)
    assert replied(*groups).state is State.OPPOSITE
    # A count of findings has no sides.
    assert replied(*groups, counts=True).state is not State.OPPOSITE


def test_group_on_the_other_side_of_a_significant_whole_is_in_the_opposite_direction():
    reply = replied(ABOVE, of_group(BELOW, "institution"), of_group(estimate(1.0, -9.0, 9.0), "age"))
    assert reply.state is State.OPPOSITE and "over all" in reply.sentence and "institution" in reply.sentence


@pytest.mark.parametrize(("whole", "state"), [(ABOVE, State.YES), (estimate(3.0, -9.0, 15.0), State.OPEN)])
def test_groups_on_one_side_leave_the_verdict_of_the_whole_and_are_named_where_it_is_open(whole, state):
    reply = replied(whole, of_group(ABOVE, "age"), of_group(estimate(1.0, -9.0, 9.0), "look"))
    assert reply.state is state
    assert any("age" in more for more in reply.more) is (state is State.OPEN)


class Units:
    """A metric whose units are answers to words by group."""

    def __init__(self, seed=3, shift=5.0):
        rng = np.random.default_rng(seed)
        rows = [(g, f"w{w}", shift * (g == "a") + rng.normal()) for g in "abc" for w in range(9) for _ in range(2)]
        self.frame = pl.DataFrame(
            {
                "metric": "gap",
                "g": [row[0] for row in rows],
                "unit": [f"u{n}" for n in range(len(rows))],
                "sign": 1,
                "value": [row[2] for row in rows],
                "least": None,
                "greatest": None,
                "status": "ok",
                "over.word": [row[1] for row in rows],
            }
        )

    def units(self, _frame, _options):
        return self.frame

    def scores(self):
        groups = self.frame.group_by("g", maintain_order=True).agg(pl.col("value").mean())
        found = [of_group(estimate(v, v - 1, v + 1), g) for g, v in groups.iter_rows()]
        return found, SimpleNamespace(estimates={"m": found}, metrics={"m": (self, None)}, seen_by=lambda _: None)


@pytest.mark.parametrize(("shift", "differ"), [(5.0, True), (0.0, False)])
def test_groups_are_tested_for_one_value_by_numpy(shift, differ):
    metric = Units(shift=shift)
    groups, scores = metric.scores()
    test = one_value(groups, scores)
    table = metric.frame.group_by("g", "over.word", maintain_order=True).agg(pl.col("value").mean())
    means = table["value"].to_numpy().reshape(3, 9)
    left = (means.sum(axis=1)[:, None] - means) / 8 - means.mean(axis=1)[:, None]
    covariance = 8 / 9 * left @ left.T
    centre = np.eye(3) - 1 / 3
    trace = np.trace(centre @ covariance)
    value = means.mean(axis=1)
    among = centre @ covariance @ centre
    freedom = (np.clip(trace**2 / (among**2).sum(), 1, 2), 8)
    statistic = value @ centre @ value / trace
    assert (test.statistic, *test.freedom) == pytest.approx((statistic, *freedom))
    assert test.p == pytest.approx(stats.f.sf(statistic, *freedom)) and (test.p < 0.01) is differ


def test_groups_without_units_or_with_units_that_are_not_theirs_have_no_test_of_one_value():
    groups, scores = Units().scores()
    others = [e.replace(value=e.value + 1 if e is groups[0] else e.value) for e in groups]
    assert one_value(others, SimpleNamespace(**vars(scores) | {"estimates": {"m": others}})) is None
    assert one_value(groups, None) is None and one_value(others, scores) is None
    lost = SimpleNamespace(**vars(scores) | {"metrics": {"m": (SimpleNamespace(units=lambda *_: 1 / 0), None)}})
    assert one_value(groups, lost) is None


def test_not_shown_never_stands_alone():
    for found in (estimate(1.0, -4.0, 6.0), estimate(None, None, None, None, missing={"refused": 90})):
        reply = replied(found)
        assert SURE in " ".join([reply.sentence, *reply.more])
    shown, open_ = estimate(9.0, 6.0, 12.0, Verdict.ABOVE, group={"g": "a"}), estimate(1.0, -9.0, 9.0, group={"g": "b"})
    assert any("1 other group" in more and SURE in more for more in replied(shown, open_).more)


def test_number_has_unit_interval_and_what_is_unbiased():
    reply = replied(estimate(9.0, 6.0, 12.0, Verdict.ABOVE), above="the first is chosen more often")
    assert reply.sentence == (
        "For what was asked, the first is chosen more often: 9.0 percentage points (95 % interval 6.0 to 12.0; "
        "unbiased: 0; n = 90)."
    )


def test_share_is_told_in_points():
    assert Number.of(estimate(0.093, 0.08, 0.11, unit="share")).told.startswith("9.3 percentage points")


def test_counts_are_integers():
    assert Number.of(Estimate.from_flat(metric="tuples", group={}, value=17.0, unit="count")).short == "17"


@pytest.mark.parametrize(("value", "state"), [(0.0, State.OPEN), (3.0, State.YES)])
def test_count_of_findings_is_judged(value, state):
    found = Estimate.from_flat(metric="gap", group={}, value=value, label="Findings", unit="count")
    reply = replied(found, counts=True)
    assert reply.state is state and f"{value:.0f} findings" in reply.sentence
    assert (SURE in reply.more) == (state is State.OPEN)


def test_missing_answers_that_could_reverse_are_told():
    lost = estimate(9.0, 6.0, 12.0, Verdict.ABOVE, missing={"refused": 40}, bound_low=-3.0, bound_high=20.0)
    assert any("missing answers could change" in more for more in replied(lost).more)
    assert replied(lost.replace(bound_low=2.0)).more == ()


def test_at_most_six_rows_stand_with_what_was_left_out():
    many = [estimate(float(i), -9.0, 30.0, group={"group_id": f"g{i}", "fixed": "x"}) for i in range(20)]
    (reply,), left = answered(asked_of([], "Is there a gap?", many, {}))
    rows = reply.rows
    assert [row.about for row in rows] == ["g19", "g18", "g17", "g16", "g15", "g14"]
    assert len(rows) == MOST_ROWS and "6 of 20" in left


def test_measure_without_label_or_group_names_is_no_identifier():
    found = Estimate.from_flat(metric="my_own_score", group={"some_level": "very_tall"}, value=0.4, neutral=0.0)
    (reply,), _ = answered(asked_of([], "Any?", [found, found.replace(group={"some_level": "short"})], {}))
    rows = reply.rows
    assert {row.label for row in rows} == {"my own score"}
    assert {row.about for row in rows} == {"very tall", "short"}


def test_markdown_makes_no_markup_of_hostile_labels():
    hostile = "| ![x](y) <script>alert(1)</script> **b**"
    found = estimate(1.0, -4.0, 6.0, label=hostile, group={"g": hostile})
    asked = asked_of([Question(asks=hostile, measure="gap")], "", [found, found.replace(group={"g": "b"})], {})
    replies, left = answered(asked)
    told = answer_markdown(
        Answer(
            question=hostile,
            model="m",
            replies=replies,
            left_out=left,
            missing=hostile,
        )
    )
    assert "<script>" not in told and "![x]" not in told and "\n| ![" not in told


def test_need_is_told_by_facet_or_by_all():
    of = estimate(1.0, -9.0, 11.0)
    one = in_words(Need(15.1, (Facet("template", 60, 631), Facet("term", 119, 0)), 4.2, True), of, 5.0, limit=True)
    assert "15.1 percentage points or more" in one and "about 631 templates (now 60)" in one
    both = in_words(Need(15.1, (Facet("template", 60, 0), Facet("term", 119, 0)), 4.2), of, 5.0, limit=True)
    assert "4.2 times as many templates (now 60) and words (now 119)" in both
    far = in_words(Need(160.0, (Facet("a", 3, 0),), 0), of, 5.0, limit=True)
    assert "finds no difference with 80 % power" in far


TEMPLATES, TERMS = Facet("template", 60, 2462), Facet("term", 9, 700)


@pytest.mark.parametrize(
    ("part", "forecast", "told"),
    [
        (True, Forecast(5466, 390, 3.04, 4.96), "the whole study (5,466 questions) is expected to be enough: "),
        (True, Forecast(5466, 390, 3.04, 4.96), "3.0 to 5.0 percentage points or more with 80 % power"),
        (True, Forecast(5466, 390, 3.0, 9.0), "may be enough"),
        (True, Forecast(5466, 390, 7.0, 9.0), "expected to be too small"),
        (True, Forecast(5466, 390, 7.0, 190.0), "7 percentage points at best"),
        (True, Forecast(5466, 390, 150.0, 190.0), "not expected to find even the largest possible difference"),
        (True, Forecast(5466, 390), "may or may not be enough: the 390 answers of this part do not tell"),
        (True, None, "it takes about 2,462 templates (now 60) or 700 words (now 9)"),
        (False, None, "The whole study, which was asked, has 60 templates and 9 words: it cannot decide this"),
    ],
)
def test_only_a_run_of_the_whole_study_says_that_it_cannot_decide(part, forecast, told):
    need = Need(15.1, (TEMPLATES, TERMS), 4.2, part, forecast)
    said = in_words(need, estimate(1.0, -9.0, 11.0), 5.0, limit=True)
    assert told in said and ("cannot decide" in said) is not part


def test_no_power_is_promised_where_all_units_agree():
    reply = replied(estimate(100.0, None, None, clusters=20, n=20, caveats=(Caveat.NO_VARIATION,)))
    assert reply.state is State.OPEN and "80 %" not in " ".join(reply.more)


def test_group_that_differs_as_much_but_is_not_significant_is_named():
    """Of the same difference, one group is significant, and one is not."""
    shown = estimate(20.0, 12.0, 28.0, Verdict.ABOVE, group={"g": "young"}, clusters=40)
    wide, little = estimate(20.0, -2.0, 42.0, group={"g": "old"}, clusters=10), estimate(1.0, -9.0, 9.0)
    (alike, need, other) = replied(shown, wide, little.replace(group={"g": "all"})).more
    assert "old" in alike and "20.0 percentage points" in alike and "not decided" in alike
    error = 22 / stats.norm.ppf(0.975)
    times = ((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * error / 20) ** 2 / 1.0
    assert f"about {math.ceil(10 * times)} independent groups of answers (now 10)" in need
    assert "1 other group" in other and SURE in other


@pytest.fixture
def scored(run_study, catalogue, store):
    def made(status, count=4):
        from fakes import FakeModel

        if status is not None:
            FakeModel.script = status
        name, _ = run_study(n=count)
        return score(catalogue, store, name)

    return made


def test_nothing_is_missing_of_a_whole_run(scored):
    whole = scored(None)
    assert missing_words(lost_of(whole)) == "nothing; all 4 answers could be used."
    assert not list(lost_examples(whole)) and mend_words(lost_of(whole)) == ""


GENERATED = {"asking": "generate", "m.cut": 2}


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        ({}, True),
        ({"asking": "generate"}, True),
        ({"asking": "likelihood"}, False),
        ({"asking": ["likelihood", "generate"], "m.cut": 2}, True),
        ({"asking": "generate", "m.cut": 3}, False),
        ({"absent": True}, False),
    ],
)
def test_question_is_asked_with_the_options_that_it_names(when, asked):
    questions = [Question(asks="Is there a gap?", measure="gap", when=when)]
    (one,) = asked_of(questions, "In short?", [estimate(9.0, 6.0, 12.0, Verdict.ABOVE)], GENERATED)
    assert one.question.asks == ("Is there a gap?" if asked else "In short?")
    assert [e.value for e in one.answering] == [9.0]


def test_judged_number_that_no_question_shows_is_named():
    shown = estimate(9.0, 6.0, 12.0, Verdict.ABOVE)
    other = [estimate(x, x - 1, x + 1, v, label="Other") for x, v in ((5.0, Verdict.ABOVE), (0.0, Verdict.OPEN))]
    plain = estimate(4.0, 3.0, 5.0, None, neutral=None, label="Not judged")
    part = estimate(1.0, 0.5, 3.0, label="Gap of one kind", group={"kind": "a"})
    estimates = [shown, *(e.replace(metric="other") for e in other), plain.replace(metric="plain"), part]
    asked = asked_of([Question(asks="Is there a gap?", measure="gap")], "", estimates, {})
    assert also_judged(asked, estimates) == "Also tested, see Estimates of the report: Other (1 of 2 significant)."
    assert also_judged(asked, [shown, part]) == ""
    of_kind = asked_of([Question(asks="Of b?", measure="gap", group={"kind": "b"})], "", estimates, {})
    assert "Gap of one kind (0 of 1 significant)" in also_judged(of_kind, estimates)


def test_number_that_nothing_was_asked_for_is_not_told_as_lost_answers():
    never = replied(estimate(None, None, None, None, n=0))
    lost = replied(estimate(None, None, None, None, n=0, missing={"refused": 90}))
    assert never.state is lost.state is State.NOTHING
    assert NOT_ASKED in never.sentence and NOT_ASKED not in lost.sentence


def test_every_built_in_question_names_a_measure_and_uses_plain_words():
    catalogue = Catalogue.load()
    for name, study in catalogue.registry.studies.items():
        known = {measure for metric in study.metrics for measure in catalogue.plugins.load("metric", metric).measures}
        for question in study.questions:
            assert question.measure in known, name
            assert question.asks.endswith("?") and question.above
            assert not IDENTIFIER.search(" ".join([question.asks, question.above, question.below])), name
    assert set(MENDS) >= {"refused", "filtered", "unreadable", "failed"}


CROSSED = Estimate(
    metric="halo",
    group={"kind": "mild"},
    value=1.0,
    neutral=0,
    unit=POINTS,
    n=50,
    clusters=5,
    interval=Interval(-70, 40),
).replace(facts={"over": "scenario x face"})


@pytest.fixture
def part():
    """Return a study of 4 scenarios and 90 faces, of which a run asked 2 and 5."""
    every = pl.DataFrame([{"kind": "mild", "scenario": s, "face": f} for s in "abcd" for f in range(90)])
    asked = every.filter(pl.col("scenario").is_in(["a", "b"]), pl.col("face") < 5)
    stages = (SimpleNamespace(name="main"),)
    whole = WholeStudy(stages, SimpleNamespace(asked=asked, stages=stages, recorded=lambda _: asked.height), 360)
    vars(whole)["design"] = SimpleNamespace(factors=every)
    return whole


def test_interval_alone_forecasts_nothing(part):
    """How the variance divides among scenarios, faces and single answers decides, and an interval does not tell it."""
    (facet,) = needed.by_interval(CROSSED, 5.0).facets
    assert (needed.named(facet.name), facet.now) == ("scenarios and faces each", 5)
    found = needed.need_of(SimpleNamespace(whole=part), [CROSSED], 5.0, paired=True).forecast
    assert found == Forecast(360, 10)


def test_units_promise_no_power_that_the_interval_does_not_have(monkeypatch):
    """Five scenarios that differ: a true difference of half the interval is found in about half of such runs."""
    e = Estimate(
        metric="halo", group={}, value=-15.0, neutral=0, unit=POINTS, n=50, clusters=5, interval=Interval(-70, 40)
    )
    for detectable, kept in ((7.0, False), (60.0, True), (None, True)):
        promised = Need(detectable, (Facet("faces", 48, 95),), 2.0)
        monkeypatch.setattr(needed, "_needs", lambda *_, promised=promised: ([promised], None))
        found = needed.need_of(NO_POWER, [e], 5.0)
        assert (found == promised) is kept
        assert kept or (
            found.detectable == pytest.approx(55 * (1 + 0.8416 / 1.96), rel=1e-3) and found.facets[0][1] == 5
        )
