"""Why a run ends before all is asked: every reason with its sentences, and the state and exit code that it ends with.

Who detects a reason (the failure detector, the limiter of an endpoint, the canary, the batches of a provider) takes
it from here. All answers are stored, and a run that ended so is resumed; only its first reason counts. A run may also
end as decided (`Decider`): its stage is asked part by part, and somebody looks at the answers after each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from ..contracts import Stage, Trial
from ..contracts.errors import BudgetError, HaltedError, PendingError, UnfitError

if TYPE_CHECKING:
    import polars as pl

FAILED = 2
"""Exit code of an error."""
SPENT = 3
"""Exit code of a run that ended because its budget was spent."""
PENDING = 4
"""Exit code of a run that was left while its batches are with the provider."""
UNFIT = 5
"""Exit code of a run that was stopped because the model cannot do its task."""
ASK_ON = "To ask the rest all the same: --keep-going."


class RunEnd(NamedTuple):
    """How a run ends."""

    state: str
    """In the store."""
    exit_code: int
    """Of the command that asked."""


FINISHED = RunEnd("finished", 0)
ENDS: dict[type[BaseException], RunEnd] = {
    BudgetError: RunEnd("interrupted", SPENT),
    UnfitError: RunEnd("interrupted", UNFIT),
    PendingError: RunEnd("interrupted", PENDING),
    HaltedError: RunEnd("interrupted", FAILED),
    asyncio.CancelledError: RunEnd("interrupted", FAILED),
    KeyboardInterrupt: RunEnd("interrupted", FAILED),
}
"""Ends after which a run is resumed; any other error is a failure."""


def end_of(error: BaseException | None) -> RunEnd:
    """Return how a run ends that an error ended; None: nothing did."""
    if error is None:
        return FINISHED
    return next((end for kind, end in ENDS.items() if isinstance(error, kind)), RunEnd("failed", FAILED))


class Stop(NamedTuple):
    """A reason to ask nothing more; braces in its sentences are for values."""

    code: str
    reason: str
    """What happened."""
    remedy: str = ""
    """What the user can do, and how the run goes on."""

    def error(self, **values: object) -> HaltedError:
        """Return the error that says so."""
        kind = UnfitError if self.code == "run.unfit" else HaltedError
        sentences = (sentence.format(**values) for sentence in (self.reason, self.remedy) if sentence)
        return kind(" ".join(sentences), code=self.code)


# What the requests of a stage share.
SEED_REFUSED = Stop(code="endpoint.seed", reason="the run was stopped: {failure}")
ALL_FAILING = Stop(
    code="run.all-failing",
    reason="the run was stopped: {count} prompts in a row failed with the same error. {examples}",
    remedy=f"Mend what the error names. {ASK_ON}",
)
ALL_EMPTY = Stop(
    code="run.all-empty",
    reason="the run was stopped: {count} prompts in a row got an answer without text that ended at its limit of "
    "tokens. {examples}",
    remedy="Raise max_tokens; a model that reasons needs room for that too (answer_room in its entry). " + ASK_ON,
)
CANNOT = Stop(
    code="run.unfit",
    reason="the run was stopped, as the model cannot do the task of the stage {stage!r}: of {asked} questions, "
    "{answered} got an answer (99 % interval of the share: {low} to {high}). {shares}. {examples}",
    remedy="{remedies} To ask all the same: --accept-unfit.",
)
INCOMPLETE = Stop(
    code="run.incomplete",
    reason="the run is not complete: {recorded:,} of {planned} of the stage {stage!r} are recorded.",
    remedy="Where resuming it changes nothing, the probe {probe!r} counts other trials than it gives.",
)

# The endpoint.
NEVER_ANSWERED = Stop(
    code="model.silent",
    reason="the model has answered none of {count} requests, each asked several times. The last failure: {failure}",
    remedy="Fix the cause, then resume the run.",
)
_NO_ANSWER = "the endpoint has not answered for {seconds:,.0f} s. The last failure: {failure}"
UNAVAILABLE = Stop(code="model.silent", reason=_NO_ANSWER, remedy="Resume the run when it answers again.")
DOWN = Stop(code="endpoint.down", reason=_NO_ANSWER, remedy="Resume the run when it answers again.")
ONLY_LIMITED = Stop(
    code="endpoint.limited",
    reason="the endpoint has answered nothing but 429 (too many requests) for {seconds:,.0f} s. The last one: "
    "{failure}",
    remedy="Resume the run later, or allow a longer wait (--max-wait).",
)
LONG_WAIT = Stop(
    code="endpoint.wait",
    reason="the endpoint asks to wait {seconds:,.0f} s, after a wait of {longest:,.0f} s at its request.",
    remedy="Resume the run later, or allow a longer wait (--max-wait).",
)
QUOTA = Stop(
    code="endpoint.quota",
    reason="the quota of a day is used up: {failure}",
    remedy="Resume the run {until}; what was answered is stored.",
)
REPEATS = Stop(
    code="endpoint.repeats",
    reason="the endpoint repeats itself: {draws}, and so did those to another such question. Either it ignores the "
    "temperature, or a cache in front of it answers repeats; several samples of a prompt would be one.",
    remedy="Turn the cache off, or take a server that samples (`prejudge doctor MODEL --study STUDY` asks again). To "
    "ask all the same, each prompt then counting as one draw: --accept-repeats.",
)

# Batches.
BATCH_HOLDS = Stop(
    code="batch.holds",
    reason="{holders}",
    remedy="To use its answers, run with --batch, or resume that run; to ask without it, cancel it with prejudge cache "
    "batches --cancel.",
)
BATCH_CANCELLED = Stop(
    code="batch.cancelled",
    reason="{requests} were not asked because their batch was cancelled. What was answered before is stored.",
)
BATCHES_FAILING = Stop(
    code="run.all-failing",
    reason="all of {requests} in batches failed. The last: {failure}",
    remedy=ASK_ON,
)
FIRST_CALLS_FAILING = Stop(
    code="run.all-failing",
    reason="nothing was handed in: all of {count} requests that were asked first, by calls of their own, failed. The "
    "last: {failure}",
    remedy="To hand in all the same: --keep-going.",
)
FIRST_CALLS_UNREADABLE = Stop(
    code="run.all-unreadable",
    reason="nothing was handed in: none of {count} answers that were asked for first could be read, such as "
    "{example!r}.",
    remedy="To hand in all the same: --keep-going.",
)
BATCH_LARGE = Stop(
    code="batch.large",
    reason="one request alone has {size:,} bytes, and a batch of this provider may have {most:,}.",
    remedy="Ask without --batch.",
)
BATCH_ORPHAN = Stop(
    code="batch.orphan",
    reason="the provider has {count} batches that may be the batch {batch} of this store, and keeps no mark to tell "
    "them apart: {names}.",
    remedy="Cancel them there, then free its requests with prejudge cache batches --forget {batch}, and resume.",
)
BATCH_OVERDUE = Stop(
    code="batch.overdue",
    reason="the batch {name} has not ended within {hours:g} hours.",
    remedy="Cancel it with prejudge cache batches --cancel {batch}, then resume.",
)
BATCH_LOST = Stop(
    code="batch.lost",
    reason="the provider no longer knows the batch {name} of {requests}. They may have been charged.",
    remedy="To ask them again, resume.",
)
BATCH_REFUSED = Stop(
    code="batch.refused",
    reason="the provider refuses a batch of {requests}, and charges nothing: {problem}",
    remedy="Mend what it names, then resume; or ask without --batch.",
)
BATCH_FOREIGN = Stop(
    code="batch.foreign",
    reason="the results of the batch {name} are of other requests. Is it of this store?",
    remedy="Free its requests with prejudge cache batches --forget {batch}, then resume.",
)
BATCH_INCOMPLETE = Stop(
    code="batch.incomplete",
    reason="the results of the batch {name} are not whole: {missing} of {lines:,} are missing.",
    remedy="What came is stored; resume to read them again, or give them up with prejudge cache batches --forget "
    "{batch}.",
)
BATCH_TAKEN = Stop(
    code="batch.taken",
    reason="another process has taken over the batch {batch} while this one was halted.",
    remedy="Let it finish.",
)
PROVIDER_FAILING = Stop(
    code="batch.provider",
    reason="{action} failed: {failure}",
    remedy="The batches stay with the provider, and nothing is asked twice.",
)


class Look(msgspec.Struct, frozen=True):
    """What a look found."""

    units: int
    """Units that were asked by then."""
    trials: int
    """Trials."""
    state: str
    """`pass`, `fail` or `not enough data`."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a run may end before all is asked, and what was found; part of its manifest."""

    policy: str
    """The rules that decide, as TOML."""
    unit: str
    """The factor whose levels are asked whole, in random order."""
    sample: bool
    """Whether the study declares its levels to be a sample of others."""
    level: float
    """Of the confidence sequences."""
    seed: int
    """Of the order."""
    units: int
    """Levels of the whole study."""
    trials: int
    """Its trials."""
    looks: tuple[Look, ...] = ()


class Decider(Protocol):
    """Says what of a stage is asked next, and whether the run may end."""

    @property
    def ending(self) -> Ending:
        """Return the record so far."""
        ...

    def parts(self, stage: Stage, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Iterator[Trial]]:
        """Yield the trials that are asked before each look."""
        ...

    def decided(self, observations: Any, trials: int) -> bool:
        """Look at the observations of all trials asked so far, and return whether the run may end."""
        ...
