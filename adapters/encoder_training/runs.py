"""Train what a call asks for, and write what its folder has to show; what is finished is not trained again."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jinja2
import msgspec
import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.statistics.intervals import t_isf
from ..hf.encoder.files import EncoderSource
from ..hf.encoder.model import Encoder
from ..shared.torch import quiet_loading
from .data import Corpus, Floats, Parts, cut
from .encoder import embed, find_model, open_encoder
from .heads import Heads, HeadSplit, Kind, classify_types
from .measures import COMPLETIONS, OVERALL, PAIR, WAYS, Comparison, Delta, Nested, confusion, deltas, nested
from .settings import LOSSES, RECIPES, Recipe
from .training import Epoch, rank, train

RESULT, ENCODER, CLASSIFIERS = "result.json", "encoder", "classifiers.json"
CONFUSIONS: dict[Comparison, str] = {PAIR: "confusion.json", **{way: f"confusion-{way}.json" for way in WAYS}}
"""File of each comparison of study `indicasa`: with one text of each type, or with several."""
T = TypeVar("T")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One training."""

    recipe: Recipe
    model: str
    digest: str
    data: dict[str, str]
    """sha256 of each file, by its name."""
    epochs: list[Epoch]
    best: int
    """The epoch whose weights are kept."""
    before: dict[str, Delta]
    """Validation delta-sim before training: `overall` and by category."""
    after: dict[str, Delta]
    sizes: dict[str, int]
    """Sentences of each part."""
    repeated: int
    """Validation sentences that are also, word for word, among the others."""
    trainer: dict[str, str]
    """Versions and settings that the Trainer recorded for the model card."""

    @property
    def rank(self) -> float:
        """Return a number that is greater for a better encoder, by the tuning part."""
        return rank(self.recipe.best, self.epochs[self.best - 1]._asdict())


class Job(msgspec.Struct, frozen=True, eq=False):
    """Model, data, trainings and the folder for results."""

    source: EncoderSource
    corpus: Corpus
    recipes: list[Recipe]
    out: Path
    device: str = "auto"
    quiet: bool = True

    def parts(self, recipe: Recipe) -> Parts:
        """Return the split of a training; raises `DataError` where the data are too few."""
        return cut(self.corpus, recipe.split, recipe.seed, recipe.select)

    def load(self, recipe: Recipe, trained: bool = False) -> Encoder:
        """Load the encoder before a training, or after it."""
        source = find_model(str(self.out / recipe.name / ENCODER)) if trained else self.source
        return open_encoder(source, self.corpus.texts, self.device, "own" if trained else recipe.pooling)

    def say(self, text: str) -> None:
        """Show progress."""
        if not self.quiet and is_first_process():
            print(text, file=sys.stderr)


def run_all(job: Job) -> list[Result]:
    """Train what is not yet trained, and return all results of the folder, by split, loss, parameter and seed.

    Raises:
        DataError: a split is not possible, or the folder holds results of other data, another model or other settings.
    """
    for recipe in job.recipes:
        job.parts(recipe)
        _check(job, recipe)
    for number, recipe in enumerate(job.recipes, 1):
        done = (job.out / recipe.name / RESULT).is_file()
        job.say(f"[{number}/{len(job.recipes)}] {recipe.name}{': done' if done else ''}")
        if not done:
            _train(job, recipe)
    found = [read_json(path, Result) for path in job.out.glob(f"*/{RESULT}")]
    order = list(LOSSES)
    return sorted(found, key=lambda r: (r.recipe.split, order.index(r.recipe.loss), r.recipe.value, r.recipe.seed))


def run_heads(
    job: Job, results: Sequence[Result], kinds: Sequence[Kind], split: HeadSplit, seeds: int, epochs: int
) -> list[Heads]:
    """Train classifiers on the best encoder, before and after its training; without kinds return those there were."""
    path, found = job.out / CLASSIFIERS, list[Heads]()
    if not kinds:
        return read_json(path, list[Heads]) if path.is_file() else []
    best = max(results, key=lambda one: one.rank).recipe
    recipe = msgspec.structs.replace(best, best="loss", stop="loss", epochs=epochs, patience=5, batch=64)
    for kind in kinds:
        for name in ("vanilla", "contrastive"):
            job.say(f"classifier, {kind}, {name} encoder")
            load, heads = partial(job.load, best, name == "contrastive"), Heads(kind, name, split)
            # Whatever stopped the encoder, classifiers stop by sentences that are not reported.
            parts = cut(job.corpus, best.split, best.seed)
            found.append(classify_types(load, job.corpus, heads, parts, seeds, recipe, job.out / "heads"))
    write_json(path, found)
    return found


def is_first_process() -> bool:
    """Return whether this process writes the results; torchrun starts several."""
    return os.environ.get("RANK", "0") == "0"


def write_results(job: Job, results: Sequence[Result], heads: Sequence[Heads]) -> str:
    """Write the tables of a folder, and return them in Markdown."""
    keys = [(one.recipe.split, one.recipe.seed, one.recipe.loss) for one in results]
    groups = {key: [one for one, own in zip(results, keys, strict=True) if own == key] for key in keys}
    halves = {key: found for key, ones in groups.items() if (found := nested_of(job, ones))}
    best = max(results, key=lambda one: one.rank).recipe
    fields = {"job": job, "results": results, "halves": halves, "heads": heads, "best": best, "mean": mean_of}
    text = _render("results.md.jinja", **fields)
    (job.out / "results.md").write_text(text, encoding="utf-8")
    pl.concat(
        _held_out(job, one.recipe) for one in {key[:2]: ones[0] for key, ones in groups.items()}.values()
    ).write_csv(job.out / "held-out.csv")
    pl.DataFrame(list(_scores(results, heads)), SCORES, orient="row").write_csv(job.out / "scores.csv")
    return text


def nested_of(job: Job, results: Sequence[Result]) -> Nested | None:
    """Return what halves of the validation part give for trainings of one split, seed and loss; None for inner ones."""
    if results[0].recipe.select == "inner":
        return None
    contexts = np.unique(job.corpus.context[job.parts(results[0].recipe).tuning])
    return nested(np.array([epoch.sums for one in results for epoch in one.epochs]), job.corpus.owner[contexts])


def mean_of(found: Sequence[Delta]) -> Delta:
    """Return the mean over seeds with Student's interval; None where one is missing."""
    values = np.array([one.value for one in found], dtype=float)
    mean, half = float(values.mean()), float(t_isf(0.025, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    if np.isnan(mean):
        return Delta(None, None, None, found[0].pairs)
    return Delta(mean, mean - half, mean + half, found[0].pairs)


def write_json(path: Path, value: object) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_bytes(msgspec.json.encode(value))
    draft.replace(path)


def read_json(path: Path, kind: type[T]) -> T:
    """Read a file that `write_json` wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        problem = f"{str(path)!r} is no result of this version of train-encoder: {error}"
        raise DataError(f"{problem}. Give another --out.", code="training.no-results") from None


def _check(job: Job, recipe: Recipe) -> None:
    """Refuse a folder with the same training on other data, of another model, or with other settings."""
    path = job.out / recipe.name / RESULT
    if not path.is_file():
        return
    there = read_json(path, Result)
    before = msgspec.structs.asdict(there.recipe) | {"model": there.digest, "data": list(there.data.items())}
    now = msgspec.structs.asdict(recipe) | {"model": job.source.digest, "data": list(job.corpus.digests.items())}
    for name in now:
        if before[name] != now[name]:
            raise DataError(
                f"{str(path.parent)!r} is a training with {name} {before[name]}, not {now[name]}. "
                "Give another --out, or the same as before.",
                code="training.other-plan",
                differs=name,
            )


def _train(job: Job, recipe: Recipe) -> None:
    corpus, parts, encoder, folder = job.corpus, job.parts(recipe), job.load(recipe), job.out / recipe.name
    held = parts.validation
    before = deltas(embed(encoder, corpus.texts[held]), corpus, held)
    fitted = train(encoder, corpus, parts, recipe, folder / "state", job.say)
    if not is_first_process():
        return
    vectors = embed(encoder, corpus.texts)
    result = Result(
        recipe=recipe,
        model=job.source.name,
        digest=job.source.digest,
        data=corpus.digests,
        epochs=fitted.epochs,
        best=fitted.best,
        before=before,
        after=deltas(vectors[held], corpus, held),
        sizes={name: len(rows) for name, rows in msgspec.structs.asdict(parts).items()},
        repeated=int(np.isin(corpus.wording[held], corpus.wording[parts.known]).sum()),
        trainer=fitted.recorded,
    )
    with quiet_loading():
        encoder.model.save(str(folder / ENCODER), create_model_card=False)
    (folder / ENCODER / "README.md").write_text(_render("card.md.jinja", job=job, kept=result), encoding="utf-8")
    write_confusions(folder, vectors, corpus, parts)
    write_json(folder / RESULT, result)
    shutil.rmtree(folder / "state", ignore_errors=True)


def write_confusions(folder: Path, vectors: Floats, corpus: Corpus, parts: Parts) -> None:
    """Write what the encoder makes of held-out sentences in the comparisons of study `indicasa`."""
    digest, rows = find_model(str(folder / ENCODER)).digest, (parts.validation, parts.known)
    for way in (PAIR, *WAYS):
        found = confusion(vectors, corpus, *rows, way, COMPLETIONS)
        about = {"several": way, "completions": COMPLETIONS, "encoder": digest}
        write_json(folder / CONFUSIONS[way], {"categories": found, **about})


SCORES = ("model", "metric", "loss", "classifier", "encoder", "category", "value")


def _scores(results: Sequence[Result], heads: Sequence[Heads]) -> Iterator[tuple[Any, ...]]:
    """Yield what can be held against the paper's tables 5, 6 and 4: of trainings on its split, with its pooling."""
    model, categories, names = results[0].model, results[0].before, ("split", "seed", "select", "pooling")
    paper = [getattr(RECIPES["indicasa-2025"], name) for name in names]
    own = [one for one in results if [getattr(one.recipe, name) for name in names] == paper]
    for name, delta in own[0].before.items() if own else ():
        yield model, "delta_sim", "", "", "", name.removeprefix(OVERALL), abs(delta.value or 0.0)
    for loss in LOSSES:
        if values := [abs(one.after[OVERALL].value or 0.0) for one in own if one.recipe.loss == loss]:
            yield model, "delta_sim", loss, "", "", "", max(values)
    for head in heads:
        for name in categories:
            values = head.values(name)
            mean = float(np.mean(values)) if values else None
            yield model, "macro_f1", "", head.kind, head.encoder, name.removeprefix(OVERALL), mean


def _held_out(job: Job, recipe: Recipe) -> pl.DataFrame:
    """Return the part of each sentence; a part that serves for both is `validation`."""
    part, parts = np.full(len(job.corpus.sentences), "train", dtype=object), job.parts(recipe)
    part[parts.tuning], part[parts.validation] = "tuning", "validation"
    split, seed = pl.lit(recipe.split).alias("split"), pl.lit(recipe.seed).alias("seed")
    columns = (split, seed, pl.Series("part", part.tolist()), "file", "line", "context_id", "category", "type")
    return job.corpus.sentences.select(*columns)


def _render(name: str, **fields: Any) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["score"] = _score
    return environment.get_template(name).render(**fields)


def _score(one: Delta) -> str:
    """Return a value with its interval."""
    if one.value is None:
        return "-"
    return f"{one.value:.4f}" + ("" if one.low is None else f" [{one.low:.3f}, {one.high:.3f}]")
