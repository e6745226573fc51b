"""`prejudge train-encoder`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
import msgspec

from ...core.cli.console import terminal
from ...core.contracts.errors import MissingExtraError, UsageError
from ..shared.torch import require_torch
from .data import Corpus, describe, read_corpus
from .settings import LOSSES, Cell, LossSettings, Precision, Recipe, Schedule, TrainSettings
from .splits import SPLITS

if TYPE_CHECKING:
    from .grid import Job

NEEDED = ("sentence_transformers", "accelerate", "datasets", "sklearn")
GRID = {"temperature": (0.1, 0.5, 1.0, 10.0, 20.0, 30.0), "margin": (0.2, 0.3, 0.4, 0.5, 0.6)}
"""Values of the paper's appendix."""
DEFAULTS = {"temperature": (0.1,), "margin": (0.5,)}
F = TypeVar("F", bound=Callable[..., Any])
POSITIVE, SHARE = click.FloatRange(min=0, min_open=True), click.FloatRange(0, 1, max_open=True)
COUNT, BETWEEN = click.IntRange(min=1), click.FloatRange(0, 1, min_open=True, max_open=True)


def _option(name: str, type_: Any, default: Any, words: str = "") -> Callable[[F], F]:
    return click.option(name, type=type_, default=default, show_default=True, help=words)


def _options(name: str, field: str, type_: Any, words: str) -> Callable[[F], F]:
    return click.option(name, field, type=type_, multiple=True, help=f"{words} Repeatable.")


@click.command()
@click.argument("data", nargs=-1, required=True)
@click.option("--describe", "only_describe", is_flag=True, help="Show what the data contain, and do not train.")
@click.option("--model", help="The encoder to start from: a directory, or a name on the Hugging Face hub.")
@click.option("--out", help="The folder for encoders, results and figures. An interrupted call is resumed from it.")
@_options("--loss", "losses", click.Choice(LOSSES), "Default: each of the four.")
@_options("--temperature", "temperature", POSITIVE, "Temperature of nt-xent and nt-bxent. Default: 0.1.")
@_options("--margin", "margin", BETWEEN, "Margin of pairwise and triplet. Default: 0.5.")
@click.option("--paper-grid", is_flag=True, help="All temperatures and margins of the paper's appendix.")
@_option("--positive-weight", POSITIVE, 1.0, "Weight of the positive pairs in nt-bxent.")
@_option("--negative-weight", POSITIVE, 1.0, "Weight of the negative pairs in nt-bxent.")
@_options("--split", "splits", click.Choice(SPLITS), "Hold out sentences, or whole contexts. Default: each.")
@_option(
    "--select",
    click.Choice(["inner", "validation"]),
    "inner",
    "The data by which training stops and parameters are chosen: a tenth that is not reported, or the validation part.",
)
@_options("--seed", "seeds", click.IntRange(min=0), "Seed of the split and the training. Default: 0.")
@_option("--epochs", COUNT, 30, "Maximum number of epochs.")
@_option("--patience", COUNT, 3, "Stop after so many epochs without improvement.")
@_option("--batch", click.IntRange(min=2), 256, "Sentences per step, on average: batches are whole contexts.")
@_option("--learning-rate", POSITIVE, 5e-5)
@_option(
    "--schedule", click.Choice(get_args(Schedule)), "constant", "Schedule of the learning rate, over all --epochs."
)
@_option("--warmup", SHARE, 0.0, "Share of the steps in which the learning rate rises.")
@_option(
    "--precision",
    click.Choice(get_args(Precision)),
    "float32",
    "Precision of training (mixed precision; float16 needs a GPU). Results are computed in float32.",
)
@click.option("--no-buckets", is_flag=True, help="Pad each batch as a whole, not sentences of similar length together.")
@_options("--classifier", "heads", click.Choice(["frozen", "unfrozen"]), "Also train a two-layer classifier.")
@_option("--head-seeds", COUNT, 5, "Number of trainings of each classifier.")
@_option("--head-epochs", COUNT, 100, "Maximum number of epochs of each classifier.")
@_options("--beside", "beside", click.Path(exists=True, file_okay=False), "Also draw the results of another --out.")
@_option("--device", None, "auto", "auto, cpu, cuda or mps.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def train_encoder(data: tuple[str, ...], only_describe: bool, **given: Any) -> None:
    """Fine-tune a sentence encoder on DATA: CSV files with the columns context_id, sentence and type.

    Writes the best encoder of each split and loss with its model card and its confusion on held-out sentences,
    delta-sim before and after training by category, and figures.
    """
    corpus = read_corpus(data)
    if only_describe:
        from .results import describe_table

        terminal().print(describe_table(describe(corpus)))
        return
    job = make_job(corpus, given)
    for option, losses in unused(given, job.cells):
        click.echo(f"Note: {option} is not used by {losses}.", err=True)
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
    what = "`prejudge train-encoder`"
    require_torch(what, "encoder")
    if any(find_spec(package) is None for package in NEEDED):
        raise MissingExtraError(what, "encoder")
    if given["heads"] and os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError(
            "--classifier runs in one process. Train encoders with torchrun first, then call without it.",
            code="training.processes",
        )
    from .encoder import check_device, find_model
    from .grid import Job

    check_device(given["device"], given["precision"])
    source, out = find_model(given["model"]), Path(given["out"])
    return Job(source, corpus, make_cells(given), given["select"], out, given["device"], given["quiet"])


def make_cells(given: dict[str, Any]) -> list[Cell]:
    """Return the trainings of the options: by split, seed, loss, then temperature or margin."""
    weights = {name: given[name] for name in ("positive_weight", "negative_weight")}
    known = {name: given[name] for name in msgspec.structs.asdict(Recipe()) if name in given}
    losses = []
    for name in dict.fromkeys(given["losses"] or LOSSES):
        parameter = LossSettings(name=name).parameter
        values = GRID[parameter] if given["paper_grid"] else given[parameter] or DEFAULTS[parameter]
        losses += [LossSettings(name=name, **{parameter: value}, **weights) for value in dict.fromkeys(values)]
    places = itertools.product(dict.fromkeys(given["splits"] or SPLITS), dict.fromkeys(given["seeds"] or (0,)), losses)
    return [
        Cell(split, TrainSettings(loss=loss, seed=seed, buckets=not given["no_buckets"], **known))
        for split, seed, loss in places
    ]


def unused(given: dict[str, Any], cells: list[Cell]) -> list[tuple[str, str]]:
    """Return the options that no chosen loss uses, with the losses."""
    losses = {cell.settings.loss.name: cell.settings.loss.parameter for cell in cells}
    return [(f"--{name}", ", ".join(losses)) for name in GRID if given[name] and name not in losses.values()]


def _train(job: Job, given: dict[str, Any]) -> None:
    from .grid import is_first_process, run_grid, run_heads
    from .heads import HeadSettings
    from .results import overview, read_beside, write_results

    beside = read_beside(given["beside"], job.out)
    results = run_grid(job)
    if not is_first_process():
        return
    settings = HeadSettings(
        seeds=given["head_seeds"], epochs=given["head_epochs"], learning_rate=given["learning_rate"]
    )
    whole = write_results(job, results, run_heads(job, tuple(dict.fromkeys(given["heads"])), settings), beside)
    console = terminal()
    console.print(*overview(whole))
    console.print(f"By category: {job.out / 'results.md'}", soft_wrap=True)
    for split, folder in whole.best.items():
        console.print(f"Best encoder, split by {split}: {job.out / folder}", soft_wrap=True, highlight=False)
