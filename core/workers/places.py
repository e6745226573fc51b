"""Where workers run: a GPU each, or a share of the processors, of this machine or of a cluster."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from ..contracts.errors import UsageError
from .options import ALL, WorkerOptions

VISIBLE = "CUDA_VISIBLE_DEVICES"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
QUERY = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
QUERY_SECONDS = 20
PARTS = 1000
"""Most parts of a processor that are counted."""


class Place(msgspec.Struct, frozen=True):
    """Where a worker runs."""

    number: int
    """Of the worker, from 0 on."""
    environment: dict[str, str]
    """What differs from the driver's environment."""
    processors: float = 1.0
    """Of a cluster: the share that is kept for this worker."""
    gpus: float = 0.0


class Machine(NamedTuple):
    """What a machine of a cluster has."""

    processors: float
    gpus: float = 0.0


def find_places(options: WorkerOptions, environment: Mapping[str, str] = os.environ) -> list[Place]:
    """Return a place for each worker.

    Raises:
        UsageError: this machine has fewer GPUs than asked for, or none and no number of workers is given.
    """
    there = visible_devices(environment)
    if options.devices is None and not there:
        if options.number is None:
            raise _no_gpu("this machine")
        threads = _threads((os.cpu_count() or 1) // options.number, environment)
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


def find_places_of(
    options: WorkerOptions, machines: Sequence[Machine], environment: Mapping[str, str] = os.environ
) -> list[Place]:
    """Return a place for each worker on the machines of a cluster, which chooses the machine.

    Raises:
        UsageError: the cluster has fewer GPUs than asked for, or none and no number of workers is given.
    """
    gpus = sum(int(machine.gpus) for machine in machines)
    if options.devices is None and not gpus:
        if options.number is None:
            raise _no_gpu("the cluster")
        share = _share(options.number, machines)
        threads = _threads(int(share), environment)
        return [Place(one, threads, processors=share) for one in range(options.number)]
    number = options.number or gpus
    if not gpus or (options.devices is None and number > gpus):
        raise UsageError(
            f"{number or ALL} GPUs were asked for, and the machines of the cluster have {gpus}. Name fewer; with "
            "--devices all, workers share those that there are.",
            code="workers.devices",
        )
    part = 1 / math.ceil(number / gpus)
    return [Place(one, {}, processors=0.0, gpus=part) for one in range(number)]


def _share(number: int, machines: Sequence[Machine]) -> float:
    """Return the most processors that so many workers can each have, on one machine; a part of one if they must."""
    total = sum(machine.processors for machine in machines)
    for share in range(int(total) // number, 0, -1):
        if sum(machine.processors // share for machine in machines) >= number:
            return float(share)
    whole = sum(int(machine.processors) for machine in machines)
    return 1 / math.ceil(number / whole) if PARTS * whole >= number else 0.0


def _threads(share: int, environment: Mapping[str, str]) -> dict[str, str]:
    # More threads than processors make every worker slower; a number that the user has set stays.
    return {name: str(max(1, share)) for name in THREADS if name not in environment}


def _no_gpu(where: str) -> UsageError:
    return UsageError(
        f"{where} has no GPU that can be seen. Say how many processes are to share its processors: --workers N.",
        code="workers.devices",
    )


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
