"""Whether Ray starts on this machine, by itself: it gives its own processes 30 s, too few where others keep it busy."""

import contextlib
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
    from ray._private.services import ConsolePopen

    ConsolePopen.__del__ = forget
    return ray


def forget(server: subprocess.Popen) -> None:
    """Forget a server of Ray's without a warning: Ray ends its servers and never waits for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        subprocess.Popen.__del__(server)


@contextlib.contextmanager
def time_for_ray() -> Iterator[None]:
    """Skip the test where Ray's own server does not answer in its time: other tests keep the machine busy."""
    try:
        yield
    except (UsageError, AssertionError) as error:
        cause = error if isinstance(error, UsageError) else error.__cause__
        if getattr(cause, "code", "") != "workers.start" or "timed out" not in str(cause).casefold():
            raise
        pytest.skip(str(cause))
