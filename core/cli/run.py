"""`prejudge run` and `prejudge resume`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import click
import msgspec

from ..catalogue.small_parts import small_words
from ..catalogue.study import SUBJECT, Catalogue, Study
from ..catalogue.variants import read_varied
from ..compare import CompareOptions, compare_scores, score_all, write_comparison
from ..contracts.errors import BudgetError, HaltedError, PendingError, UsageError
from ..engine.batch.options import BatchOptions
from ..engine.budget import Budget, Caps
from ..engine.ending import FAILED, PENDING, SPENT, end_of
from ..engine.fitness import base_note
from ..engine.foreign import ensure_own
from ..engine.manifest import Manifest, digest_data, manifest_of
from ..engine.reading import Outcome
from ..engine.runs import RunOptions, execute
from ..engine.scheduler import Mode
from ..engine.varying import SharedBudget, ensure_accepted, varied_studies
from ..gate import Deciding, Policy, followed_in, judge, parse_policy, read_policy
from ..report.output import ensure_writable
from ..scoring.score import score
from ..store import Store, get_run, unfinished_runs
from ..store.repair import damage_words
from ..store.urls import hide_password
from .comparison import show_comparison
from .ending import ended_gently
from .gate import show_verdicts
from .outlet import echo
from .progress import make_progress
from .results import deliver, scored_again
from .shared import (
    again_words,
    batch_options,
    budget_options,
    chosen_workers,
    fault_options,
    leave_out_option,
    progress_option,
    quiet_option,
    read_models,
    read_study_options,
    registry_option,
    run_argument,
    runs_option,
    sign_option,
    store_option,
    study_options,
    until_options,
    vary_option,
    workers_options,
)
from .steps import slow_steps


@click.command()
@study_options
@click.option(
    "--mode",
    type=click.Choice(["use", "replay", "refresh"]),
    default="use",
    show_default=True,
    help="use: ask only requests without a stored answer; replay: ask nothing; refresh: ask all requests again.",
)
@click.option(
    "--refresh",
    multiple=True,
    type=click.Choice(get_args(Outcome)),
    help="Ask these stored answers anew, and all requests without one. The report says that they were chosen by "
    "their outcome. Repeatable.",
)
@click.option(
    "--batch",
    is_flag=True,
    help="Ask in batches of the provider, at its price for them and within hours. Models without are asked as usual.",
)
@batch_options
@vary_option
@until_options
@budget_options
@workers_options
@fault_options
@sign_option
@click.option("--name", default=None, metavar="NAME", help="Name of the run. Default: time, study and model.")
@store_option
@runs_option
@registry_option
@leave_out_option
@progress_option
@quiet_option
def run(
    study: str,
    models: tuple[str, ...],
    data: str | None,
    assignments: tuple[str, ...],
    varied: tuple[str, ...],
    **where: Any,
) -> int:
    """Run STUDY on a model, score it and write its report.

    Stored answers are not requested again. After Ctrl-C, SIGTERM, a closed terminal or a spent budget (exit code 3) all
    answers are kept, and `prejudge resume` continues the run. With --batch, the provider goes on while the run is left.
    """
    catalogue = Catalogue.load(where["registry"])
    part = (where[name] for name in ("orders", "limit", "quick"))
    roles, values = read_models(models), read_study_options(assignments, data, *part)
    command = hide_password(shlex.join(["prejudge", *sys.argv[1:]]))
    batch = _read_batch(where, chosen_now=where["batch"])
    own = {"mode": cast("Mode", where["mode"]), "refresh": where["refresh"], "command": command, "batch": batch}
    if varied and where["name"] is not None:
        raise UsageError("--vary makes a run of each variant, and --name names one run.", code="options.conflict")
    own["new_name"] = where["name"]
    options = read_run_options(where, **own)
    rules = _read_policy(where)
    if varied:
        studies = varied_studies(catalogue, study, roles, read_varied(varied), values)
        return perform_all(catalogue, studies, options, where, rules)
    chosen = catalogue.study(study, roles, values)
    _say_notes(catalogue, chosen, where)
    return perform(catalogue, chosen, options, where, rules=rules)[0]


def _say_notes(catalogue: Catalogue, study: Study, where: Mapping[str, Any]) -> None:
    if where["quiet"]:
        return
    for note in filter(None, [*study.notes, small_words(catalogue, study), base_note(catalogue, study)]):
        echo(f"Note: {note}", err=True)


def perform_all(
    catalogue: Catalogue,
    studies: Sequence[Study],
    options: RunOptions,
    where: Mapping[str, Any],
    rules: Policy | None = None,
) -> int:
    """Run a study on each variant of a model, within one budget, and compare the runs; return the exit code.

    Raises:
        UsageError: a run was interrupted, or met a fault that all its requests share.
    """
    shared, names, worst = SharedBudget(options.caps), [], 0
    try:
        with ended_gently(), Store(where["store"], later=True) as store:
            asyncio.run(ensure_accepted(catalogue, studies, store, options, shared))
    except KeyboardInterrupt:
        raise UsageError(f"interrupted. {_done(0, studies)}", code="run.interrupted") from None
    except BudgetError as spent:
        echo(f"prejudge: {spent}", _done(0, studies), err=True)
        return SPENT
    for number, study in enumerate(studies, 1):
        if not where["quiet"]:
            echo(f"Variant {number} of {len(studies)}: {study.roles[SUBJECT]}", err=True)
        _say_notes(catalogue, study, where)
        try:
            code, name = perform(catalogue, study, options, where, shared.budget(), rules)
        except BudgetError as spent:
            echo(f"prejudge: {spent}", err=True)
            code, name = SPENT, None
        if code == PENDING:
            worst = PENDING  # the batches of the other variants are handed in, too
            continue
        if name is None:
            echo(_done(number - 1, studies), err=True)
            return code
        names.append(name)
        worst = max(worst, code)
    if worst == PENDING:
        return PENDING
    with Store(where["store"], writable=False) as store:
        runs = score_all(catalogue, store, names)
    done = compare_scores(catalogue, runs, CompareOptions(all_pairs=True))
    return max(worst, show_comparison(done, write_comparison(done, Path(where["runs"]))))


def _done(number: int, studies: Sequence[Study]) -> str:
    return (
        f"{number} of {len(studies)} variants are done. The same command continues: stored answers are not asked "
        "again, and cost nothing."
    )


@click.command()
@run_argument
@batch_options
@budget_options
@workers_options
@fault_options
@sign_option
@store_option
@runs_option
@registry_option
@leave_out_option
@progress_option
@quiet_option
def resume(name: str, **where: Any) -> int:
    """Resume the interrupted run NAME (default: the latest). A budget applies to this command only."""
    catalogue = Catalogue.load(where["registry"])
    with Store(where["store"], writable=False) as store:
        found = get_run(store, name)
        if name == "latest" and found.state == "finished" and (left := unfinished_runs(store)):
            names = ", ".join(run.name for run in left[:3])
            echo(f"Note: the latest run is finished. Others are not: {names}. Resume one by its name.", err=True)
        if damage := damage_words(store, found.id):
            echo(f"Note: {damage}", err=True)
        manifest = manifest_of(found)
        ensure_own(catalogue, store, manifest)
    if manifest.mode not in get_args(Mode):
        raise UsageError(
            f"the run {found.name} ({manifest.mode}) cannot be resumed: it is not a run of a study on a model.",
            code="run.not-resumable",
        )
    ensure_same_data(manifest)
    # What is left is asked as the run would have asked it; a replay is completed by asking.
    mode: Mode = "refresh" if manifest.mode == "refresh" else "use"
    batch = _read_batch(where, chosen_now=manifest.batch is not None)
    own = {"mode": mode, "refresh": manifest.refresh, "command": manifest.command, "batch": batch}
    options = read_run_options(where, name=found.name, **own)
    rules = None if manifest.ending is None else parse_policy(manifest.ending.policy, "the run's policy")
    return perform(catalogue, manifest.study, options, where, rules=rules)[0]


def read_run_options(where: Mapping[str, Any], **own: Any) -> RunOptions:
    """Return the settings of a run from the options that `run` and `resume` share, and `own`."""
    caps = Caps(**{name: where[f"max_{name}"] for name in Caps.__struct_fields__})
    faults = {"keep_going": where["keep_going"], "accept_repeats": where["accept_repeats"]}
    faults |= {"accept_unfit": where["accept_unfit"]}
    shared = {"longest_wait": where["max_wait"], "workers": chosen_workers(where), "sign": where.get("sign")}
    return RunOptions(caps=caps, **shared, **faults, **own)


def _read_batch(where: Mapping[str, Any], *, chosen_now: bool) -> BatchOptions | None:
    """Return how to ask in batches, if the run is to.

    Raises:
        UsageError: an option of batches without --batch.
    """
    if chosen_now:
        return BatchOptions(
            wait=not where["no_wait"],
            sentinel=where["sentinel"],
            only=where["batch_only"],
            items=where["batch_items"],
        )
    if where["no_wait"] or where["batch_only"] or where["batch_items"] is not None:
        raise UsageError(
            "--no-wait, --batch-only and --batch-items are of runs that ask in batches. Add --batch, or leave them "
            "out.",
            code="options.conflict",
        )
    return None


def _read_policy(where: Mapping[str, Any]) -> Policy | None:
    """Return the rules that end the run.

    Raises:
        UsageError: one of --until and --policy is missing, or the run asks in batches.
    """
    if where["until"] is None and where["policy"] is None:
        return None
    if where["until"] is None or where["policy"] is None:
        raise UsageError(
            "--until decided and --policy FILE belong together. Give both, or neither.", code="options.conflict"
        )
    if where["batch"]:
        raise UsageError(
            "--batch hands in all requests at once, and --until decided looks between them. Leave one out.",
            code="options.conflict",
        )
    return read_policy(where["policy"])


def ensure_same_data(manifest: Manifest) -> None:
    """Refuse to resume a run whose data file has changed: its answers would belong to other questions.

    Raises:
        UsageError: naming the file.
    """
    now = digest_data(manifest.study.options)
    for path, digest in manifest.data.items():
        if now.get(path) != digest:
            what = "no longer exists" if path not in now else "has changed"
            raise UsageError(
                f"the run {manifest.run} cannot be resumed: its data file {path!r} {what}. Start a new run.",
                code="run.data-changed",
            )


def perform(
    catalogue: Catalogue,
    study: Study,
    options: RunOptions,
    where: Mapping[str, Any],
    budget: Budget | None = None,
    rules: Policy | None = None,
) -> tuple[int, str | None]:
    """Run a study with progress on the terminal, show the results, and return the exit code and the finished run.

    With `rules` the run ends when they are decided, and the exit code is that of the gate.

    Raises:
        UsageError: the run was interrupted; the message has the command that resumes it.
    """
    ensure_writable(Path(where["runs"]))
    if rules is not None:
        options = msgspec.structs.replace(options, decider=Deciding(catalogue, study, rules))
    code, name = ask(catalogue, study, options, where, budget)
    if name is None:
        return code, None
    with scored_again(name, where), Store(where["store"], later=True) as store:
        scores = score(catalogue, store, name)
        code = deliver(scores, store, where)
        if rules is not None and scores.estimates:
            verdicts = judge(scores, rules, followed=followed_in(scores, rules))
            code = show_verdicts(verdicts, f"{rules.name} on {name}")
        return code, name


def ask(
    catalogue: Catalogue,
    study: Study,
    options: RunOptions,
    where: Mapping[str, Any],
    budget: Budget | None = None,
) -> tuple[int, str | None]:
    """Run a study with progress on the terminal, without scoring it; return the exit code and the finished run.

    Raises:
        UsageError: the run was interrupted; the message has the command that resumes it.
    """
    with Store(where["store"], later=True) as store:
        progress = make_progress(where.get("progress", "auto"), quiet=where["quiet"])
        try:
            with ended_gently(), slow_steps(shown=progress.speaks):
                return 0, asyncio.run(execute(catalogue, study, store, options, progress, budget))
        except KeyboardInterrupt:
            batches = "What is with the provider in batches goes on there. " if options.batch is not None else ""
            message = f"interrupted. {batches}{_resume(progress.run, where)}"
            raise UsageError(message, code="run.interrupted") from None
        except (HaltedError, BudgetError, PendingError) as error:
            message, code = f"{error} {_resume(progress.run, where)}", end_of(error).exit_code
            if code == FAILED:
                raise type(error)(message, code=error.code) from None
            progress.close()
            echo(f"prejudge: {message}", err=True)
            return code, None
        finally:
            progress.close()


def _resume(run: str | None, where: Mapping[str, Any]) -> str:
    if run is None:
        return "No model was asked."
    sign = f" --sign {shlex.quote(where['sign'])}" if where.get("sign") else ""
    return f"All answers are stored. Resume with: prejudge resume {run}{sign}{again_words(where)}"
