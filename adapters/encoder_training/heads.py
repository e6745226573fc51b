"""Train the classifiers that a call asks for, on the encoder as it was given and as it was trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from .cells import Result
from .classifier import F1, HeadSettings, Kind, macro_f1, predictions
from .grid import kept_folder, read_result
from .job import Job, write_json
from .model import find_model, open_trainee
from .parts import SplitBy, cut
from .progress import Progress
from .summary import rank

CLASSIFIERS = "classifiers"
Start = Literal["given", "trained"]


class Heads(msgspec.Struct, frozen=True, kw_only=True):
    """Which classifiers to train."""

    kinds: tuple[Kind, ...] = ()
    settings: HeadSettings = HeadSettings()


class Classified(msgspec.Struct, frozen=True):
    """What the classifiers of one kind on one encoder came to."""

    split: SplitBy
    encoder: Start
    trained: str
    """The training whose split is used, and whose encoder where that is `trained`."""
    kind: Kind
    settings: HeadSettings
    rows: tuple[F1, ...]


def run_heads(job: Job, heads: Heads, results: Sequence[Result], progress: Progress) -> list[Classified]:
    """Train what is not yet trained, and return macro F1 of all on the encoders that are now the best."""
    planned = list(_planned(job, heads, results))
    for place, (kept, encoder, kind) in enumerate(planned):
        progress.cells(place, len(planned), f"{kept.split}-classifier-{encoder}-{kind}")
        path = job.out / CLASSIFIERS / f"{kept.split}-{encoder}-{kind}.json"
        before = read_classified(path) if path.is_file() else None
        if before is None or (before.settings, before.trained) != (heads.settings, kept.name):
            before = _run(job, heads.settings, kept, encoder, kind)
            write_json(path, before)
        else:
            progress.note("  done")
    there = [read_classified(path) for path in sorted((job.out / CLASSIFIERS).glob("*.json"))]
    best = {split: best_of_split(job, results, split)[0].name for split in _splits(results)}
    places = list(best)
    current = [head for head in there if head.trained == best.get(head.split)]
    return sorted(current, key=lambda head: places.index(head.split))


def read_classified(path: Path) -> Classified:
    """Read what classifiers came to."""
    return msgspec.json.decode(path.read_bytes(), type=Classified)


def best_of_split(job: Job, results: Sequence[Result], split: SplitBy) -> tuple[Result, Path]:
    """Return the kept training of a split with the highest delta-sim of its tuning part, and its folder."""
    losses = dict.fromkeys(result.settings.loss.name for result in results if result.split == split)
    folders = [kept_folder(job.out, split, loss) for loss in losses]
    kept = [(read_result(path / "result.json"), path) for path in folders]
    return max(kept, key=lambda pair: rank(pair[0].tuning))


def _splits(results: Sequence[Result]) -> list[SplitBy]:
    return list(dict.fromkeys(result.split for result in results))


def _planned(job: Job, heads: Heads, results: Sequence[Result]) -> Iterator[tuple[Result, Start, Kind]]:
    starts: tuple[Start, ...] = ("given", "trained")
    for split in _splits(results):
        kept, _ = best_of_split(job, results, split)
        yield from ((kept, encoder, kind) for kind in heads.kinds for encoder in starts)


def _run(job: Job, settings: HeadSettings, kept: Result, encoder: Start, kind: Kind) -> Classified:
    parts = cut(job.corpus, kept.split, kept.settings.seed, job.grid.select)
    folder = kept_folder(job.out, kept.split, kept.settings.loss.name) / "encoder"
    source = job.source if encoder == "given" else find_model(str(folder))
    texts = job.corpus.texts
    taken = predictions(kind, lambda: open_trainee(source, texts, job.device), (job.corpus, parts), settings)
    rows = macro_f1(taken, job.corpus, parts.validation)
    return Classified(kept.split, encoder, kept.name, kind, settings, tuple(rows))
