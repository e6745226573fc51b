"""How far a run is: in words, in bars, and in JSON for a machine."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import pytest
from rich.console import Console

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import main
from prejudge.core.cli.progress import BarProgress, JsonProgress, LineProgress, Shown, make_progress
from prejudge.core.engine.progress import Counts, Reading

DOCS = Path(__file__).resolve().parents[3] / "docs" / "shell.md"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def reading(total=100, seconds=10.0, **counts):
    return Reading("main", "subject", total, Counts(**counts), seconds)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_rate_is_of_what_was_asked():
    assert reading(cached=50, asked=20).rate == 2.0


def test_rate_is_unknown_before_the_first_answer():
    assert reading(cached=50).rate is None


def test_time_left_takes_the_rest_as_unasked():
    assert reading(cached=50, asked=20).seconds_left == 15.0


def test_time_left_is_unknown_at_first():
    assert reading().seconds_left is None
    assert reading().left() == "time left unknown"


def test_nothing_is_left_when_all_is_done():
    assert reading(trials=100, asked=40).seconds_left == 0.0


@pytest.mark.parametrize(("seconds", "said"), [(59.6, "1:00 left"), (3599, "59:59 left"), (36_001, "10:00:01 left")])
def test_time_left_reads_as_a_clock(seconds, said):
    assert reading(total=2, asked=1, seconds=seconds).left() == said


def test_words_tell_what_matters():
    said = reading(asked=1200, cached=3, failed=1, refused=2, cost=0.01234, pace=4.5, total=5000).words()
    assert said == ("asked 1,200, cached 3, failed 1, refused 2, 120/s, endpoint limit 4.5/s, cost $0.0123")


def test_unknown_cost_is_not_said_to_be_zero():
    assert "cost" not in reading(asked=3).words()
    assert reading(asked=3).as_record("progress")["cost"] is None


def test_json_has_at_most_two_lines_a_second(clock):
    shown = JsonProgress(stream := io.StringIO(), clock)
    shown.begin("r1")
    shown.stage("main", "subject", 1000)
    for asked in range(1000):
        clock.now += 0.01
        shown.update(Counts(asked=asked))
    shown.close()
    events = [record["event"] for record in lines(stream)]
    assert events[:2] == ["run", "stage"]
    assert events[-1] == "stage_end"
    assert 18 <= events.count("progress") <= 20


def test_json_ends_with_the_last_counts(clock):
    shown = JsonProgress(stream := io.StringIO(), clock)
    shown.stage("main", "subject", 3)
    shown.update(Counts(asked=3, trials=3))
    shown.close()
    shown.close()
    assert [(r["event"], r["done"]) for r in lines(stream)] == [("stage", 0), ("stage_end", 3)]


def test_stages_follow_each_other(clock):
    shown = JsonProgress(stream := io.StringIO(), clock)
    shown.stage("one", "subject", 3)
    shown.stage("two", "judge", 4)
    shown.close()
    assert [(r["event"], r["stage"]) for r in lines(stream)] == [
        ("stage", "one"),
        ("stage_end", "one"),
        ("stage", "two"),
        ("stage_end", "two"),
    ]


def test_every_field_of_json_is_documented():
    documented = set(re.findall(r"^\| `(\w+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert documented == {*reading().as_record("progress"), "run"}


def test_lines_come_every_few_seconds(clock):
    shown = LineProgress(stream := io.StringIO(), clock)
    shown.stage("main", "subject", 10)
    for asked in (1, 2, 3):
        clock.now += 4
        shown.update(Counts(asked=asked))
    shown.close()
    said = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in said] == ["main (subject): 2 of 10", "main (subject): 3 of 10"]
    assert said[0].endswith("left")


def test_bar_shows_counts_cost_and_time_left(clock):
    console = Console(file=(stream := io.StringIO()), force_terminal=True, width=160)
    shown = BarProgress(console, clock)
    shown.stage("[main]", "subject", 10)
    clock.now += 2
    shown.update(Counts(asked=4, refused=1, cost=0.5))
    shown._bars.refresh()
    shown.close()
    assert all(said in stream.getvalue() for said in ("[main] (subject)", "4/10", "refused 1", "$0.5000", "0:03 left"))


def test_quiet_shows_nothing_but_knows_the_run(capsys):
    shown = make_progress("json", quiet=True)
    shown.begin("r1")
    shown.stage("main", "subject", 1)
    shown.update(Counts(asked=1))
    shown.close()
    assert shown.run == "r1"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("kind", "made"), [("json", JsonProgress), ("plain", LineProgress), ("bar", BarProgress)])
def test_kind_is_what_was_asked_for(kind, made):
    assert type(make_progress(kind)) is made


def test_without_a_terminal_there_are_lines():
    assert type(make_progress("auto")) is LineProgress


@pytest.mark.parametrize("kind", [JsonProgress, LineProgress])
def test_a_hundred_thousand_updates_cost_little(kind):
    shown, counts = kind(io.StringIO()), Counts()
    shown.stage("main", "subject", 10**6)
    began = time.process_time()
    for _ in range(100_000):
        shown.update(counts)
    # A tenth of the time that 100,000 answers a second would take, on a busy machine.
    assert time.process_time() - began < 0.1


def test_shown_shows_nothing():
    shown = Shown()
    shown.stage("main", "subject", 1)
    shown.update(Counts())
    shown.close()


def test_run_on_the_command_line_writes_json(catalogue, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(Catalogue, "load", classmethod(lambda cls, registry=None: catalogue))
    place = ["--store", str(tmp_path / "s.db"), "--runs", str(tmp_path / "runs")]
    monkeypatch.setattr("sys.argv", ["prejudge", "run", "count", "--model", "fake", "--progress", "json", *place])
    with pytest.raises(SystemExit, match="0"):
        main()
    records = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [records[0]["event"], records[-1]["event"]] == ["run", "stage_end"]
    assert records[-1]["done"] == records[-1]["total"] == records[-1]["asked"] == 10
