"""The command group. An error is one line and exit code 2; `--debug` shows the traceback.

Exit codes: see `exits.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..contracts.errors import PrejudgeError, UsageError
from .outlet import echo, echo_exception
from .screen import ensure_written, screens

NO_ANSWER = "the question was not answered. Answer it in a terminal, or give --yes."
Listing = dict[str, tuple[str, str]]
"""Where each command is (`module:attribute`) and what it does, by its name."""
SECTIONS: dict[str, Listing] = {
    "Ask": {
        "run": ("run:run", "Run a study on a model, score it and write its report."),
        "resume": ("run:resume", "Resume an interrupted run."),
        "plan": ("plan:plan", "Count the requests and the cost of a study before running it."),
        "import": ("importing:import_responses", "Import answers that somebody else collected, and score them."),
        "doctor": ("doctor:doctor", "Check the installation, or ask a model a few questions with known answers."),
    },
    "Read": {
        "score": ("score:score", "Score a run again from the store, or measure published scores."),
        "measure": ("measure:measure", "Measure a table of outcomes: groups, rates and differences, with intervals."),
        "list": ("listing:list_all", "List studies, models, probes, metrics, adapters or runs."),
        "view": ("view:view", "Read every answer in the browser, compare runs, and label samples."),
        "compare": ("compare:compare", "Compare runs of one study, or the ranks of models in several studies."),
        "export": ("tables:export", "Write estimates, observations or a model card of a run as files."),
    },
    "Decide": {
        "gate": ("gate:gate", "Check a run against a policy; write JUnit XML and a summary for a pull request."),
    },
    "Prove": {
        "cache": ("cache:cache", "Inspect the store, check it, and share or remove runs."),
        "lab": ("main:lab", "Test a study or a result: calibration, variance, other choices, a recheck."),
    },
    "Build": {
        "new": ("new:new", "Write a study folder, or a package for your own probe, adapter or metric."),
        "study": ("main:study", "Check a study file, compare with published values; commands of single studies."),
        "trust": ("trust:trust_", "Show what a registry.toml wants to do, and trust it."),
    },
}
"""The general commands, in the order in which a new user needs them."""
LAB: Listing = {
    "calibrate": ("calibrate:calibrate", "Run a study over models whose bias is known, and write its certificate."),
    "variance": ("variance:variance", "Show where the variance of a measure comes from, and what to ask more of."),
    "multiverse": ("multiverse:multiverse", "Show what every defensible choice of a study makes of its result."),
    "converge": ("converge:converge", "Measure one construct by several methods, and judge whether they agree."),
    "recheck": ("recheck:recheck", "Ask a sample of a run again, and test whether the answers have changed."),
}
STUDY: Listing = {
    "validate": ("validate:validate", "Check a study file or folder, and list all its errors."),
    "replicate": ("replicating:replicate", "Compare the results of a study with the published values."),
}
COMMANDS: Listing = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
ELSEWHERE = {**{name: f"lab {name}" for name in LAB}, **{name: f"study {name}" for name in STUDY}, "card": "export"}
"""Commands of other groups, for somebody who types their name alone."""


class LazyGroup(click.Group):
    """A group that lists commands by name and summary, and imports a command when it is called."""

    sections: Mapping[str, Listing] = SECTIONS
    plugins = False
    """Whether commands of studies and installed plugins belong to this group."""

    def entries(self) -> Listing:
        """Return the commands of the framework in this group."""
        return {name: entry for section in self.sections.values() for name, entry in section.items()}

    def summaries(self) -> dict[str, str]:
        """Return what each command does, by its name; importing none."""
        return {name: text for name, (_, text) in self.entries().items()} | (plugin_commands() if self.plugins else {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which a new user needs them."""
        return list(self.summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if (entry := self.entries().get(cmd_name)) is not None:
            module, _, attribute = entry[0].partition(":")
            command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
            return command
        return load_plugin_command(cmd_name) if self.plugins and cmd_name in plugin_commands() else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or name the one that is meant; refuse an option of a single value that is repeated."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            hints = import_module(".hints", __package__)
            meanings = {} if ctx.parent else {**hints.COMMANDS, **ELSEWHERE, **studies_commands()}
            ctx.fail(f"No such command {args[0]!r}.{hints.suggestion(args[0], names, meanings)}")
        name, command, remaining = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            repeated = import_module(".repeated", __package__)
            remaining = repeated.joined_latest(command, remaining)
            repeated.ensure_single(command, remaining, ctx)
        return name, command, remaining

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names without importing a command."""
        commands = [CompletionItem(n, help=text) for n, text in self.summaries().items() if n.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        for title, entries in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in entries.items()])
        if self.plugins and (others := plugin_commands()):
            with formatter.section("Commands of studies and plugins"):
                formatter.write_dl(list(others.items()))


class LabGroup(LazyGroup):
    """Analyses that test a study or a result."""

    sections: Mapping[str, Listing] = {"Analyses": LAB}


class StudyGroup(LazyGroup):
    """What is done with a study besides asking it, and the commands of studies and plugins."""

    sections: Mapping[str, Listing] = {"Commands of every study": STUDY}
    plugins = True


def _plugins() -> Any:
    plugins = import_module("..catalogue.plugins", __package__)
    registry = import_module("..catalogue.registry", __package__)
    return plugins.Plugins(registry.Registry(), kinds=("command",))


def plugin_commands() -> dict[str, str]:
    """Return the names and summaries of the commands that studies and installed plugins add."""
    offers = _plugins().offers["command"]
    return {name: registered.plugged.summary for name, registered in offers.items() if name not in STUDY}


def studies_commands() -> dict[str, str]:
    """Return how the commands of studies and plugins are called, by their names."""
    return {name: f"study {name}" for name in plugin_commands()}


def load_plugin_command(name: str) -> click.Command:
    """Import a plugin's command."""
    command: click.Command = _plugins().load("command", name)
    return command


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        version = import_module("..contracts.version", __package__).VERSION
        echo(f"prejudge {version}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show the traceback and code of an error.")
@click.option(
    "--verbose", "-v", count=True, help="Log files, retries and rate limits to standard error; -vv also what is loaded."
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
@click.pass_context
def cli(ctx: click.Context, debug: bool, verbose: int) -> None:
    """Measure the social bias of models with published studies. All answers are stored; results have intervals."""
    if verbose:
        speak = import_module(".verbose", __package__).speak
        speak(verbose)
        ctx.call_on_close(lambda: speak(0))


@click.group(cls=LabGroup)
def lab() -> None:
    """Test a study or a result: what is due to chance, to choices, to wording or to time."""


@click.group(cls=StudyGroup)
def study() -> None:
    """Check a study, and call what single studies and plugins add, such as annotation sheets."""


def main() -> None:
    """Run the command line and exit."""
    # Python looks for the modules of `-c` and `-m`, by which helpers are started, in the working directory first.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    sys.excepthook = echo_exception
    with screens():
        sys.exit(_exit_code())


def _ensure_text(words: Sequence[str]) -> None:
    """Refuse words with bytes that are no text: they are recorded with a run, and reports and files name them."""
    for word in words:
        if (text := word.encode("utf-8", "replace").decode()) != word:
            raise UsageError(
                f"the argument {text!r} has bytes that are not UTF-8 (here '?'). Rename the file or correct it.",
                code="options.value",
            )


def _exit_code() -> int:
    """Run the command, and return how it ended."""
    try:
        _ensure_text(sys.argv[1:])
        result: Any = cli(standalone_mode=False)
        ensure_written(sys.stdout)
    except click.ClickException as error:
        error.show(sys.stderr)
        if isinstance(error, click.NoSuchOption):
            hint = import_module(".hints", __package__).option_of_study(error, sys.argv[1:])
            if hint:
                echo(hint, err=True)
        return error.exit_code
    except click.Abort as error:
        unanswered = isinstance(error.__context__, EOFError)
        echo(f"prejudge: {NO_ANSWER if unanswered else 'interrupted.'}", err=True)
        return 2
    except PrejudgeError as error:
        if "--debug" in sys.argv[1:]:
            error.add_note(f"code: {error.code}")
            echo_exception(type(error), error, error.__traceback__)
        else:
            first, *others = error.listed or (str(error),)
            echo(f"prejudge: {first}", *others, err=True)
        return 2
    return result if isinstance(result, int) else 0
