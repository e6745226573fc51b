"""Processes that run the study `count` against an API that counts, and a parent that may kill them.

Run as a script, this module is a nursery: it imports once, and forks a process of its own for every line it reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fakes
import msgspec

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.contracts.adapter import Identity, Limits, ModelAdapter, RemoteEndpoint
from prejudge.core.contracts.canonical import encode, identity_digest, request_key
from prejudge.core.contracts.errors import PrejudgeError, TransientError
from prejudge.core.contracts.records import Generate, Generation
from prejudge.core.engine.progress import Counts
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, claims, processes

IDENTITY = Identity(adapter="counting", version="1", model="fake")


def key_of(number: int) -> bytes:
    """Return the key of a trial of the study `count`."""
    return request_key(identity_digest(IDENTITY), encode(fakes.ask(f"q {number}")))


PATIENCE = 240.0
"""Seconds after which a test gives up; other work may keep all processors busy."""


def wait_for(condition, pause=0.02):
    """Return what the condition gives, once that is true."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(pause)
    return found


def stop(pid: int) -> None:
    """Send SIGSTOP, and return when no thread runs any more: a busy machine delivers a signal late."""

    def stopped() -> bool:
        try:
            stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
        except (FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            return False
        return all(stat.rpartition(")")[2].split()[0] in "TZ" for stat in stats)

    os.kill(pid, signal.SIGSTOP)
    wait_for(stopped, 0.005)


class CountingApi:
    """An HTTP server that answers after some milliseconds and remembers all it was asked."""

    def __init__(self, seconds: tuple[float, float] = (0.002, 0.01)) -> None:
        self._lock, self._asked, self._slow = threading.Lock(), Counter[int](), random.Random(4)
        self._seconds, self._busy, self._answering, self.most = seconds, 0, 0, 0
        self._callers: dict[int, list[float]] = {}
        self._expected, self._open = 0, threading.Event()
        self._open.set()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                caller, _, rest = self.path[1:].partition("/")
                sent, _, number = rest.partition("/")
                answer = api.answer(int(number), int(caller), float(sent)) if number.isdigit() else b""
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """Stay silent about callers that were killed."""

            def process_request(self, *call: Any) -> None:
                with api._lock:
                    api._busy += 1
                super().process_request(*call)

            def process_request_thread(self, *call: Any) -> None:
                super().process_request_thread(*call)
                with api._lock:
                    api._busy -= 1

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def answer(self, number: int, caller: int, sent: float) -> bytes:
        """Count a question, and answer it."""
        with self._lock:
            self._asked[number] += 1
            self._answering += 1
            self.most = max(self.most, self._answering)
            wait = self._slow.uniform(*self._seconds)
            self._callers.setdefault(caller, []).append(sent)
            if self._expected and len(self._callers) >= self._expected:
                self._open.set()
        assert self._open.wait(PATIENCE)
        time.sleep(wait)
        with self._lock:
            self._answering -= 1
        return b"a" * (number * 7919 % 23 + 1)

    @property
    def asked(self) -> Counter[int]:
        """Return how often each question was asked."""
        with self._lock:
            return self._asked.copy()

    def hold(self, callers: int = 0) -> None:
        """Answer nothing before so many processes have asked; 0: before `go_on`."""
        self._expected = callers
        self._open.clear()

    def go_on(self) -> None:
        """Answer what waits, and all that comes."""
        self._open.set()

    @property
    def sent(self) -> list[float]:
        """Return when each question was sent, on the clock of the machine."""
        with self._lock:
            return sorted(moment for moments in self._callers.values() for moment in moments)

    def settle(self) -> None:
        """Wait until all that was sent so far has been counted, also by callers that are dead."""
        # Connections are accepted in the order they were made: once this one is answered, earlier ones are at work.
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/settled", timeout=PATIENCE) as answer:
            answer.read()
        deadline = time.monotonic() + PATIENCE
        while self._busy:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def __enter__(self) -> CountingApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class ApiOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API is."""

    model: str = "fake"
    port: int
    concurrency: int = 8
    shared: bool = False
    """Whether it is an endpoint, whose limits processes share."""
    requests_per_minute: float | None = None


class ApiModel(ModelAdapter):
    """Asks the API, one connection per question."""

    options = ApiOptions

    def __init__(self, options: ApiOptions) -> None:
        self.identity = IDENTITY
        self.limits = Limits(concurrency=options.concurrency, requests_per_minute=options.requests_per_minute)
        self.endpoint = RemoteEndpoint(name=f"api {options.port}") if options.shared else None
        self._port = options.port

    async def generate(self, request: Generate) -> Generation:
        """Ask one question."""
        sent = time.monotonic()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                number = fakes.text_of(request).split()[1]
                writer.write(
                    f"GET /{os.getpid()}/{sent}/{number} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
                )
                _, _, answer = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
        except OSError as error:
            raise TransientError(str(error)) from None
        return Generation(text=answer.decode())


class Reporting:
    """Writes how many answers were counted, one line per news; what is written survives the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def begin(self, run: str) -> None:
        """Ignore the run's name."""

    def stage(self, name: str, role: str, total: int) -> None:
        """Ignore the start of a stage."""

    def update(self, counts: Counts) -> None:
        """Receive the counts."""
        os.write(self._file, f"{counts.asked}\n".encode())


def counting_catalogue() -> Any:
    """Return the catalogue of fakes with `ApiModel` for its adapter."""
    catalogue = fakes.fake_catalogue()
    catalogue.plugins.offers["adapter"]["fake"] = Registered(Plugged("fake", ApiModel), "tests")
    return catalogue


def run(job: dict[str, Any]) -> None:
    """Run the study of a job: `store`, `report`, `n`, `api` (settings of the model), perhaps `name` and `lease`.

    `together`: ask all from the start, not the first trials by themselves, which two processes share among them.
    `ahead`: seconds by which the clock of the process is wrong; `host`: the machine that it takes itself to be on.
    """
    if ahead := job.get("ahead"):
        right = time.time
        time.time = lambda: right() + ahead
    if machine := job.get("host"):
        processes.host = claims.host = lambda: machine
    if seconds := job.get("lease"):
        processes.LEASE_SECONDS, claims.BEAT_SECONDS = seconds, seconds / 4
    catalogue = counting_catalogue()
    catalogue.registry.models["fake"].settings.update(job["api"])
    study = catalogue.study("count", {"subject": "fake"}, {"n": job["n"]})
    with Store(job["store"]) as store:
        options = RunOptions(name=job.get("name"), accept_unfit=job.get("together", False))
        asyncio.run(execute(catalogue, study, store, options, Reporting(job["report"])))


class Nursery:
    """A process that forks children which run jobs; each is a process of its own, with its own store open."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._jobs = folder, 0
        calm = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in (os.environ | calm).items() if name != "PYTHONSAFEPATH"},  # finds fakes
        )
        assert self._process.stdout is not None and self._process.stdin is not None
        self._out, self._in = self._process.stdout, self._process.stdin

    def start(self, **job: Any) -> Child:
        """Start a job."""
        self._jobs += 1
        report = self._folder / f"report-{self._jobs}.txt"
        self._in.write(json.dumps(job | {"report": str(report)}) + "\n")
        self._in.flush()
        return Child(int(self._out.readline()), report)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        self._process.wait(240)
        self._out.close()


class Child:
    """A process that runs a study."""

    def __init__(self, pid: int, report: Path) -> None:
        self.pid, self._report = pid, report
        self._end = report.with_suffix(".end")

    @property
    def counted(self) -> int:
        """Return how many answers it has counted as done."""
        lines = self._report.read_text().split("\n")[:-1] if self._report.exists() else []
        return int(lines[-1]) if lines else 0

    @property
    def problem(self) -> str | None:
        """Return why it ended, "" if all was well, or None while it runs."""
        return self._end.read_text() if self._end.exists() else None

    def wait(self, seconds: float = PATIENCE) -> str:
        """Wait for its end and return why it ended."""
        deadline = time.monotonic() + seconds
        while (problem := self.problem) is None:
            assert time.monotonic() < deadline, "the process does not end"
            time.sleep(0.002)
        return problem


def _end(report: str, problem: str) -> None:
    path = Path(report).with_suffix(".end")
    path.with_suffix(".tmp").write_text(problem)
    path.with_suffix(".tmp").rename(path)


def _live(job: dict[str, Any]) -> str:
    try:
        run(job)
    except PrejudgeError as error:
        return f"{error.code}: {error}"
    except BaseException as error:
        return repr(error)
    return ""


def _nurse(lines: Iterable[str]) -> None:
    threads = []
    for line in lines:
        job = json.loads(line)
        if (pid := os.fork()) == 0:
            _end(job["report"], _live(job))
            os._exit(0)
        print(pid, flush=True)
        thread = threading.Thread(target=_reap_one, args=(pid, job["report"]))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()


def _reap_one(pid: int, report: str) -> None:
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        _end(report, f"signal {os.WTERMSIG(status)}")


if __name__ == "__main__":
    _nurse(sys.stdin)
