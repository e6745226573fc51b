"""A folder of trainings: what pins it, the best encoders in it, and its files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...core.contracts.errors import DataError
from ..hf.encoder.files import EncoderSource
from .data import Corpus
from .settings import LOSSES, Grid, LossName, Result, rank
from .splits import SPLITS, SplitBy

PLAN, ENCODERS, CELLS, CLASSIFIERS = "plan.json", "encoders", "cells", "classifiers"
VARIED = ("loss", "seed")
"""Settings that differ between the trainings of a folder."""
T = TypeVar("T")


class Job(msgspec.Struct, frozen=True, eq=False):
    """Model, data and the place for results."""

    source: EncoderSource
    corpus: Corpus
    grid: Grid
    out: Path
    device: str = "auto"


def best_of_split(out: Path, results: Sequence[Result], split: SplitBy) -> tuple[Result, Path]:
    """Return the kept training of a split with the highest delta-sim of its tuning part, and its folder."""
    losses = dict.fromkeys(result.settings.loss.name for result in results if result.split == split)
    folders = [kept_folder(out, split, loss) for loss in losses]
    return max(
        ((read_json(path / "result.json", Result), path) for path in folders), key=lambda pair: rank(pair[0].tuning)
    )


def splits_of(results: Sequence[Result]) -> list[SplitBy]:
    """Return the splits, in the order of the results."""
    return list(dict.fromkeys(result.split for result in results))


def kept_folder(out: Path, split: SplitBy, loss: LossName) -> Path:
    """Return where the best encoder of a split and a loss is kept, with its confusion beside it."""
    return out / ENCODERS / f"{split}-{loss}"


def write_json(path: Path, value: object) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(value)))
    draft.replace(path)


def check_plan(job: Job) -> None:
    """Write what pins the results of a folder that has none; compare with that of one that has.

    Raises:
        DataError: the folder holds results of other data, another model or other settings.
    """
    settings = {name: value for name, value in msgspec.structs.asdict(job.grid.shared).items() if name not in VARIED}
    weights = {name: getattr(job.grid.shared.loss, name) for name in ("positive_weight", "negative_weight")}
    data = {f"file {name}": digest for name, digest in job.corpus.digests.items()}
    plan: dict[str, Any] = {"model": job.source.digest, **data, "files": list(job.corpus.digests), **settings}
    plan |= weights | {"select": job.grid.select}
    path = job.out / PLAN
    if not path.is_file():
        write_json(path, plan)
        return
    before = read_json(path, dict[str, Any])
    for name in [*plan, *before]:
        if before.get(name) != plan.get(name):
            raise DataError(
                f"{str(job.out)!r} holds trainings with {name} {before.get(name, 'absent')}, "
                f"not {plan.get(name, 'absent')}. Give another --out, or the same as before.",
                code="training.other-plan",
                differs=name,
            )


def read_json(path: Path, kind: type[T]) -> T:
    """Read a file that `write_json` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=kind)


def results_in(out: Path) -> list[Result]:
    """Return what all trainings of a folder came to: by split, loss, parameter and seed."""
    return sorted((read_json(path, Result) for path in (out / CELLS).glob("*/result.json")), key=_order)


def is_best(out: Path, result: Result) -> bool:
    """Tell whether no other kept encoder of this split and loss has a higher delta-sim of its tuning part."""
    path = kept_folder(out, result.split, result.settings.loss.name) / "result.json"
    if not path.is_file():
        return True
    kept = read_json(path, Result)
    return kept.name == result.name or rank(result.tuning) > rank(kept.tuning)


def keep(out: Path, result: Result, fill: Callable[[Path], None]) -> None:
    """Put a training in the place of the best of its split and loss; `fill` writes its encoder and confusions."""
    draft, final = out / f"draft-{result.name}", kept_folder(out, result.split, result.settings.loss.name)
    shutil.rmtree(draft, ignore_errors=True)
    fill(draft)
    write_json(draft / "result.json", result)
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)


def _order(result: Result) -> tuple[int, int, float, int]:
    loss = result.settings.loss
    return SPLITS.index(result.split), LOSSES.index(loss.name), loss.chosen, result.settings.seed
