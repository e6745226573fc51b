"""Shell completion: names of the catalogue, and runs of the store.

No backend is imported, the store is only read, and no server is asked. An error gives no completions, because a
completion must not print.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from ..catalogue.folders import is_place
from ..catalogue.registry import Registry
from ..catalogue.study import Catalogue
from ..contracts.errors import PrejudgeError
from ..store import Store, list_runs
from ..store.urls import DEFAULT
from .outlet import single_line

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
FILE = "file"
"""The kind of item for which a shell offers its own file names."""


def complete_study(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the studies; if none matches, files, since a study may be a file."""
    titles = {name: study.title for name, study in _registry(ctx).studies.items()}
    return _beginning(titles.items(), incomplete) or complete_file(ctx, _, incomplete)


def complete_construct(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the constructs; if none matches, files, since a construct may be a file."""
    try:
        constructs = Catalogue.load(ctx.params.get("registry")).plugins.constructs
    except PrejudgeError:
        constructs = {}
    titles = {name: construct.title for name, construct in constructs.items()}
    return _beginning(titles.items(), incomplete) or complete_file(ctx, _, incomplete)


def complete_model(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the models, and the adapters for names of the form ADAPTER:MODEL; a prefix `ROLE=` is kept."""
    role, equals, begun = incomplete.rpartition("=")
    if is_place(begun) and not equals:
        return complete_file(ctx, _, incomplete)
    registry = _registry(ctx)
    models = {name: model.summary for name, model in registry.models.items()}
    adapters = {f"{name}:": adapter.summary for name, adapter in registry.adapters.items()}
    return [
        CompletionItem(f"{role}{equals}{item.value}", help=item.help)
        for item in _beginning((models | adapters).items(), begun)
    ]


def complete_file(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete file names."""
    return [CompletionItem(incomplete, type=FILE)]


def complete_run(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the runs of the store, newest first."""
    place = ctx.params.get("store") or os.environ.get("PREJUDGE_STORE") or DEFAULT
    if "://" in place and not place.startswith("sqlite"):
        return []
    try:
        with Store(place, writable=False) as store:
            runs = [(run.name, f"{run.study}, {run.told}") for run in reversed(list_runs(store))]
    except PrejudgeError:
        return []
    return _beginning([*runs, ("latest", "the run that started last")], incomplete)


def _registry(ctx: click.Context) -> Registry:
    try:
        return Catalogue.load(ctx.params.get("registry")).registry
    except PrejudgeError:
        return Registry()


def _beginning(things: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    """Return the things whose names begin so. A shell reads one per line: a name of several lines is none of them."""
    return [
        CompletionItem(name, help=single_line(text) or None)
        for name, text in things
        if name.startswith(incomplete) and name == single_line(name)
    ]
