"""The store: an SQLite file (or any SQLAlchemy URL) with every prompt, response, failure and run."""

from .reading import (
    RunRow,
    exchanges_by_model,
    first_statuses,
    get_run,
    list_runs,
    read_failures,
    read_trials,
    renewed_answers,
    statistics,
    stream_trials,
    trial_counts,
    unfinished_runs,
    used_answers,
)
from .store import Failure, Found, NewExchange, NewTrial, Store

__all__ = [
    "Failure",
    "Found",
    "NewExchange",
    "NewTrial",
    "RunRow",
    "Store",
    "exchanges_by_model",
    "first_statuses",
    "get_run",
    "list_runs",
    "unfinished_runs",
    "read_failures",
    "read_trials",
    "renewed_answers",
    "statistics",
    "stream_trials",
    "trial_counts",
    "used_answers",
]
