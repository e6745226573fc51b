"""Train all cells of a call; what is done is kept, and never done twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np

from ...core.errors import DataError
from .._encoder_files import EncoderSource
from ._card import write_card
from ._cells import Cell, Grid, Result, cells
from ._confusion import WAYS, Several, Table, confusion
from ._data import Corpus
from ._losses import LOSSES, LossName
from ._model import Trainee, embed, open_trainee, save_encoder
from ._parts import SPLITS, SplitBy, cut, repeated_across
from ._progress import Progress
from ._similarity import deltas
from ._train import Task, train

PLAN, ENCODERS, CELLS = "plan.json", "encoders", "cells"


class Job(msgspec.Struct, frozen=True, eq=False):
    """Model, data and the place for results."""

    source: EncoderSource
    corpus: Corpus
    grid: Grid
    out: Path
    device: str = "auto"


class Plan(msgspec.Struct, frozen=True):
    """What pins the results of a folder."""

    model: str
    digest: str
    data: dict[str, str]
    fixed: dict[str, float | int | str | bool]


def run_grid(job: Job, progress: Progress) -> list[Result]:
    """Train what is not yet trained, and return the results of all that the folder holds, those of earlier calls too.

    Raises:
        DataError: the folder holds results of other data, another model or other settings.
    """
    _check_plan(job)
    planned = list(cells(job.grid))
    for place, cell in enumerate(planned):
        progress.cells(place, len(planned), cell.name)
        if not (job.out / CELLS / cell.name / "result.json").is_file():
            _run(job, cell, progress)
    found = [read_result(path) for path in (job.out / CELLS).glob("*/result.json")]
    return sorted(found, key=_order)


def read_result(path: Path) -> Result:
    """Read what a training came to."""
    return msgspec.json.decode(path.read_bytes(), type=Result)


def kept_folder(out: Path, split: SplitBy, loss: LossName) -> Path:
    """Return where the best encoder of a split and a loss is kept, with its confusion beside it."""
    return out / ENCODERS / f"{split}-{loss}"


def write_json(path: Path, value: object) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(value)))
    draft.replace(path)


def _order(result: Result) -> tuple[int, int, float, float, int]:
    loss = result.settings.loss
    places = SPLITS.index(result.split), LOSSES.index(loss.name)
    return *places, loss.temperature, loss.margin, result.settings.seed


def _check_plan(job: Job) -> None:
    fixed = ("positive_weight", "negative_weight", "epochs", "patience", "batch", "learning_rate", "buckets", "select")
    plan = Plan(
        job.source.name, job.source.digest, job.corpus.digests, {name: getattr(job.grid, name) for name in fixed}
    )
    path = job.out / PLAN
    if not path.is_file():
        write_json(path, plan)
        return
    before = msgspec.json.decode(path.read_bytes(), type=Plan)
    pairs: list[tuple[str, object, object]] = [
        ("model", before.digest, plan.digest),
        ("data", before.data, plan.data),
        *((name, before.fixed.get(name), value) for name, value in plan.fixed.items()),
    ]
    for name, old, new in pairs:
        if old != new:
            raise DataError(
                f"{str(job.out)!r} holds trainings with {name} {old}, not {new}. Give another --out, or the same."
            )


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
    write_json(folder / "result.json", result)
    shutil.rmtree(folder / "state", ignore_errors=True)


def _keep(job: Job, result: Result, trainee: Trainee, tables: dict[Several, Table]) -> None:
    """Put an encoder with its card and its confusions in the place of the best of its split and loss."""
    draft, final = job.out / f"draft-{result.name}", kept_folder(job.out, result.split, result.settings.loss.name)
    shutil.rmtree(draft, ignore_errors=True)
    save_encoder(trainee, draft / "encoder")
    write_card(draft / "encoder", job.source, job.corpus, result)
    for way, table in tables.items():
        told = {"categories": table, "several": way, "split": result.split, "seed": result.settings.seed}
        write_json(draft / ("confusion.json" if way == "mean" else f"confusion-{way}.json"), told)
    write_json(draft / "result.json", result)
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)


def _is_best(out: Path, result: Result) -> bool:
    """Tell whether no kept encoder of this split and loss has a higher delta-sim of its tuning part."""
    path = kept_folder(out, result.split, result.settings.loss.name) / "result.json"
    if not path.is_file():
        return True
    kept = read_result(path)
    return kept.name == result.name or (result.tuning or 0.0) > (kept.tuning or 0.0)
