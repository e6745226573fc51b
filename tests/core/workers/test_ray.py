"""Workers of Ray: actors on a real cluster of this machine, behind the scheduler of one run."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from children import wait_for
from click.testing import CliRunner

import prejudge
from prejudge import Settings, observe
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import BudgetError, MissingExtraError, PrejudgeError, UsageError
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, list_runs
from prejudge.core.workers import cluster as clusters
from prejudge.core.workers import member as members
from prejudge.core.workers import supervisor as supervisors
from prejudge.core.workers.cluster import Cluster
from prejudge.core.workers.options import WorkerOptions

from ...ray_here import need_ray, time_for_ray
from .studied import asked, exceeded

BATCH, PER_CELL = 8, 10
TRIALS = 36 * PER_CELL
REGISTRY = f"""[models.slow]
adapter = "simulated"
settings = {{ latency_seconds = 0.1, batch_items = {BATCH}, concurrency = 1, strength = 1.0 }}
"""


@pytest.fixture(scope="module")
def cluster():
    """A cluster as a run without an address starts it; the runs of these tests join it."""
    ray = need_ray()
    engine, before = Cluster(), signal.getsignal(signal.SIGTERM)
    with time_for_ray():
        places = asyncio.run(engine.open(WorkerOptions(engine="ray", number=2)))
    assert len(places) == 2 and signal.getsignal(signal.SIGTERM) is before
    try:
        yield ray
    finally:
        asyncio.run(engine.aclose())
        assert not ray.is_initialized()
        wait_for(lambda: not actors())


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "registry.toml").write_text(REGISTRY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def actors():
    """Return the processes of actors by their driver's work: Ray names them after the class."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if line.read_bytes().startswith(b"ray::Actor"):
                found.append(int(line.parent.name))
    return found


def results(settings):
    """Return the observations, the estimates, and the counts of the newest run."""
    with Store(settings.store) as store:
        (record,) = manifest_of(get_run(store, "latest")).stages.values()
        estimates = score(Catalogue.load("registry.toml"), store, "latest").estimates
    return observe("latest", settings).stacked, estimates, record.counts


def equal(one, other):
    return one[0].equals(other[0]) and one[1] == other[1] and len(one[1]) > 0


@pytest.mark.parametrize("model", ["slow", "reference-masked-biased"])
def test_one_process_local_workers_and_ray_give_the_same_bits(cluster, place, model):
    found = []
    for engine in (None, "local", "ray"):
        settings = Settings(store=f"{engine}.db", engine=engine, workers=engine and 2)
        asked(settings, model, per_cell=2, axes=["height"])
        found.append(results(settings))
    assert equal(found[0], found[1]) and equal(found[0], found[2])
    assert len(found[0][0]) == found[2][2]["asked"] > BATCH


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_an_image_travels_once_to_each_worker_at_most(cluster, place, monkeypatch, engine):
    """Each image is in four questions or more: the driver is asked for it by each worker once, or not at all."""
    served = Counter()

    def call(services, need):
        served[need.service, need.text] += 1
        return answer(services, need)

    answer = supervisors._call
    monkeypatch.setattr(supervisors, "_call", call)
    words = ["run", "attractiveness", "--model", "simulated-biased", "--quick", "--workers", "2", "--engine", engine]
    done = CliRunner().invoke(cli, [*words, "-q", "--leave-out", "examples"], standalone_mode=False)
    assert done.return_value == 0, done.output
    with Store("prejudge.db", writable=False) as store:
        (record,) = manifest_of(get_run(store, "latest")).stages.values()
        with store.engine.connect() as connection:
            shown = set(connection.exec_driver_sql("SELECT sha256 FROM blob").scalars())
    assert {service for service, _ in served} == {"blobs"} and shown.issuperset(name for _, name in served)
    assert record.counts["asked"] == 640 >= 4 * len(served) > 0
    assert max(served.values()) <= 2


def test_killed_and_halted_actors_cost_what_was_in_flight_and_change_no_answer(cluster, place, monkeypatch):
    monkeypatch.setattr(members, "HALTED_SECONDS", 8.0)
    alone, together = Settings(store="alone.db"), Settings(store="together.db", engine="ray", workers=2)
    asked(alone)
    sent, over = [], threading.Event()

    def disturb():
        for number, what in enumerate((signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL)):
            known = stored("together.db")
            while not over.is_set() and (stored("together.db") < known + 2 * BATCH or not ready()):
                time.sleep(0.02)
            if not over.is_set():
                os.kill(ready()[number % len(ready())], what)
                sent.append(what)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        asked(together)
    finally:
        over.set()
        thread.join()
    one, other = results(alone), results(together)
    assert len(sent) == 3 and equal(one, other)
    counts = other[2]
    assert counts["asked"] == TRIALS and counts["failed"] == 0 and 0 < counts["retried"] <= 3 * BATCH
    assert wait_for(lambda: not actors()), "the halted one is gone, too"


def ready():
    return [pid for pid in actors() if "T" not in state(pid)]


def state(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "T"


def stored(store):
    if not Path(store).exists():
        return 0
    with contextlib.suppress(PrejudgeError), Store(store, writable=False) as opened:
        with opened.engine.connect() as connection:
            return connection.exec_driver_sql("SELECT count(*) FROM exchange").scalar_one()
    return 0


def test_the_budget_is_one_and_another_driver_goes_on_by_the_address(cluster, place):
    settings = Settings(engine="ray", workers=2, max_requests=50)
    with pytest.raises(BudgetError):
        asked(settings)
    assert 50 - BATCH <= (known := stored(settings.store)) <= 50
    address = cluster.get_runtime_context().gcs_address
    words = ["resume", "-q", "--engine", "ray", "--address", address, "--workers", "2"]
    with subprocess.Popen([sys.executable, "-m", "prejudge.core.cli", *words], stderr=subprocess.PIPE) as driver:
        try:
            wait_for(lambda: stored(settings.store) > known or driver.poll() is not None)
            assert driver.poll() is None and len(actors()) == 2, driver.stderr.read()
        finally:
            driver.kill()
    wait_for(lambda: not actors())
    with Store(settings.store, writable=False) as store:
        assert [run.state for run in list_runs(store)] != ["finished"]


def test_answers_of_uneven_length_exceed_a_budget_by_one_batch(cluster, place, monkeypatch):
    monkeypatch.syspath_prepend(place)
    exceeded({"max_tokens": 6000}, BATCH, "ray", 2)


def test_a_cluster_without_gpus_is_refused(cluster, place):
    if cluster.cluster_resources().get("GPU"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(UsageError) as caught:
        asked(Settings(engine="ray", devices="all"))
    assert caught.value.code == "workers.devices" and "\n" not in str(caught.value)


@pytest.fixture
def silent():
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed(silent):
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["closed", "silent", "words"])
def test_an_address_that_does_not_answer_is_one_line(place, monkeypatch, request, kind):
    ray = pytest.importorskip("ray", reason="needs the extra ray (pip install 'prejudge[ray]')")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # another test's cluster may be there
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    if kind == "silent":
        monkeypatch.setattr(ray, "init", lambda **_: time.sleep(5))
    address = "ray://head" if kind == "words" else request.getfixturevalue(kind)
    command = ["run", "bistereo-pairs", "--model", "slow", "--engine", "ray", "--workers", "2", "--address", address]
    found = CliRunner().invoke(cli, command, standalone_mode=False)
    assert isinstance(found.exception, UsageError) and found.exception.code == "workers.address"
    assert "\n" not in str(found.exception) and address in str(found.exception)


def test_an_engine_that_is_not_installed_is_one_line(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        asked(Settings(engine="ray", workers=2))
    assert caught.value.fields["extra"] == "ray" and stored("prejudge.db") == 0


def test_one_module_imports_ray_and_only_when_it_is_used():
    root = Path(prejudge.__file__).parent
    found = {}
    for folder in ("core", "adapters", "metrics", "probes", "testing"):
        for file in (root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                if any(name.partition(".")[0] == "ray" for name in names):
                    found.setdefault(file.relative_to(root).as_posix(), []).append(node.col_offset)
    assert list(found) == ["core/workers/cluster.py"] and all(found["core/workers/cluster.py"])
