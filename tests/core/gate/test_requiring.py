"""What a gate requires besides numbers."""

from __future__ import annotations

import asyncio

import pytest
from fakes import FakeModel, fake_catalogue

from prejudge.core.contracts.errors import UnknownNameError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.gate import State, read_requirements, required
from prejudge.core.scoring.score import score
from prejudge.core.store import Store


@pytest.fixture
def scored(tmp_path):
    """Return a function that runs a study of 60 questions with a script, and scores it."""

    def run(script):
        FakeModel.script = script
        try:
            with Store(tmp_path / f"{len(list(tmp_path.iterdir()))}.db") as store:
                catalogue = fake_catalogue()
                study = catalogue.study("count", {"subject": "fake"}, {"n": 60})
                name = asyncio.run(execute(catalogue, study, store, RunOptions(accept_unfit=True)))
                return score(catalogue, store, name)
        finally:
            FakeModel.script = None

    return run


def test_fit_model_passes_and_an_unfit_one_fails(scored):
    assert required(scored(None), ["fit"])[0].state is State.PASS
    (verdict,) = required(scored(lambda request, seen: Generation(text="")), ["fit"])
    assert verdict.state is State.FAIL


def test_model_that_declines_is_fit(scored):
    scores = scored(lambda request, seen: Generation(text="I can't help.", status="refused"))
    assert required(scores, ["fit"])[0].state is State.PASS


def test_finished_run_is_verified_and_a_fake_study_not_certified(scored):
    verified, certified = required(scored(None), ["verified", "certified"])
    assert verified.state is State.PASS and certified.state is State.FAIL


def test_unknown_requirement_is_refused():
    assert read_requirements("fit, verified,fit") == ("fit", "verified")
    with pytest.raises(UnknownNameError):
        read_requirements("fast")
