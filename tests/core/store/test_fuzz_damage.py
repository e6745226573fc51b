"""Whatever is in a store, everything that reads it ends with an error that says its code, and never with another."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from fakes import FakeModel, text_of

from prejudge.core.compare import CompareOptions, compare
from prejudge.core.contracts.errors import DataError, PermanentError, PrejudgeError, StoreError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report.card import data_sheet, model_card
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, list_runs, statistics
from prejudge.core.store.batches import Batches
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks, secrets_in
from prejudge.core.store.evidence import tally, weigh
from prejudge.core.store.explain import differences, find_parts, nearest
from prejudge.core.store.merge import merge
from prejudge.core.store.parts import text_digest
from prejudge.core.store.prune import PruneOptions, would_go
from prejudge.core.store.reading import exchanges_by_model, renewed_answers, trial_counts
from prejudge.core.store.repair import damage_words, repair
from prejudge.core.store.tables import StoreTable
from prejudge.testing import raises_code

DEEP = 100_000
VALUES = {
    "null": None,
    "bytes": b"\xff\xfe\x00",
    "no bytes": b"",
    "text": "x",
    "no text": "",
    "below 0": -1,
    "huge": 2**62,
    "a number": 1e308,
    "infinite": float("inf"),
    "deep": '{"a":' * DEEP,
    "deep list": "[" * DEEP + "]" * DEEP,
    "no UTF-8": b"ab\xff\xc3",
    "no object": "[]",
    "an empty object": "{}",
    "JSON null": "null",
    "not a number": '{"a":NaN}',
    "lone surrogate": '{"a":"\\ud800"}',
    "a NUL": "a\0b",
}
TRIES = pytest.mark.parametrize("tries", [30, pytest.param(600, marks=pytest.mark.soak)])
"""How many damages are tried."""


def answer(request, seen):
    answers = {"q 1": Generation(text=""), "q 2": Generation(text="no", status="refused")}
    return PermanentError("too long") if text_of(request) == "q 3" else answers.get(text_of(request))


@pytest.fixture
def good(run_study, store, tmp_path):
    """Return the file of a store with two finished runs, one that was interrupted, and one of each other table."""
    FakeModel.script = answer
    run_study(n=6, distinct=5, name="a", max_attempts=2)
    run_study(n=6, distinct=5, name="b", max_attempts=2)
    store.keep(b"a picture", "image/png")
    store.begin_run("c", "count", b"{}")
    store.end_run(get_run(store, "c").id, "interrupted", b"{}")
    text = '"a text"'
    with store.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO part (digest, literal) VALUES (?, ?)", (text_digest(text), text))
        connection.exec_driver_sql("INSERT INTO renewal (exchange_id, outcome) VALUES (1, 'empty')")
        tally(connection, "renewal", [weigh(1, "empty")])
        row = (1, 1, "place", "problem", 1.0)
        connection.exec_driver_sql(
            "INSERT INTO damage (exchange_id, run_id, place, problem, found) VALUES (?, ?, ?, ?, ?)", row
        )
    assert not list(Checks(store).problems()), "else every error would be that of the damage that is there already"
    store.close()
    path = tmp_path / "good.db"
    shutil.copyfile(str(store.url.database), path)
    with sqlite3.connect(path, isolation_level=None) as connection:
        # What is damaged is not held back by constraints.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA writable_schema=1")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
    connection.close()
    return path


def columns(path):
    with sqlite3.connect(path) as connection:
        found = [
            (name, row[1])
            for name in StoreTable.metadata.tables
            for row in connection.execute(f"PRAGMA table_info({name})")
        ]
    connection.close()
    return found


def change(path, *values, statement):
    """Change a store without the rules of its tables; False: SQLite does not let it."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(statement, values)
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return True


def replaced(table, column, name, one):
    value = "CAST(? AS TEXT)" if name == "no UTF-8" else "?"
    where = f" WHERE rowid = (SELECT min(rowid) FROM {table})" if one else ""
    statement = f'UPDATE "{table}" SET "{column}" = {value}{where}'
    return lambda path: change(path, VALUES[name], statement=statement)


def readers(catalogue, good, folder):
    """Return what reads a store, by name; each receives the path of a damaged one."""

    def reading(use):
        def read(path):
            with Store(path, writable=False) as opened:
                return use(opened)

        return read

    def keys(path):
        with sqlite3.connect(good) as connection:
            found = [key.hex() for (key,) in connection.execute("SELECT key FROM exchange LIMIT 2")]
        connection.close()
        return found

    def explained(opened):
        first, second = (find_parts(opened, key) for key in keys(good))
        nearest(opened, first)
        return differences(first, second)

    def cards(opened):
        scores = score(catalogue, opened, "a")
        return model_card(scores), data_sheet(scores)

    def counted(opened):
        numbers = [run.id for run in list_runs(opened)]
        own = [(trial_counts(opened, n), renewed_answers(opened, n), damage_words(opened, n)) for n in numbers]
        return statistics(opened), exchanges_by_model(opened), own, secrets_in(opened)

    def merged(opened):
        with Store(folder / "merged.db") as other:
            return merge(other, opened)

    def repaired(path):
        with Store(path) as opened, Store(good, writable=False) as source:
            return repair(opened, [source])

    def run(name, mode="use"):
        def asked(path):
            FakeModel.script = answer
            study = catalogue.study("count", {"subject": "fake"}, {"n": 6, "distinct": 5, "max_attempts": 2})
            with Store(path) as opened:
                return asyncio.run(execute(catalogue, study, opened, RunOptions(name=name, mode=mode)))

        return asked

    return {
        "list": reading(list_runs),
        "count": reading(counted),
        "score": reading(lambda opened: score(catalogue, opened, "a")),
        "card": reading(cards),
        "compare": reading(lambda opened: compare(catalogue, opened, ["a", "b"], CompareOptions())),
        "verify": reading(lambda opened: list(Checks(opened).problems())),
        "export": reading(lambda opened: export_run(opened, get_run(opened, "a"), folder / "a.db.gz")),
        "explain": reading(explained),
        "prune": reading(lambda opened: would_go(opened, get_run(opened, "a"), PruneOptions())),
        "batches": reading(lambda opened: Batches(opened).all()),
        "merge": reading(merged),
        "repair": repaired,
        "run": run("d"),
        "replay": run("e", "replay"),
        "resume": run("c"),
    }


def faults(damages, good, every, folder):
    """Return the errors without a code, by reader and cause, with the damages that they are about."""
    found = Counter()
    for label, damage in damages:
        for name, read in every.items():
            path = folder / "damaged.db"
            for file in folder.glob("*.db*"):
                if not file.name.startswith("good"):
                    file.unlink()
            shutil.copyfile(good, path)
            if not damage(path):
                break
            try:
                read(path)
            except PrejudgeError as error:
                assert error.code
            except Exception as error:
                frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/core/" in frame.filename]
                last = [frame for frame in frames if "/tests/" not in frame.filename][-1]
                found[name, f"{Path(last.filename).name}:{last.lineno}", repr(error)[:100], label] += 1
    return found


@TRIES
def test_wrong_values_end_in_errors_that_have_a_code(good, catalogue, tmp_path, tries):
    damages = [
        (f"{table}.{column} {name} {'one' if one else 'all'}", replaced(table, column, name, one))
        for table, column in columns(good)
        for name in VALUES
        for one in (True, False)
    ]
    damages += [
        (f"{table}: {what}", partial(change, statement=what.format(table)))
        for table in StoreTable.metadata.tables
        for what in ("DROP TABLE {}", "DELETE FROM {}", "DELETE FROM {0} WHERE rowid = (SELECT min(rowid) FROM {0})")
    ]
    some = random.Random(0).sample(damages, min(tries, len(damages)))
    found = faults(some, good, readers(catalogue, good, tmp_path), tmp_path)
    assert not found, "\n".join(map(str, found))


@TRIES
def test_broken_files_end_in_errors_that_have_a_code(good, catalogue, tmp_path, tries):
    size = good.stat().st_size

    def broken(seed):
        def damage(path):
            rng, data = random.Random(seed), bytearray(path.read_bytes())
            if seed % 5 == 0:
                del data[rng.randrange(size) :]
            for _ in range(rng.choice((1, 3, 30)) if seed % 5 else 0):
                at = rng.randrange(size)
                data[at : at + 4] = rng.choice((bytes([data[at] ^ 1 << rng.randrange(8)]), rng.randbytes(4), bytes(4)))
            path.write_bytes(data[:size])
            return True

        return damage

    damages = [(f"seed {seed}", broken(seed)) for seed in range(tries // 2)]
    found = faults(damages, good, readers(catalogue, good, tmp_path), tmp_path)
    assert not found, "\n".join(map(str, found))


def test_damaged_name_of_a_table_that_is_no_text_is_an_error_with_a_code(good):
    """SQLite quotes it in its message, which Python then cannot read."""
    data = good.read_bytes()
    assert b"tableattempt" in data
    good.write_bytes(
        data.replace(b"tableattempt", b"tableatt\xc1mpt").replace(b"CREATE TABLE attempt", b"CREATE xABLE attempt")
    )
    for writable in (True, False):
        with raises_code(StoreError, "store.damaged"):
            Store(good, writable=writable)


def test_error_of_a_sound_store_stays_what_it_is(good):
    with pytest.raises(TypeError, match="of a plugin"), Store(good, writable=False):
        raise TypeError("of a plugin")


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE holder SET pid = 'x'", "holder.pid"),
        ("UPDATE run SET head = 'x' WHERE name = 'a'", "run.head"),
        ("UPDATE exchange SET response = '[]' WHERE id = 2", "exchange 2"),
    ],
)
def test_unexpected_error_names_the_damaged_row(good, statement, named):
    change(good, statement="INSERT INTO holder VALUES (1, 'm', 'h', 1, 'b', 1.0)")
    change(good, statement=statement)
    with raises_code(DataError, "store.row-damaged", named), Store(good, writable=False):
        raise TypeError("what it led to")
