"""`prejudge score`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..annotation import corrected_run
from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..contracts.words import counted
from ..engine.manifest import manifest_of
from ..scoring.published import score_published, store_published
from ..scoring.readings import READING, compare_readings, ensure_reading, versions_words
from ..scoring.score import score as score_run
from ..store import Store
from ..store.reading import get_run
from ..store.unbundle import Bundle, import_bundle
from .results import deliver, scored_again
from .shared import (
    correction_options,
    figures_option,
    leave_out_option,
    published_option,
    read_assignments,
    registry_option,
    run_argument,
    runs_option,
    set_option,
    store_option,
    unproved_option,
)
from .table_options import table_options
from .terminal import terminal


@click.command()
@run_argument
@click.option("--scores", default=None, metavar="FILE", help="Measure published scores; NAME is then the study.")
@click.option("--model", default="", metavar="NAME", help="With --scores: the model that the scores are of.")
@click.option("--bundle", default=None, metavar="FILE", help="Score the run in a bundle, without a store.")
@click.option("--reading", default=None, metavar="paper|current", help="How answers are read: as in the paper, or now.")
@click.option("--against", default=None, metavar="READING", help="Show which answers this reading reads otherwise.")
@correction_options
@table_options
@set_option
@unproved_option
@store_option
@runs_option
@registry_option
@leave_out_option
@published_option
@figures_option
def score(name: str, scores: str | None, assignments: tuple[str, ...], registry: str | None, **where: Any) -> int:
    """Score the run NAME (default: the latest) again from the store. No model is loaded or asked."""
    catalogue = Catalogue.load(registry)
    given = {name: where.pop(name) for name in ("labels", "matrix", "outcome")}
    reading, against, bundle = (where.pop(option) for option in ("reading", "against", "bundle"))
    model = where.pop("model")
    sources = [bundle, scores, against]
    if len(sources) - sources.count(None) > 1:
        raise UsageError("--bundle, --scores and --against exclude each other. Give one.", code="options.conflict")
    if model and scores is None:
        raise UsageError(
            f"--model {model} says of which model --scores are. Give both, or a run alone.", code="options.conflict"
        )
    if reading is not None:
        assignments = (*assignments, f"{READING}={reading}")
    if against is not None:
        return show_readings(catalogue, where["store"], name, (against, reading or "current"))
    if bundle is not None:
        return score_bundle(catalogue, (bundle, name), where, read_assignments(assignments, None), given)
    if scores is not None:
        study = catalogue.study(name, {}, read_assignments(assignments, None))
        with Store(where["store"]) as store:
            run = store_published(store, score_published(catalogue, study, scores, model))
            return deliver(corrected_run(catalogue, score_run(catalogue, store, run), **given), store, where)
    with (
        scored_again(name, where | {"registry": registry}),
        Store(where["store"], writable=False, unproved=where["unproved"]) as store,
    ):
        if reading is not None:
            ensure_reading(catalogue, store, name)
        found = score_run(catalogue, store, name, read_assignments(assignments, None))
        return deliver(corrected_run(catalogue, found, **given), store, where)


def show_readings(catalogue: Catalogue, place: str, name: str, readings: tuple[str, str]) -> int:
    """Show by stage how many answers of a run two readings read otherwise, with trials to look up; return 0."""
    console = terminal()
    with Store(place, writable=False) as store:
        stages = compare_readings(catalogue, store, name, *readings)
        versions = versions_words(manifest_of(get_run(store, name)).readers)
    console.print(f"Of the answers of this run, read as in {readings[0]!r} and then in {readings[1]!r}:")
    console.print(versions, soft_wrap=True, highlight=False)
    for stage in stages:
        console.print(
            f"{stage.stage}: {stage.changed:,} of {counted(stage.answers, 'answer')} have another value: "
            f"{stage.newly_read:,} are read only in {readings[1]!r}, {stage.no_longer_read:,} only in {readings[0]!r}, "
            f"and {stage.other_value:,} differ. {stage.other_reason:,} are lost for another reason.",
            soft_wrap=True,
        )
        for example in stage.examples:
            console.print(f"  {example.trial}: {example.before}; then {example.after}", soft_wrap=True, markup=False)
    return 0


def score_bundle(
    catalogue: Catalogue,
    source: tuple[str, str],
    where: Mapping[str, Any],
    assignments: Mapping[str, Any],
    correction: Mapping[str, Any],
) -> int:
    """Score the run in a bundle with a temporary store; `source` is its file, and the run's name.

    Raises:
        UnknownNameError: the bundle has another run.
    """
    path, name = source
    folder = tempfile.TemporaryDirectory(prefix="prejudge-")
    with folder as place, Bundle(path) as bundle, Store(Path(place) / "bundle.db") as store:
        import_bundle(store, bundle)
        run = get_run(store, name).name
        scores = score_run(catalogue, store, run, assignments)
        return deliver(corrected_run(catalogue, scores, **correction), store, where)
