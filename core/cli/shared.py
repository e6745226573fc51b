"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ..catalogue.study import SUBJECT
from ..contracts.errors import DataError, StoreError, UsageError
from ..contracts.options import parse_assignments, set_twice
from ..contracts.places import Places
from ..contracts.processors import usable_cores
from ..engine.batch.options import SENTINELS
from ..engine.manifest import in_words, remeasured_in
from ..engine.retry import LONGEST_SECONDS
from ..store.engine import lacks_file
from ..store.urls import DEFAULT, option_words, store_url
from ..workers.options import WorkerOptions, worker_options
from .completing import complete_file, complete_model, complete_run, complete_study
from .outlet import echo
from .table_options import chosen_table, table_options

_ROLE = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)
F = TypeVar("F", bound=Callable[..., Any])

study_argument = click.argument("study", shell_complete=complete_study)
run_argument = click.argument("name", default="latest", shell_complete=complete_run)
store_option = click.option(
    "--store",
    default=DEFAULT,
    envvar="PREJUDGE_STORE",
    shell_complete=complete_file,
    show_default=True,
    show_envvar=True,
    help="The store: a file or a SQLAlchemy URL.",
)
unproved_option = click.option(
    "--unproved",
    is_flag=True,
    help="Show the numbers of a run that is not as it was stored, too; each is marked, and there is no head.",
)
registry_option = click.option(
    "--registry",
    default=None,
    shell_complete=complete_file,
    help="Your own registry file, which is trusted for this command. Default: registry.toml in the working directory.",
)
processes_option = click.option(
    "--processes",
    type=click.IntRange(1),
    metavar="N",
    callback=lambda context, option, number: number or usable_cores(),
    help="How many processes read and check what is large; by default one per processor.",
)
runs_option = click.option("--runs", default="runs", show_default=True, help="The folder for reports.")
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the probe (per_cell=60) or of a metric (METRIC.resamples=999). Repeatable.",
)
orders_option = click.option(
    "--orders",
    default=None,
    metavar="all|latin|paper",
    help="Orders of the answer options, for studies with options; short for --set orders=...",
)
LIMIT_HELP = (
    "Ask a part of the study: at most so many units of its first stage (pairs, items ...), equally many of each cell, "
    "drawn by a fixed rule. The report says so."
)
QUICK_HELP = "Ask a small part of the study, a few hundred questions, to see how it goes. The report says so."


def limit_options(command: F) -> F:
    """Add the options that ask a part of a study."""
    quick = click.option("--quick", is_flag=True, help=QUICK_HELP)(command)
    return click.option("--limit", type=click.IntRange(min=1), default=None, metavar="N", help=LIMIT_HELP)(quick)


data_option = click.option(
    "--data",
    default=None,
    metavar="FILE",
    shell_complete=complete_file,
    help="Your own data file, or a published data set.",
)
model_option = click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[ROLE=]NAME",
    shell_complete=complete_model,
    help="The model to study: its name, its folder (./my-bert) or ADAPTER:MODEL. ROLE=NAME sets another role. "
    "Repeatable.",
)
many_models_option = click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[ROLE=]NAME",
    shell_complete=complete_model,
    help="A model to study: its name, its folder (./my-bert) or ADAPTER:MODEL. Repeatable; ROLE=NAME sets another role "
    "of all.",
)
vary_option = click.option(
    "--vary",
    "varied",
    multiple=True,
    metavar="SETTING=A,B,C",
    help="Run the study once for each value of a setting of the model, such as thinking=off,low,high, and compare the "
    "runs. Repeatable: every combination.",
)


def until_options(command: F) -> F:
    """Add the options of a run that ends when a policy is decided."""
    command = click.option(
        "--policy", default=None, metavar="FILE", help="The rules of --until decided, as TOML; those of a gate."
    )(command)
    return click.option(
        "--until",
        type=click.Choice(["decided"]),
        default=None,
        help="Ask whole units in random order, and end the run when every rule of --policy passes or one fails. Exit "
        "code 0, 1, or 5 where all was asked and data are too few.",
    )(command)


published_option = click.option(
    "--published",
    multiple=True,
    metavar="MODEL",
    help="Set the values published for this model beside the run; `all`: for every model. Repeatable.",
)
_CORRECTION = (
    click.option(
        "--labels",
        default=None,
        metavar="FOLDER",
        help="Correct the numbers by the labels of this sample, which `prejudge view` drew.",
    ),
    click.option(
        "--matrix",
        default=None,
        metavar="FILE",
        help="Correct shares by this error matrix: CSV with verdict, label, n, and factors in which errors differ.",
    ),
    click.option("--outcome", default="", metavar="NAME", help="The outcome that has the errors of --matrix."),
)
leave_out_option = click.option(
    "--leave-out",
    "leave_out",
    multiple=True,
    type=click.Choice(["examples", "images"]),
    help="Write the report without examples, or without images. Repeatable.",
)
figures_option = click.option(
    "--figures",
    multiple=True,
    type=click.Choice(["pdf", "png"]),
    help="Write the figures in this format, too; they are always written as SVG. Repeatable.",
)
progress_option = click.option(
    "--progress",
    type=click.Choice(["auto", "bar", "plain", "json", "none"]),
    default="auto",
    show_default=True,
    help="Format of the progress on standard error. auto: bars on a terminal, otherwise lines.",
)
sign_option = click.option(
    "--sign",
    default=None,
    metavar="KEY",
    shell_complete=complete_file,
    help="Sign the finished run with this SSH key: a secret key, or a public key whose secret the SSH agent holds. "
    "`prejudge cache verify --signed-by` checks it.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Show no progress.")


def correction_options(command: F) -> F:
    """Add the options by which numbers are corrected for the errors of a reader or judge."""
    for option in reversed(_CORRECTION):
        command = option(command)
    return command


def again_words(where: Mapping[str, Any]) -> str:
    """Return the options that a command shown to the user needs to use the same store, folder and registry."""
    words = option_words(where["store"])
    words += f" --runs {shlex.quote(where['runs'])}" if where.get("runs", "runs") != "runs" else ""
    return words + (f" --registry {shlex.quote(where['registry'])}" if where.get("registry") else "")


def say_own_options(folder: Path, given: Mapping[str, Any]) -> None:
    """Write a note to standard error if the report in the run's folder was scored with other options."""
    try:
        held = remeasured_in(folder)
    except DataError:
        return  # the folder does not change the estimates
    if held and held != Places.of(given).record(given):
        own = f"with {in_words(given)}" if given else "with the run's own options"
        again = " ".join(f"--set {shlex.quote(f'{name}={value}')}" for name, value in held.items())
        note = f"Note: measured {own}. The report in {folder} uses other options; for the same numbers: {again}"
        echo(note, err=True)


def ensure_there(store: str) -> None:
    """Refuse a store that does not exist, for commands that need a run; opening it for writing would create it.

    Raises:
        StoreError: naming the file.
    """
    url = store_url(store)
    if lacks_file(url):
        raise StoreError(
            f"the store {url.database} does not exist. Run a study first, or name a store with --store.",
            code="store.missing",
        )


def budget_options(command: F) -> F:
    """Add the options that limit what a run may spend."""
    for name, kind, what in (
        ("cost", click.FloatRange(min=0, min_open=True), "US dollars, from the registry's prices"),
        ("tokens", click.IntRange(min=1), "input and output tokens"),
        ("requests", click.IntRange(min=1), "requests, including retries"),
    ):
        text = f"Budget of this command in {what}. At the limit the run stops; `prejudge resume` continues it."
        command = click.option(f"--max-{name}", type=kind, default=None, help=text)(command)
    return command


def batch_options(command: F) -> F:
    """Add the options on how to ask in batches of the provider."""
    command = click.option(
        "--batch-items",
        type=click.IntRange(min=1),
        default=None,
        help="Most requests of one batch.  [default: as many as the provider takes]",
    )(command)
    command = click.option(
        "--sentinel",
        type=click.IntRange(min=0),
        default=SENTINELS,
        show_default=True,
        help="Requests of a stage that are asked by single calls, too, before its batches, and compared. 0: none.",
    )(command)
    command = click.option(
        "--batch-only",
        is_flag=True,
        help="Ask no first trials by single calls, which show before the batches whether the model can do the task.",
    )(command)
    return click.option(
        "--no-wait",
        is_flag=True,
        help="Leave the run (exit code 4) once its batches are with the provider; `prejudge resume` collects them.",
    )(command)


def workers_options(command: F) -> F:
    """Add the options on processes that hold a local model each; `chosen_workers` reads them."""
    for flag, kind, metavar, text in (
        ("devices", str, "all|0,1,...", "GPUs of the workers: one process for each. 0,0: two share one."),
        ("workers", click.IntRange(min=1), "N", "Processes that ask local models together.  [default: one per GPU]"),
        ("address", str, "HOST:PORT", "Cluster of Ray; auto: that of this machine.  [default: one for this run alone]"),
        ("engine", str, "local|ray", "What starts the workers: this machine, or a cluster of Ray.  [default: local]"),
    ):
        command = click.option(f"--{flag}", type=kind, default=None, metavar=metavar, help=text)(command)
    return command


def chosen_workers(where: Mapping[str, Any]) -> WorkerOptions | None:
    """Return the workers of the options; None: the run stays in one process."""
    return worker_options(*(where.get(name) for name in ("engine", "workers", "devices", "address")))


def fault_options(command: F) -> F:
    """Add the options on faults that all requests of a run meet."""
    command = click.option(
        "--max-wait",
        type=click.FloatRange(min=0, min_open=True),
        default=LONGEST_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Longest wait that an endpoint may ask for. If it asks for more again, the run stops.",
    )(command)
    command = click.option(
        "--accept-repeats",
        is_flag=True,
        help="Ask an endpoint that gives one answer to draws that must differ; each prompt then counts as one draw.",
    )(command)
    command = click.option(
        "--accept-unfit",
        is_flag=True,
        help="Ask on where the model answers fewer than half of the questions of a stage.",
    )(command)
    return click.option(
        "--keep-going",
        is_flag=True,
        help="Ask on where many requests in a row fail alike or are answered with nothing. Implies --accept-unfit.",
    )(command)


def study_options(command: F) -> F:
    """Add a study with what may be set of it: models, data, orders, a part, options."""
    for option in (set_option, limit_options, orders_option, table_options, data_option, model_option, study_argument):
        command = option(command)
    return command


def read_study_options(
    assignments: tuple[str, ...], data: str | None, orders: str | None, limit: int | None, quick: bool
) -> dict[str, Any]:
    """Return the options of a study that `study_options` were given."""
    return read_assignments(assignments, data, orders=orders, limit=limit, quick=quick or None)


def read_pairs(option: str, given: Sequence[str], such: str = "NAME=VALUE") -> dict[str, str]:
    """Return texts by name.

    Raises:
        UsageError: one has no `=`, or a name has two values.
    """
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} is {text!r}. Give {such}.", code="options.value")
        if name in pairs:
            raise set_twice(name)
        pairs[name] = value
    return pairs


def read_assignments(assignments: tuple[str, ...], data: str | None, **others: Any) -> dict[str, Any]:
    """Return the options set on the command line, by `--set` or by an option of their own.

    Raises:
        UsageError: an option is set twice.
    """
    values = parse_assignments(assignments)
    named = {name: value for name, value in {"data": data, **chosen_table(), **others}.items() if value is not None}
    if repeated := sorted(values.keys() & named.keys()):
        raise set_twice(repeated[0])
    return values | named


def split_models(models: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the models of the role `subject`, and the model of each other role."""
    roles = [text for text in models if (found := _ROLE.fullmatch(text)) and found[1] != SUBJECT]
    subjects = [text.removeprefix(f"{SUBJECT}=") for text in models if text not in roles]
    return subjects, read_models(tuple(roles))


def read_models(models: tuple[str, ...]) -> dict[str, str]:
    """Return the model of each role.

    Raises:
        UsageError: a role has two models.
    """
    roles: dict[str, str] = {}
    for text in models:
        # A path and the settings of a variant may have an equals sign too.
        given = _ROLE.fullmatch(text)
        role, name = (given[1], given[2]) if given else ("subject", text)
        if role in roles:
            raise UsageError(
                f"the role {role!r} has two models: {roles[role]!r} and {name!r}. Run the study once for each.",
                code="study.role-twice",
            )
        roles[role] = name
    return roles
