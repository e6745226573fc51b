"""Where the workers of one machine run: a GPU each, or a share of the processors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

import msgspec

from ..contracts.errors import UsageError
from .options import ALL, WorkerOptions

VISIBLE = "CUDA_VISIBLE_DEVICES"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
QUERY = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
QUERY_SECONDS = 20


class Place(msgspec.Struct, frozen=True):
    """Where a worker runs."""

    number: int
    """Of the worker, from 0 on."""
    environment: dict[str, str]
    """What differs from the driver's environment."""


def find_places(options: WorkerOptions, environment: Mapping[str, str] = os.environ) -> list[Place]:
    """Return a place for each worker.

    Raises:
        UsageError: this machine has fewer GPUs than asked for, or none and no number of workers is given.
    """
    there = visible_devices(environment)
    if options.devices is None and not there:
        if options.number is None:
            raise UsageError(
                "this machine has no GPU that can be seen. Say how many processes are to share its processors: "
                "--workers N.",
                code="workers.devices",
            )
        # More threads than processors make every worker slower; a number that the user has set stays.
        share = str(max(1, (os.cpu_count() or 1) // options.number))
        threads = {name: share for name in THREADS if name not in environment}
        return [Place(number, threads) for number in range(options.number)]
    chosen = options.chosen
    if chosen is None:
        most = len(there) if options.devices is not None or options.number is None else options.number
        chosen = tuple(range(most)) or (0,)
    if missing := [one for one in chosen if one >= len(there)]:
        asked = ALL if options.devices == ALL else ", ".join(map(str, chosen))
        have = f"GPUs 0 to {len(there) - 1}" if there else "no GPU that can be seen"
        raise UsageError(
            f"GPUs {asked} were asked for, and this machine has {have}. Name fewer; --devices 0,0 has two workers "
            "share one.",
            code="workers.devices",
            missing=tuple(missing),
        )
    number = options.number or len(chosen)
    return [Place(one, {VISIBLE: there[chosen[one % len(chosen)]]}) for one in range(number)]


def visible_devices(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names by which CUDA knows the GPUs that this process may use; empty without any, or a driver."""
    if (named := environment.get(VISIBLE)) is not None:
        names = [name.strip() for name in named.split(",")]
        # CUDA reads the list up to the first name that is none.
        ends = [place for place, name in enumerate(names) if name in ("", "-1", "NoDevFiles")]
        return names[: ends[0]] if ends else names
    try:
        found = subprocess.run(QUERY, capture_output=True, text=True, timeout=QUERY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip().isdigit()]
