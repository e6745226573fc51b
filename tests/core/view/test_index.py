"""The index of a run against the observations of a scoring: counts, filters, searches and twins, recomputed."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from prejudge.core.annotation.levels import as_words
from prejudge.core.catalogue.golden import Head
from prejudge.core.catalogue.origins import Origin
from prejudge.core.contracts.errors import UnknownNameError
from prejudge.core.contracts.records import Generation
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run
from prejudge.core.store.evidence import seal
from prejudge.core.view import shelf, writing
from prejudge.core.view.build import Built
from prejudge.core.view.columns import find, sharing, twins_of
from prejudge.core.view.paired import pair
from prejudge.core.view.shelf import Shelf
from prejudge.core.view.writing import Writer, read_column


def test_facets_are_those_of_the_observations(room, answered):
    index = room.shelf.wait(run := answered(n=90))
    frame = score(room.catalogue, room.store, run.name).last.with_row_index("row")
    frame = frame.with_columns(pl.col("length").cast(pl.String).fill_null(""), pl.col("reason").fill_null(""))
    choices = {name: frame[name].unique().to_list() for name in ("parity", "status", "length")}
    draw = random.Random(7)
    for _ in range(20):
        chosen = {n: tuple(draw.sample(v, draw.randint(1, len(v)))) for n, v in choices.items() if draw.random() < 0.6}
        found = index.find(chosen)
        fits = [pl.col(name).is_in(list(words)) for name, words in chosen.items()]
        assert found.rows.tolist() == frame.filter(pl.all_horizontal(pl.lit(True), *fits))["row"].to_list()
        for facet in found.facets:
            name = facet.column.name
            if name not in choices:
                continue
            fits = [pl.col(n).is_in(list(w)) for n, w in chosen.items() if n != name]
            others = frame.filter(pl.all_horizontal(pl.lit(True), *fits))
            counts = dict(others.group_by(name).len().iter_rows())
            assert dict(facet.counts) == {word: counts.get(word, 0) for word in {*counts, *facet.chosen}}


def test_search_finds_words_whatever_their_case(room, answered):
    index = room.shelf.wait(answered(n=40))
    found = index.find({"parity": ("even",)}, "SHE is")
    assert found.rows.tolist() == [n for n in range(40) if n % 4 == 0]
    assert len(index.find({}, "q 3", "asked").rows) == 11  # q 3, and q 30 to q 39
    assert len(index.find({}, "q 3", "said").rows) == 0


def test_unknown_column_is_named(room, answered):
    index = room.shelf.wait(answered(n=4))
    with pytest.raises(UnknownNameError) as error:
        index.find({"paritty": ("odd",)})
    assert error.value.name == "paritty"


def test_run_that_goes_on_has_a_new_index(room, answered, store):
    before = room.shelf.wait(answered(n=8))
    after = room.shelf.wait(answered(lambda _: "other", name="told-2", n=8))
    assert before.folder != after.folder
    assert not list(room.cache.glob("new-*"))  # nothing half-made is left


def test_run_that_goes_on_is_shown_though_it_grows(room, answered, store, monkeypatch):
    run = answered(n=8)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'running', finished = NULL")
        seal(connection, run.id)
    run = get_run(store, run.name)
    assert run.head is None
    counts = iter(range(1000))
    monkeypatch.setattr(shelf, "trial_counts", lambda *_: {"asked": next(counts)})  # as if every look found more

    def opened():
        for _ in range(500):
            if not isinstance(found := room.shelf.index(run), Built):
                return found
            time.sleep(0.01)
        raise AssertionError("it never opens")

    first = opened()
    assert opened() is first
    monkeypatch.setattr(shelf, "RENEWED", 0.0)
    second = opened()
    assert second.folder != first.folder and not first.folder.exists()


def test_index_can_be_removed_while_it_is_read(room, answered):
    index = room.shelf.wait(run := answered(n=8))
    shutil.rmtree(index.folder)
    assert room.shelf.wait(run).find({}, "she").rows.tolist() == [0, 4]


@pytest.mark.parametrize("name", ["index.json", "ordinal.npy", "said.npy", "0-codes.npy"])
def test_index_that_was_cut_short_is_made_anew(room, answered, store, name):
    index = room.shelf.wait(run := answered(n=8))
    with (index.folder / name).open("r+b") as file:
        file.truncate(20)
    again = Shelf(store, room.catalogue, room.cache).wait(run)
    assert again.find({"parity": ("odd",)}).rows.tolist() == [1, 3, 5, 7]


def test_index_knows_its_store_and_reader(room, answered, store, tmp_path, monkeypatch):
    run = answered(n=4)
    monkeypatch.chdir(tmp_path)
    name = Path(store.url.database).resolve().relative_to(tmp_path)
    with Store(str(name), writable=False) as same:
        assert Shelf(same, room.catalogue, room.cache).wait(run).folder == room.shelf.wait(run).folder
    before = room.shelf.wait(run).folder
    for part in ({"VERSION": "another"}, {"origin_of": lambda *_: Origin("p", "1", "p", "2")}, {"find_golden": Path}):
        with monkeypatch.context() as patch:
            for name, value in part.items():
                patch.setattr(shelf, name, value if name != "find_golden" else lambda *_: Path("golden"))
            patch.setattr(
                shelf, "head_of", lambda _: Head(study="s", prejudge="0", questions="", cases={"stated": "1"})
            )
            assert Shelf(store, room.catalogue, room.cache).wait(run).folder != before, part


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.5, None, 2.0], "levels"),
        ([n / 7 for n in range(500)] + [None], "numbers"),
        ([f"text {n}" for n in range(500)] + [None, ""], "marks"),
        ([True, None, False], "levels"),
        (["10", "9", "", None], "levels"),
    ],
)
def test_column_tells_levels_apart(tmp_path, monkeypatch, values, kind):
    monkeypatch.setattr(writing, "MOST_LEVELS", 100)
    writer = Writer(tmp_path, 0, "x", "factor")
    for start in range(0, len(values), 97):
        writer.write(pl.Series(values[start : start + 97]))
    described = writer.close()
    column = read_column(tmp_path, 0, described)
    assert (column.kind, column.height) == (kind, len(values))
    for row, value in enumerate(values):
        assert np.flatnonzero(column.like(row)).tolist() == [n for n, other in enumerate(values) if other == value]
    if kind != "marks":
        counts = dict(find({"x": column}, {}).facets[0].counts)
        assert sum(counts.values()) == len(values) and counts[""] == sum(value is None for value in values)
    words = as_words(pl.Series(values)).to_list()
    assert column.matching([words[0]] if kind != "numbers" else [column.word(0)])[0]


def test_twins_share_every_factor_but_one(room, answered):
    index = room.shelf.wait(answered(n=12))
    assert twins_of(index.columns, 4, ["number"]).tolist() == [0, 2, 4, 6, 8, 10]
    assert twins_of(index.columns, 4, ["parity"]).tolist() == [4]
    assert sharing(index.columns, 5, ["parity"]).tolist() == [1, 3, 5, 7, 9, 11]


def test_two_runs_are_joined_by_trial(room, answered):
    first = answered(n=10)
    answers = {
        n: "other" if n == 3 else ["Yes, she is.", "", "No, he is not.", "I cannot say."][n % 4] for n in range(8)
    }
    second = answered(answers.__getitem__, "second", model="other", n=8)
    indices = [room.shelf.wait(run) for run in (first, second)]
    paired = pair(room, first, second, *indices)
    assert (len(paired.first), paired.only_first, paired.only_second) == (8, 2, 0)
    assert paired.find({"answers": ("other words",)}).rows.tolist() == [3]
    assert paired.find({"status, first run": ("unreadable",), "status, second run": ("ok",)}).rows.tolist() == []


def test_answer_without_a_reader_is_listed(room, answered, monkeypatch):
    run = answered(lambda n: Generation(text="no", status="refused") if n else "yes", n=3)
    monkeypatch.setattr(
        room.catalogue.plugins, "load", lambda *_: (_ for _ in ()).throw(UnknownNameError("p", "x", []))
    )
    index = room.shelf.wait(run)
    assert "unknown" in index.described.unread
    assert index.find({"status": ("refused",)}).rows.tolist() == [1, 2]
    assert index.find({"number": ("1",)}).rows.tolist() == [1]
