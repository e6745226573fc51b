"""Which earlier runs asked the answers that a run takes from the store.

The head of a run proves which answers it used. Where another run asked for them, it proves no more than that one's.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from .bulk import table_of
from .engine import translated
from .evidence import is_run
from .names import run_name
from .patience import enduring
from .store import Store
from .tables import Exchange, Run, RunTrial


class EarlierRun(msgspec.Struct, frozen=True):
    """A run that asked answers which another run uses."""

    run: str
    head: str
    """Its head at that time, hexadecimal; empty if it had not ended."""
    answers: int
    """How many of them."""


class EarlierAnswers(msgspec.Struct, frozen=True):
    """Where the answers of a run come from that it did not ask itself."""

    answers: int
    """All answers that the run uses, its own among them."""
    runs: tuple[EarlierRun, ...] = ()
    """The runs that asked some of them, the one with most answers first."""
    of_no_run: int = 0
    """Answers that were stored before the run began, and that no other run of the store uses."""


class _Counts(NamedTuple):
    run: int | None
    """Id of a run; None: no run."""
    answers: int


@enduring
def earlier_answers(store: Store, run_id: int) -> EarlierAnswers | None:
    """Return which answers of a run were not asked by the run itself; None if it asked them all.

    An answer belongs to the run that was begun last, of those that use it and were under way when it was stored: one
    that was interrupted may have been asleep meanwhile. If there is none, it belongs to the first run that used it.
    """
    runs = table_of(Run)
    with translated(store.url), store.engine.connect() as connection:
        counts = [_Counts(run, answers) for run, answers in connection.execute(_counted(run_id))]
        others = [count.run for count in counts if count.run not in (None, run_id)]
        query = sa.select(runs.c.id, runs.c.name, runs.c.head).where(runs.c.id.in_(others))
        rows = {number: (name, head) for number, name, head in connection.execute(query)}
    if all(count.run == run_id for count in counts):
        return None
    earlier = [
        EarlierRun(run_name(name), (head or b"").hex(), count.answers)
        for count in counts
        if count.run in rows
        for name, head in [rows[count.run]]
    ]
    return EarlierAnswers(
        sum(count.answers for count in counts),
        tuple(sorted(earlier, key=lambda run: (-run.answers, run.run))),
        sum(count.answers for count in counts if count.run is None),
    )


def _counted(run_id: int) -> sa.Select[int | None, int]:
    """Return the query for the number of answers of a run by the run that asked them."""
    exchange, trials, runs = table_of(Exchange), table_of(RunTrial), table_of(Run)
    began = sa.select(runs.c.started).where(runs.c.id == run_id).scalar_subquery()
    used = sa.select(trials.c.exchange_id).where(trials.c.run_id == run_id, trials.c.exchange_id.is_not(None))
    answer = sa.select(exchange.c.id, exchange.c.created).where(exchange.c.id.in_(used)).cte("own")
    under_way = sa.and_(
        runs.c.started <= answer.c.created, sa.or_(runs.c.finished.is_(None), runs.c.finished >= answer.c.created)
    )
    asked = sa.or_(under_way, runs.c.started < began)
    order = (sa.case((under_way, 0), else_=1), sa.case((under_way, -runs.c.started), else_=runs.c.started), runs.c.id)
    ranked = (
        sa.select(
            answer.c.id,
            trials.c.run_id,
            sa.func.row_number().over(partition_by=answer.c.id, order_by=order).label("place"),
        )
        .join_from(answer, trials, trials.c.exchange_id == answer.c.id)
        .join(runs, runs.c.id == trials.c.run_id)
        .where(is_run(), asked)
        .subquery("ranked")
    )
    first = sa.and_(ranked.c.id == answer.c.id, ranked.c.place == 1)
    count = sa.func.count()
    return sa.select(ranked.c.run_id, count).join_from(answer, ranked, first, isouter=True).group_by(ranked.c.run_id)
