"""The results of a folder: summaries of its trainings, and all files beside the encoders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import numpy as np
import polars as pl
from rich.table import Table
from scipy import stats

from ...core.contracts.errors import DataError, UsageError
from .data import Corpus
from .delta_sim import Delta, fold
from .encoder import embed
from .figures import delta_figure, save, tsne_panels
from .grid import ENCODERS, RESULT, Job, best_encoders, read_json, write_json
from .heads import F1, Classified
from .settings import LossName, LossSettings, Result
from .splits import SelectOn, SplitBy

RESULTS = "results.json"


class Pooled(msgspec.Struct, frozen=True):
    """Validation delta-sim over all seeds."""

    value: float | None
    """Absolute value of `signed`; of `mean` the mean of the categories' absolute values."""
    signed: float | None
    """Mean over seeds of the difference with its sign: below 0, sentences of both types are the more similar ones."""
    low: float | None = None
    """Lower end of the 95 % interval of `signed`, folded at 0."""
    high: float | None = None

    @property
    def reversed(self) -> bool:
        """Return whether sentences of both types are the more similar ones."""
        return self.signed is not None and self.signed < 0

    def __str__(self) -> str:
        """Return the value with its interval."""
        return _number(self) + (" reversed" if self.reversed else "")


class Summary(msgspec.Struct, frozen=True):
    """One split, loss and value of its parameter, all seeds together."""

    split: SplitBy
    loss: LossName
    parameter: str
    """`temperature` or `margin`."""
    value: float
    tuning: float | None
    """Mean over seeds of the tuning part's delta-sim."""
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    """Best epoch of each seed; 0 is the encoder before training."""
    before: dict[str, Pooled]
    """Validation delta-sim before training: `overall`, by category, and the `mean` of the categories."""
    after: dict[str, Pooled]
    chosen: bool = False
    """Whether this value has the highest tuning delta-sim; the validation part does not decide."""

    @property
    def name(self) -> str:
        """Return the loss with its parameter."""
        return f"{self.loss}, {self.parameter} {self.value:g}"

    @property
    def over(self) -> str:
        """Return what the intervals are over: seeds (Student's), or contexts (bootstrap) where there is one seed."""
        return "seeds" if len(self.seeds) > 1 else "contexts"


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All results of a folder."""

    model: str
    digest: str
    data: dict[str, str]
    """sha256 of each file, by its name."""
    select: SelectOn
    """`validation`: stopped and chosen by the part that is reported."""
    summaries: list[Summary]
    best: dict[str, str]
    """The folder of the best encoder of each split."""
    classifiers: list[Classified]
    trainings: list[Result]

    @property
    def chosen(self) -> list[Summary]:
        """Return the summaries of the chosen parameters: one per split and loss."""
        return [one for one in self.summaries if one.chosen]


def summarise(results: Sequence[Result]) -> list[Summary]:
    """Return a summary of each split, loss and parameter, in the order of the results; one of each loss is chosen."""
    groups: dict[tuple[SplitBy, LossSettings], list[Result]] = {}
    for result in results:
        groups.setdefault((result.split, result.settings.loss), []).append(result)
    best: dict[tuple[SplitBy, LossName], Summary] = {}
    found = [_summary(split, loss, seeds) for (split, loss), seeds in groups.items()]
    for one in found:
        other = best.setdefault((one.split, one.loss), one)
        if one.tuning is not None and (other.tuning is None or one.tuning > other.tuning):
            best[one.split, one.loss] = one
    return [msgspec.structs.replace(one, chosen=best[one.split, one.loss] is one) for one in found]


def pool(deltas: Sequence[Delta]) -> Pooled:
    """Average seeds by their signed differences, so that opposite ones cancel; absolute values come last.

    The interval of one seed is that of its delta; of several it is Student's over the seeds.
    """
    signed = _mean(delta.signed for delta in deltas)
    if signed is None or len(deltas) == 1:
        return Pooled(deltas[0].value if signed is not None else None, signed, deltas[0].low, deltas[0].high)
    half = float(stats.t.ppf(0.975, len(deltas) - 1) * stats.sem([delta.signed for delta in deltas]))
    return Pooled(abs(signed), signed, *fold(signed - half, signed + half))


def read_beside(folders: Sequence[str], out: Path) -> list[Results]:
    """Return the results of other folders; their models are named with the folder.

    Raises:
        UsageError: a folder is the call's own.
        DataError: one holds no results.
    """
    found = []
    for folder in dict.fromkeys(Path(folder) for folder in folders):
        if folder.resolve() == out.resolve():
            raise UsageError(f"--beside {folder} is the --out of this call. Leave it out.", code="options.conflict")
        try:
            other = msgspec.json.decode((folder / RESULTS).read_bytes(), type=Results)
        except (OSError, msgspec.MsgspecError) as error:
            raise DataError(
                f"{str(folder)!r} holds no results of train-encoder: {error}. Give the --out of another call.",
                code="training.no-results",
                folder=str(folder),
            ) from None
        found.append(msgspec.structs.replace(other, model=f"{other.model} ({folder})"))
    return found


def write_results(
    job: Job, results: Sequence[Result], heads: Sequence[Classified], beside: Sequence[Results]
) -> Results:
    """Write tables, figures and model cards; the delta-sim of results `beside` is drawn too."""
    best = best_encoders(job.out)
    whole = Results(
        model=job.source.name,
        digest=job.source.digest,
        data=job.corpus.digests,
        select=job.select,
        summaries=summarise(results),
        best={split: str(folder.relative_to(job.out)) for split, (_, folder) in best.items()},
        classifiers=list(heads),
        trainings=list(results),
    )
    write_json(job.out / RESULTS, whole)
    (job.out / "results.md").write_text(report(whole, job.corpus), encoding="utf-8")
    _held_out(job, results).write_csv(job.out / "held-out.csv")
    _write_cards(job, results)
    for split, (result, folder) in best.items():
        save(delta_figure([whole, *beside], split), job.out / "figures" / f"delta-sim-{split}.png")
        rows = job.parts(result).validation
        texts = job.corpus.texts[rows]
        vectors = embed(job.load(), texts), embed(job.load(folder / "encoder"), texts)
        title = f"{job.source.name}, {result.name}: {len(rows)} validation sentences"
        save(tsne_panels(vectors, job.corpus, rows, title), job.out / "figures" / f"t-sne-{split}.png")
    return whole


def describe_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return what a data set contains, by category."""
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*("" if x is None else f"{x:.2f}" if isinstance(x, float) else str(x) for x in row.values()))
    return table


def overview(whole: Results) -> list[Table]:
    """Return the overall results; `results.md` has the categories."""
    on = " (stopped and chosen by this part)" if whole.select == "validation" else ""
    deltas = Table("split by", "loss", "before", "after", "best epoch", title=f"Validation delta-sim, overall{on}")
    for one in whole.chosen:
        ends = str(one.before["overall"]), str(one.after["overall"])
        deltas.add_row(one.split, one.name, *ends, _numbers(one.epochs))
    scores = Table("split by", "classifier", "encoder", "macro F1", title="Classifiers, overall")
    for head in whole.classifiers:
        scores.add_row(head.split, head.kind, head.encoder, _number(head.rows[0]))
    return [deltas, scores] if whole.classifiers else [deltas]


def report(whole: Results, corpus: Corpus) -> str:
    """Return all results in Markdown."""
    parts = dict.fromkeys((r.split, r.settings.seed, _sizes(r, whole.select)) for r in whole.trainings)
    return _render("results.md.jinja", whole=whole, corpus=corpus, parts=parts, settings=whole.trainings[0].settings)


def _write_cards(job: Job, results: Sequence[Result]) -> None:
    """Write the model card of each encoder that is kept: the best of the trainings of its split and loss."""
    for path in (job.out / ENCODERS).glob(f"*/{RESULT}"):
        kept = read_json(path, Result)
        every = [one for one in results if (one.split, one.settings.loss.name) == (kept.split, kept.settings.loss.name)]
        text = _render("card.md.jinja", job=job, kept=kept, every=every, pool=pool, sizes=_sizes(kept, job.select))
        (path.parent / "encoder" / "README.md").write_text(text, encoding="utf-8")


def _held_out(job: Job, results: Sequence[Result]) -> pl.DataFrame:
    """Return the part of each sentence, by split and seed; a part that serves for both is `validation`."""
    frames = []
    for result in {(result.split, result.settings.seed): result for result in results}.values():
        part, parts = ["train"] * len(job.corpus.sentences), job.parts(result)
        for name in ("tuning", "validation"):
            for row in getattr(parts, name):
                part[row] = name
        split, seed = pl.lit(result.split).alias("split"), pl.lit(result.settings.seed).alias("seed")
        columns = (split, seed, pl.Series("part", part), "file", "line", "context_id", "category", "type")
        frames.append(job.corpus.sentences.select(*columns))
    return pl.concat(frames)


def _summary(split: SplitBy, loss: LossSettings, results: Sequence[Result]) -> Summary:
    return Summary(
        split=split,
        loss=loss.name,
        parameter=loss.parameter,
        value=loss.chosen,
        tuning=_mean(one.tuning for one in results),
        seeds=tuple(one.settings.seed for one in results),
        epochs=tuple(one.best for one in results),
        before=_pooled([one.before for one in results]),
        after=_pooled([one.after for one in results]),
    )


def _pooled(seeds: Sequence[dict[str, Delta]]) -> dict[str, Pooled]:
    found = {name: pool([one[name] for one in seeds]) for name in seeds[0]}
    categories = [one for name, one in found.items() if name != "overall"]
    return {**found, "mean": Pooled(_mean(one.value for one in categories), _mean(one.signed for one in categories))}


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean; None if one is missing, since means over different seeds are not comparable."""
    known = list(values)
    return None if not known or None in known else float(np.mean(np.array(known, dtype=float)))


def _sizes(result: Result, select: SelectOn) -> str:
    """Return how many sentences each part has, in words."""
    count = result.sizes
    if select == "validation":
        return f"train {count['train']:,}, validation (which served for tuning too) {count['validation']:,}"
    return ", ".join(f"{name} {number:,}" for name, number in count.items())


def _render(name: str, **fields: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"score": _number, "numbers": _numbers}
    return environment.get_template(name).render(**fields)


def _number(one: Pooled | F1) -> str:
    """Return a value with its interval."""
    if one.value is None:
        return "-"
    return f"{one.value:.4f}" + ("" if one.low is None else f" [{one.low:.3f}, {one.high:.3f}]")


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
