"""How long a study takes, from its first answers, stage by stage."""

from __future__ import annotations

import asyncio

import polars as pl
import pytest
import sqlalchemy as sa
from fakes import CountProbe, CountStage, FakeModel, ask, fake_catalogue

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.contracts import Trial
from prejudge.core.contracts.errors import UnknownNameError
from prejudge.core.engine.later import Grown
from prejudge.core.engine.plan import plan
from prejudge.core.engine.timing import Part, Timed, duration, part_of, time_first
from prejudge.core.store import get_run, unfinished_runs
from prejudge.core.store.evidence import seal


def timed(catalogue, store, first=12, name="count", **options):
    study = catalogue.study(name, {"subject": "fake"}, options)
    (stage,) = plan(catalogue, study, store)
    return asyncio.run(time_first(catalogue, study, store, stage, first=first))


def grown(came=(), left=0, remote=False):
    return Grown(stage="s", left=left, came=list(came), remote=remote)


def test_first_answers_are_kept_and_the_run_goes_on(catalogue, store, run_study):
    FakeModel.delay = 0.02
    found = timed(catalogue, store, n=200)
    (part,) = found.parts
    assert not found.whole and 0 < part.asked <= 12 and part.asked == sum(len(one.asked) for one in FakeModel.made)
    assert part.rate > 0 and part.seconds == (200 - part.asked) / part.rate
    assert get_run(store, found.run).state == "timed"
    assert any(f"{200 - part.asked} requests" in line for line in found.lines())
    run_study(n=200)
    assert len(FakeModel.made[-1].asked) == 200 - part.asked


def test_study_that_is_smaller_than_the_trial_is_whole(catalogue, store):
    for _ in range(2):
        found = timed(catalogue, store, n=3)
        assert found.whole and not found.parts and "nothing is left" in next(found.lines())


def test_latest_is_no_run_that_was_only_timed(catalogue, store, run_study):
    begun = timed(catalogue, store, n=30)
    with pytest.raises(UnknownNameError) as caught:
        get_run(store, "latest")
    assert caught.value.code == "unknown-run"
    own, _ = run_study(n=3)
    for n in (40, 3):  # in part, and whole
        timed(catalogue, store, n=n)
        assert get_run(store, "latest").name == own and unfinished_runs(store) == []
    run_study(n=30, name=begun.run)  # resumed, it is a run like others
    assert get_run(store, begun.run).state == "finished" and get_run(store, begun.run).is_result


def test_run_that_was_killed_while_it_was_timed_is_never_the_latest(catalogue, store, run_study, monkeypatch):
    """A killed process writes no end: the run stays `running` in the store."""
    own, _ = run_study(n=3)
    begun, begin = [], type(store).begin_run
    with monkeypatch.context() as patched:
        patched.setattr(type(store), "begin_run", lambda *given: begun.append(given[3].decode()) or begin(*given))
        name = timed(catalogue, store, n=40).run
    with store.engine.begin() as connection:
        killed = "UPDATE run SET state = 'running', manifest = :begun, head = NULL, finished = NULL WHERE name = :name"
        connection.execute(sa.text(killed), {"begun": begun[0], "name": name})
        seal(connection, get_run(store, name).id)
    killed = get_run(store, name)
    assert killed.state == "running" and killed.told == "timed" and not killed.is_result
    # An option of a probe may have that name, and a damaged manifest says nothing.
    for other in ('{"study": {"options": {"timing": true}}}', '{"timing": tr'):
        assert killed._replace(manifest=other).told == "running"
    assert get_run(store, "latest").name == own and unfinished_runs(store) == []
    run_study(n=40, name=name)
    resumed = get_run(store, name)
    assert resumed.told == "finished" and get_run(store, "latest").name == name


class Each(CountStage):
    """Three questions for each answer, and five that depend on none; it needs a row for each question before it."""

    name, role = "each", "judge"

    def trials(self, earlier):
        rows = earlier["count"]
        assert rows.height == self._options.n
        yield from (Trial(f"own{i}", {"number": i, "parity": "own"}, ask(f"own {i}")) for i in range(5))
        for row in rows.filter(pl.col("status") == "ok").iter_rows(named=True):
            for i in range(3):
                name = f"{row['number']}.{i}"
                yield Trial(name, {"number": row["number"], "parity": "each"}, ask(f"each {name}"))


class Last(Each):
    """One question for each answer of the stage before, whatever the first one said."""

    name, role = "last", "subject"

    def trials(self, earlier):
        for row in earlier["each"].filter(pl.col("status") == "ok").iter_rows(named=True):
            yield Trial(row["trial"], {"number": row["number"], "parity": "x"}, ask(f"last {row['trial']}"))


class Chained(CountProbe):
    def stages(self, options):
        return [CountStage(options), Each(options), Last(options)]


@pytest.fixture
def chained():
    FakeModel.made.clear()
    entry = StudyEntry(probe="chained", metrics={"mean": {}}, roles={"judge": "other"})
    found = fake_catalogue(chained=entry)
    found.plugins.offers["probe"]["chained"] = Registered(Plugged("chained", Chained), "tests")
    return found


def test_later_stages_are_asked_in_part_and_their_number_is_extrapolated(chained, store):
    found = timed(chained, store, name="chained", n=200)
    first, each, last = found.parts
    assert [part.grown.stage for part in found.parts] == ["count", "each", "last"]
    answered = 200 - first.grown.left
    # What does not depend on answers is counted once: 5 and 3 for each of 200, without those asked now.
    assert (each.grown.driver, each.grown.seen, each.grown.of) == ("count", answered, 200)
    assert each.grown.left + each.asked == pytest.approx(605) and 0 < each.asked <= 12
    assert (last.grown.driver, last.grown.seen, last.grown.of) == ("each", each.asked, pytest.approx(605))
    assert last.grown.left + last.asked == pytest.approx(605)
    lines = list(found.lines())
    assert "extrapolated" not in lines[0] and "measured" in lines[1] and "extrapolated" in lines[1]
    assert lines[-1].startswith("In all about") and len(lines) == 4
    assert get_run(store, found.run).state == "timed"


def test_run_after_it_uses_the_answers_of_every_stage(chained, store):
    asked = sum(part.asked for part in timed(chained, store, name="chained", n=60).parts)
    before = sum(len(model.asked) for model in FakeModel.made)
    assert before == asked
    again = timed(chained, store, first=10_000, name="chained", n=60)
    assert again.whole
    assert sum(len(model.asked) for model in FakeModel.made) == 60 + 185 + 185


def test_stage_that_follows_from_no_answer_yet_is_said_so():
    found = Timed("r", whole=False, parts=(Part(grown(left=4), 2, 0.1, 2.0), Part(grown(left=None))))
    lines = list(found.lines())
    assert "not known" in lines[1] and "without stage s" in lines[2]


@pytest.mark.parametrize(
    ("came", "rate"),
    [
        ([(10.0, 4), (11.0, 8), (12.0, 12)], 4.0),  # ten seconds of loading are not of the pace
        ([(10.0, 12)], 1.2),  # nothing tells them apart
        ([], None),
    ],
)
def test_pace_is_that_after_the_first_answers(came, rate):
    assert part_of(grown(came)).rate == rate


def test_answers_of_an_endpoint_that_come_together_are_no_pace():
    together = [(2.0, 1), (2.01, 32), (2.02, 48)]
    assert part_of(grown(together, remote=True)).rate == 48 / 2.02


def test_without_an_answer_no_time_is_stated():
    lines = list(Timed("r", whole=False, parts=(part_of(grown(left=9)),)).lines())
    assert "not known" in lines[0] and "resume r" in lines[1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (3.21, "3.2 s"), (119, "119 s"), (120, "2 minutes"), (2000, "33 minutes"), (36000, "10 hours")],
)
def test_times_in_words(seconds, words):
    assert duration(seconds) == words
