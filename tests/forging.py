"""A store as somebody may hand it on: changed, with all digests made anew."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from prejudge.core.store import Store
from prejudge.core.store.bulk import table_of
from prejudge.core.store.evidence import ANSWER, answer_digest, recount, seal, trial_digest
from prejudge.core.store.tables import Exchange, Run, RunTrial


def reseal(store: Store | Path | str) -> None:
    """Make every digest of a store anew from its rows as they are."""
    if not isinstance(store, Store):
        with Store(store) as opened:
            return reseal(opened)
    exchange, trial, run = map(table_of, (Exchange, RunTrial, Run))
    fields = ("stage", "ordinal", "trial", "factors", "key")
    with store.engine.begin() as connection:
        digests = {}
        for number, *answer in connection.execute(sa.select(exchange.c.id, *(exchange.c[name] for name in ANSWER))):
            digests[number] = answer_digest(*answer)
            connection.execute(sa.update(exchange).where(exchange.c.id == number).values(digest=digests[number]))
        for row in connection.execute(sa.select(trial)).all():
            place = (getattr(trial.c, name) == getattr(row, name) for name in ("run_id", "stage", "ordinal"))
            digest = trial_digest(*(getattr(row, name) for name in fields), digests.get(row.exchange_id))
            connection.execute(sa.update(trial).where(*place).values(digest=digest))
        recount(connection)
        for number in connection.scalars(sa.select(run.c.id)).all():
            seal(connection, number)
    return None
