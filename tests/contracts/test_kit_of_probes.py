"""The kits notice each breach: a probe or metric that breaks one rule fails that rule's test."""

from __future__ import annotations

import itertools
import random

import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts import Counting, Estimate, LargeStage, Metric, Options, Probe, Stage, Trial, Unreadable
from prejudge.core.contracts.estimates import Caveat, Interval, Missing
from prejudge.core.contracts.records import Generate, Message, Text
from prejudge.core.statistics import DeclaredMetric, Share
from prejudge.testing import MetricContract, ProbeContract

CALLS = itertools.count()


class Plain(Stage):
    operation = Generate
    factors, outcomes = ("number", "half"), ("length",)

    def trials(self, earlier):
        for number in range(6):
            yield self.trial(number)

    def trial(self, number, **factors):
        request = Generate(messages=(Message("user", (Text(f"q{number}"),)),))
        return Trial(f"t{number}", {"number": number, "half": "ab"[number % 2], **factors}, request)

    def read(self, factors, response):
        return {"length": len(response.text)} if response.text.strip() else Unreadable("empty")


class OneId(Plain):
    def trial(self, number, **factors):
        return Trial("t", super().trial(number).factors, super().trial(number).request)


class MoreFactors(Plain):
    def trial(self, number, **factors):
        return super().trial(number, extra=1)


class NoScalar(Plain):
    def trial(self, number, **factors):
        return super().trial(number, half=["a"])


class Drawn(Plain):
    def trials(self, earlier):
        yield from (self.trial(number) for number in random.sample(range(1000), 6))


class Spent(Plain):
    def __init__(self):
        self.left = iter(range(6))

    def trials(self, earlier):
        yield from (self.trial(number) for number in self.left)


class Listed(Plain):
    def trials(self, earlier):
        return list(super().trials(earlier))


class Silent(Plain):
    def trials(self, earlier):
        yield from ()


class Miscounts(Plain, LargeStage):
    def count(self, earlier):
        return 7


class Stumbles(Plain):
    def read(self, factors, response):
        return {"length": len(response.text.split()[0])}


class LongReason(Plain):
    def read(self, factors, response):
        return Unreadable(response.text or "empty")


class OtherOutcomes(Plain):
    def read(self, factors, response):
        return {"size": 1}


class NestedOutcome(Plain):
    def read(self, factors, response):
        return {"length": {"of": 1}}


class Forgets(Plain):
    def read(self, factors, response):
        return {"length": next(CALLS)}


class Writes(Plain):
    def read(self, factors, response):
        factors["half"] = "c"
        return {"length": 1}


class QuickOtherwise(Plain, LargeStage):
    def read_frame(self, frame):
        return frame.select("number", "half").with_columns(length=pl.lit(-1))


class TakenName(Plain):
    outcomes = ("status",)


class BothWays(Plain):
    outcomes = ("half",)


class CountsByNothing(Plain):
    counting = Counting(by=("weather",))


class NoRequest(Plain):
    operation = str


class Lax(Options, frozen=True, kw_only=True, forbid_unknown_fields=False):
    pass


def probe_of(stage, options=Options):
    return type(f"ProbeOf{stage.__name__}", (Probe,), {"options": options, "stages": lambda self, chosen: [stage()]})


class LaxProbe(Probe):
    options = Lax

    def stages(self, options):
        return [Plain()]


def check_probe(probe, rule):
    case = type("Case", (ProbeContract,), {"make": probe})()
    getattr(case, f"test_{rule}")()


RULES = [name.removeprefix("test_") for name in dir(ProbeContract) if name.startswith("test_")]


class PlainProbe(Probe):
    def stages(self, options):
        return [Plain()]


@pytest.mark.parametrize("rule", [rule for rule in RULES if "another_process" not in rule])
def test_good_probe_passes(rule):
    check_probe(PlainProbe, rule)


BROKEN = [
    (OneId, "trials_fit_their_stage"),
    (MoreFactors, "trials_fit_their_stage"),
    (NoScalar, "trials_fit_their_stage"),
    (Drawn, "trials_are_made_the_same_way_again"),
    (Spent, "trials_can_be_made_twice_from_one_stage"),
    (Listed, "first_trials_come_before_the_last_are_made"),
    (Silent, "first_stage_asks_something"),
    (Miscounts, "first_stage_asks_something"),
    (Stumbles, "reading_hostile_answers_never_fails"),
    (LongReason, "reading_hostile_answers_never_fails"),
    (OtherOutcomes, "reading_hostile_answers_never_fails"),
    (NestedOutcome, "reading_hostile_answers_never_fails"),
    (Forgets, "reading_is_pure"),
    (Writes, "reading_is_pure"),
    (QuickOtherwise, "reading_many_at_once_agrees_with_reading_one"),
    (TakenName, "stages_declare_what_they_are"),
    (BothWays, "stages_declare_what_they_are"),
    (CountsByNothing, "stages_declare_what_they_are"),
    (NoRequest, "stages_declare_what_they_are"),
]


@pytest.mark.parametrize(("stage", "rule"), BROKEN, ids=[stage.__name__ for stage, _ in BROKEN])
def test_breach_is_noticed(stage, rule):
    with pytest.raises(AssertionError):
        check_probe(probe_of(stage), rule)


def test_options_that_take_anything_are_noticed():
    with pytest.raises(AssertionError, match="forbid unknown"):
        check_probe(LaxProbe, "options_are_strict")


def test_order_of_a_set_is_noticed(tmp_path, monkeypatch):
    source = """
from prejudge import Probe, Stage, Trial
from prejudge.core.contracts.records import Generate, Message, Text

class SetStage(Stage):
    operation, factors, outcomes = Generate, ("word",), ("length",)

    def trials(self, earlier):
        for word in {"ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"}:
            yield Trial(word, {"word": word}, Generate(messages=(Message("user", (Text(word),)),)))

    def read(self, factors, response):
        return {"length": len(response.text)}

class SetProbe(Probe):
    def stages(self, options):
        return [SetStage()]
"""
    (tmp_path / "set_order_probe.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    from set_order_probe import SetProbe  # type: ignore[import-not-found]

    with pytest.raises(AssertionError, match="process"):
        check_probe(SetProbe, "trials_are_the_same_in_another_process")


FRAME = pl.DataFrame(
    {
        "number": [0, 1, 2, 3],
        "half": ["a", "b", "a", "b"],
        "length": [3, 4, 5, None],
        "status": ["ok", "ok", "ok", "refused"],
        "reason": [None, None, None, "no"],
        "key": [b"a", b"b", b"c", b"d"],
    }
)


class Mean(Metric):
    needs = frozenset({"length", "status"})

    def compute(self, observations, options):
        ok = observations.filter(pl.col("status") == "ok")
        missing = dict(observations.filter(pl.col("status") != "ok").group_by("status").len().iter_rows())
        return [self.state(ok, missing)]

    def state(self, ok, missing):
        return Estimate.from_flat(metric="mean", group={}, value=ok["length"].mean(), n=ok.height, missing=missing)


class MissingIsZero(Mean):
    def state(self, ok, missing):
        return Estimate.from_flat(
            metric="mean", group={}, value=ok["length"].mean() or 0.0, n=ok.height, missing=missing
        )


class CountsNoMissing(Mean):
    def state(self, ok, missing):
        return super().state(ok, {})


class NotANumber(Mean):
    def state(self, ok, missing):
        return Estimate.from_flat(metric="mean", group={}, value=float("nan"), n=1)


class UpsideDown(Mean):
    def state(self, ok, missing):
        return Estimate.from_flat(metric="mean", group={}, value=1.0, low=2.0, high=0.0, interval="x", n=1)


class FallingP(Mean):
    def state(self, ok, missing):
        return Estimate.from_flat(
            metric="m", group={}, value=1.0, p=0.5, p_adjusted=0.1, test="t", family="f", correction="bh", n=1
        )


class FirstRow(Mean):
    def compute(self, observations, options):
        return [Estimate.from_flat(metric="first", group={}, value=next(iter(observations["length"]), None), n=1)]


class SeesMore(Mean):
    def compute(self, observations, options):
        extra = 1.0 if "half" in observations.columns else 0.0
        return [Estimate.from_flat(metric="mean", group={}, value=observations["length"].mean() and extra)]


class NeedsWeather(Mean):
    needs = frozenset({"weather"})


class Twice(Mean):
    def compute(self, observations, options):
        return super().compute(observations, options) * 2


class WrongUnits(Mean):
    def units(self, observations, options):
        return pl.DataFrame(
            {
                "metric": ["mean"],
                "unit": ["u"],
                "over": ["c"],
                "sign": [1],
                "value": [99.0],
                "least": [None],
                "greatest": [None],
                "status": ["ok"],
            }
        )


class FewClusters(Mean):
    """An interval on three clusters, and not a word of it."""

    interval, clusters, caveats = "cluster bootstrap (half)", 3, ()

    def state(self, ok, missing):
        mean = ok["length"].mean()
        found = None if mean is None else Interval(mean - 1, mean + 1, 0.95, self.interval)
        return Estimate(
            metric="mean",
            group={},
            value=mean,
            n=ok.height,
            clusters=self.clusters,
            interval=found or Interval(),
            missing=Missing(missing),
            caveats=self.caveats,
        )


class FewRows(FewClusters):
    interval, clusters = "bootstrap (answers)", None


class UncountedClusters(FewClusters):
    clusters = None


class FewClustersTold(FewClusters):
    caveats = (Caveat.FEW_CLUSTERS,)


class ManyClusters(FewClusters):
    clusters = 10


class ExactOfFew(FewRows):
    interval = "exact (Clopper-Pearson), answers"


SAMPLES = pl.DataFrame(
    {
        "trial": [f"{prompt}/{sample}" for prompt in range(12) for sample in range(3)],
        "prompt": [prompt for prompt in range(12) for _ in range(3)],
        "sample": [sample for _ in range(12) for sample in range(3)],
        "hit": [prompt % 3 > 0 or sample == prompt % 2 for prompt in range(12) for sample in range(3)],
        "status": "ok",
        "key": [bytes([number]) for number in range(36)],
    }
).with_columns(reason=pl.lit(None, dtype=pl.String))


class NoClusters(DeclaredMetric):
    """Names no clusters: the samples of one prompt are one cluster all the same."""

    measures = (Share("hits", hit="hit", neutral=50, meaning="Share of hits."),)


class Independent(DeclaredMetric):
    """Calls its rows independent: the same."""

    measures = (Share("hits", hit="hit", neutral=50, meaning="Share of hits.", independent=True),)


class SamplesAsEvidence(NoClusters):
    """Makes rows of its own, of which nobody knows the prompt."""

    needs = frozenset({"hit", "status"})

    def rows(self, observations, options):
        return observations.drop("prompt_key", strict=False)


class ByHand(Mean):
    """A t interval of rows, whatever their prompts."""

    needs = frozenset({"hit", "status"})

    def state(self, ok, missing):
        hits = ok["hit"].cast(pl.Float64)
        mean, half = hits.mean(), 2 * (hits.std() or 0.0) / max(ok.height, 1) ** 0.5
        found = Interval() if mean is None else Interval(mean - half, mean + half, 0.95, "t (answers)")
        return Estimate(metric="mean", group={}, value=mean, n=ok.height, interval=found, missing=Missing(missing))


class PromptsAsEvidence(DeclaredMetric):
    clusters = ("prompt",)
    measures = NoClusters._declared.measures


class ForThisWording(DeclaredMetric):
    measures = (Share("hits", hit="hit", neutral=50, meaning="Share of hits, for this wording."),)


class SampledMeans(PromptsAsEvidence):
    """An interval over prompts, and a p of samples."""

    def compute(self, observations, options):
        hits = observations["hit"].drop_nulls()
        p = stats.binomtest(int(hits.sum()), len(hits)).pvalue if len(hits) else None
        return [e if e.p is None else e.replace(p=p) for e in super().compute(observations, options)]


def check_repeats(metric, frame=SAMPLES):
    members = {"make": metric, "observations": staticmethod(lambda: frame), "outcomes": ("hit",)}
    type("Case", (MetricContract,), members)().test_repeats_are_not_evidence_twice()


FRAMES = pytest.mark.parametrize("frame", [SAMPLES, SAMPLES.drop("sample"), SAMPLES.drop("sample", "key")])


@FRAMES
@pytest.mark.parametrize("metric", [SamplesAsEvidence, SampledMeans, ByHand])
def test_repeats_that_count_as_evidence_are_noticed(metric, frame):
    with pytest.raises(AssertionError, match="equal repeats"):
        check_repeats(metric, frame)


@FRAMES
@pytest.mark.parametrize("metric", [NoClusters, Independent, PromptsAsEvidence, ForThisWording])
def test_repeats_that_do_not_count_or_say_what_they_are_for_pass(metric, frame):
    check_repeats(metric, frame)


class AsksEmptyForMax(Mean):
    def conclude(self, estimates):
        return f"{estimates[0].value:.1f}"


def check_metric(metric, rule):
    members = {"make": metric, "observations": staticmethod(lambda: FRAME), "outcomes": ("length",)}
    getattr(type("Case", (MetricContract,), members)(), f"test_{rule}")()


METRIC_RULES = [name.removeprefix("test_") for name in dir(MetricContract) if name.startswith("test_")]


@pytest.mark.parametrize("rule", METRIC_RULES)
def test_good_metric_passes(rule):
    check_metric(Mean, rule)


@pytest.mark.parametrize(
    ("metric", "rule"),
    [
        (MissingIsZero, "missing_is_never_zero"),
        (MissingIsZero, "no_observations_give_no_value"),
        (CountsNoMissing, "missing_answers_are_counted"),
        (NotANumber, "estimates_are_sound"),
        (UpsideDown, "estimates_are_sound"),
        (FallingP, "estimates_are_sound"),
        (Twice, "estimates_are_sound"),
        (FirstRow, "order_of_rows_changes_no_value"),
        (SeesMore, "what_it_needs_is_enough"),
        (NeedsWeather, "needs_are_columns_of_the_observations"),
        (WrongUnits, "units_are_what_estimates_are_means_of"),
        (FewClusters, "intervals_on_few_clusters_say_so"),
        (FewRows, "intervals_on_few_clusters_say_so"),
        (UncountedClusters, "intervals_on_few_clusters_say_so"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_breach_of_a_metric_is_noticed(metric, rule):
    with pytest.raises(AssertionError):
        check_metric(metric, rule)


@pytest.mark.parametrize("metric", [FewClustersTold, ManyClusters, ExactOfFew])
def test_interval_that_says_what_it_rests_on_passes(metric):
    for rule in METRIC_RULES:
        check_metric(metric, rule)


def test_sentence_that_fails_without_answers_is_noticed():
    with pytest.raises(TypeError):
        check_metric(AsksEmptyForMax, "words_and_figures_can_be_made")
