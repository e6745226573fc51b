"""The check of a store finds whatever does not hang together, and nothing else."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from fakes import FakeModel, ask

from prejudge.core.contracts.records import Image, Message
from prejudge.core.store.checks import Checks

EVERY_STORE = True


@pytest.fixture
def change(store, run_study):
    """Return a function that changes a whole store and gives what the check then finds."""
    run_study(n=3, name="r")
    store.keep(b"a picture", "image/png")

    def changed(statement, **values):
        with store.engine.begin() as connection:
            connection.execute(sa.text(statement), values)
        return [f"{found.where}: {found.problem}" for found in Checks(store).problems()]

    return changed


def test_whole_store_has_no_problem(change, store):
    assert change("SELECT 1") == []
    checks = Checks(store)
    list(checks.problems())
    assert checks.counts == (1, 3, 1, 0, 3, 0)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE exchange SET request = replace(request, 'q 1', 'q 7')", "exchange 2: its key does not follow"),
        ("UPDATE exchange SET status = 'refused' WHERE id = 1", "exchange 1: its columns have generate, refused"),
        ("UPDATE exchange SET operation = 'embed' WHERE id = 1", "exchange 1: its columns have embed, ok"),
        ('UPDATE exchange SET response = \'{"type":"x"}\' WHERE id = 3', "exchange 3: it cannot be read"),
        (
            "UPDATE run_trial SET exchange_id = 1 WHERE ordinal = 1",
            "trial 't1' of stage 'count' of run r: its exchange has",
        ),
        ("UPDATE blob SET sha256 = 'ab'", "image ab: its bytes do not match its name"),
        ("INSERT INTO part SELECT 7, digest, 'text' FROM model", "part 7: its text does not"),
    ],
)
def test_what_was_changed_is_found(change, statement, found):
    line, *others = change(statement)
    assert line.startswith(found)
    # A row that is not one of those written is missed in its table, too.
    assert [other.split(":")[0] for other in others] in ([], ["table blob"])


def test_changed_identity_is_found(change):
    first, *keys = change("UPDATE model SET identity = replace(identity, 'fake', 'fine')")
    assert first == "model 1: its digest does not follow from its identity" and keys == []


def test_trial_without_its_exchange_is_found(change, store):
    if store.engine.dialect.name != "sqlite":
        pytest.skip("a server keeps its foreign keys")
    store.engine.dispose()
    with store.engine.connect() as connection:
        driver = connection.connection.driver_connection
        driver.execute("COMMIT") if driver.in_transaction else None
        driver.execute("PRAGMA foreign_keys=OFF")
        driver.execute("DELETE FROM exchange WHERE id = 2")
        driver.execute("PRAGMA foreign_keys=ON")
    trial, table = change("SELECT 1")
    assert trial == "trial 't1' of stage 'count' of run r: its exchange is not in the store"
    assert table.startswith("table exchange: it has 2 rows, and 3 were written")


def test_image_that_is_not_kept_is_no_fault(store, run_study, monkeypatch):
    picture = Message("user", (Image("ab" * 32),))
    monkeypatch.setattr(
        "fakes.ask", lambda text, **fields: ask(text).__class__(messages=(picture, *ask(text).messages))
    )
    FakeModel.script = None
    run_study(n=2)
    checks = Checks(store)
    assert list(checks.problems()) == [] and checks.counts.absent == 1
