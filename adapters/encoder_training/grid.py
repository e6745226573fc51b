"""Train all cells of a call; what is done is kept, and never done twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np

from .card import Origin, write_card
from .cells import Cell, Result, cells
from .confusion import WAYS, Several, Table, confusion
from .job import Job, check_plan, write_json
from .losses import LOSSES, LossName
from .model import Trainee, embed, open_trainee, save_encoder
from .parts import SPLITS, SplitBy, cut, repeated_across
from .progress import Progress
from .similarity import deltas
from .summary import rank
from .train import Task, train

ENCODERS, CELLS = "encoders", "cells"


def run_grid(job: Job, progress: Progress) -> list[Result]:
    """Train what is not yet trained, and return the results of all that the folder holds, those of earlier calls too.

    Raises:
        DataError: a split cannot be cut, or the folder holds results of other data, another model or other settings.
    """
    planned = list(cells(job.grid))
    for split, seed in dict.fromkeys((cell.split, cell.settings.seed) for cell in planned):
        cut(job.corpus, split, seed, job.grid.select)
    check_plan(job)
    for place, cell in enumerate(planned):
        progress.cells(place, len(planned), cell.name)
        if (job.out / CELLS / cell.name / "result.json").is_file():
            progress.note("  done")
        else:
            _run(job, cell, progress)
    return sorted(_found(job.out), key=_order)


def _found(out: Path) -> list[Result]:
    return [read_result(path) for path in (out / CELLS).glob("*/result.json")]


def read_result(path: Path) -> Result:
    """Read what a training came to."""
    return msgspec.json.decode(path.read_bytes(), type=Result)


def kept_folder(out: Path, split: SplitBy, loss: LossName) -> Path:
    """Return where the best encoder of a split and a loss is kept, with its confusion beside it."""
    return out / ENCODERS / f"{split}-{loss}"


def _order(result: Result) -> tuple[int, int, float, float, int]:
    loss = result.settings.loss
    places = SPLITS.index(result.split), LOSSES.index(loss.name)
    return *places, loss.temperature, loss.margin, result.settings.seed


def _run(job: Job, cell: Cell, progress: Progress) -> None:
    corpus, folder = job.corpus, job.out / CELLS / cell.name
    parts = cut(corpus, cell.split, cell.settings.seed, job.grid.select)
    trainee = open_trainee(job.source, corpus.texts, job.device)
    before = deltas(embed(trainee, parts.validation), corpus, parts.validation)
    state = train(Task(corpus, parts, trainee, folder / "state"), cell.settings, progress)
    vectors = embed(trainee, np.arange(len(corpus.sentences)))
    result = Result(
        name=cell.name,
        split=cell.split,
        settings=cell.settings,
        history=state.history,
        best=state.best,
        tuning=state.history[state.best].tuning,
        before=before,
        after=deltas(vectors[parts.validation], corpus, parts.validation),
        sizes={"train": len(parts.train), "tuning": len(parts.tuning), "validation": len(parts.validation)},
        repeated=repeated_across(corpus, parts),
    )
    if _is_best(job.out, result):
        tables = {way: confusion(vectors, corpus, parts.validation, parts.known, way) for way in WAYS}
        _keep(job, result, trainee, tables)
    _tell(job, result)
    write_json(folder / "result.json", result)
    shutil.rmtree(folder / "state", ignore_errors=True)


def _keep(job: Job, result: Result, trainee: Trainee, tables: dict[Several, Table]) -> None:
    """Put an encoder with its confusions in the place of the best of its split and loss."""
    draft, final = job.out / f"draft-{result.name}", kept_folder(job.out, result.split, result.settings.loss.name)
    shutil.rmtree(draft, ignore_errors=True)
    save_encoder(trainee, draft / "encoder")
    for way, table in tables.items():
        told = {"categories": table, "several": way, "split": result.split, "seed": result.settings.seed}
        write_json(draft / ("confusion.json" if way == "mean" else f"confusion-{way}.json"), told)
    write_json(draft / "result.json", result)
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)


def _tell(job: Job, result: Result) -> None:
    """Write the card of the best encoder of this split and loss anew: one more training stands beside it."""
    split, loss = result.split, result.settings.loss.name
    folder = kept_folder(job.out, split, loss)
    kept, origin = read_result(folder / "result.json"), Origin(job.source, job.corpus, job.grid.select)
    there = {
        one.name: one for one in [*_found(job.out), result] if (one.split, one.settings.loss.name) == (split, loss)
    }
    write_card(folder / "encoder", origin, kept, [one for name, one in there.items() if name != kept.name])


def _is_best(out: Path, result: Result) -> bool:
    """Tell whether no kept encoder of this split and loss has a higher delta-sim of its tuning part."""
    path = kept_folder(out, result.split, result.settings.loss.name) / "result.json"
    if not path.is_file():
        return True
    kept = read_result(path)
    return kept.name == result.name or rank(result.tuning) > rank(kept.tuning)
