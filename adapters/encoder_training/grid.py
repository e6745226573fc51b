"""Train the encoders and classifiers that a call asks for; what a folder already contains is not trained again."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...core.contracts.errors import DataError
from ..hf.encoder.files import EncoderSource
from ..hf.encoder.model import Encoder
from ..shared.torch import quiet_loading
from .confusion import WAYS, Several, Table, confusion
from .data import Corpus
from .delta_sim import delta, deltas, pair_sums
from .encoder import embed, find_model, open_encoder
from .heads import Classified, HeadData, HeadSettings, Kind, Start, macro_f1, predictions
from .settings import LOSSES, Cell, Result
from .splits import SPLITS, Parts, SelectOn, SplitBy, cut, repeated_across
from .training import train

PLAN, ENCODERS, CELLS, CLASSIFIERS, RESULT = "plan.json", "encoders", "cells", "classifiers", "result.json"
T = TypeVar("T")


class Job(msgspec.Struct, frozen=True, eq=False):
    """Model, data, trainings and the folder for results."""

    source: EncoderSource
    corpus: Corpus
    cells: list[Cell]
    select: SelectOn
    """`validation`: stop and choose by the reported part, as the paper does."""
    out: Path
    device: str = "auto"
    quiet: bool = True

    def parts(self, one: Cell | Result) -> Parts:
        """Return the split of a training; raises `DataError` where the data are too few."""
        return cut(self.corpus, one.split, one.settings.seed, self.select)

    def load(self, folder: Path | None = None) -> Encoder:
        """Load the encoder before training, or the one in a folder."""
        source = self.source if folder is None else find_model(str(folder))
        return open_encoder(source, self.corpus.texts, self.device)

    def say(self, text: str) -> None:
        """Show progress, above the Trainer's bar where there is one."""
        from tqdm import tqdm

        if not self.quiet and is_first_process():
            tqdm.write(text, file=sys.stderr)


def run_grid(job: Job) -> list[Result]:
    """Train what is not yet trained, and return all results of the folder, by split, loss, parameter and seed.

    Raises:
        DataError: a split is not possible, or the folder holds results of other data, another model or other settings.
    """
    for cell in job.cells:
        job.parts(cell)
    check_plan(job)
    for number, cell in enumerate(job.cells, 1):
        path = job.out / CELLS / cell.name / RESULT
        job.say(f"[{number}/{len(job.cells)}] {cell.name}{': done' if path.is_file() else ''}")
        if not path.is_file():
            _train_cell(job, cell, path)
    return sorted((read_json(path, Result) for path in (job.out / CELLS).glob(f"*/{RESULT}")), key=_order)


def run_heads(job: Job, kinds: tuple[Kind, ...], settings: HeadSettings) -> list[Classified]:
    """Train what is not yet trained, and return the scores of all classifiers on the best encoders."""
    best = best_encoders(job.out)
    starts: tuple[Start, ...] = ("given", "trained")
    for (result, folder), kind, start in itertools.product(best.values(), kinds, starts):
        path = job.out / CLASSIFIERS / f"{result.split}-{start}-{kind}.json"
        before = read_json(path, Classified) if path.is_file() else None
        done = before is not None and (before.settings, before.trained) == (settings, result.name)
        job.say(f"classifier {path.stem}{': done' if done else ''}")
        if not done:
            load = partial(job.load, folder / "encoder" if start == "trained" else None)
            data = HeadData(job.corpus, job.parts(result), load, path.with_suffix(""))
            rows = macro_f1(predictions(kind, data, settings), job.corpus, data.parts.validation)
            write_json(path, Classified(result.split, start, result.name, kind, settings, tuple(rows)))
    there = [read_json(path, Classified) for path in sorted((job.out / CLASSIFIERS).glob("*.json"))]
    return [one for split in best for one in there if (one.split, one.trained) == (split, best[split][0].name)]


def best_encoders(out: Path) -> dict[SplitBy, tuple[Result, Path]]:
    """Return, by split, the training with the highest delta-sim of its tuning part, and the folder of its encoder."""
    kept = [(read_json(path, Result), path.parent) for path in (out / ENCODERS).glob(f"*/{RESULT}")]
    kept.sort(key=lambda pair: _order(pair[0]))
    of_split = {split: [pair for pair in kept if pair[0].split == split] for split in SPLITS}
    return {split: max(pairs, key=lambda pair: pair[0].rank) for split, pairs in of_split.items() if pairs}


def is_first_process() -> bool:
    """Return whether this process writes the results; torchrun starts several."""
    return os.environ.get("RANK", "0") == "0"


def check_plan(job: Job) -> None:
    """Record the model, data and settings of a new folder; compare them with those of an old one.

    Raises:
        DataError: they differ.
    """
    plan: dict[str, Any] = {"model": job.source.digest, "select": job.select}
    plan |= {f"file {name}": digest for name, digest in job.corpus.digests.items()}
    plan |= {"files": list(job.corpus.digests), **msgspec.to_builtins(job.cells[0].settings)}
    # Trainings of one folder differ in these; the weights of pairs they share.
    loss, _ = plan.pop("loss"), plan.pop("seed")
    plan |= {name: loss[name] for name in ("positive_weight", "negative_weight")}
    path = job.out / PLAN
    before = read_json(path, dict[str, Any]) if path.is_file() else plan
    for name in [*plan, *before]:
        if before.get(name) != plan.get(name):
            raise DataError(
                f"{str(job.out)!r} holds trainings with {name} {before.get(name, 'absent')}, "
                f"not {plan.get(name, 'absent')}. Give another --out, or the same as before.",
                code="training.other-plan",
                differs=name,
            )
    write_json(path, plan)


def write_json(path: Path, value: object) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(value)))
    draft.replace(path)


def read_json(path: Path, kind: type[T]) -> T:
    """Read a file that `write_json` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=kind)


def _train_cell(job: Job, cell: Cell, path: Path) -> None:
    corpus, parts, encoder, state = job.corpus, job.parts(cell), job.load(), path.with_name("state")
    held = parts.validation
    before = deltas(embed(encoder, corpus.texts[held]), corpus, held)
    fitted = train(encoder, (corpus, parts), cell.settings, state, job.quiet or not is_first_process())
    if not is_first_process():
        return
    vectors = embed(encoder, corpus.texts)
    result = Result(
        name=cell.name,
        split=cell.split,
        settings=cell.settings,
        history=fitted.history,
        best=fitted.best,
        tuning=delta(pair_sums(vectors[parts.tuning], corpus, parts.tuning), resamples=0).signed,
        before=before,
        after=deltas(vectors[held], corpus, held),
        sizes={name: len(rows) for name, rows in msgspec.structs.asdict(parts).items()},
        repeated=repeated_across(corpus, parts),
        trainer=fitted.recorded,
    )
    kept = job.out / ENCODERS / f"{cell.split}-{cell.settings.loss.name}"
    if not (kept / RESULT).is_file() or result.rank > read_json(kept / RESULT, Result).rank:
        tables = {way: confusion(vectors, corpus, held, parts.known, way) for way in WAYS}
        _keep(kept, result, encoder, tables)
    write_json(path, result)
    shutil.rmtree(state, ignore_errors=True)


def _keep(final: Path, result: Result, encoder: Encoder, tables: dict[Several, Table]) -> None:
    """Put an encoder, with its result and its confusions, in the place of the best of its split and loss."""
    draft = final.parent / f"draft-{result.name}"
    shutil.rmtree(draft, ignore_errors=True)
    with quiet_loading():
        encoder.model.save(str(draft / "encoder"), create_model_card=False)
    for way, table in tables.items():
        counted = {"categories": table, "several": way, "split": result.split, "seed": result.settings.seed}
        write_json(draft / ("confusion.json" if way == "mean" else f"confusion-{way}.json"), counted)
    write_json(draft / RESULT, result)
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)


def _order(result: Result) -> tuple[int, int, float, int]:
    loss = result.settings.loss
    return SPLITS.index(result.split), LOSSES.index(loss.name), loss.chosen, result.settings.seed
