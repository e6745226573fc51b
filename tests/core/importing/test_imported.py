"""Answers of others become a run like any other, row by row to the trial they are for."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from fakes import CountOptions, CountStage, ask, fake_catalogue

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.contracts import Probe, Stage, Trial
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import Embed, Request
from prejudge.core.importing.imported import ImportOptions, import_answers
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import list_runs, statistics
from prejudge.core.store.checks import Checks
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


class ChosenStage(CountStage):
    """Knows answers of others by columns of its own."""

    def concerns(self, cells: Mapping[str, Any]) -> bool:
        return cells.get("study", "mine") == "mine"

    def contradicts(self, factors: Mapping[str, Any], cells: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        said, own = cells.get("question"), f"q {factors['number']}"
        return {} if said in (None, own) else {"question": (said, own)}


class EmbedStage(CountStage):
    operation: ClassVar[type[Request]] = Embed


def probe(*kinds: type[Stage]) -> type[Probe]:
    class Made(Probe):
        options = CountOptions

        def stages(self, options: CountOptions) -> Sequence[Stage]:
            return [kind(options) for kind in kinds]  # type: ignore[call-arg]

    return Made


@pytest.fixture
def take(store, tmp_path):
    """Return a function that imports rows (header first) for a study and gives its scores."""

    def imported(*rows, kinds=(CountStage,), columns=None, allow_unmatched=False, **options):
        with (tmp_path / "answers.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
        catalogue = fake_catalogue(mine=StudyEntry(probe="mine", metrics={"mean": {}}))
        catalogue.plugins.offers["probe"]["mine"] = Registered(Plugged("mine", probe(*kinds)), "tests")
        study = catalogue.study("mine", {}, options)
        how = ImportOptions(
            path=str(tmp_path / "answers.csv"),
            model="theirs",
            columns=columns or {},
            allow_unmatched=allow_unmatched,
        )
        return score(catalogue, store, import_answers(catalogue, study, store, how))

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


def test_equal_prompts_may_have_unlike_answers(take, store):
    scores = take(("trial", "response"), ("t0", "a"), ("t1", "bb"), n=2, distinct=1)
    assert scores.last["length"].to_list() == [1, 2] and list(Checks(store).problems()) == []


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
    scores = take(("trial", "response"), ("t0", "a"), ("t9", "b"), n=1, allow_unmatched=True)
    said = " ".join(warnings_of(scores))
    assert scores.last["length"].to_list() == [1] and "1 of 2 rows" in said
    assert "1 have a trial that no trial has: 't9' (the first on line 3)" in said


def test_file_of_which_nothing_fits_is_refused_even_so(take):
    with raises_code(DataError, "import.no-match"):
        take(("trial", "response"), ("t8", "a"), ("t9", "b"), n=1, allow_unmatched=True)


def test_rows_about_another_study_are_left_out_and_counted(take):
    rows = [("trial", "study", "response"), ("t0", "mine", "a"), ("t0", "yours", "bb")]
    scores = take(*rows, kinds=(ChosenStage,), n=1)
    assert scores.last["length"].to_list() == [1]
    assert "1 of 2 rows" in (said := " ".join(warnings_of(scores))) and "another part of the study" in said


def test_row_that_a_stage_finds_contradictory_is_refused(take):
    rows = [("trial", "question", "response"), ("t0", "q 0", "a"), ("t1", "q 7", "bb")]
    with raises_code(DataError, "import.contradiction", "'question'", "'q 7'", "'q 1'", "line 3"):
        take(*rows, kinds=(ChosenStage,), n=2)


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
