"""Every verb, in this process, with streams of encodings that lack the signs it writes: no traceback, no other code."""

from __future__ import annotations

import json

import pytest

from ...command import call
from . import command_lines as lines


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a folder with runs and files whose names hold signs that ASCII and cp1252 lack."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PREJUDGE_CONFIG", "PREJUDGE_CACHE"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        folder = tmp_path_factory.mktemp("world")
        lines.make_world(folder)
        yield folder


# ASCII lacks every sign that cp1252 lacks.
@pytest.mark.parametrize("encoding", ["ascii", pytest.param("cp1252", marks=pytest.mark.soak)])
def test_no_verb_ends_in_a_traceback(world, encoding):
    runs = lines.names_of(world)[:4]
    typed = lines.typical(runs)
    verbs = {lines.verb_of(words) for words in typed if words}
    assert {lines.verb_of(path) for path, _ in lines.commands()} - verbs <= {*lines.SLOW, "lab", "study"}
    assert lines.faults(world, typed, encoding) == []


@pytest.mark.soak
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_no_option_with_a_wrong_value_ends_in_a_traceback(world, encoding):
    wrong = list(lines.unusual())
    assert len(wrong) >= 400
    assert lines.faults(world, wrong, encoding) == []


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("cp1252", marks=pytest.mark.soak)])
def test_help_of_every_command_is_written(world, encoding):
    for path, _ in lines.commands():
        done = call(world, *path, "--help", encoding=encoding)
        assert done.returncode == 0 and "Usage:" in done.stdout and not done.stderr


@pytest.mark.parametrize("name", ["own-\udcff.csv", "\ud800"], ids=["bytes of another encoding", "half a character"])
def test_arguments_that_are_no_text_are_refused(world, name):
    """Python reads other bytes as halves of characters, which no file that is UTF-8 can hold."""
    for words in (("run", "bistereo-pairs", "--data", name, "--model", lines.MODEL), ("score", "--runs", name)):
        done = call(world, *words, encoding="utf-8")
        assert done.returncode == 2 and "not UTF-8" in done.stderr and "Traceback" not in done.stderr


def test_report_is_written_where_the_screen_lacks_its_signs(world):
    run = lines.names_of(world)[0]
    done = call(world, "score", run, encoding="ascii")
    assert done.returncode == 0 and "deltaPL" in done.stdout and "Report:" in done.stdout
    assert "Δ" in (world / "runs" / run / "report.html").read_text("utf-8")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_lines_of_json_say_the_same_in_every_encoding(world, encoding):
    words = ("run", "subtle-sai", "--model", lines.MODEL, *lines.QUICK[:-1], "--progress", "json")
    done = call(world, *words, encoding=encoding)
    begun, *_ = map(json.loads, done.stderr.splitlines())
    assert begun["run"] in lines.names_of(world) and "ü" in begun["run"]
    schema = call(world, "study", "validate", "--schema", encoding=encoding).stdout
    assert schema.isascii() and json.loads(schema)["$schema"]


def test_lists_are_not_forged_by_what_others_wrote(world):
    for words in (("list", "models"), ("list",), ("plan", "subtle-sai", "--model", lines.MODEL)):
        shown = call(world, *words).stdout
        assert not [line for line in shown.splitlines() if line.lstrip("│ ").startswith("forged")], words
    assert "\\nforged" in call(world, "list", "models").stdout
