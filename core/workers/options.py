"""`WorkerOptions`: which engine starts how many workers, on which devices."""

from __future__ import annotations

import msgspec

from ..contracts.errors import UnknownNameError, UsageError

LOCAL, RAY = ENGINES = ("local", "ray")
"""Engines by name; the first one is the default."""
ALL = "all"


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The workers of a run. They change no answer, and are part of no key."""

    engine: str = ENGINES[0]
    number: int | None = None
    """Number of processes; None: one for each device."""
    devices: str | None = None
    """`all`, or numbers of this machine's GPUs as in `0,1`; a number twice: two workers share that GPU. None: as many
    GPUs as workers, and none on a machine without. Of `ray`: `all`, or None."""
    address: str | None = None
    """Of a cluster of Ray: `HOST:PORT`, or `auto` for the one that runs on this machine. None: that of the variable
    `RAY_ADDRESS`, else a cluster of this machine alone, for this run."""

    def __post_init__(self) -> None:
        """Refuse what no machine can do.

        Raises:
            UnknownNameError: there is no such engine.
            UsageError: fewer than one worker, devices that are no numbers, or what the engine does not have.
        """
        if self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)
        if self.number is not None and self.number < 1:
            raise UsageError(f"{self.number} workers cannot ask anything. Give 1 or more.", code="workers.number")
        if self.chosen is not None and self.engine == RAY:
            raise UsageError(
                f"devices = {self.devices!r} names GPUs of one machine, and Ray gives each worker one of its cluster. "
                "Give their number (--workers N), or --devices all.",
                code="workers.devices",
            )
        if self.address is not None and self.engine != RAY:
            raise UsageError(
                f"the engine {self.engine!r} has no address {self.address!r}: its workers are on this machine. Workers "
                "on several machines need --engine ray.",
                code="workers.address",
            )

    @property
    def chosen(self) -> tuple[int, ...] | None:
        """Return the numbers of the devices; None: all of them, or those that the workers need."""
        if self.devices is None or self.devices.strip() == ALL:
            return None
        parts = [part.strip() for part in self.devices.split(",")]
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise UsageError(
                f"devices = {self.devices!r} is neither 'all' nor numbers of GPUs, such as 0,1.",
                code="workers.devices",
            )
        return tuple(int(part) for part in parts)


def worker_options(
    engine: str | None, number: int | None, devices: str | None, address: str | None = None
) -> WorkerOptions | None:
    """Return the workers that a user asked for; None: the run stays in one process.

    Raises:
        UsageError: what was asked for cannot be.
    """
    if engine is None and number is None and devices is None and address is None:
        return None
    return WorkerOptions(engine=engine or LOCAL, number=number, devices=devices, address=address)
