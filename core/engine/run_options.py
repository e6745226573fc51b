"""Settings of a run."""

from __future__ import annotations

from typing import get_args

import msgspec

from ..contracts.errors import UnknownNameError, UsageError
from ..store.names import run_name
from ..workers.options import WorkerOptions
from .batch.options import BatchOptions
from .budget import Caps
from .ending import Decider
from .reading import Outcome
from .retry import LONGEST_SECONDS
from .scheduler import Mode


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a run."""

    mode: Mode = "use"
    name: str | None = None
    """Name of the run to resume; None: a new run."""
    new_name: str | None = None
    """Name of a new run; None: one of time, study and model."""
    command: str = ""
    """The command line, for the manifest."""
    caps: Caps = Caps()
    """Limits of what may be spent from now on."""
    refresh: tuple[Outcome, ...] = ()
    """Outcomes whose stored answers are asked anew."""
    keep_going: bool = False
    """Whether to go on where all requests meet the same fault."""
    accept_unfit: bool = False
    """Whether to go on where the model answers fewer than half of the questions."""
    longest_wait: float = LONGEST_SECONDS
    """Seconds that an endpoint may ask for; it stops the run if it asks for more again."""
    accept_repeats: bool = False
    """Whether to ask an endpoint that repeats itself where draws must differ; each prompt then counts as one draw."""
    batch: BatchOptions | None = None
    """How to ask in batches of the provider; None: by single calls."""
    workers: WorkerOptions | None = None
    """Processes that ask the models of this machine; None: this one."""
    timing: bool = False
    """Whether the run is only begun to time the study, see `timing.py`: it ends as such a run."""
    sign: str | None = None
    """The SSH key with which the finished run is signed; None: it is not."""
    decider: Decider | None = None
    """Says what is asked before each look, and whether the run may end; None: all is asked."""

    def __post_init__(self) -> None:
        """Refuse a name that cannot be that of a run, and outcomes to refresh in another mode than `use`."""
        if self.new_name is not None and run_name(self.new_name) != self.new_name:
            raise UsageError(
                f"{self.new_name!r} cannot be the name of a run. Use letters, digits, '-', '_' and '.', such as "
                f"{run_name(self.new_name)!r}.",
                code="options.value",
            )
        if unknown := [name for name in self.refresh if name not in get_args(Outcome)]:
            raise UnknownNameError("outcome", unknown[0], get_args(Outcome))
        if self.refresh and self.mode != "use":
            raise UsageError(
                f"the mode {self.mode!r} asks all requests or none, and cannot refresh answers that are "
                f"{' or '.join(self.refresh)}. Leave one of the two out.",
                code="run.refresh",
            )
