"""`prejudge list`."""

from __future__ import annotations

import click
from rich.table import Table

from ..catalogue.capabilities import fit_of
from ..catalogue.certificates import find_certificates, present_code
from ..catalogue.registry import StudyEntry
from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..store import Store, list_runs
from .completing import complete_model
from .shared import registry_option, store_option
from .terminal import terminal

KINDS = ("studies", "constructs", "models", "probes", "metrics", "adapters", "runs", "plugins")


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--plugins", is_flag=True, help="List the plugins, with the reason if one is disabled.")
@click.option(
    "--model",
    metavar="NAME",
    shell_complete=complete_model,
    help="List the studies, and say which of them this model can answer, and with which options.",
)
@store_option
@registry_option
def list_all(kind: str | None, plugins: bool, model: str | None, store: str, registry: str | None) -> None:
    """List studies, models, probes, metrics and adapters, or one kind. Also: constructs, runs, plugins."""
    catalogue = Catalogue.load(registry)
    if model is not None:
        if kind not in (None, "studies") or plugins:
            raise UsageError("--model is for the list of studies.", code="options.conflict")
        terminal().print(_fits(catalogue, model))
        return
    kinds = ["plugins"] if plugins else [kind] if kind else ["studies", "models", "probes", "metrics", "adapters"]
    console = terminal()
    for name in kinds:
        console.print(_table(name, rows_of(name, catalogue, store)))


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
        table.add_row(study, words[fit.fits], fit.how)
    return table


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
            return [(run.name, run.study, run.state) for run in list_runs(opened)]
    if kind == "plugins":
        disabled = [("", "disabled", why) for why in plugins.problems]
        return [*((name, "loaded", "") for name in plugins.loaded), *disabled]
    offers = plugins.offers[{"probes": "probe", "metrics": "metric", "adapters": "adapter"}[kind]]
    return [(name, offer.plugged.summary, offer.plugin) for name, offer in sorted(offers.items())]


def _known(catalogue: Catalogue, name: str, entry: StudyEntry) -> str:
    """Return whether a study has a certificate, and of which date; whether it holds is told of a run."""
    if entry.calibration.none:
        return "none: no measure of bias"
    for one in find_certificates(catalogue, name, entry.probe):
        old = "" if present_code(catalogue, entry, one) == one.code else "older than the code: "
        return f"{old}{one.made}, {one.least:,} studies of each fair model"
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
