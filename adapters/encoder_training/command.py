"""`prejudge study train-encoder`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ...core.cli.console import echo, terminal
from ...core.contracts.errors import MissingExtraError, UsageError
from ..shared.torch import choose_device, require_torch
from .data import Corpus, describe, read_corpus
from .settings import GRID, LOSSES, POOLINGS, PRECISIONS, PROGRAM, RECIPES, SCHEDULES, SELECTS, SPLITS, Recipe

if TYPE_CHECKING:
    from .runs import Job

NEEDED = ("sentence_transformers", "accelerate", "datasets", "sklearn")
F = TypeVar("F", bound=Callable[..., Any])
POSITIVE, SHARE = click.FloatRange(min=0, min_open=True), click.FloatRange(0, 1, max_open=True)
COUNT, BETWEEN = click.IntRange(min=1), click.FloatRange(0, 1, min_open=True, max_open=True)


def _option(name: str, type_: Any, words: str, **more: Any) -> Callable[[F], F]:
    return click.option(name, type=type_, help=words, **more)


def _options(name: str, field: str, type_: Any, words: str) -> Callable[[F], F]:
    return click.option(name, field, type=type_, multiple=True, help=f"{words} Repeatable.")


@click.command()
@click.argument("data", nargs=-1, required=True)
@click.option("--describe", "only_describe", is_flag=True, help="Show what the data contain, and do not train.")
@click.option("--model", help="The encoder to start from: a directory, or a name on the Hugging Face hub.")
@click.option("--out", help="The folder for encoders and results. An interrupted call is resumed from it.")
@_option(
    "--recipe",
    click.Choice(list(RECIPES)),
    "Defaults of the options below: `nested` chooses nothing on the part that is reported; `indicasa-2025` is the"
    " recipe of the paper's authors.",
    default="nested",
    show_default=True,
)
@_options("--loss", "losses", click.Choice(list(LOSSES)), "Default: the four of the authors' program.")
@_options("--temperature", "temperature", POSITIVE, "Of nt-xent (default 0.1) and nt-bxent (default 10).")
@_options("--margin", "margin", BETWEEN, "Of pairwise and triplet. Default: 0.5.")
@click.option("--paper-grid", is_flag=True, help="All temperatures and margins of the paper's appendix.")
@_options("--split", "splits", click.Choice(SPLITS), "Hold out whole contexts, or sentences. Default: context.")
@_options("--seed", "seeds", click.IntRange(min=0), "Of the split and the training. Default: 42, the authors' split.")
@_option(
    "--select",
    click.Choice(SELECTS),
    "The part by which training stops and the epoch is chosen: a tenth that is not reported, or the validation part.",
)
@_option("--pooling", click.Choice(POOLINGS), "How token vectors become one: as the model says, by CLS, or their mean.")
@_option("--epochs", COUNT, "Maximum number of epochs.")
@_option("--patience", COUNT, "Stop after so many epochs without improvement.")
@_option("--batch", COUNT, "Sentences per step, on average: batches are whole contexts, 1 is one context per step.")
@_option("--learning-rate", POSITIVE, "Default: 5e-5.")
@_option("--schedule", click.Choice(SCHEDULES), "Of the learning rate, over all --epochs. Default: constant.")
@_option("--warmup", SHARE, "Share of the steps in which the learning rate rises.")
@_option("--precision", click.Choice(PRECISIONS), "Mixed precision of training; float16 needs a GPU. Default: float32.")
@_options("--classifier", "heads", click.Choice(["frozen", "unfrozen"]), "Also train a two-layer classifier.")
@_option(
    "--head-split",
    click.Choice(["encoder", *SPLITS]),
    "Parts of the classifiers: those of the encoder, or a split of its own for each seed.",
    default="encoder",
    show_default=True,
)
@_option("--head-seeds", COUNT, "Number of trainings of each classifier.", default=5, show_default=True)
@_option("--head-epochs", COUNT, "Maximum number of epochs of an unfrozen classifier.", default=20, show_default=True)
@_option("--device", click.Choice(["auto", "cpu", "cuda", "mps"]), "Default: auto. CUDA_VISIBLE_DEVICES names GPUs.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def train_encoder(data: tuple[str, ...], only_describe: bool, **given: Any) -> None:
    """Fine-tune a sentence encoder on DATA: CSV files with the columns context_id, sentence and type.

    Writes each encoder with its model card and its confusion on held-out sentences, and delta-sim before and after
    training by category.
    """
    corpus = read_corpus(data)
    if only_describe:
        from rich.table import Table

        rows = describe(corpus)
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*("" if x is None else f"{x:.2f}" if isinstance(x, float) else str(x) for x in row.values()))
        terminal().print(table)
        return
    job = make_job(corpus, given)
    losses = dict.fromkeys(recipe.loss for recipe in job.recipes)
    for name in GRID:
        if given[name] and all(LOSSES[loss][0] != name for loss in losses):
            echo(f"Note: --{name} is not used by {', '.join(losses)}.", err=True)
    try:
        _train(job, given)
    except KeyboardInterrupt:
        raise UsageError(
            f"interrupted. The finished trainings are in {str(job.out)!r}; give the same command again to resume.",
            code="training.interrupted",
        ) from None


def make_job(corpus: Corpus, given: dict[str, Any]) -> Job:
    """Return the job of the options.

    Raises:
        MissingExtraError: sentence-transformers, or what its Trainer needs, is not installed.
        UsageError: no model or no folder, or a device that the Trainer cannot use.
    """
    for name in ("model", "out"):
        if not given[name]:
            problem = f"train-encoder needs --{name}. To inspect the data only, add --describe."
            raise UsageError(problem, code="options.missing", option=name)
    what = "`prejudge study train-encoder`"
    require_torch(what, "encoder")
    if any(find_spec(package) is None for package in NEEDED):
        raise MissingExtraError(what, "encoder")
    if given["heads"] and os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError(
            "--classifier runs in one process. Train encoders with torchrun first, then call without it.",
            code="training.processes",
        )
    from .encoder import find_model
    from .runs import Job

    recipes, device = make_recipes(given), given["device"] or "auto"
    if recipes[0].precision == "float16" and (chosen := choose_device(device)) != "cuda":
        raise UsageError(
            f"--precision float16 needs a GPU, but the device is {chosen!r}. Give bfloat16 or float32.",
            code="options.conflict",
            device=chosen,
        )
    return Job(find_model(given["model"]), corpus, recipes, Path(given["out"]), device, given["quiet"])


def make_recipes(given: dict[str, Any]) -> list[Recipe]:
    """Return the trainings of the options: by split, seed, loss, then temperature or margin."""
    base = RECIPES[given["recipe"]]
    own = {name: given[name] for name in base.__struct_fields__ if given.get(name) is not None}
    losses = []
    for name in given["losses"] or PROGRAM:
        parameter, default = LOSSES[name]
        values = GRID[parameter] if given["paper_grid"] else given[parameter] or (default,)
        losses += [{"loss": name, "value": value} for value in values]
    places = itertools.product(given["splits"] or (base.split,), given["seeds"] or (base.seed,), losses)
    replace = msgspec.structs.replace
    return list(dict.fromkeys(replace(base, **own, **loss, split=split, seed=seed) for split, seed, loss in places))


def _train(job: Job, given: dict[str, Any]) -> None:
    from rich.markdown import Markdown

    from .runs import is_first_process, run_all, run_heads, write_results

    results = run_all(job)
    if not is_first_process():
        return
    kinds = tuple(dict.fromkeys(given["heads"]))
    heads = run_heads(job, results, kinds, given["head_split"], given["head_seeds"], given["head_epochs"])
    terminal().print(Markdown(write_results(job, results, heads)))
    terminal().print(f"Written: {job.out / 'results.md'}", soft_wrap=True)
