"""The store: one SQLite file (or any SQLAlchemy url) that holds every prompt, response, failure and run."""

from .reading import (
    Mismatch,
    RunRow,
    exchanges_by_model,
    get_run,
    list_runs,
    read_failures,
    read_trials,
    statistics,
    stream_trials,
    verify_keys,
)
from .store import Failure, Found, NewExchange, NewTrial, Store

__all__ = [
    "Failure",
    "Found",
    "Mismatch",
    "NewExchange",
    "NewTrial",
    "RunRow",
    "Store",
    "exchanges_by_model",
    "get_run",
    "list_runs",
    "read_failures",
    "read_trials",
    "statistics",
    "stream_trials",
    "verify_keys",
]
