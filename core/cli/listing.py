"""`prejudge list`."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.table import Table

from ..catalogue.certificates import changed_since
from ..catalogue.filed import find_filed
from ..catalogue.needs import fit_of, ways_of
from ..catalogue.registry import FILE_NAME, StudyEntry
from ..catalogue.study import Catalogue
from ..contracts.abilities import OPERATIONS, Need, methods_of
from ..contracts.errors import PrejudgeError, UsageError
from ..store import Store, list_runs
from .completing import complete_model
from .hints import OPERATIONS as MEANINGS
from .hints import Among
from .outlet import echo
from .shared import registry_option, store_option
from .terminal import terminal

KINDS = ("studies", "constructs", "models", "probes", "metrics", "adapters", "runs", "plugins")
LACKS = "needs: the operation that the study asks by, which {name} cannot do. What it can do: prejudge doctor {name}."
"""Said once, below the studies that a model cannot answer."""
ABLE = ("studies", "models", "adapters")
"""Kinds that `--operation` tells apart."""


@click.command("list")
@click.argument("kind", type=Among(KINDS), required=False)
@click.option("--plugins", is_flag=True, help="List the plugins, with the reason if one is disabled.")
@click.option(
    "--model",
    metavar="NAME",
    shell_complete=complete_model,
    help="List the studies, and say which of them this model can answer, and with which options.",
)
@click.option(
    "--operation",
    type=Among(OPERATIONS.values(), MEANINGS),
    help="List the studies that ask so, and the models and adapters that can answer; or one of these kinds.",
)
@store_option
@registry_option
def list_all(
    kind: str | None, plugins: bool, model: str | None, operation: str | None, store: str, registry: str | None
) -> None:
    """List studies, models, probes, metrics and adapters, or one kind. Also: constructs, runs, plugins.

    What the registry.toml of the working directory may not do is left out, and named, until the file is trusted.
    """
    catalogue = Catalogue.load_allowed() if registry is None else Catalogue.load(registry)
    _say_left_out(catalogue)
    if operation is not None:
        if kind not in (None, *ABLE) or plugins or model is not None:
            raise UsageError(
                f"--operation is for the lists of {', '.join(ABLE)}. For one model: prejudge doctor NAME.",
                code="options.conflict",
            )
        for name in [kind] if kind else ABLE:
            terminal().print(_able(catalogue, name, operation))
        return
    if model is not None:
        if kind not in (None, "studies") or plugins:
            raise UsageError("--model is for the list of studies.", code="options.conflict")
        terminal().print(_fits(catalogue, model))
        return
    kinds = ["plugins"] if plugins else [kind] if kind else ["studies", "models", "probes", "metrics", "adapters"]
    console = terminal()
    for name in kinds:
        console.print(_table(name, rows_of(name, catalogue, store)))


def _say_left_out(catalogue: Catalogue) -> None:
    for want in catalogue.left_out:
        echo(f"Left out: {want.sentence}.", err=True)
    if catalogue.left_out:
        echo(f"The {FILE_NAME} of this folder is not trusted. To see all and trust it: prejudge trust", err=True)


def _fits(catalogue: Catalogue, model: str) -> Table:
    """Return the studies with whether a model can answer them."""
    name = catalogue.named(model)
    catalogue.options_of(name)  # an error of the entry is one of all studies, and said once
    table = Table(title=f"studies, and whether {name} can answer them", title_justify="left")
    for head in ("name", "fits", "how, or why not"):
        table.add_column(head, overflow="fold")
    words = {True: "yes", False: "no", None: "not known"}
    for study in sorted(catalogue.registry.studies):
        fit = fit_of(catalogue, study, name)
        table.add_row(study, words[fit.able], fit.how)
        if fit.able is False:
            table.caption, table.caption_justify = LACKS.format(name=name), "left"
    return table


def _able(catalogue: Catalogue, kind: str, operation: str) -> Table:
    """Return the studies that ask by an operation, or the models or adapters that can do it."""
    heads = {"studies": ("asks the role", "how"), "models": ("adapter", "summary"), "adapters": ("summary",)}[kind]
    title = f"studies that ask by {operation}" if kind == "studies" else f"{kind} that can do {operation}"
    table = Table(title=title, title_justify="left")
    for head in ("name", *heads):
        table.add_column(head, overflow="fold")
    for row in _able_rows(catalogue, kind, operation):
        table.add_row(*row)
    return table


def _able_rows(catalogue: Catalogue, kind: str, operation: str) -> Iterator[tuple[str, ...]]:
    if kind == "studies":
        unknown = []
        for study in sorted(catalogue.registry.studies):
            try:
                ways = ways_of(catalogue, study, operation)
            except PrejudgeError as error:
                unknown.append((study, "not known", str(error)))
                continue
            if ways:
                roles, hows = (", ".join(dict.fromkeys(filter(None, said))) for said in zip(*ways, strict=True))
                yield study, roles, hows or "by default"
        yield from unknown  # last: without its data nothing says that it asks so
        return
    offers = catalogue.plugins.offers["adapter"]
    if kind == "adapters":
        for name, offer in sorted(offers.items()):
            try:
                able = operation in methods_of(catalogue.plugins.load("adapter", name))
            except PrejudgeError as error:
                yield name, f"not known: {error}"
                continue
            if able:
                yield name, offer.plugged.summary
        return
    for name, model in sorted(catalogue.registry.models.items()):
        if catalogue.is_suited(name, Need(operation=operation)):
            yield name, model.adapter, model.summary


def rows_of(kind: str, catalogue: Catalogue, store: str) -> list[tuple[str, ...]]:
    """Return a row for each item of a kind: its name and a description."""
    registry, plugins = catalogue.registry, catalogue.plugins
    if kind == "studies":
        return [(n, one.title, one.source, _known(catalogue, n, one)) for n, one in sorted(registry.studies.items())]
    if kind == "constructs":
        return [(name, one.title, ", ".join(one.methods)) for name, one in sorted(plugins.constructs.items())]
    if kind == "models":
        return [(name, model.adapter, model.summary) for name, model in sorted(registry.models.items())]
    if kind == "runs":
        with Store(store, writable=False) as opened:
            return [(run.name, run.study, run.told) for run in list_runs(opened)]
    if kind == "plugins":
        disabled = [("", "disabled", why) for why in plugins.problems]
        return [*((name, "loaded", "") for name in plugins.loaded), *disabled]
    offers = plugins.offers[{"probes": "probe", "metrics": "metric", "adapters": "adapter"}[kind]]
    return [(name, offer.plugged.summary, offer.plugin) for name, offer in sorted(offers.items())]


def _known(catalogue: Catalogue, name: str, entry: StudyEntry) -> str:
    """Return whether a study has a certificate, and of which date; whether it holds is told of a run."""
    if entry.calibration.none:
        return "none: no measure of bias"
    for filed in find_filed(catalogue, name, entry.probe):
        one, old = filed.certificate, "numbers changed since: " if changed_since(filed) else ""
        if one.flaw:
            return f"{old}{one.made}, not certified, since {one.flaw}"
        names = ", ".join(group.null for group in one.failed)
        failed = f"; false findings under {names}" if names else ""
        return f"{old}{one.made}, {one.least:,} studies of each simulated fair model{failed}"
    return "uncalibrated"


def _table(kind: str, rows: list[tuple[str, ...]]) -> Table:
    heads = {
        "studies": ("title", "source", "calibration"),
        "constructs": ("title", "methods"),
        "models": ("adapter", "summary"),
        "runs": ("study", "state"),
    }
    table = Table(title=kind, title_justify="left")
    for head in ("name", *heads.get(kind, ("state", "reason") if kind == "plugins" else ("summary", "plugin"))):
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
