"""Train all that a call asks for, encoders and classifiers; what is done is kept, and never done twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .confusion import WAYS, confusion
from .data import Floats
from .delta_sim import delta, deltas, pair_sums
from .encoder import Trainee, embed, find_model, open_trainee, save_encoder
from .folder import (
    CELLS,
    CLASSIFIERS,
    Job,
    best_of_split,
    check_plan,
    is_best,
    keep,
    kept_folder,
    read_json,
    results_in,
    splits_of,
    write_json,
)
from .heads import Classified, Heads, HeadSettings, Kind, Lectern, Start, macro_f1, predictions
from .report import card
from .settings import Cell, Result, cells
from .splits import Parts, cut, repeated_across
from .training import Tell, train


def run_grid(job: Job, tell: Tell | None) -> list[Result]:
    """Train what is not yet trained, and return the results of all that the folder holds, those of earlier calls too.

    Raises:
        DataError: a split cannot be cut, or the folder holds results of other data, another model or other settings.
    """
    planned = list(cells(job.grid))
    for split, seed in dict.fromkeys((cell.split, cell.settings.seed) for cell in planned):
        cut(job.corpus, split, seed, job.grid.select)
    check_plan(job)
    for place, cell in enumerate(planned):
        done = (job.out / CELLS / cell.name / "result.json").is_file()
        _say(tell, f"[{place + 1}/{len(planned)}] {cell.name}", done)
        if not done:
            _run(job, cell, tell)
    return results_in(job.out)


def run_heads(job: Job, heads: Heads, results: Sequence[Result], tell: Tell | None) -> list[Classified]:
    """Train what is not yet trained, and return macro F1 of all on the encoders that are now the best."""
    planned = list(_planned(job, heads, results))
    for place, (kept, start, kind) in enumerate(planned):
        name = f"{kept.split}-{start}-{kind}"
        path = job.out / CLASSIFIERS / f"{name}.json"
        before = read_json(path, Classified) if path.is_file() else None
        done = before is not None and (before.settings, before.trained) == (heads.settings, kept.name)
        _say(tell, f"[{place + 1}/{len(planned)}] classifier {name}", done)
        if not done:
            write_json(path, _classify(job, heads.settings, kept, start, kind))
    there = [read_json(path, Classified) for path in sorted((job.out / CLASSIFIERS).glob("*.json"))]
    best = {split: best_of_split(job.out, results, split)[0].name for split in splits_of(results)}
    current = [head for head in there if head.trained == best.get(head.split)]
    return sorted(current, key=lambda head: list(best).index(head.split))


def is_first_process() -> bool:
    """Tell whether this process writes the results; several train together under torchrun."""
    return os.environ.get("RANK", "0") == "0"


def several_processes() -> bool:
    """Tell whether torchrun started more than one."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def _say(tell: Tell | None, what: str, done: bool) -> None:
    if tell:
        tell(what)
        if done:
            tell("  done")


def _run(job: Job, cell: Cell, tell: Tell | None) -> None:
    corpus, folder = job.corpus, job.out / CELLS / cell.name
    parts = cut(corpus, cell.split, cell.settings.seed, job.grid.select)
    trainee = open_trainee(job.source, corpus.texts, job.device)
    before = deltas(embed(trainee, parts.validation), corpus, parts.validation)
    fitted = train(trainee, (corpus, parts), cell.settings, folder / "state", tell)
    if not is_first_process():
        return
    vectors = embed(trainee, np.arange(len(corpus.sentences)))
    result = Result(
        name=cell.name,
        split=cell.split,
        settings=cell.settings,
        history=fitted.history,
        best=fitted.best,
        tuning=delta(pair_sums(vectors[parts.tuning], corpus, parts.tuning), resamples=0).signed,
        before=before,
        after=deltas(vectors[parts.validation], corpus, parts.validation),
        sizes={"train": len(parts.train), "tuning": len(parts.tuning), "validation": len(parts.validation)},
        repeated=repeated_across(corpus, parts),
        trainer=fitted.recorded,
    )
    if is_best(job.out, result):
        keep(job.out, result, lambda draft: _fill(draft, job, result, (trainee, parts, vectors)))
    _write_card(job, result)
    write_json(folder / "result.json", result)
    shutil.rmtree(folder / "state", ignore_errors=True)


def _fill(draft: Path, job: Job, result: Result, made: tuple[Trainee, Parts, Floats]) -> None:
    trainee, parts, vectors = made
    save_encoder(trainee, draft / "encoder")
    for way in WAYS:
        table = confusion(vectors, job.corpus, parts.validation, parts.known, way)
        told = {"categories": table, "several": way, "split": result.split, "seed": result.settings.seed}
        write_json(draft / ("confusion.json" if way == "mean" else f"confusion-{way}.json"), told)


def _write_card(job: Job, result: Result) -> None:
    """Write the card of the best encoder of this split and loss anew: one more training stands beside it."""
    split, loss = result.split, result.settings.loss.name
    folder = kept_folder(job.out, split, loss)
    kept = read_json(folder / "result.json", Result)
    same = [one for one in results_in(job.out) if (one.split, one.settings.loss.name) == (split, loss)]
    every = {one.name: one for one in [*same, result, kept]}
    (folder / "encoder" / "README.md").write_text(card(job, kept, list(every.values())), encoding="utf-8")


def _planned(job: Job, heads: Heads, results: Sequence[Result]) -> Iterator[tuple[Result, Start, Kind]]:
    starts: tuple[Start, ...] = ("given", "trained")
    for split in splits_of(results):
        kept, _ = best_of_split(job.out, results, split)
        yield from ((kept, start, kind) for kind in heads.kinds for start in starts)


def _classify(job: Job, settings: HeadSettings, kept: Result, start: Start, kind: Kind) -> Classified:
    parts = cut(job.corpus, kept.split, kept.settings.seed, job.grid.select)
    trained = kept_folder(job.out, kept.split, kept.settings.loss.name) / "encoder"
    source = job.source if start == "given" else find_model(str(trained))
    folder = job.out / CLASSIFIERS / f"{kept.split}-{start}-{kind}"
    lectern = Lectern(job.corpus, parts, lambda: open_trainee(source, job.corpus.texts, job.device), folder)
    rows = macro_f1(predictions(kind, lectern, settings), job.corpus, parts.validation)
    shutil.rmtree(folder, ignore_errors=True)
    return Classified(kept.split, start, kept.name, kind, settings, tuple(rows))
