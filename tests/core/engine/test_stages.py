"""Studies of several stages: stages that nobody is there to answer are left out, and metrics may see all stages."""

from __future__ import annotations

import asyncio

import msgspec
import polars as pl
import pytest

from prejudge import load
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry, StudyEntry
from prejudge.core.contracts import Counting, Estimate, Metric, Probe, StageRules, Trial
from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.adapter import RemoteEndpoint
from prejudge.core.contracts.errors import MissingExtraError, UnknownNameError, UsageError
from prejudge.core.contracts.records import Generation, Image
from prejudge.core.engine.budget import Caps
from prejudge.core.engine.roles import ensure_ready
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.engine.varying import SharedBudget, ensure_accepted
from prejudge.core.report.output import write_output
from prejudge.core.scoring.score import score
from prejudge.core.store import list_runs
from prejudge.testing import raises_code

from ..fakes import CountOptions, CountStage, FakeModel, ask, fake_catalogue


class Judged(CountStage):
    """Asks a judge about each answer of the first stage."""

    name, role, rules = "judged", "judge", StageRules(optional=True)
    factors, outcomes, counting = ("number",), ("verdict",), Counting()

    def trials(self, earlier):
        for row in earlier["count"].filter(pl.col("length") > 2).iter_rows(named=True):
            yield Trial(f"j{row['number']}", {"number": row["number"]}, ask(f"judge {row['number']}"))

    def read(self, factors, response):
        return {"verdict": response.text.lower()}


class TwoStages(Probe):
    options = CountOptions

    def stages(self, options):
        return [CountStage(options), Judged(options)]


class Stages(Metric):
    """Counts observations by stage."""

    needs, every_stage = frozenset({"length", "stage", "status"}), True

    def compute(self, observations, options):
        counts = observations.group_by("stage", maintain_order=True).len().rows()
        return [Estimate.from_flat(metric="rows", group={"stage": stage}, value=n) for stage, n in counts]


def catalogue_of_two(metric="stages"):
    study = StudyEntry(probe="two", metrics={metric: {}}, title="Counting, then judging")
    catalogue = fake_catalogue(two=study)
    catalogue.plugins.offers["probe"]["two"] = Registered(Plugged("two", TwoStages), "tests")
    catalogue.plugins.offers["metric"]["stages"] = Registered(Plugged("stages", Stages), "tests")
    return catalogue


def run_two(store, models, metric="stages"):
    catalogue = catalogue_of_two(metric)
    name = asyncio.run(execute(catalogue, catalogue.study("two", models, {"n": 4}), store, RunOptions()))
    return catalogue, score(catalogue, store, name)


class Repeated(CountStage):
    """Takes an answer that was given before for no answer."""

    def review(self, observations, blobs):
        again = pl.col("length").is_duplicated() & ~pl.col("length").is_first_distinct() & (pl.col("status") == "ok")
        marked = observations.with_columns(
            status=pl.when(again).then(pl.lit("unreadable")).otherwise(pl.col("status")),
            reason=pl.when(again).then(pl.lit("given before")).otherwise(pl.col("reason")),
            length=pl.when(~again).then(pl.col("length")),
        )
        return marked if blobs is not None else observations


class Reviewing(Probe):
    options = CountOptions

    def stages(self, options):
        return [Repeated(options), Judged(options)]


def rows(scores):
    return {e.group["stage"]: e.value for e in scores.estimates["stages"]}


def test_metric_sees_every_stage(store):
    _, scores = run_two(store, {"subject": "fake", "judge": "other"})
    assert rows(scores) == {"count": 4, "judged": 4}
    assert set(scores.frame.columns) >= {"stage", "length", "verdict", "key"}


def test_stage_without_a_model_is_left_out(store):
    _, scores = run_two(store, {"subject": "fake"})
    assert rows(scores) == {"count": 4} and scores.answered
    assert [stage.name for stage in scores.stages] == ["count"]


def test_run_without_its_optional_stage_is_no_incomplete_one(store, tmp_path):
    _, scores = run_two(store, {"subject": "fake"})
    write_output(scores, store, tmp_path)
    assert "not complete" not in (tmp_path / scores.run.name / "report.html").read_text("utf-8")


def test_metric_of_the_last_stage_is_checked_against_the_stages_that_are_asked(store):
    with raises_code(UsageError, "study.metric-columns"):
        run_two(store, {"subject": "fake", "judge": "other"}, metric="mean")
    _, scores = run_two(store, {"subject": "fake"}, metric="mean")
    assert scores.estimates["mean"][0].n == 4


def test_misspelt_optional_role_names_the_nearest(store):
    with raises_code(UnknownNameError, "unknown-role", "'judge'"):
        run_two(store, {"subject": "fake", "jugde": "other"})


def test_folder_of_a_run_has_all_stages(store, tmp_path, monkeypatch):
    catalogue, scores = run_two(store, {"subject": "fake", "judge": "other"})
    monkeypatch.setattr("prejudge.core.report.results.Catalogue.load", lambda registry: catalogue)
    write_output(scores, store, tmp_path)
    loaded = load(tmp_path / scores.run.name)
    assert loaded.estimates.select("stage", "value").rows() == [("count", 4.0), ("judged", 4.0)]
    assert loaded.observations.sort("trial").equals(scores.frame.select(loaded.observations.columns).sort("trial"))


def test_last_stage_that_has_nothing_to_ask_leaves_the_rest(store):
    FakeModel.script = lambda request, n: Generation(text="q")
    try:
        _, scores = run_two(store, {"subject": "fake", "judge": "other"})
    finally:
        FakeModel.script = None
    assert rows(scores) == {"count": 4} and scores.answered


@pytest.mark.parametrize("stage", ["count", "judged"])
def test_run_with_a_stage_of_which_nothing_could_be_read_was_not_answered(store, stage):
    _, scores = run_two(store, {"subject": "fake", "judge": "other"})
    unread = scores.observations[stage].with_columns(status=pl.lit("unreadable"))
    assert scores.answered
    assert not msgspec.structs.replace(scores, observations={**scores.observations, stage: unread}).answered


def test_stage_reviews_all_its_observations_before_the_next_stage_and_again_when_scored(store):
    catalogue = catalogue_of_two()
    catalogue.plugins.offers["probe"]["two"] = Registered(Plugged("two", Reviewing), "tests")
    study = catalogue.study("two", {"subject": "fake", "judge": "other"}, {"n": 12})
    scores = score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions())))
    counted = scores.observations["count"]
    lengths = counted.filter(status="ok")["length"]
    assert lengths.is_unique().all() and lengths.len() < 12
    assert set(counted.filter(status="unreadable")["reason"]) == {"given before"}
    assert scores.observations["judged"].height == lengths.len()


class Unable(FakeModel):
    """A judge that cannot be asked, for the reason that `why` gives."""

    why = ""

    def __init__(self, options):
        if self.why == "key":
            raise UsageError("the environment variable JUDGE_KEY is not set.", code="endpoint.key-missing")
        if self.why == "extra":
            raise MissingExtraError("adapter 'judge'", "hf")
        super().__init__(options)

    @classmethod
    def abilities(cls, options) -> Abilities:
        able = super().abilities(options)
        return able.without({"generate": "Set generate = true."}) if cls.why == "ability" else able

    def check(self, request):
        if self.why == "sight" and any(isinstance(part, Image) for part in request.messages[0].parts):
            raise MissingExtraError("adapter 'judge' with images", "images")


REASONS = [
    ("key", "endpoint.key-missing"),
    ("extra", "missing-extra"),
    ("ability", "study.operation"),
    ("sight", "missing-extra"),
]


@pytest.fixture(params=REASONS, ids=[why for why, _ in REASONS])
def unable(request, monkeypatch):
    """Return a catalogue whose model `aside` cannot judge, and the code of the error that says why."""
    why, code = request.param
    monkeypatch.setattr(Unable, "why", why)
    monkeypatch.setattr(Judged, "rules", StageRules(optional=True, images=True))
    FakeModel.made.clear()
    catalogue = catalogue_of_two()
    catalogue.plugins.offers["adapter"]["unable"] = Registered(Plugged("unable", Unable), "tests")
    catalogue.registry.models["unable"] = ModelEntry(adapter="unable", settings={"model": "unable"})
    return catalogue, code


def assert_nothing_was_asked():
    assert not any(model.asked for model in FakeModel.made)
    assert all(model.closed for model in FakeModel.made)


def test_judge_is_checked_before_the_subject_is_asked(store, unable):
    catalogue, code = unable
    study = catalogue.study("two", {"subject": "fake", "judge": "unable"}, {"n": 4})
    with raises_code(UsageError, code):
        asyncio.run(execute(catalogue, study, store, RunOptions()))
    assert_nothing_was_asked()
    assert not list_runs(store)


def test_judge_is_checked_before_the_first_variant_is_asked(store, unable, monkeypatch):
    catalogue, code = unable
    monkeypatch.setattr(FakeModel, "endpoint", RemoteEndpoint(name="http://subject"))
    study = catalogue.study("two", {"subject": "fake", "judge": "unable"}, {"n": 4})
    with raises_code(UsageError, code):
        asyncio.run(ensure_accepted(catalogue, [study, study], store, RunOptions(), SharedBudget(Caps())))
    assert_nothing_was_asked()


def test_judge_of_a_later_study_is_checked_before_the_first_is_asked(unable):
    catalogue, code = unable
    studies = [catalogue.study("two", {"subject": "fake", "judge": judge}, {"n": 4}) for judge in ("other", "unable")]
    with raises_code(UsageError, code):
        asyncio.run(ensure_ready(catalogue, studies))
    assert_nothing_was_asked()
