"""A run that a budget, a signal or a fault ended can be scored from what was answered, and says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from fakes import CountOptions, CountStage, FakeModel, ask, fake_catalogue, text_of

from prejudge.core.answer import answer_of
from prejudge.core.api.reading import observations_of
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.contracts import Counting, Probe
from prejudge.core.contracts.errors import AuthenticationError, BudgetError, DataError, PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine import windows
from prejudge.core.engine.budget import Caps
from prejudge.core.engine.ledger import Ledger
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.gate import judge_run, parse_policy
from prejudge.core.report.output import write_output
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import unfinished_notes
from prejudge.core.store import get_run
from prejudge.core.store.checks import Checks
from prejudge.testing import raises_code

N = 40


def begin(store, catalogue, study="count", roles=None, caps=None, name=None, n=N):
    chosen = catalogue.study(study, roles or {"subject": "fake"}, {"n": n})
    return asyncio.run(execute(catalogue, chosen, store, RunOptions(name=name, caps=caps or Caps())))


def stored(store):
    """Return the lengths of all answers, from the store's own rows."""
    with store.engine.connect() as connection:
        answers = connection.exec_driver_sql("SELECT response FROM exchange").scalars()
        return [len(json.loads(answer)["text"]) for answer in answers]


def mean_of(scores):
    (estimate,) = scores.estimates["mean"]
    return estimate


def test_run_that_spent_its_budget_is_scored_from_its_answers(store, catalogue, tmp_path):
    with pytest.raises(BudgetError):
        begin(store, catalogue, caps=Caps(requests=12))
    scores, lengths = score(catalogue, store, "latest"), stored(store)
    assert 0 < len(lengths) <= 12 and scores.run.state == "interrupted"
    assert (mean_of(scores).n, mean_of(scores).missing.counts) == (len(lengths), {})
    assert mean_of(scores).value == pytest.approx(sum(lengths) / len(lengths))
    assert f"{len(lengths)} of {N}" in answer_of(scores).preliminary
    assert [f"{len(lengths)} of {N}" in note for note in unfinished_notes(scores)] == [True]
    assert "not complete" in Path(write_output(scores, store, tmp_path)).read_text("utf-8")
    (observed,) = observations_of(store, scores.run, scores.stages).values()
    assert observed.height == len(lengths)
    assert not list(Checks(store, 1).problems())


@pytest.mark.parametrize("takes_unfinished", [True, False])
def test_gate_lets_it_pass_only_where_the_policy_takes_unfinished_runs(store, catalogue, takes_unfinished):
    with pytest.raises(BudgetError):
        begin(store, catalogue, caps=Caps(requests=12))
    finished = str(not takes_unfinished).lower()
    policy = parse_policy(f"finished = {finished}\n[[rules]]\nmeasure = 'mean_length'\nmax = 10")
    _, verdicts = judge_run(catalogue, store, "latest", policy)
    assert [verdict.passed for verdict in verdicts] == ([True] if takes_unfinished else [False, True])


def test_resumed_run_is_as_one_that_nothing_ended(store, catalogue):
    with pytest.raises(BudgetError):
        begin(store, catalogue, caps=Caps(requests=12))
    name, answered = get_run(store, "latest").name, len(stored(store))
    begin(store, catalogue, name=name)
    scores = score(catalogue, store, name)
    assert (scores.run.state, mean_of(scores).n, answer_of(scores).preliminary) == ("finished", N, "")
    assert len(FakeModel.made[-1].asked) == N - answered
    assert scores.run.head == score(catalogue, store, begin(store, catalogue)).run.head


def test_interrupted_run_is_scored_from_its_answers(store, catalogue, monkeypatch):
    monkeypatch.setattr(FakeModel, "delay", 0.02)

    async def interrupted():
        task = asyncio.create_task(
            execute(catalogue, catalogue.study("count", {"subject": "fake"}, {"n": N}), store, RunOptions())
        )
        while len(stored(store)) < 8:
            await asyncio.sleep(0.005)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    scores = score(catalogue, store, "latest")
    assert (scores.run.state, mean_of(scores).n) == ("interrupted", len(stored(store)))
    assert 8 <= mean_of(scores).n < N


def test_what_was_not_asked_is_not_missing_and_what_failed_is(store, catalogue):
    def answer(request, seen):
        number = int(text_of(request).split()[1])
        return PermanentError("too long") if number == 3 else AuthenticationError("no") if number == 30 else None

    FakeModel.script = answer
    with pytest.raises(AuthenticationError):
        begin(store, catalogue)
    FakeModel.script = None
    scores = score(catalogue, store, "latest")
    # That of the refused key failed, too; those that wait for it were not asked.
    assert (mean_of(scores).n, mean_of(scores).missing.counts) == (len(stored(store)), {"failed": 2})
    assert scores.recorded("count") == len(stored(store)) + 2 < N


def test_windows_are_recorded_without_a_gap(store, catalogue, monkeypatch):
    """The second window is settled, the first one is not, though nothing of it is open, and the third was not begun."""
    monkeypatch.setattr(windows, "WINDOW", 8)
    FakeModel.script = lambda request, seen: PermanentError("x") if int(text_of(request).split()[1]) < 8 else None
    original = windows.Window.answer

    async def waits(window):
        if window.ordinal == 0:
            await original(window)
            await asyncio.sleep(3600)
        await original(window)

    monkeypatch.setattr(windows.Window, "answer", waits)

    async def interrupted():
        # The first trials would be a window of their own, before these.
        options = RunOptions(accept_unfit=True)
        study = catalogue.study("count", {"subject": "fake"}, {"n": N})
        task = asyncio.create_task(execute(catalogue, study, store, options))
        while len(stored(store)) < 8:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not list(Checks(store, 1).problems())
    scores = score(catalogue, store, "latest")
    assert (mean_of(scores).n, mean_of(scores).missing.counts) == (8, {"failed": 8})


def test_interruption_between_the_record_and_its_end_records_nothing_twice(store, catalogue, monkeypatch):
    original, begun = Ledger.add_trials, []

    async def cut_short(ledger, rows, **how):
        await original(ledger, rows, **how)
        begun.append(len(rows))
        if len(begun) == 1:
            await asyncio.sleep(3600)

    monkeypatch.setattr(Ledger, "add_trials", cut_short)

    async def interrupted():
        study = catalogue.study("count", {"subject": "fake"}, {"n": N})
        task = asyncio.create_task(execute(catalogue, study, store, RunOptions()))
        while not begun:
            await asyncio.sleep(0.005)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert begun == [N, N] and mean_of(score(catalogue, store, "latest")).n == N
    assert not list(Checks(store, 1).problems())


def test_trial_that_was_to_be_asked_again_has_its_first_answer(store, catalogue):
    """All first answers are unreadable, and the budget ends among the second ones."""
    FakeModel.script = lambda request, seen: Generation(text="") if not request.attempt else None
    study = catalogue.study("count", {"subject": "fake"}, {"n": 20, "max_attempts": 2})
    # First trials would be asked twice before the others are asked once.
    with pytest.raises(BudgetError):
        asyncio.run(execute(catalogue, study, store, RunOptions(caps=Caps(requests=28), accept_unfit=True)))
    scores = score(catalogue, store, "latest")
    again = len(stored(store)) - 20
    assert 0 < again < 20 and scores.recorded("count") == 20
    assert (mean_of(scores).n, mean_of(scores).missing.counts) == (again, {"unreadable": 20 - again})
    assert not list(Checks(store, 1).problems())
    assert scores.last["first"].to_list() == ["unreadable"] * 20


class Later(CountStage):
    """Asks about each answer of the first stage."""

    name, factors, counting = "later", ("number",), Counting()

    def trials(self, earlier):
        rows = earlier["count"].iter_rows(named=True) if earlier else ()
        return iter([windows.Trial(f"j{row['number']}", {"number": row["number"]}, ask("later")) for row in rows])


class TwoStages(Probe):
    options = CountOptions

    def stages(self, options):
        return [CountStage(options), Later(options)]


@pytest.mark.parametrize("every_stage", [True, False])
def test_run_that_ended_in_its_first_stage(store, monkeypatch, every_stage):
    catalogue = fake_catalogue(two=StudyEntry(probe="two", metrics={"mean": {}}, title="Counting twice"))
    catalogue.plugins.offers["probe"]["two"] = Registered(Plugged("two", TwoStages), "tests")
    monkeypatch.setattr(catalogue.plugins.load("metric", "mean"), "every_stage", every_stage)
    with pytest.raises(BudgetError):
        begin(store, catalogue, "two", caps=Caps(requests=12))
    answered = len(stored(store))
    if every_stage:
        scores = score(catalogue, store, "latest")
        assert mean_of(scores).n == answered
        assert f"{answered} of {N}" in answer_of(scores).preliminary
        assert "'count'" in answer_of(scores).preliminary
    else:
        with raises_code(DataError, "run.incomplete", f"{answered} of {N}", "'later'", "prejudge resume"):
            score(catalogue, store, "latest")
