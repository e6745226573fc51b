"""How long a study takes, from its first answers."""

from __future__ import annotations

import asyncio

import pytest
from fakes import FakeModel

from prejudge.core.engine.plan import plan
from prejudge.core.engine.timing import Timed, _timed, duration, time_first
from prejudge.core.store import get_run


def timed(catalogue, store, first=12, **options):
    study = catalogue.study("count", {"subject": "fake"}, options)
    (stage,) = plan(catalogue, study, store)
    return asyncio.run(time_first(catalogue, study, store, stage, first=first)), stage


def test_first_answers_are_kept_and_the_run_goes_on(catalogue, store, run_study):
    FakeModel.delay = 0.02
    found, stage = timed(catalogue, store, n=200)
    assert not found.whole and 0 < found.asked <= 12 and found.asked == sum(len(one.asked) for one in FakeModel.made)
    assert found.rate > 0 and found.left(stage) == (200 - found.asked) / found.rate
    assert get_run(store, found.run).state == "interrupted"
    assert f"{200 - found.asked} requests" in found.words(stage)
    run_study(n=200)
    assert len(FakeModel.made[-1].asked) == 200 - found.asked


def test_study_that_is_smaller_than_the_trial_is_whole(catalogue, store):
    found, stage = timed(catalogue, store, n=3)
    assert found.whole and found.left(stage) == 0.0 and "nothing is left" in found.words(stage)
    again, stage = timed(catalogue, store, n=3)
    assert again.whole and not again.asked


@pytest.mark.parametrize(
    ("came", "rate"),
    [
        ([(10.0, 4), (11.0, 8), (12.0, 12)], 4.0),  # ten seconds of loading are not of the pace
        ([(10.0, 12)], 1.2),  # nothing tells them apart
        ([], None),
    ],
)
def test_pace_is_that_after_the_first_answers(came, rate):
    assert _timed("r", came, whole=False).rate == rate


def test_answers_of_an_endpoint_that_come_together_are_no_pace():
    together = [(2.0, 1), (2.01, 32), (2.02, 48)]
    assert _timed("r", together, whole=False, remote=True).rate == 48 / 2.02


def test_without_an_answer_no_time_is_stated(catalogue, store):
    study = catalogue.study("count", {"subject": "fake"}, {})
    (stage,) = plan(catalogue, study, store)
    assert "not known" in Timed("r", 0, 0.0, None, False).words(stage)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (3.21, "3.2 s"), (119, "119 s"), (120, "2 minutes"), (2000, "33 minutes"), (36000, "10 hours")],
)
def test_times_in_words(seconds, words):
    assert duration(seconds) == words
