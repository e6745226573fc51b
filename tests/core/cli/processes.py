"""`Commands`: real processes of the command line, which may be killed, for a tenth of the processor time.

Run as a script, this module imports the package once, and forks a process for every command that it reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    """The exit code; of a killed command the number of the signal, negative."""
    said: bytes
    """Standard output and standard error, or the latter alone."""
    seconds: float


class Command:
    """A command that runs."""

    def __init__(self, pid: int, said: Path) -> None:
        self.pid, self._said, self._end = pid, said, said.with_suffix(".end")
        self._began = time.monotonic()

    @property
    def running(self) -> bool:
        """Return whether it runs."""
        return not self._end.exists()

    def kill(self, how: int = signal.SIGKILL) -> None:
        """Send it a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)

    def wait(self, seconds: float = 240.0) -> Ended:
        """Wait for its end; one that does not end in time is killed."""
        deadline = self._began + seconds
        while self.running:
            if time.monotonic() > deadline:
                self.kill()
            time.sleep(0.005)
        said = self._said.read_bytes() if self._said.exists() else b""  # killed before it could say anything
        return Ended(int(self._end.read_text()), said, time.monotonic() - self._began)


class Commands:
    """Starts commands; use it in a `with`."""

    def __init__(self, logs: Path) -> None:
        self._logs, self._count = logs, 0
        logs.mkdir(exist_ok=True)

    def start(
        self, folder: Path, *words: str, env: dict[str, str] | None = None, figures: bool = False, mute: bool = False
    ) -> Command:
        """Start `prejudge WORDS` in a folder; without figures, those of the report are blank.

        A mute command's standard output is lost.
        """
        self._count += 1
        said = self._logs / f"{self._count}.said"
        job = {"folder": str(folder), "words": words, "env": env or {}, "said": str(said)}
        job |= {"figures": figures, "mute": mute}
        self._in.write(json.dumps(job) + "\n")
        self._in.flush()
        return Command(int(self._out.readline()), said)

    def run(self, folder: Path, *words: str, **how: Any) -> Ended:
        """Run `prejudge WORDS` to its end."""
        return self.start(folder, *words, **how).wait()

    def __enter__(self) -> Commands:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_calm(os.environ)
        )
        assert self._process.stdout is not None and self._process.stdin is not None
        self._out, self._in = self._process.stdout, self._process.stdin
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()
        self._process.wait(240)
        self._out.close()


def _calm(environment: Any) -> dict[str, str]:
    """Leave out what would decide about models, and threads, which cannot be forked."""
    kept = {name: value for name, value in environment.items() if not name.startswith("OPENAI_")}
    return kept | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


def _be_command(job: dict[str, Any]) -> None:
    from prejudge.core.cli.main import main

    said = os.open(job["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_WRONLY) if job["mute"] else said, 1)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(job["env"])
    os.chdir(job["folder"])
    sys.argv = ["prejudge", *job["words"]]
    if not job["figures"]:
        from matplotlib.figure import Figure

        Figure.savefig = _blank  # type: ignore[method-assign]
    main()


def _blank(figure: Any, file: Any, **_: Any) -> None:
    Path(file).write_bytes(b"<svg/>") if isinstance(file, str | Path) else file.write(b"<svg/>")


def _fork(job: dict[str, Any]) -> int:
    if (pid := os.fork()) != 0:
        return pid
    code = 1
    try:
        _be_command(job)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _reap(pid: int, said: str) -> None:
    _, status = os.waitpid(pid, 0)
    end = Path(said).with_suffix(".end")
    end.with_suffix(".tmp").write_text(str(os.waitstatus_to_exitcode(status)))
    end.with_suffix(".tmp").rename(end)


def _serve(lines: Iterable[str]) -> None:
    from importlib import import_module

    for name in ("run", "score", "cache"):
        import_module(f"prejudge.core.cli.{name}")
    for name in ("aiohttp", "openai", "matplotlib.figure", "scipy.stats"):
        with contextlib.suppress(ImportError):
            import_module(name)
    reapers = []
    for line in lines:
        job = json.loads(line)
        pid = _fork(job)
        print(pid, flush=True)
        reapers.append(threading.Thread(target=_reap, args=(pid, job["said"])))
        reapers[-1].start()
    for reaper in reapers:
        reaper.join()


if __name__ == "__main__":
    _serve(sys.stdin)
