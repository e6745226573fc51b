"""`prejudge study associations`: from the store alone, all that was said, and nothing that steers a terminal."""

from __future__ import annotations

import asyncio

import polars as pl
import pytest
from click.testing import CliRunner

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Metric, Options, Probe, Stage, Trial
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.core.contracts.records import Generate, Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.probes.dora.associations import PLACE
from prejudge.probes.dora.command import associations, levels
from prejudge.testing import raises_code

from ...core.fakes import FakeModel, ask, fake_catalogue

GROUPS = tuple(f"Group {letter}" for letter in "abcdef")
COMMON = ("kind", "loud", "tall", "calm", "shy", "warm")


class Completions(Stage):
    name, operation = "completions", Generate
    factors, outcomes = (*PLACE, "sample"), ("word",)

    def trials(self, earlier):
        for group in GROUPS:
            for i in range(12):
                cell = {"modality": "t2t", "setting": "singular", "dimension": "letters", "descriptor": group}
                yield Trial(f"{group}/{i}", {**cell, "sample": i}, ask(f"{group} is [bold]x\x1b[31m", sample=i))

    def read(self, factors, response):
        return {"word": response.text.split()[0]}


class Words(Probe):
    options = Options

    def stages(self, options):
        return [Completions()]


class Nothing(Metric):
    needs = frozenset({"word"})

    def compute(self, observations, options):
        return []


def say(request, seen):
    """Say of each group the word that is its own, and of all groups common words."""
    text = request.messages[0].parts[0].text
    if text[:7] not in GROUPS:
        return None
    place = GROUPS.index(text[:7])
    own = f"word{'abcdef'[place]}"
    return Generation(text=f"{own} \x1b[31mred" if request.sample < 8 else COMMON[(request.sample + place) % 6])


@pytest.fixture
def ran(store, monkeypatch):
    """Return the names of two runs of a study of words, and a function that calls the command."""
    catalogue = fake_catalogue(words=StudyEntry(probe="words", metrics={"nothing": {}}))
    catalogue.plugins.offers["probe"]["words"] = Registered(Plugged("words", Words), "tests")
    catalogue.plugins.offers["metric"]["nothing"] = Registered(Plugged("nothing", Nothing), "tests")
    monkeypatch.setattr(Catalogue, "load", classmethod(lambda cls, path=None: catalogue))
    FakeModel.script = say
    runs = [
        asyncio.run(execute(catalogue, catalogue.study(study, {"subject": model}, {}), store, RunOptions()))
        for study, model in (("words", "fake"), ("words", "other"), ("count", "fake"))
    ]
    FakeModel.script = None

    def call(*words):
        result = CliRunner().invoke(associations, [*words, "--store", store.url])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return runs, call


def test_counts_by_setting_and_method(ran):
    (first, *_), call = ran
    words = call(first).split()
    place = words.index("singular")
    mentions, pairs, in_range, tf_idf, fisher = map(int, words[place + 1 : place + 6])
    assert (mentions, fisher) == (72, 6) and pairs > in_range > tf_idf


def test_descriptor_shows_its_association_with_the_answer(ran):
    (first, *_), call = ran
    said = call(first, "--descriptor", "group B")
    assert "Group b ↔ wordb" in said and "answer: wordb" in said and "Group b is [bold]x" in said
    assert "worda" not in said and "kind" not in said


def test_nothing_steers_the_terminal(ran):
    (first, *_), call = ran
    assert "\x1b" not in call(first, "--descriptor", "group b", "--method", "all", "--examples", "3")


def test_all_shows_what_is_not_salient_too(ran):
    (first, *_), call = ran
    assert "shy" in call(first, "--descriptor", "group b", "--method", "all")


def test_where_no_association_is_kept_it_is_told_how_to_see_all(ran):
    (first, *_), call = ran
    told = call(first, "--descriptor", "group b", "--method", "pmi")
    assert "0 associations kept by pmi" in told and "--method all shows every association" in told


def test_runs_are_compared(ran):
    (first, second, _), call = ran
    said = call(first, second)
    lines = [line for line in said.splitlines() if line.startswith(" 1 and 2")]
    figures = [[float(cell) for cell in line.split()[-4:-2]] for line in lines]
    assert figures == [[6.0, 1.0]] * 2 and f"2: {second}" in said


def test_new_associations_are_told_from_documented_ones(ran, tmp_path):
    (first, *_), call = ran
    (tmp_path / "known.csv").write_text("descriptor,word\ngroup b,wordb\n", encoding="utf-8")
    said = call(
        first, "--descriptor", "Group b", "--descriptor", "Group c", "--documented", str(tmp_path / "known.csv")
    )
    (new,) = [line for line in said.splitlines() if line.rstrip().endswith("undocumented")]
    assert "wordc" in new and "line 2" in said


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_export_has_every_association_and_its_run(ran, tmp_path, kind):
    (first, second, _), call = ran
    path = tmp_path / f"found.{kind}"
    call(first, second, "--export", str(path))
    frame = pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path)
    assert frame.height == 12 and set(frame["run"]) == {first, second} and set(frame["model"]) == {"fake", "other"}
    assert {"descriptor", "word", "count", "q_fisher", "tf_idf", "sentiment", "keys"} <= set(frame.columns)


def test_an_unknown_descriptor_names_the_nearest(ran):
    (first, *_), call = ran
    with raises_code(UnknownNameError, "unknown-descriptor", "'Group b'"):
        call(first, "--descriptor", "Group bb")


def test_a_run_without_words_is_refused(ran):
    (_, _, other), call = ran
    with raises_code(DataError, "run.other-study"):
        call(other)


@pytest.mark.parametrize(
    ("words", "code"), [(("--export", "found.txt"), "options.file-kind"), (("--level", "1"), "options.value")]
)
def test_wrong_options_are_refused(ran, words, code):
    (first, *_), call = ran
    with raises_code(UsageError, code, words[1]):
        call(first, *words)


def test_sheets_of_people_become_one_file_with_their_agreement(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, last in (("anna", 5), ("berta", 4)):
        rows = [*(f"{1 + d % 3},group {d},tired" for d in range(9)), f"{last},group 9,poor", ",group 9,late"]
        (tmp_path / f"{name}.csv").write_text("\n".join(["level,descriptor,word", *rows]), encoding="utf-8")
    done = CliRunner().invoke(levels, ["agree", "anna.csv", "berta.csv"])
    assert done.exit_code == 0, done.output
    assert "10 associations with two ratings, 20 ratings, 2 annotators" in done.output and "1 with none" in done.output
    assert "anna: mean level 2.30 of 10" in done.output
    written = pl.read_csv(tmp_path / "levels.csv")
    assert written.columns == ["level", "descriptor", "word", "annotator"] and written["level"].null_count() == 2
    told = CliRunner().invoke(levels, ["agree", "anna.csv", "berta.csv"])
    assert isinstance(told.exception, UsageError) and told.exception.code == "file.exists"


def test_a_sheet_needs_a_judge(ran, store):
    (first, *_), _ = ran
    told = CliRunner().invoke(levels, ["sheet", first, "--store", store.url])
    assert isinstance(told.exception, DataError) and told.exception.code == "run.no-answers"
