"""Write what the trainings came to: results.json, results.md and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from ...core.errors import DataError
from ._cells import Result
from ._figures import delta_bars, save, tsne_panels
from ._grid import Job, write_json
from ._heads import Classified, best_of_split
from ._model import embed, find_model, open_trainee
from ._parts import cut
from ._summary import Summary, summarise
from ._tables import markdown

RESULTS = "results.json"


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All that a folder holds, in one file."""

    model: str
    digest: str
    data: dict[str, str]
    summaries: list[Summary]
    best: dict[str, str]
    """The folder of the best encoder of each split."""
    classifiers: list[Classified]
    trainings: list[Result]


def write_results(
    job: Job, results: Sequence[Result], heads: Sequence[Classified], beside: Sequence[Results] = ()
) -> Results:
    """Write results.json, results.md and the figures; the bars of the results `beside` are drawn too."""
    splits = list(dict.fromkeys(result.split for result in results))
    kept = {split: best_of_split(job, results, split) for split in splits}
    whole = Results(
        model=job.source.name,
        digest=job.source.digest,
        data=job.corpus.digests,
        summaries=summarise(job.source.name, results),
        best={split: str(folder.relative_to(job.out)) for split, (_, folder) in kept.items()},
        classifiers=list(heads),
        trainings=list(results),
    )
    write_json(job.out / RESULTS, whole)
    (job.out / "results.md").write_text(markdown(whole.summaries, heads), encoding="utf-8")
    save(delta_bars([*whole.summaries, *told_apart(whole, beside)]), job.out / "figures" / "delta-sim.png")
    for split, (result, folder) in kept.items():
        _draw_tsne(job, result, folder, job.out / "figures" / f"t-sne-{split}.png")
    return whole


def told_apart(own: Results, beside: Sequence[Results]) -> list[Summary]:
    """Return the summaries of other results; another model of the same name is told apart by its digest."""
    found = []
    for other in beside:
        alike = other.model == own.model and other.digest != own.digest
        model = f"{other.model} ({other.digest.removeprefix('sha256:')[:8]})" if alike else other.model
        found += [msgspec.structs.replace(summary, model=model) for summary in other.summaries]
    return found


def read_results(folder: str) -> Results:
    """Return the results of another folder.

    Raises:
        DataError: it holds none.
    """
    path = Path(folder) / RESULTS
    try:
        return msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(
            f"{folder!r} holds no results of train-encoder: {error}. Give an --out of another call."
        ) from None


def _draw_tsne(job: Job, result: Result, folder: Path, path: Path) -> None:
    rows = cut(job.corpus, result.split, result.settings.seed, job.grid.select).validation
    sources = (job.source, find_model(str(folder / "encoder")))
    before, after = (embed(open_trainee(source, job.corpus.texts, job.device), np.asarray(rows)) for source in sources)
    save(tsne_panels(before, after, job.corpus, rows), path)
