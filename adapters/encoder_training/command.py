"""`prejudge train-encoder`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.cli.console import terminal
from ...core.contracts.errors import MissingExtraError, UsageError
from ..shared.torch import require_torch
from .data import Corpus, read_corpus
from .settings import LOSSES, PRECISIONS, SCHEDULES, Grid, LossSettings, TrainSettings
from .splits import SPLITS

if TYPE_CHECKING:
    from .folder import Job

WHAT = "`prejudge train-encoder`"
NEEDED = ("sentence_transformers", "accelerate", "datasets", "sklearn")
TEMPERATURES, MARGINS = (0.1, 0.5, 1.0, 10.0, 20.0, 30.0), (0.2, 0.3, 0.4, 0.5, 0.6)
"""The grid of the paper's appendix."""
SHARED = ("epochs", "patience", "batch", "learning_rate", "schedule", "warmup", "precision")
POSITIVE, SHARE = click.FloatRange(min=0, min_open=True), click.FloatRange(0, 1, max_open=True)


@click.command()
@click.argument("data", nargs=-1, required=True)
@click.option("--describe", "only_describe", is_flag=True, help="Say what the data holds, and train nothing.")
@click.option("--model", help="The encoder to start from: a directory, or a name on the Hugging Face hub.")
@click.option("--out", help="The folder for encoders, results and figures; an interrupted call is resumed there.")
@click.option(
    "--loss", "losses", multiple=True, type=click.Choice(LOSSES), help="Repeatable. Default: all four, one by one."
)
@click.option("--temperature", "temperatures", multiple=True, type=POSITIVE, help="Repeatable. Default: 0.1.")
@click.option(
    "--margin", "margins", multiple=True, type=click.FloatRange(0, 1, True, True), help="Repeatable. Default: 0.5."
)
@click.option("--paper-grid", is_flag=True, help="All temperatures and margins of the paper's appendix.")
@click.option("--positive-weight", type=POSITIVE, default=1.0, show_default=True, help="Of NT-BXent's positive pairs.")
@click.option("--negative-weight", type=POSITIVE, default=1.0, show_default=True, help="Of NT-BXent's negative pairs.")
@click.option(
    "--split",
    "splits",
    multiple=True,
    type=click.Choice(SPLITS),
    help="Hold out sentences, as the paper does, or whole contexts. Repeatable. Default: both.",
)
@click.option(
    "--select",
    type=click.Choice(["inner", "validation"]),
    default="inner",
    show_default=True,
    help="Where to stop early and choose: on a tenth of the data that is not reported, or on the validation part.",
)
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(min=0), help="Repeatable. Default: 0.")
@click.option("--epochs", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--patience", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--batch", type=click.IntRange(min=2), default=256, show_default=True, help="Sentences per step.")
@click.option("--learning-rate", type=POSITIVE, default=5e-5, show_default=True)
@click.option(
    "--schedule",
    type=click.Choice(SCHEDULES),
    default="constant",
    show_default=True,
    help="How the learning rate falls over all --epochs.",
)
@click.option("--warmup", type=SHARE, default=0.0, show_default=True, help="Share of the steps in which it rises.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="Of training (mixed precision; float16 needs a GPU). Vectors are always measured in float32.",
)
@click.option("--no-buckets", is_flag=True, help="Pad each batch as a whole, not in passes of like length.")
@click.option(
    "--classifier",
    "heads",
    multiple=True,
    type=click.Choice(["frozen", "unfrozen"]),
    help="Also train a two-layer classifier on the encoder as given and as trained. Repeatable.",
)
@click.option("--head-seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Trainings of each.")
@click.option("--head-epochs", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--beside", multiple=True, metavar="FOLDER", help="Draw the bars of another --out too. Repeatable.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def train_encoder(data: tuple[str, ...], only_describe: bool, **given: Any) -> None:
    """Fine-tune a sentence encoder on DATA: CSV files with the columns context_id, sentence and type.

    Writes the best encoder of each split and loss with its model card and its confusion on held-out sentences,
    delta-sim before and after by category, and figures.
    """
    corpus = read_corpus(data)
    if only_describe:
        from .report import describe_table

        terminal().print(describe_table(corpus))
        return
    job = make_job(corpus, given)
    for option, losses in _unused(given, job.grid):
        click.echo(f"Note: {option} is not used by {losses}.", err=True)
    try:
        _train(job, given)
    except KeyboardInterrupt:
        raise UsageError(
            f"interrupted. What is done is in {str(job.out)!r}; to go on, give the same command again.",
            code="training.interrupted",
        ) from None


def make_job(corpus: Corpus, given: dict[str, Any]) -> Job:
    """Return what the options ask for.

    Raises:
        MissingExtraError: sentence-transformers, or what its Trainer needs, is not installed.
        UsageError: no model or no folder, or a device that the Trainer cannot be given.
    """
    for name in ("model", "out"):
        if not given[name]:
            raise UsageError(
                f"train-encoder needs --{name}. To look at the data only, add --describe.",
                code="options.missing",
                option=name,
            )
    require_torch(WHAT, "encoder")
    if any(find_spec(package) is None for package in NEEDED):
        raise MissingExtraError(WHAT, "encoder")
    from .encoder import check_device, find_model
    from .folder import Job

    check_device(given["device"], given["precision"])
    return Job(find_model(given["model"]), corpus, make_grid(given), Path(given["out"]), given["device"])


def make_grid(given: dict[str, Any]) -> Grid:
    """Return the trainings that the options ask for."""
    full = given["paper_grid"]
    weights = {name: given[name] for name in ("positive_weight", "negative_weight")}
    shared = {name: given[name] for name in SHARED}
    return Grid(
        splits=tuple(dict.fromkeys(given["splits"])) or SPLITS,
        seeds=tuple(dict.fromkeys(given["seeds"])) or (0,),
        losses=tuple(dict.fromkeys(given["losses"])) or LOSSES,
        temperatures=TEMPERATURES if full else tuple(dict.fromkeys(given["temperatures"])) or (0.1,),
        margins=MARGINS if full else tuple(dict.fromkeys(given["margins"])) or (0.5,),
        shared=TrainSettings(loss=LossSettings(name="nt-bxent", **weights), buckets=not given["no_buckets"], **shared),
        select=given["select"],
    )


def _train(job: Job, given: dict[str, Any]) -> None:
    from .grid import is_first_process, run_grid, run_heads, several_processes
    from .heads import Heads, HeadSettings
    from .report import overview
    from .summary import read_beside
    from .write import write_results

    beside = read_beside(given["beside"], job.out)
    settings = HeadSettings(seeds=given["head_seeds"], epochs=given["head_epochs"], encoder_rate=given["learning_rate"])
    heads = Heads(kinds=tuple(dict.fromkeys(given["heads"])), settings=settings)
    if heads.kinds and several_processes():
        raise UsageError(
            "--classifier trains in one process. Train encoders with torchrun, then call without it.",
            code="training.processes",
        )
    tell = None if given["quiet"] or not is_first_process() else _tell
    results = run_grid(job, tell)
    if not is_first_process():
        return
    classified = run_heads(job, heads, results, tell)
    whole = write_results(job, results, classified, beside)
    console = terminal()
    console.print(*overview(whole))
    console.print(f"By category: {job.out / 'results.md'}", soft_wrap=True)
    for split, folder in whole.best.items():
        console.print(f"Best encoder, split by {split}: {job.out / folder}", soft_wrap=True, highlight=False)


def _tell(text: str) -> None:
    from tqdm import tqdm

    # Above the Trainer's bar, where there is one.
    tqdm.write(text, file=sys.stderr)


def _unused(given: dict[str, Any], grid: Grid) -> list[tuple[str, str]]:
    """Return the parameters that were given and that no chosen loss has, with the losses."""
    known = {LossSettings(name=loss).parameter for loss in grid.losses}
    parameters = ("temperature", "margin")
    return [(f"--{name}", ", ".join(grid.losses)) for name in parameters if given[f"{name}s"] and name not in known]
