"""Whether Ray starts on this machine, by itself: it gives its own processes 30 s, too few where others keep it busy."""

import contextlib
import gc
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import cache

import pytest

from prejudge.core.contracts.errors import UsageError

ALONE = (
    "import ray; ray.init(address='local', num_cpus=1, include_dashboard=False, object_store_memory=80 << 20); "
    "ray.shutdown()"
)


@cache
def why_not():
    """Return why Ray does not start; empty if it does."""
    said = ""
    for _ in range(2):
        try:
            done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=150)
        except subprocess.TimeoutExpired:
            said = "it takes over 150 s"
            continue
        if done.returncode == 0:
            return ""
        said = (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return said


def need_ray():
    """Skip the test where Ray is not installed, or does not start without this package either."""
    ray = pytest.importorskip("ray", reason="needs the extra ray (pip install 'prejudge[ray]')")
    if why := why_not():
        pytest.skip(f"Ray does not start on this machine: {why}")
    return ray


@contextlib.contextmanager
def time_for_ray() -> Iterator[None]:
    """Skip the test where Ray's own server does not answer in its time: other tests keep the machine busy."""
    try:
        yield
    except (UsageError, AssertionError) as error:
        cause = error if isinstance(error, UsageError) else error.__cause__
        if getattr(cause, "code", "") != "workers.start" or "timed out" not in str(cause).casefold():
            raise
        busy = str(cause)
    else:
        busy = ""
    collect_servers()
    if busy:
        pytest.skip(busy)


def collect_servers() -> None:
    """Let destructors end what Ray leaves to them: the records of its servers, some of which still run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
