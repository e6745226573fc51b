"""Start servers that are not ours as processes of their own, for the tests that need a real one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

LLAMA_CPP = "import runpy; runpy.run_module('llama_cpp.server', run_name='__main__', alter_sys=True)"
LLAMA_CPP_NEEDS = (
    "llama_cpp",
    "gguf",
    "fastapi",
    "uvicorn",
    "sse_starlette",
    "starlette_context",
    "pydantic_settings",
    "torch",
)
TRANSFORMERS = "from transformers.cli.transformers import main; main()"
TRANSFORMERS_NEEDS = ("fastapi", "uvicorn", "torch", "transformers")
PATIENCE = 180
# The pipe closes when the tests end, however they end, and the server goes with them.
_END_WITH_US = (
    "import os, threading; threading.Thread(target=lambda: os._exit(os.read(0, 1) != b''), daemon=True).start(); "
)


def skip_unless(needed: Sequence[str]) -> None:
    """Skip the test where a server's packages are not installed; the extra `dev` has them all."""
    if lacking := [name for name in needed if find_spec(name) is None]:
        pytest.skip(f"the server needs {', '.join(lacking)} (pip install 'prejudge[dev]')")


@contextmanager
def serve_python(code: str, words: Sequence[str], health: str, log: Path) -> Iterator[str]:
    """Run Python code with these arguments and a port; give the address once `health` answers; end the process."""
    process, address = _start_on_free_port(code, words, health, log)
    try:
        yield address
    finally:
        _end(process)


def llama_cpp_words(file: Path, *more: str) -> list[str]:
    """Return the arguments of `llama_cpp.server` for a GGUF file, with the log-probabilities of prompts."""
    words = ["--model", str(file), "--logits_all", "true", "--n_gpu_layers", "0", "--n_threads", "1"]
    return [*words, "--n_ctx", "256", "--verbose", "false", *more]


def _start_on_free_port(code: str, words: Sequence[str], health: str, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    problem = ""
    for _ in range(3):
        port = _free_port()
        process = _launch([sys.executable, "-c", _END_WITH_US + code, *words, "--port", str(port)], log)
        address = f"http://127.0.0.1:{port}"
        try:
            problem = _wait(process, address + health)
        except BaseException:
            _end(process)
            raise
        if not problem:
            return process, address
        _end(process)
        said = log.read_text("utf-8", "replace")
        problem = f"{words} {problem}:\n{said[-3000:]}"
        if "in use" not in said:
            break
    pytest.fail(problem)


def _launch(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    alone = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with log.open("wb") as out:
        return subprocess.Popen(
            [*command, "--host", "127.0.0.1"], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, env=alone
        )


def _wait(process: subprocess.Popen[bytes], url: str) -> str:
    """Wait until the server answers; return what went wrong, or nothing."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        up = _is_up(url)
        # Looked at second: another's server may answer on a port that this one did not get.
        if process.poll() is not None:
            return f"ended with exit code {process.returncode}"
        if up:
            return ""
        time.sleep(0.2)
    return f"did not answer within {PATIENCE} s"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_up(url: str) -> bool:
    # Past any proxy of the environment: it knows no address of this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
