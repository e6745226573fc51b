"""Command lines of every verb: those of a user, and every option with a value that fits none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import click
import pytest

from prejudge.core.cli.main import cli

from ...command import call

ODD = "Δ−“ü”─≥\u202e€"
"""Signs that cp1252 or ASCII lack."""
MODEL = "modell-ü-≥"
QUICK = ("--set", "subtle.resamples=99", "--set", "domains=beauty", "--set", "per_cell=2", "-q")
PAIRS = ("--set", "trisentbias.resamples=99", "-q")
REGISTRY = f"""
[models."{MODEL}"]
adapter = "simulated"
summary = "Antworten für “Größe” ≥ 2 −\\u2500\\nforged  simulated  a model that nobody added"
[models."{MODEL}".settings]
strength = 1.0
"""
DATA = "desirable,undesirable,axis,gender,sentiment\n" + "".join(
    f"a {tall} {noun} {number} “ok”,a {short} {noun} {number} “ok”,größe ≥ − {axis},{noun},neutral\n"
    for axis in "ab"
    for noun in ("женщина", "homme")
    for number in range(3)
    for tall, short in (("tall", "short"),)
)
POLICY = f"""
name = "{ODD}"
[[rules]]
name = "“{ODD}”"
measure = "*"
min = 1000
"""
STUDY = f"""
probe = "bistereo-pairs"
title = "{ODD.replace(chr(0x202E), "")}"
source = "“ich”"
[metrics.trisentbias]
"""
ARGUMENTS = {
    "study": ("subtle-sai",),
    "runs": ("latest",),
    "names": ("latest",),
    "first": ("latest/x",),
    "file": (ODD,),
    "other": (ODD,),
    "data": (ODD,),
    "sheets": (ODD,),
    "kind": ("probe",),
    "name": ("latest",),
}
"""Values of required arguments."""
NAMED = {
    "lab converge": ("beauty-and-competence",),
    "study replicate": ("subtle-sai",),
    "new": ("probe", ODD),
}
TABLE = "".join(f"{3 + at % 3},{'≥m' if at % 2 else '≥f'},n{at % 14}\n" for at in range(56))
TABLE = f"rating,gender,name\n{TABLE}"
"""Outcomes of a table, of two groups in signs that some encodings lack."""
SLOW = {"demo", "train-encoder", "calibrate"}
"""Commands that begin long work: only options that refuse the value are tried."""


def make_world(folder: Path) -> None:
    """Write a store with runs, and files of each kind, whose names hold signs that some encodings lack."""
    (folder / "registry.toml").write_text(REGISTRY, "utf-8")
    (folder / "own ≥.csv").write_text(DATA, "utf-8")
    (folder / "tabelle ≥.csv").write_text(TABLE, "utf-8")
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    (folder / "study.toml").write_text(STUDY, "utf-8")
    (folder / "wrong.toml").write_text(f'probe = "{ODD}"\n', "utf-8")
    (folder / "answers.csv").write_text(f"trial,response\n{ODD},1\n", "utf-8")
    for code, words in (
        (0, ("run", "subtle-sai", "--model", MODEL, *QUICK)),
        (0, ("run", "subtle-sai", "--model", "simulated-fair", *QUICK)),
        (3, ("run", "subtle-sai", "--model", "simulated-biased", "--max-requests", "3", *QUICK)),
        (0, ("run", "bistereo-pairs", "--data", "own ≥.csv", "--model", MODEL, *PAIRS)),
        (0, ("cache", "export", "--out", "bündel ≥.db.gz")),
    ):
        done = call(folder, *words)
        assert done.returncode == code, done


def names_of(folder: Path) -> list[str]:
    """Return the names of the runs in a folder's store, the oldest first."""
    with closing(sqlite3.connect(folder / "prejudge.db")) as store:
        return [name for (name,) in store.execute("SELECT name FROM run ORDER BY id")]


def faults(folder: Path, lines: Iterable[tuple[str, ...]], encoding: str) -> list[str]:
    """Return the command lines that end in a traceback, or with an exit code that is none of ours."""
    broken = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "prejudge.core.view.serve.serve", lambda app, port, landing, ready, **_: ready("http://here", None)
        )
        for words in lines:
            done = call(folder, *words, encoding=encoding)
            if done.returncode not in range(6) or ("Traceback" in done.stderr and "--debug" not in words):
                broken.append(f"{encoding}: {words}: {done.returncode}\n{done.stderr}")
    return broken


def typical(runs: list[str]) -> list[tuple[str, ...]]:
    """Return what a user types; `runs` are the names of the runs of the world, in their order."""
    first, second, part, pairs = runs
    return [
        (),
        ("--help",),
        ("--version",),
        (ODD,),
        (f"--{ODD}",),
        ("run", "bistereo-pairs", "--data", "own ≥.csv", "--model", MODEL, *PAIRS[:-1], "--progress", "json"),
        ("run", "subtle-sai", "--model", MODEL, *QUICK[:-1], "--progress", "plain"),
        ("run", "subtle-sai", "--model", MODEL, *QUICK[:-1], "--progress", "bar"),
        ("run", "subtle-sai", "--model", MODEL, "--set", f"{ODD}=1"),
        ("run", "subtle-sai", "--model", ODD),
        ("run", ODD, "--model", MODEL),
        ("run", "subtle-sai", "--model", MODEL, "--max-requests", "2", "--set", "per_cell=3"),
        ("-vv", "run", "subtle-sai", "--model", MODEL, *QUICK, "--mode", "refresh"),
        ("resume", part),
        ("resume", ODD),
        ("score", first),
        ("score", pairs),
        ("score", "--bundle", "bündel ≥.db.gz"),
        ("score", part),
        ("score", ODD),
        ("measure", "tabelle ≥.csv", "--outcome", "rating", "--group", "gender", "--sampled", "name"),
        ("measure", "tabelle ≥.csv", "--outcome", ODD),
        ("plan", "bistereo-pairs", "--data", "own ≥.csv", "--model", MODEL),
        ("plan", "subtle-sai", "--pilot", first),
        ("list",),
        ("list", "models"),
        ("list", "runs"),
        ("list", "plugins"),
        ("list", "constructs"),
        ("list", "--model", MODEL),
        ("list", "--operation", "generate"),
        ("compare", first, second),
        ("compare", first, pairs),
        ("lab", "variance", first, second),
        ("lab", "variance", pairs),
        ("lab", "multiverse", "subtle-sai", "--model", MODEL, *QUICK[:-1]),
        ("lab", "converge", "beauty-and-competence", "--model", MODEL, "--plan"),
        ("gate", pairs, "--policy", "policy.toml", "--junit", "gate ≥.xml", "--markdown", "gate ≥.md"),
        ("gate", first, "--policy", "wrong.toml"),
        ("export", pairs, "--out", "estimates ≥.csv"),
        ("export", pairs, "--format", "latex", "--out", "estimates ≥.tex"),
        ("export", pairs, "--group", f"axis={ODD}"),
        ("export", pairs, "--what", "card"),
        ("cache", "stats"),
        ("cache", "verify", "--processes", "1"),
        ("cache", "export", first, "--out", "bündel ≥.db.gz", "--force"),
        ("cache", "import", "bündel ≥.db.gz"),
        ("cache", "merge", "andere ≥.db"),
        ("cache", "batches", "--all"),
        ("cache", "explain", f"{first}/{ODD}"),
        ("cache", "repair"),
        ("cache", "prune", "--run", part),
        ("import", "subtle-sai", "--responses", "answers.csv", "--model", ODD),
        ("study", "replicate", "subtle-sai"),
        ("study", "replicate", "crows-pairs"),
        ("study", "validate", "study.toml"),
        ("study", "validate", "wrong.toml"),
        ("study", "validate", "--schema"),
        ("new", "probe", "some-probe", "--folder", "ordner ≥"),
        ("new", "study", "own-study", "--kind", "rating"),
        ("study", "validate", "./own-study"),
        ("lab", "recheck", first, "--sample", "5"),
        ("trust",),
        ("trust", "--list"),
        ("trust", "wrong.toml", "--yes"),
        ("doctor", MODEL),
        ("doctor", "--store", ODD),
        ("study", "associations", first),
        ("study", "tuples", "sheet", first),
        ("study", "levels", "sheet", first),
        ("view", first, "--no-open"),
        ("view", "--filter", ODD),
        ("lab", "calibrate", "subtle-sai", "--studies", "1", "--null", ODD),
        ("--debug", "score", ODD),
    ]


def unusual() -> Iterator[tuple[str, ...]]:
    """Yield a line per option of each command, with a value that no command expects, and a line per flag."""
    for path, command in commands():
        name = " ".join(path)
        yield (*path, "--help")
        yield (*path, f"--{ODD}")
        if isinstance(command, click.Group):
            continue
        arguments = NAMED.get(name) or tuple(
            value
            for one in command.params
            if isinstance(one, click.Argument) and one.required
            for value in ARGUMENTS[one.name or ""]
        )
        for option in command.params:
            fits = isinstance(option, click.Option) and (option.is_flag or option.type is click.STRING)
            if isinstance(option, click.Option) and not (fits and path[-1] in SLOW):
                yield (*path, *arguments, option.opts[0], *(() if option.is_flag else (ODD,)))


def verb_of(words: Sequence[str]) -> str:
    """Return the verb of a command line: the word behind `lab` or `study`, or the first one."""
    return words[1] if words[0] in ("lab", "study") and len(words) > 1 else words[0]


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that name it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
