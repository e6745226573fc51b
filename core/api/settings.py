"""`Settings`: paths, cache mode, budget, batches and workers of a call."""

from __future__ import annotations

from typing import get_args

import msgspec

from ..contracts.errors import UnknownNameError
from ..engine.batch.options import SENTINELS, BatchOptions
from ..engine.budget import Caps
from ..engine.progress import Progress
from ..engine.reading import Outcome
from ..engine.retry import LONGEST_SECONDS
from ..engine.runs import RunOptions
from ..engine.scheduler import Mode
from ..workers.options import worker_options


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call reads and writes, what it may ask, and how: paths, cache mode, budget, batches, workers.

    Raises:
        UnknownNameError: the cache mode is unknown.
        UsageError: a budget is not above 0, or the settings of the workers exclude each other.

    Example:
        >>> import prejudge
        >>> settings = prejudge.Settings(store="answers.db", runs="reports", max_requests=500)
        >>> prejudge.run("bistereo-pairs", "simulated-biased", settings, per_cell=2, axes=["height"]).report.parts[0]
        'reports'
    """

    store: str = "prejudge.db"
    """A file or a SQLAlchemy URL."""
    runs: str = "runs"
    """The folder for reports."""
    registry: str | None = None
    """Your own registry file, which is trusted for this call; None: registry.toml in the working directory, if any."""
    mode: Mode = "use"
    """`use`: ask only requests without a stored answer; `replay`: ask nothing; `refresh`: ask all requests again."""
    refresh: tuple[Outcome, ...] = ()
    """Stored answers to ask anew: `unreadable`, `refused`, `filtered`, `empty`. The report says that they were chosen
    by their outcome."""
    name: str | None = None
    """Name of the run; None: time, study and model."""
    sign: str | None = None
    """The path of an SSH key, with which the finished run is signed."""
    progress: Progress | None = None
    """Receives the progress of a run; None: nothing is shown."""
    max_requests: int | None = None
    """Stop with `BudgetError` after this many requests. All answers are stored, and the next run uses them."""
    max_tokens: int | None = None
    """The same for tokens, of prompts and answers."""
    max_cost: float | None = None
    """The same for US dollars, by the prices of the registry."""
    keep_going: bool = False
    """Continue when many requests in a row fail with the same error, have an empty answer, or a model cannot
    do the task. Without it such a run stops with `HaltedError`; all answers are stored."""
    accept_repeats: bool = False
    """Continue with an endpoint that gives the same answer to every repeat of a prompt: it ignores the temperature, or
    a cache answers. Each prompt then counts as one draw, as the report states. Without it such a run stops with
    `HaltedError`."""
    accept_unfit: bool = False
    """Continue with a model that answers fewer than half of the questions of a stage, refusals counted as answers.
    Without it such a run stops with `UnfitError`."""
    max_wait: float = LONGEST_SECONDS
    """Longest wait in seconds that an endpoint may ask for. If it asks for more again, the run
    stops with `HaltedError`."""
    leave_out: tuple[str, ...] = ()
    """Parts to leave out of the report: `examples`, `images`."""
    batch: bool = False
    """Use the provider's batch interface: at its price for batches, within hours. Models that have no batch interface
    are called one request at a time."""
    batch_wait: bool = True
    """Wait for the batches. Otherwise the run ends with `PendingError` once they are with the provider."""
    batch_items: int | None = None
    """Most requests of one batch; None: as many as the provider takes."""
    batch_only: bool = False
    """Ask no first trials by single calls, which show before the batches whether the model can do the task."""
    sentinel: int = SENTINELS
    """Requests of a stage that are asked by single calls, too, and compared with those of the batches."""
    engine: str | None = None
    """What starts workers, processes that each load the local models: `local` on this machine, `ray` on those of a
    cluster. None: this process asks, unless `workers` or `devices` is set."""
    workers: int | None = None
    """Number of workers; None: one for each device."""
    devices: str | None = None
    """GPUs of the workers: `all`, or numbers such as `0,1`."""
    address: str | None = None
    """Cluster of Ray: `HOST:PORT`, or `auto` for the one that runs on this machine. None: one for this run alone."""

    @property
    def caps(self) -> Caps:
        """Return the budget of a run."""
        return Caps(requests=self.max_requests, tokens=self.max_tokens, cost=self.max_cost)

    @property
    def _batch(self) -> BatchOptions | None:
        if not self.batch:
            return None
        return BatchOptions(wait=self.batch_wait, sentinel=self.sentinel, only=self.batch_only, items=self.batch_items)

    @property
    def run_options(self) -> RunOptions:
        """Return the settings of a new run."""
        return RunOptions(
            mode=self.mode,
            refresh=self.refresh,
            new_name=self.name,
            sign=self.sign,
            caps=self.caps,
            keep_going=self.keep_going,
            accept_repeats=self.accept_repeats,
            accept_unfit=self.accept_unfit,
            longest_wait=self.max_wait,
            batch=self._batch,
            workers=worker_options(self.engine, self.workers, self.devices, self.address),
        )

    def __post_init__(self) -> None:
        """Refuse an unknown mode, a budget that is not above 0, and workers that cannot be."""
        _ = self.caps
        worker_options(self.engine, self.workers, self.devices, self.address)
        if self.mode not in (modes := get_args(Mode)):
            raise UnknownNameError("mode", str(self.mode), modes)
