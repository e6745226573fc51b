"""The store: an SQLite file (or any SQLAlchemy URL) with every prompt, response, failure and run."""

from .content import ensure_recorded
from .proof import RunProof
from .reading import (
    RunRow,
    exchanges_by_model,
    get_run,
    list_runs,
    read_failures,
    renewed_answers,
    statistics,
    trial_counts,
    unfinished_runs,
    used_answers,
)
from .store import Failure, Found, NewExchange, NewTrial, Store
from .trials import finish_proof, first_statuses, read_trials, stream_trials

__all__ = [
    "Failure",
    "Found",
    "NewExchange",
    "NewTrial",
    "RunProof",
    "RunRow",
    "Store",
    "ensure_recorded",
    "exchanges_by_model",
    "finish_proof",
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
