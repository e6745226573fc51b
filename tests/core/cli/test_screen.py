"""What a terminal, a pipe or a disk cannot take changes no result: real processes, whose streams fail."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from prejudge.core.cli.ending import ended_gently
from prejudge.core.cli.outlet import echo, echo_json
from prejudge.core.cli.screen import Screen, writable
from prejudge.core.cli.terminal import Outlet

from ...command import call

UNDRAWN = """
from matplotlib.figure import Figure
from prejudge.core.cli import main
Figure.savefig = lambda figure, file, **how: file.write(b"<svg/>")
main()
"""
SMALL = ["--set", "domains=beauty", "--set", "subtle.resamples=99", "-q"]
RUN = ["run", "subtle-sai", "--model", "simulated-biased", "--set", "per_cell=2", *SMALL]
ENCODINGS = ("ascii", "cp1252", "cp437", "latin-1", "utf-8")


def start(folder, *words, before=(), **how):
    """Start `prejudge WORDS`."""
    command = [*before, sys.executable, "-c", UNDRAWN, *words]
    return subprocess.Popen(command, cwd=folder, **{"stderr": subprocess.PIPE, "text": True, **how})


def ensure_whole(folder):
    """Check that the run and its folder are complete."""
    (run,) = (folder / "runs").iterdir()
    assert (run / "report.html").read_text("utf-8").rstrip().endswith("</html>")
    assert pl.read_parquet(run / "estimates.parquet").height and pl.read_parquet(run / "observations.parquet").height
    assert "finished" in call(folder, "list", "runs").stdout


@pytest.mark.parametrize("lines", [0, 1])
def test_reader_that_goes_away_ends_nothing(tmp_path, lines):
    with start(tmp_path, *RUN, stdout=subprocess.PIPE) as process:
        for _ in range(lines):
            assert process.stdout.readline()
        process.stdout.close()
        assert (process.wait(240), process.stderr.read()) == (0, "")
    ensure_whole(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_screen_on_a_full_disk_is_said_once_and_leaves_the_files(tmp_path):
    with open("/dev/full", "w") as full, start(tmp_path, *RUN, stdout=full) as process:
        assert process.wait(240) == 2
        (line,) = process.stderr.read().splitlines()
    assert "standard output" in line
    ensure_whole(tmp_path)
    with open("/dev/full", "w") as full, start(tmp_path, "--debug", "list", "runs", stdout=full) as process:
        assert process.wait(240) == 2 and "code: screen.unwritable" in process.stderr.read()
    with open("/dev/full", "w") as full, start(tmp_path, "score", stdout=subprocess.DEVNULL, stderr=full) as process:
        assert process.wait(240) == 0  # standard error has no other place to say so


# What every other command writes, test_encodings tries in this process.
@pytest.mark.parametrize(
    ("encoding", "more"),
    [("ascii", []), pytest.param("cp1252", [["score"], ["compare", "latest", "latest"]], marks=pytest.mark.soak)],
)
def test_process_writes_in_the_encoding_of_its_stream(tmp_path, encoding, more):
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    for words in (RUN, *more, ["list", "runs"]):
        with start(tmp_path, *words, stdout=subprocess.PIPE, text=False, env=environment) as process:
            out, errors = process.communicate(timeout=240)
        assert b"Traceback" not in errors and out.decode(encoding) + errors.decode(encoding)
    ensure_whole(tmp_path)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_signs_are_spelt_and_letters_escaped_only_where_they_lack(encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    echo("−40,6 Δ “Größe” ≥ женщина", file=stream)
    echo_json(json.dumps({"name": "“Größe” \U0001f600"}, ensure_ascii=False), file=stream)
    stream.flush()
    first, second = stream.buffer.getvalue().decode(encoding).splitlines()
    assert (
        first
        == {
            "ascii": '-40,6 delta "Gr\\xf6\\xdfe" >= \\u0436\\u0435\\u043d\\u0449\\u0438\\u043d\\u0430',
            "latin-1": '-40,6 delta "Größe" >= \\u0436\\u0435\\u043d\\u0449\\u0438\\u043d\\u0430',
            "cp1252": "-40,6 delta “Größe” >= \\u0436\\u0435\\u043d\\u0449\\u0438\\u043d\\u0430",
            "cp437": '-40,6 delta "Größe" ≥ \\u0436\\u0435\\u043d\\u0449\\u0438\\u043d\\u0430',
            "utf-8": "−40,6 Δ “Größe” ≥ женщина",
        }[encoding]
    )
    assert second.isascii() and json.loads(second) == {"name": "“Größe” \U0001f600"}


def test_boxes_keep_their_shape():
    assert writable("┏━┓│└─┘╭", "ascii") == "+-+|+-++"
    assert writable("x", "no such encoding") == "x"


def test_columns_are_aligned_after_the_signs_are_spelt():
    from rich.table import Table

    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    table = Table("name", "value")
    for name in ("Δ", "plain"):
        table.add_row(name, "−1 …")
    Outlet(file=Screen(stream), width=60).print(table)
    stream.flush()
    lines = stream.buffer.getvalue().decode("ascii").splitlines()
    assert len({len(line.rstrip()) for line in lines}) == 1 and any("delta" in line for line in lines)


def wait_for_answers(folder, process):
    deadline = time.monotonic() + 240
    while call(folder, "cache", "stats").stdout.partition("Exchange: ")[2][:2] in ("", "0,"):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def slow(tmp_path):
    """Return a folder with a model that takes some seconds for a study."""
    settings = "latency_seconds = 0.3\nbatch_items = 20\nconcurrency = 2\nstrength = 1.0"
    (tmp_path / "registry.toml").write_text(f'[models.slow]\nadapter = "simulated"\n[models.slow.settings]\n{settings}')
    return tmp_path


SLOW = ["run", "subtle-sai", "--model", "slow", "--set", "per_cell=100", *SMALL]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
@pytest.mark.parametrize("ignored", [False, True], ids=["closed terminal", "nohup"])
def test_closed_terminal_ends_a_run_as_a_termination_does_unless_that_was_ignored(slow, ignored):
    before = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"] if ignored else []
    with start(slow, *SLOW, before=before, stdout=subprocess.DEVNULL) as process:
        wait_for_answers(slow, process)
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=240)
    if ignored:
        assert (process.returncode, errors) == (0, "")
        ensure_whole(slow)
    else:
        assert process.returncode == 2 and "prejudge resume" in errors.splitlines()[-1]
        scored = call(slow, "score")
        assert scored.returncode == 0 and "not complete" in scored.stdout


def test_job_of_a_script_is_ended_by_a_termination_though_ctrl_c_is_ignored(slow):
    with start(
        slow, *SLOW, before=["sh", "-c", "trap '' INT; exec \"$@\"", "sh"], stdout=subprocess.DEVNULL
    ) as process:
        wait_for_answers(slow, process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 2 and "prejudge resume" in errors.splitlines()[-1]
    assert "interrupted" in call(slow, "list", "runs").stdout


def test_signals_are_as_before_afterwards(monkeypatch):
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    with pytest.raises(KeyboardInterrupt), ended_gently():
        signal.raise_signal(signal.SIGTERM)
    assert {name: signal.getsignal(name) for name in before} == before
    monkeypatch.delattr(signal, "SIGHUP", raising=False)  # as on Windows
    with ended_gently():
        assert signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]
