"""Whether the process that left a row in the store still runs; pure of tables."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from . import server

LOG = logging.getLogger(__name__)
LEASE_SECONDS = 20.0
"""Seconds without an update after which a process of another machine is considered dead."""
LOOK_SECONDS = 0.2
"""Seconds between two looks at a process of which it is not known yet whether it lives."""


class _Sign(NamedTuple):
    """A sign of life."""

    seen: float
    since: float
    """When this process first saw it, as `elapsed` counts."""
    changed: bool
    """Whether it is not the first."""


_signs: dict[Hashable, _Sign] = {}
_ELAPSED: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def host() -> str:
    """Return an identifier of this machine and boot, within which process ids are unique."""
    parts = [platform.node()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        pass
    return " ".join(parts)


def is_elsewhere(other: str) -> bool:
    """Return whether `other` is surely another machine: no other container, and no earlier boot, of this one."""
    ours, theirs = host().split(), other.split()
    return ours[0] != theirs[0] and (ours[1:2] != theirs[1:2] or not ours[1:2])


def runs(pid: int) -> bool:
    """Return whether a process of this machine exists; True where that cannot be asked."""
    return born(pid) is not None


def born(pid: int) -> str | None:
    """Return when a process of this machine started, as the system writes it.

    None: there is no such process, or only its remains; "": the system does not say when.
    """
    if os.name != "posix":
        return ""  # here the call below would end the process
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    try:
        if Path("/proc/self/stat").exists():
            # The name of the program may contain spaces and brackets.
            state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return None if state in "ZX" else fields[18]
        asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return asked.stdout.strip()
    except (OSError, ValueError, IndexError):
        return ""


def elapsed() -> float:
    """Return the seconds since a fixed time in the past, those in which the machine slept included."""
    return time.clock_gettime(_ELAPSED) if _ELAPSED is not None else time.monotonic()


def horizon(connection: sa.Connection) -> float | None:
    """Return the time before which a last sign of life is too old: a server's; None in a file, which has no clock."""
    return None if connection.dialect.name == "sqlite" else server.horizon(connection, LEASE_SECONDS)


def lease(since: float | None, name: Hashable, seen: float) -> bool | None:
    """Return whether a process has reported within the lease; None: it is not known yet.

    The clocks of processes that share a file need not agree, so there a sign of life is fresh from when this process
    first sees it: None until it changes for the first time, or until the lease has passed.

    Args:
        since: the horizon of the store.
        name: what tells this process from all others.
        seen: its last sign of life, as the store has it.
    """
    if since is not None:
        return seen >= since
    sign = _signs.setdefault(name, _Sign(seen, elapsed(), False))
    if sign.seen != seen:
        sign = _signs[name] = _Sign(seen, elapsed(), True)
    if elapsed() - sign.since > LEASE_SECONDS:
        return False
    return True if sign.changed else None


def until_known(unknown: Callable[[], str | None]) -> None:
    """Wait until it is known which processes live, for no longer than a lease, and say so if that takes a moment.

    Args:
        unknown: returns what is not known yet, in words. No transaction may be open after it: nobody could report.
    """
    announced = False
    while (question := unknown()) is not None:
        if not announced:
            LOG.warning("looking for up to %.0f s whether %s", LEASE_SECONDS, question)
            announced = True
        time.sleep(LOOK_SECONDS)


def clock(connection: sa.Connection) -> float:
    """Return the time: a server's, because the clocks of the machines that share it may differ."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one())
