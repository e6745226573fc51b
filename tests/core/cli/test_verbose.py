"""`-v`: what is read, retried and held back, on standard error; quiet by default; never a secret. `NO_COLOR`."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.cli.verbose import LOGGER, hide_secrets, speak
from prejudge.core.contracts.adapter import Limits
from prejudge.core.contracts.errors import RateLimitError, TransientError
from prejudge.core.engine.limiter import Limiter
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.scheduler import Scheduler

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7])[;m]")
RUN = ("run", "crows-pairs", "--model", "simulated-biased", "--data", "pairs.csv", "--set", "crows-pairs.resamples=99")


@pytest.fixture
def logged():
    """Show the log for the time of a test."""
    speak(2)
    yield
    speak(0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "sent_more,sent_less,stereo_antistereo,bias_type\nThe old man,The young man,stereo,age\n"
    (tmp_path / "pairs.csv").write_text(rows)
    return tmp_path


def call(*words: str):
    return CliRunner().invoke(cli, words, standalone_mode=False)


def test_log_names_what_was_read_and_opened(place):
    shown = call("-v", *RUN, "--quiet").stderr
    for part in ("read the built-in registry.toml", "data file pairs.csv, sha256 ", "created with schema", "opened"):
        assert part in shown, shown
    assert "of plugin prejudge" not in shown


def test_twice_v_names_what_was_loaded(place):
    assert "adapter simulated is " in call("-vv", *RUN, "--quiet").stderr


def test_nothing_is_said_without_v(place):
    assert call(*RUN, "--quiet").stderr == ""


def test_log_ends_with_the_command(place):
    call("-v", "list", "studies")
    assert not logging.getLogger(LOGGER).isEnabledFor(logging.INFO) and not logging.getLogger(LOGGER).handlers


def test_rate_that_fell_is_logged(logged, capsys):
    async def meet_limit():
        limiter = Limiter(Limits(concurrency=4))
        for _ in range(4):
            limiter.leave(await limiter.enter(1), [RateLimitError("too many", 0.0)])

    asyncio.run(meet_limit())
    assert "requests per second from now on" in capsys.readouterr().err


def test_retry_is_logged_with_its_reason(logged, capsys):
    scheduler = Scheduler.__new__(Scheduler)
    scheduler.policy = RetryPolicy()
    scheduler._wait([TransientError("the line was cut")], 0)
    assert re.search(r"in [\d.]+ s \(retry 1\): the line was cut", capsys.readouterr().err)


def test_secret_of_the_environment_never_reaches_the_log(logged, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    logging.getLogger(f"{LOGGER}.core.scheduler").info("refused: %s", "Bearer sk-123456")
    assert capsys.readouterr().err.endswith("refused: Bearer ***\n")


def test_secrets_of_the_environment_are_hidden():
    environment = {"OPENAI_API_KEY": "sk-123456", "HF_TOKEN": "hf_abcdef", "MY_KEY": "on", "HOME": "/home/me"}
    text = "sk-123456 and hf_abcdef went on from /home/me to postgresql://me:geheim@there/db"
    assert hide_secrets(text, environment) == "*** and *** went on from /home/me to postgresql://me:***@there/db"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_is_honoured(place, no_color, coloured):
    environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": no_color}
    command = [sys.executable, "-m", "prejudge.core.cli", *RUN, "--progress", "bar"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and bool(COLOUR.search(done.stdout + done.stderr)) is coloured, done.stderr
