"""Write what the trainings came to: results.json, results.md, held-out.csv and figures."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from .encoder import embed, find_model, open_trainee
from .figures import delta_bars, save, tsne_panels
from .folder import Job, best_of_split, splits_of, write_json
from .heads import Classified
from .report import report
from .settings import Result
from .splits import Parts, cut
from .summary import RESULTS, Results, summarise, told_apart

HELD_OUT = "held-out.csv"
COLUMNS = ("split", "seed", "part", "file", "line", "context_id", "category", "type")


def write_results(
    job: Job, results: Sequence[Result], heads: Sequence[Classified], beside: Mapping[str, Results]
) -> Results:
    """Write all files beside the encoders; the bars of the results `beside` are drawn too."""
    kept = {split: best_of_split(job.out, results, split) for split in splits_of(results)}
    whole = Results(
        model=job.source.name,
        digest=job.source.digest,
        data=job.corpus.digests,
        summaries=summarise(job.source.name, results, job.grid.select),
        best={split: str(folder.relative_to(job.out)) for split, (_, folder) in kept.items()},
        classifiers=list(heads),
        trainings=list(results),
    )
    write_json(job.out / RESULTS, whole)
    (job.out / "results.md").write_text(report(whole, job.corpus), encoding="utf-8")
    with (job.out / HELD_OUT).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *_rows(job, results)])
    save(delta_bars([*whole.summaries, *told_apart(whole, beside)]), job.out / "figures" / "delta-sim.png")
    for split, (result, folder) in kept.items():
        _draw_tsne(job, result, folder, job.out / "figures" / f"t-sne-{split}.png")
    return whole


def _rows(job: Job, results: Sequence[Result]) -> Iterator[tuple[str | int, ...]]:
    """Yield the part of each sentence, by split and seed; what serves for both is `validation`."""
    for split, seed in dict.fromkeys((result.split, result.settings.seed) for result in results):
        parts = _names(cut(job.corpus, split, seed, job.grid.select), len(job.corpus.sentences))
        for part, one in zip(parts, job.corpus.sentences, strict=True):
            yield split, seed, part, Path(one.path).name, one.line, one.context, one.category, one.type


def _names(parts: Parts, count: int) -> list[str]:
    names = np.full(count, "train", dtype=object)
    names[parts.tuning], names[parts.validation] = "tuning", "validation"
    return names.tolist()


def _draw_tsne(job: Job, result: Result, folder: Path, path: Path) -> None:
    rows = cut(job.corpus, result.split, result.settings.seed, job.grid.select).validation
    sources = (job.source, find_model(str(folder / "encoder")))
    before, after = (embed(open_trainee(source, job.corpus.texts, job.device), rows) for source in sources)
    loss = result.settings.loss
    trained = f"{job.source.name}, {loss.name} ({loss.parameter} {loss.chosen:g}), split by {result.split}"
    title = f"{trained}, seed {result.settings.seed}: {len(rows)} validation sentences"
    save(tsne_panels((before, after), job.corpus, rows, title), path)
