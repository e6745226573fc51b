"""Answers of others become a run like any other, row by row to the trial they are for."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import polars as pl
import pytest
import sqlalchemy as sa
from fakes import CountOptions, CountStage, ask, fake_catalogue

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.contracts import Estimate, MatchedStage, Metric, Probe, Stage, Trial
from prejudge.core.contracts.canonical import decode_request
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.records import Embed, PseudoLikelihood, Request, Sampling
from prejudge.core.importing.answers import FileForm, read_answers
from prejudge.core.importing.imported import ImportOptions, import_answers
from prejudge.core.importing.presented import presented
from prejudge.core.importing.settling import distinct_draws
from prejudge.core.report.examples import show_request
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import list_runs, statistics
from prejudge.core.store.bulk import table_of
from prejudge.core.store.checks import Checks
from prejudge.core.store.parts import unpack
from prejudge.core.store.tables import Exchange, RunTrial
from prejudge.testing import raises_code

EVERY_STORE = True


class SampleStage(CountStage):
    """Asks every question three times."""

    factors = ("number",)

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        for i in range(2):
            for sample in range(3):
                yield Trial(f"t{i}/{sample}", {"number": i}, ask(f"q {i}", sample=sample))


class SecondStage(CountStage):
    """Asks about what was answered before."""

    name = "second"
    factors = ("number",)

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        for row in earlier["count"].filter(status="ok").iter_rows(named=True):
            yield Trial(f"s{row['number']}", {"number": row["number"]}, ask(f"length {row['length']}"))


class ChosenStage(CountStage, MatchedStage):
    """Knows answers of others by columns of its own."""

    def concerns(self, cells: Mapping[str, Any]) -> bool:
        return cells.get("study", "mine") == "mine"

    def columns(self, factors: Mapping[str, Any]) -> Mapping[str, str]:
        return {"kind": "parity"}


class HotStage(CountStage):
    """Asks one question twice, with sampling."""

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        for i in range(2):
            request = msgspec.structs.replace(ask("q"), sampling=Sampling(temperature=1.0))
            yield Trial(f"t{i}", {"number": i, "parity": "odd"}, request)


class AskStage(CountStage):
    """Three questions by their words."""

    factors = ("question",)

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        for i, colour in enumerate(("red", "blue", "green")):
            yield Trial(f"t{i}", {"question": f"Is it '{colour}'?"}, ask(colour))


class CaseStage(CountStage):
    """Two trials whose ids differ only in case."""

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        for name in ("t0", "T0"):
            yield Trial(name, {"number": 0, "parity": "odd"}, ask(name))


class EmbedStage(CountStage):
    operation: ClassVar[type[Request]] = Embed


def probe(*kinds: type[Stage]) -> type[Probe]:
    class Made(Probe):
        options = CountOptions

        def stages(self, options: CountOptions) -> Sequence[Stage]:
            return [kind(options) for kind in kinds]  # type: ignore[call-arg]

    return Made


class ShownStage(CountStage, MatchedStage):
    """Shows every question in one of two orders, which the plan draws."""

    factors = ("number", "order")
    presentation: ClassVar[Mapping[str, str]] = {"order": "words"}

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        constant = self._options.words == ("up",)
        for i in range(3):
            order = "up" if constant or i % 2 else "down"
            named = {} if "order" in self.unrecorded else {"order": order}
            shown = order if named else "some order"
            yield Trial("/".join([f"t{i}", *named.values()]), {"number": i, "order": None} | named, ask(f"{i} {shown}"))


class StubbornStage(ShownStage):
    """Gives every trial an order, also where nobody recorded one."""

    def trials(self, earlier: Mapping[str, Any]) -> Iterator[Trial]:
        return ShownStage(self._options).trials(earlier)


class ByOrder(Metric):
    """Counts answers by order."""

    needs = frozenset({"order", "status"})

    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        counts = observations.group_by("order").len().iter_rows()
        every = [({}, observations.height), *(({"order": order}, count) for order, count in counts)]
        return [Estimate.from_flat(metric="count", group=group, value=count, n=count) for group, count in every]


@pytest.fixture
def take(store, tmp_path):
    """Return a function that imports rows (header first) for a study and gives its scores."""

    def imported(*rows, kinds=(CountStage,), metrics=("mean",), columns=None, how=None, more=(), **options):
        paths = [tmp_path / "answers.csv", *(tmp_path / f"more-{number}.csv" for number in range(len(more)))]
        for path, content in zip(paths, [rows, *more], strict=True):
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(content)
        catalogue = fake_catalogue(mine=StudyEntry(probe="mine", metrics={name: {} for name in metrics}))
        catalogue.plugins.offers["probe"]["mine"] = Registered(Plugged("mine", probe(*kinds)), "tests")
        catalogue.plugins.offers["metric"]["by-order"] = Registered(Plugged("by-order", ByOrder), "tests")
        study = catalogue.study("mine", {}, options)
        chosen = ImportOptions(paths=tuple(map(str, paths)), model="theirs", columns=columns or {}, **how or {})
        return score(catalogue, store, import_answers(catalogue, study, store, chosen))

    return imported


def test_rows_are_matched_by_trial_id(take):
    scores = take(("trial", "response"), ("t1", "four"), ("t0", "two"), n=2)
    assert scores.last["length"].to_list() == [3, 4]
    assert scores.manifest.identities["subject"].adapter == "imported"
    assert scores.manifest.mode == "imported" and scores.run.state == "finished"


def test_rows_are_matched_by_factors_under_other_names(take):
    columns = {"response": "Answer", "number": "No."}
    scores = take(("No.", "Answer"), ("1.0", "b"), ("0", "aa"), n=2, columns=columns)
    assert scores.last["length"].to_list() == [2, 1]


def test_trial_without_a_row_has_failed(take):
    scores = take(("trial", "response"), ("t1", "four"), n=3)
    assert scores.last["status"].to_list() == ["failed", "ok", "failed"]
    assert scores.last["reason"].to_list() == ["not in answers.csv", None, "not in answers.csv"]
    assert scores.estimates["mean"][0].missing.counts == {"failed": 2} and scores.estimates["mean"][0].n == 1


def test_statuses_are_kept(take):
    rows = [("trial", "response", "status"), ("t0", "no", "refused"), ("t1", "", "filtered"), ("t2", "x", "")]
    assert take(*rows, n=3).last["status"].to_list() == ["refused", "filtered", "ok"]


def test_one_deterministic_request_has_one_answer(take, store):
    rows = [("trial", "response"), ("t0", "a"), ("t1", "bb"), ("t2", "a")]
    with raises_code(DataError, "import.two-answers", "'bb'", "'a'", "line 3"):
        take(*rows, n=3, distinct=1)
    for rule, lengths in (("first", [1, 1, 1]), ("last", [1, 1, 1])):
        scores = take(*rows, n=3, distinct=1, how={"duplicates": rule})
        assert scores.last["length"].to_list() == lengths
        assert scores.manifest.stages["count"].counts["duplicates"] == 1
    assert list(Checks(store).problems()) == []


def test_one_sampled_request_may_have_two_answers(take, store):
    scores = take(("trial", "response"), ("t0", "a"), ("t1", "bb"), n=2, kinds=(HotStage,))
    assert scores.last["length"].to_list() == [1, 2] and list(Checks(store).problems()) == []


def test_row_that_stands_twice_counts_once(take):
    scores = take(("trial", "response"), ("t0", "a"), ("t1", "bb"), ("t0", "a"), n=2)
    assert scores.last["length"].to_list() == [1, 2]
    assert "1 of 3 rows" in (said := " ".join(warnings_of(scores))) and "answer a question again" in said


@pytest.mark.parametrize(("rule", "lengths"), [("first", [1, 2]), ("last", [3, 2])])
def test_one_of_two_answers_may_be_chosen(take, store, rule, lengths):
    rows = [("trial", "response"), ("t0", "a"), ("t1", "bb"), ("t0", "ccc")]
    with raises_code(DataError, "import.too-many", "'t0'", "'a'", "'ccc'", "lines 2, 4"):
        take(*rows, n=2)
    scores = take(*rows, n=2, how={"duplicates": rule})
    assert scores.last["length"].to_list() == lengths
    assert scores.manifest.stages["count"].counts["duplicates"] == 1
    assert f"--duplicates {rule}" in " ".join(warnings_of(scores)) and list(Checks(store).problems()) == []


def test_bad_rows_skip_is_the_one_switch_for_all_rows_that_cannot_be_used(take):
    """Unmatched, answered again, and contradicting: refused alone, left out and counted together."""
    again = [("trial", "response", "kind"), ("t0", "a", "even"), ("t0", "ccc", "even"), ("t1", "bb", "odd")]
    more = [("t9", "x", "odd"), ("t2", "dddd", "seven")]
    with raises_code(DataError, "import.unmatched", "--bad-rows skip"):
        take(*again, *more, kinds=(ChosenStage,), n=3)
    scores = take(*again, *more, kinds=(ChosenStage,), n=3, how={"bad_rows": "skip"})
    counts = scores.manifest.stages["count"].counts
    assert (counts["unmatched"], counts["duplicates"], counts["disagreeing"]) == (1, 1, 1)
    assert scores.last["length"].to_list() == [1, 2, None]
    with raises_code(DataError, "import.contradiction", "--bad-rows skip"):
        chosen = {"bad_rows": "skip", "disagreeing": "refuse"}
        take(*again, *more, kinds=(ChosenStage,), n=3, how=chosen)


def test_more_rows_than_repeats_are_refused_even_if_they_are_the_same(take):
    rows = [("number", "response"), *[(0, "a")] * 4]
    with raises_code(DataError, "import.too-many", "3 times"):
        take(*rows, kinds=(SampleStage,))
    assert take(*rows, kinds=(SampleStage,), how={"duplicates": "first"}).last["length"].to_list()[:3] == [1, 1, 1]


def test_rows_typed_otherwise_are_matched_and_counted(take):
    rows = [("Question", "response"), (" Is it\u00a0“red”? ", "a"), ("is it 'blue'", "bb"), ("Is it 'green'?", "ccc")]
    scores = take(*rows, kinds=(AskStage,))
    assert scores.last["length"].to_list() == [1, 2, 3]
    assert scores.manifest.stages["count"].counts["typed_otherwise"] == 2
    assert "2 of 3 rows" in " ".join(warnings_of(scores))


def test_row_with_an_exact_trial_is_never_given_to_another(take):
    rows = [("trial", "response"), ("T0", "a"), ("t0", "bb")]
    assert take(*rows, kinds=(CaseStage,)).last["length"].to_list() == [2, 1]
    with raises_code(DataError, "import.unmatched", "2 trials"):
        take(("trial", "response"), ("t0 ", "a"), kinds=(CaseStage,))


def test_nearest_trial_and_the_difference_are_shown(take):
    with raises_code(DataError, "import.unmatched", "'t1'", "blve", "blue") as caught:
        take(("question", "response"), ("Is it 'blve'?", "a"), kinds=(AskStage,))
    assert dict(caught.value.fields) == {"line": 2, "rows": 1, "nearest": "t1", "differs": ["question"]}


def test_several_rows_fill_the_samples_in_order(take):
    rows = [("number", "response"), (0, "a"), (1, "bb"), (0, "ccc"), (1, "dddd")]
    scores = take(*rows, kinds=(SampleStage,))
    assert scores.last["length"].to_list() == [1, 3, None, 2, 4, None]


def test_importing_again_stores_no_answer_twice(take, store):
    rows = [("trial", "response"), ("t0", "a"), ("t1", "bb")]
    first, second = take(*rows, n=2), take(*rows, n=2)
    assert statistics(store)["Exchange"] == 2 and first.last.equals(second.last)


def test_other_mapping_is_another_model(take, store):
    rows = [("trial", "wrong", "right"), ("t0", "a", "bb")]
    take(*rows, n=1, columns={"response": "wrong"})
    assert take(*rows, n=1, columns={"response": "right"}).last["length"].to_list() == [2]


@pytest.mark.parametrize(
    ("rows", "code", "named"),
    [
        (
            [("trial", "response"), ("t0", "a"), ("t9", "b")],
            "import.unmatched",
            "'t9'",
        ),
        (
            [("trial", "number", "response"), ("t0", "0.0", "a"), ("t1", 2, "b")],
            "import.contradiction",
            "'number'",
        ),
        ([("parity", "response"), ("even", "a")], "import.unmatched", "'t0'"),
        ([("trial", "response"), ("t0", "a"), ("t0", "b")], "import.too-many", "'t0'"),
        ([("trial", "answer"), ("t0", "a")], "import.columns", "'response'"),
        ([("x", "response"), ("t0", "a")], "import.columns", "trial, number, parity"),
    ],
)
def test_rows_that_fit_nowhere_are_refused(take, store, rows, code, named):
    with raises_code(DataError, code, named):
        take(*rows, n=3)
    assert not any(statistics(store).values()) and list_runs(store) == []


def test_rows_that_fit_nowhere_may_be_left_out(take):
    scores = take(("trial", "response"), ("t0", "a"), ("t9", "b"), n=1, how={"allow_unmatched": True})
    said = " ".join(warnings_of(scores))
    assert scores.last["length"].to_list() == [1] and "1 of 2 rows" in said
    assert "1 have a trial that no trial has: 't9' (the first on line 3)" in said


def test_file_of_which_nothing_fits_is_refused_even_so(take):
    with raises_code(DataError, "import.no-match"):
        take(("trial", "response"), ("t8", "a"), ("t9", "b"), n=1, how={"allow_unmatched": True})


def test_rows_about_another_study_are_left_out_and_counted(take):
    rows = [("trial", "study", "response"), ("t0", "mine", "a"), ("t0", "yours", "bb")]
    scores = take(*rows, kinds=(ChosenStage,), n=1)
    assert scores.last["length"].to_list() == [1]
    assert "1 of 2 rows" in (said := " ".join(warnings_of(scores))) and "another part of the study" in said


ODD = [("trial", "kind", "response"), ("t0", "Even.", "a"), ("t1", "seven", "bb"), ("t2", "", "ccc")]
"""The first differs only in how it is typed, the second contradicts its trial, the third says nothing."""


def test_row_that_contradicts_its_trial_is_refused(take):
    with raises_code(DataError, "import.contradiction", "'kind' in 1", "'seven'", "'odd'", "line 3", "--disagreeing"):
        take(*ODD, kinds=(ChosenStage,), n=3)


@pytest.mark.parametrize(("rule", "lengths", "parity"), [("keep", [1, 2, 3], "seven"), ("drop", [1, None, 3], "odd")])
def test_row_that_contradicts_its_trial_may_be_kept_or_dropped(take, store, rule, lengths, parity):
    scores = take(*ODD, kinds=(ChosenStage,), n=3, how={"disagreeing": rule})
    assert scores.last["length"].to_list() == lengths
    assert scores.last["parity"].to_list() == ["even", parity, "even"]
    assert scores.manifest.stages["count"].counts["disagreeing"] == 1
    assert f"--disagreeing {rule}" in " ".join(warnings_of(scores)) and list(Checks(store).problems()) == []


@pytest.mark.parametrize("rule", ["duplicates", "disagreeing"])
def test_unknown_rule_is_refused(take, rule):
    with raises_code(UsageError, "options.value", "'some'"):
        take(("trial", "response"), ("t0", "a"), how={rule: "some"})


def test_stages_are_answered_one_after_another(take):
    rows = [("stage", "trial", "response"), ("count", "t0", "abc"), ("second", "s0", "x"), ("second", "s1", "yy")]
    with raises_code(DataError, "import.unmatched", "line 4"):
        take(*rows, kinds=(CountStage, SecondStage), n=2)
    scores = take(*rows[:-1], kinds=(CountStage, SecondStage), n=2)
    assert scores.last.rows() and scores.last["length"].to_list() == [1]
    with raises_code(DataError, "import.cell", "'third'", "line 2"):
        take(rows[0], ("third", "t0", "x"), kinds=(CountStage, SecondStage))


def test_what_no_table_can_answer_is_refused(take):
    with raises_code(DataError, "import.operation", "'embed'"):
        take(("trial", "response"), ("t0", "a"), kinds=(EmbedStage,))


NUMBERED = [("number", "response"), (0, "a"), (1, "bb"), (2, "ccc")]


def requests_of(store, scores):
    """Return the stored requests of a run, in the order of its trials."""
    trials, exchange = table_of(RunTrial), table_of(Exchange)
    query = (
        sa.select(exchange.c.request)
        .join_from(trials, exchange, trials.c.exchange_id == exchange.c.id)
        .where(trials.c.run_id == scores.run.id)
        .order_by(trials.c.ordinal)
    )
    with store.engine.connect() as connection:
        return [decode_request(text) for text in unpack(connection, connection.scalars(query).all())]


def json_lines(folder, *records):
    path = folder / "lines.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def test_order_that_the_file_does_not_state_is_null(take, store):
    scores = take(*NUMBERED, kinds=(ShownStage,))
    assert scores.last["order"].to_list() == [None] * 3 and scores.last["length"].to_list() == [1, 2, 3]
    assert scores.manifest.unrecorded == ("order", "request")
    assert scores.last["trial"].to_list() == ["t0", "t1", "t2"] and list(Checks(store).problems()) == []
    # A run of the same study in this process asks in its own orders.
    stage = ShownStage(CountOptions())
    assert [trial.factors["order"] for trial in stage.trials({})] == ["down", "up", "down"]


def test_order_of_a_stage_that_does_not_look_is_null_too(take):
    assert take(*NUMBERED, kinds=(StubbornStage,)).last["order"].to_list() == [None] * 3


def test_order_that_the_file_states_is_kept(take):
    rows = [("number", "order", "response"), (0, "down", "a"), (1, "up", "bb"), (2, "down", "ccc")]
    scores = take(*rows, kinds=(ShownStage,))
    assert scores.last["order"].to_list() == ["down", "up", "down"] and scores.manifest.unrecorded == ("request",)
    by_id = [("trial", "response"), ("t0/down", "a"), ("t1/up", "bb")]
    assert take(*by_id, kinds=(ShownStage,)).last["order"].to_list() == ["down", "up", "down"]


def test_order_that_the_user_states_is_kept(take):
    scores = take(*NUMBERED, kinds=(ShownStage,), words="up")
    assert scores.last["order"].to_list() == ["up"] * 3
    # Two orders are no statement on a single answer.
    assert take(*NUMBERED, kinds=(ShownStage,), words="up,down").last["order"].to_list() == [None] * 3


def test_estimates_of_an_order_that_nobody_recorded_are_not_given(take):
    scores = take(*NUMBERED, kinds=(ShownStage,), metrics=("by-order",))
    assert [(dict(e.group), e.value) for e in scores.estimates["by-order"]] == [({}, 3)]
    scores = take(*NUMBERED, kinds=(ShownStage,), metrics=("by-order",), words="up")
    assert [dict(e.group) for e in scores.estimates["by-order"]] == [{}, {"order": "up"}]


def test_request_that_the_file_states_is_stored(take, store):
    rows = [("trial", "request", "response"), ("t0", "What is it?", "a"), ("t1", "", "bb")]
    scores = take(*rows, n=2)
    assert scores.manifest.unrecorded == ("request",)  # of one row
    texts = [show_request(request)[0][1] for request in requests_of(store, scores)]
    assert texts[0] == "What is it?" and texts[1] != ""
    scores = take(*rows[:2], n=1)
    assert scores.manifest.unrecorded == ()
    (request,) = requests_of(store, scores)
    assert request.sampling == Sampling()  # how the model sampled is not known


def test_request_that_is_no_text_is_refused(take, tmp_path):
    with raises_code(DataError, "import.cell", "record 1"):
        read = read_answers([str(json_lines(tmp_path, {"trial": "t0", "request": 3, "response": "a"}))], FileForm())
        list(presented([Trial("t0", {}, ask("q"))], {0: read.rows[0]}, frozenset()))


def test_several_files_are_one(take, tmp_path):
    scores = take(*NUMBERED[:3], more=[[NUMBERED[0], NUMBERED[3]]], n=3)
    assert scores.last["length"].to_list() == [1, 2, 3]
    digests = {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("answers.csv", "more-0.csv")
    }
    assert scores.manifest.data == digests
    assert scores.manifest.identities["subject"].settings["file_sha256"] == ",".join(digests.values())
    assert scores.manifest.stages["count"].counts["rows"] == 3


def test_rule_for_duplicates_holds_across_files(take):
    more = [[NUMBERED[0], (0, "dddd"), NUMBERED[3]]]
    with raises_code(DataError, "import.too-many", "answers.csv, line 2; ", "more-0.csv, line 2"):
        take(*NUMBERED[:3], more=more, n=3)
    assert take(*NUMBERED[:3], more=more, n=3, how={"duplicates": "first"}).last["length"].to_list() == [1, 2, 3]
    assert take(*NUMBERED[:3], more=more, n=3, how={"duplicates": "last"}).last["length"].to_list() == [4, 2, 3]


def test_file_that_is_named_twice_is_refused(take):
    with raises_code(DataError, "import.same-file", "more-0.csv", "answers.csv"):
        take(*NUMBERED, more=[NUMBERED], n=3)


def test_every_row_may_count(take, store):
    rows = [*NUMBERED, (0, "dddd"), (0, "a")]
    scores = take(*rows, n=3, how={"duplicates": "all"})
    assert scores.last["length"].to_list() == [1, 4, 1, 2, 3]
    assert scores.last["trial"].to_list() == ["t0", "t0#2", "t0#3", "t1", "t2"]
    assert scores.last["number"].to_list() == [0, 0, 0, 1, 2]
    assert scores.estimates["mean"][0].value == pytest.approx((1 + 4 + 1 + 2 + 3) / 5)
    counts = scores.manifest.stages["count"].counts
    assert (counts["trials"], counts["counted_again"], counts["duplicates"]) == (5, 2, 0)
    assert list(Checks(store).problems()) == []


def test_every_answer_to_one_deterministic_request_may_count(take, store):
    rows = [("trial", "response"), ("t0", "a"), ("t1", "bb"), ("t2", "a")]
    scores = take(*rows, n=3, distinct=1, how={"duplicates": "all"})
    assert scores.last["length"].to_list() == [1, 2, 1] and list(Checks(store).problems()) == []


def test_number_of_one_request_counts_once():
    trials = [Trial(name, {}, PseudoLikelihood(text="It is.")) for name in ("t0", "t0#2")]
    with raises_code(DataError, "import.two-answers", "t0#2"):
        list(distinct_draws(trials))
