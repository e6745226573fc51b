"""Merging another store into this one: all of it or nothing, some rows at a time."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import sqlalchemy as sa

from ..contracts.errors import UsageError
from .bulk import table_of
from .content import Picture, Places, RunContent, new_places, snapshot, stream_exchanges, stream_trials_of, writing
from .intake import Intake
from .reading import RunRow, runs_of
from .store import Store
from .tables import Blob, Exchange, Model


class Merged(NamedTuple):
    """What a merge took over."""

    exchanges: int
    images: int
    runs: int
    same: int
    """Runs that were here already."""
    renamed: tuple[tuple[str, str], ...]
    """Runs of the other store whose names another run has here: name there, name here."""


def merge(store: Store, other: Store) -> Merged:
    """Take over everything of another store in one transaction; merging again changes nothing.

    Raises:
        UsageError: both are one store.
        StoreError: one of the stores cannot be read or written.
        DataError: the other store is damaged.
    """
    if store.url == other.url:
        raise UsageError(
            "a store cannot be merged into itself. Name the store to merge into with --store.", code="store.same"
        )
    with snapshot(other) as source, writing(store) as here:
        intake = Intake(here)
        _pictures(source, intake)
        numbers = _exchanges(source, intake)
        same, renamed = 0, []
        for run in runs_of(source):
            if (name := free_name(here, run, RunContent(source, run))) is None:
                same += 1
                continue
            if name != run.name:
                renamed.append((run.name, name))
            _run(source, intake, run, name, numbers)
        return Merged(**intake.added, same=same, renamed=tuple(renamed))


def free_name(here: sa.Connection, run: RunRow, content: RunContent) -> str | None:
    """Return a name for a run that comes from elsewhere: its own, or with a suffix; None if its content is here."""
    known = {found.name: found for found in runs_of(here)}
    if run.name not in known:
        return run.name
    digest = content.digest()
    for number in count(1):
        name = run.name if number == 1 else f"{run.name}-{number}"
        if name not in known:
            return name
        if RunContent(here, known[name]).digest() == digest:
            return None
    raise AssertionError("a free name always exists")


def _pictures(source: sa.Connection, intake: Intake) -> None:
    blob = table_of(Blob)
    query = sa.select(blob.c.sha256, blob.c.media_type, blob.c.data)
    images = source.execute(query, execution_options={"yield_per": 16})
    intake.pictures(Picture(sha256, media_type, bytes(data)) for sha256, media_type, data in images)


def _exchanges(source: sa.Connection, intake: Intake) -> Places:
    """Take over all exchanges, and return the number here of each number there."""
    exchange, model = table_of(Exchange), table_of(Model)
    models = source.execute(sa.select(model.c.digest, model.c.identity).order_by(model.c.id))
    intake.identities((bytes(digest), identity) for digest, identity in models)
    numbers = new_places(source)
    generations = source.scalars(sa.select(exchange.c.generation).distinct().order_by(exchange.c.generation)).all()
    for generation in generations:
        # One after another, so that answers to one key keep their order.
        for there, rows in stream_exchanges(source, exchange.c.generation == generation, [exchange.c.id]):
            numbers[there] = intake.exchanges(rows)
    return numbers


def _run(source: sa.Connection, intake: Intake, run: RunRow, name: str, numbers: Places) -> None:
    content = RunContent(source, run)
    run_id = intake.begin_run(name, content.facts)
    for rows in stream_trials_of(source, run.id, numbers):
        # The places of these trials are the numbers here already.
        intake.trials(run_id, rows)
    intake.failures(run_id, content.failures())
