"""A run stops before a whole study is spent on a fault that all its requests share."""

from __future__ import annotations

import asyncio

import pytest
from fakes import FakeModel, ask, fake_catalogue, text_of

from prejudge.core.contracts.errors import HaltedError, PermanentError
from prejudge.core.contracts.records import Draw, Generate, Generation, Sampling
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.engine.stopping import EMPTY, ERRORS, FailureDetector
from prejudge.core.store import get_run, statistics
from prejudge.testing import raises_code

pytestmark = pytest.mark.usefixtures("catalogue")
N = 400
IN_FLIGHT = 2 * 4
"""Requests that a fake model has in flight: two calls of four."""


def perform(store, name=None, *, keep_going=False, **options):
    catalogue = fake_catalogue()
    study = catalogue.study("count", {"subject": "fake"}, {"n": N, **options})
    asyncio.run(execute(catalogue, study, store, RunOptions(name=name, keep_going=keep_going)))
    return get_run(store, "latest")


def asked():
    return len(FakeModel.made[-1].asked)


def number_of(request):
    return int(text_of(request).split()[1])


FAULTS = {
    "errors": (
        lambda request, seen: PermanentError(f"no {number_of(request)}"),
        "run.all-failing",
        ERRORS,
    ),
    # `read` takes a blank as an answer.
    "empty": (lambda request, seen: Generation(text=" ", finish_reason="length"), "run.all-empty", EMPTY),
    "unreadable": (lambda request, seen: Generation(text=""), "run.unfit", 11),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_every_request_stops_the_run(store, name):
    FakeModel.script, code, most = FAULTS[name]
    with raises_code(HaltedError, code):
        perform(store)
    assert most <= asked() <= most + IN_FLIGHT
    assert get_run(store, "latest").state == "interrupted"
    # What was answered is kept, also the calls that were in flight.
    kept = statistics(store)
    assert kept["Exchange"] + kept["Attempt"] == asked()


@pytest.mark.parametrize("name", FAULTS)
def test_keep_going_asks_everything(store, name):
    FakeModel.script = FAULTS[name][0]
    assert perform(store, keep_going=True).state == "finished"
    assert asked() == N


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "unreadable"])
def test_resumed_run_finishes_once_the_fault_is_mended(store, name):
    FakeModel.script = FAULTS[name][0]
    with pytest.raises(HaltedError):
        perform(store)
    FakeModel.script = None
    assert perform(store, get_run(store, "latest").name).state == "finished"


@pytest.mark.parametrize(
    "often",
    [
        lambda request, seen: PermanentError("no") if number_of(request) % 10 else None,
        lambda request, seen: Generation(text=" ", finish_reason="length") if number_of(request) % 10 else None,
        lambda request, seen: Generation(text="") if number_of(request) % 3 == 0 else None,
    ],
    ids=list(FAULTS),
)
def test_fault_of_some_stops_nothing(store, often):
    FakeModel.script = often
    assert perform(store).state == "finished"


def test_refusals_stop_nothing(store):
    FakeModel.script = lambda request, seen: Generation(text="", status="refused", finish_reason="length")
    assert perform(store).state == "finished"
    assert asked() == N


def test_different_errors_stop_nothing(store):
    FakeModel.script = lambda request, seen: PermanentError("first" if number_of(request) % 2 else "second")
    assert perform(store, n=60).state == "finished"


def test_samples_of_one_prompt_are_one(store):
    """`distinct`: prompts; a fault of 19 prompts is one of those prompts."""
    FakeModel.script = lambda request, seen: PermanentError("no") if number_of(request) < 19 else None
    assert perform(store, distinct=19).state == "finished"


def draw(prompt: str, seed: int) -> Draw:
    return Draw(prompt=prompt, seed=seed)


def ask_seeded(prompt: str, seed: int) -> Generate:
    return ask(prompt, sampling=Sampling(temperature=1.0, seed=seed))


@pytest.mark.parametrize("request_of", [draw, ask_seeded])
def test_seeds_of_one_prompt_are_one(request_of):
    """A picture is drawn many times of each prompt: a prompt that always fails is one, and so are 19."""
    detector, error = FailureDetector(), PermanentError("no")
    for number in range(ERRORS - 1):
        for seed in range(3 * ERRORS):
            assert detector.failed(request_of(f"q {number}", seed), error) is None
    stop = detector.failed(request_of(f"q {ERRORS}", 0), error)
    assert stop is not None and stop.code == "run.all-failing"


def test_message_shows_three_prompts_and_what_to_do(store):
    FakeModel.script = lambda request, seen: Generation(text=f"\x1b[31mI think {text_of(request)}" if seen else "")
    FakeModel.script = lambda request, seen: PermanentError(f"model of {text_of(request)} not found")
    with pytest.raises(HaltedError) as caught:
        perform(store)
    assert str(caught.value).count("not found") == 3
    assert "--keep-going" in str(caught.value)


def test_run_from_the_store_holds_no_trials(store, monkeypatch):
    """Nothing is asked, so no answer ends the watch: the trials of a long run must not pile up."""
    detectors, expected = [], []

    class Counted(FailureDetector):
        def __init__(self, see):
            super().__init__(see)
            detectors.append(self)

        def expect(self, trials):
            super().expect(trials)
            expected.append(len(self._trials))

    perform(store)
    monkeypatch.setattr("prejudge.core.engine.stage_run.asks_first", lambda stage: False)
    monkeypatch.setattr("prejudge.core.engine.stage_run.FailureDetector", Counted)
    monkeypatch.setattr("prejudge.core.engine.windows.WINDOW", 50)
    assert perform(store).state == "finished"
    assert asked() == 0 and len(expected) == N / 50
    assert max(expected) <= 2 * 50 and detectors[-1]._trials == {}
