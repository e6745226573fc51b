"""What others wrote reaches the terminal only through the outlet, which escapes control characters and line feeds."""

from __future__ import annotations

import ast
import io
import re
import sqlite3
from pathlib import Path

import click
import pytest
from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import prejudge as package
from prejudge.core.cli.outlet import echo, echo_exception, single_line, visible
from prejudge.core.cli.terminal import Outlet
from prejudge.testing import ChaosServer, Reply

from ...command import call

ATTACK = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m\u202egnp\u2066\u200f\x08\x08\r[link=http://evil]x[/link][/nothing]:cat:\x85"
ATTACK += "\nforged: a line that is somebody else's\r\nforged: another"
CONTROLS = {*map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0))), *"\u061c\u200e\u200f\u2028\u2029"}
CONTROLS |= {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}

WRITERS = {"click.echo", "click.secho", "click.echo_via_pager", "print", "rich.print", "Console"}
WRITERS |= {"sys.stdout.write", "sys.stderr.write", "traceback.print_exc"}


def controls(text: str) -> set[str]:
    return set(text) & CONTROLS


def forged(*outputs: str) -> list[str]:
    return [line for output in outputs for line in output.splitlines() if line.lstrip().startswith("forged")]


@given(st.text(st.characters() | st.sampled_from(sorted(CONTROLS))).filter(lambda text: "\\" not in text))
def test_visible_text_holds_no_control_character_and_says_all(text):
    shown = visible(text)
    assert not controls(shown) and isinstance(shown.encode(), bytes)
    assert single_line(text) == shown.replace("\n", "\\n")
    assert re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), shown) == text


def test_usual_text_stays():
    for text in ("Ärger, 50 %", "a\tb\nc", "नमस्ते", "👩‍👩‍👧", "שלום", "C:\\u001b"):
        assert visible(text) == text


@pytest.mark.parametrize("text", [ATTACK, *HOSTILE])
def test_console_shows_every_text_as_it_is(text):
    stream = io.StringIO()
    console = Outlet(file=stream, width=400)
    table = Table("a", text)
    table.add_row(text, Text(text))
    for thing in (text, Text(single_line(text)), table):
        console.print(thing)
    shown = stream.getvalue()
    assert not controls(shown) and not forged(shown)
    if "[link=" in text:
        assert "[link=http://evil]x[/link][/nothing]:cat:" in shown and "\\u001b" in shown


def test_colours_are_ours_alone():
    stream = io.StringIO()
    console = Outlet(file=stream, force_terminal=True, color_system="standard", no_color=False, width=200)
    console.print(Text(ATTACK, style="bold"))
    shown = stream.getvalue()
    assert shown.count("\x1b") == 2 * len(shown.splitlines()) and "owned" in shown and "\x07" not in shown


def test_error_of_the_program_shows_no_control_character(capsys):
    try:
        raise ValueError(ATTACK)
    except ValueError as error:
        echo_exception(type(error), error, error.__traceback__)
    said = capsys.readouterr()
    assert "\\u001b" in said.err and not controls(said.err) and not said.out and not forged(said.err)
    echo(ATTACK, bold=True)
    assert not controls(click.unstyle(capsys.readouterr().out))


def test_nothing_else_writes_to_the_terminal():
    root = Path(package.__file__).resolve().parent
    outlets = {root / "core" / "cli" / name for name in ("outlet.py", "screen.py", "terminal.py")}
    places = [
        *(root / "core" / "cli").glob("*.py"),
        *root.glob("probes/*/command.py"),
        *root.glob("adapters/*/command.py"),
    ]
    found = []
    for path in places:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))) if path not in outlets else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS:
                found.append(f"{path.name}:{node.lineno}")
    assert len(places) > 20 and not found


@pytest.fixture
def rude(chaos_server: ChaosServer) -> str:
    chaos_server.play(Reply(400, {"error": {"message": ATTACK, "code": ATTACK}}))
    return chaos_server.url


def test_error_of_a_server_cannot_steer_the_terminal(rude, tmp_path):
    pytest.importorskip("openai", reason="needs the extra openai")
    text = f'[models.rude]\nadapter = "openai"\nsettings = {{ model = "m", base_url = "{rude}", api_key_env = "" }}'
    (tmp_path / "registry.toml").write_text(text)
    words = ("run", "subtle-sai", "--model", "rude", "--set", "per_cell=1", "--set", "subtle.resamples=99")
    done, told = call(tmp_path, "-vv", *words), call(tmp_path, "doctor", "rude")
    assert "\\u001b" in done.stderr + told.stdout
    for shown in (done.stdout, done.stderr, told.stdout, told.stderr):
        assert not controls(shown) and "\x1b" not in shown and not forged(shown)


def test_store_of_somebody_else_cannot_steer_the_terminal(tmp_path):
    words = ("--model", "simulated-fair", "--set", "per_cell=1", "--set", "subtle.resamples=99", "-q")
    assert call(tmp_path, "run", "subtle-sai", *words).returncode == 0
    with sqlite3.connect(tmp_path / "prejudge.db") as store:
        store.execute("UPDATE run SET study = ?, name = ?", (ATTACK, f"{ATTACK}/../x"))
        store.execute("UPDATE model SET identity = json_set(identity, '$.model', ?, '$.adapter', ?)", (ATTACK, ATTACK))
        store.execute("UPDATE run_trial SET trial = ? || ordinal", (ATTACK,))
        store.execute("UPDATE exchange SET response = json_set(response, '$.text', ?), status = ?", (ATTACK, ATTACK))
        store.execute(
            "UPDATE run SET manifest = json_set(manifest, '$.study.title', ?, '$.command', ?)", (ATTACK, ATTACK)
        )
    store.close()
    shown = []
    for line in (
        "list runs",
        "cache stats",
        "cache verify",
        "score",
        "export",
        "resume",
        f"cache explain latest {ATTACK}0",
    ):
        done = call(tmp_path, *line.split(maxsplit=3))
        shown.append(done.stdout + done.stderr)
        assert "MarkupError" not in shown[-1] and not controls(shown[-1]) and not forged(shown[-1]), line
    assert "\\u001b" in "".join(shown)
