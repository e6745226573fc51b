"""The associations of a run, from the store alone: no model, no backend, no metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from ...core.catalogue.study import Catalogue
from ...core.contracts.canonical import decode_request, decode_response
from ...core.contracts.errors import DataError, UnknownNameError
from ...core.engine.manifest import Manifest
from ...core.engine.observations import gather_observations, stack
from ...core.report.exchanges import show_request, show_response
from ...core.store import Store, get_run, read_failures, stream_trials, used_answers
from .associations import CELL, STAGES, count_pairs, measure_cells, mentions, ranked, with_answers
from .overlap import Overlap, overlap
from .salience import METHODS, Reading

ALL = "all"


class Discovered(msgspec.Struct, frozen=True):
    """What one run found."""

    run: str
    run_id: int
    model: str
    """The name of the model that was asked."""
    pairs: Any
    """A polars frame: what `prejudge.probes.dora.salience.measure` and `with_answers` give of every association."""

    def kept(self, method: str, descriptors: Sequence[str] = (), setting: str | None = None) -> pl.DataFrame:
        """Return the associations that a method (or `all`) keeps, strongest first.

        Raises:
            UnknownNameError: no such method, descriptor or setting.
        """
        frame: pl.DataFrame = self.pairs
        if method not in (*METHODS, ALL):
            raise UnknownNameError("method", method, [*METHODS, ALL])
        if descriptors:
            frame = frame.filter(pl.col("descriptor").is_in(_known(frame, "descriptor", descriptors)))
        if setting is not None:
            frame = frame.filter(pl.col("setting").is_in(_known(frame, "setting", [setting])))
        kept = frame if method == ALL else frame.filter(f"salient_{METHODS[method]}")  # type: ignore[index]
        return ranked(kept, method)


def discover(
    catalogue: Catalogue, store: Store, name: str, level: float = 0.05, reading: Reading | None = None
) -> Discovered:
    """Read a run and measure its associations.

    Raises:
        UnknownNameError: there is no such run, or its probe is not installed.
        DataError: the run asks for no words, or none could be read.
    """
    run = get_run(store, name)
    manifest = msgspec.json.decode(run.manifest, type=Manifest)
    stages = catalogue.instrument(manifest.study).stages()
    if not any(stage.name in STAGES for stage in stages):
        raise DataError(
            f"run {run.name} of {manifest.study.name!r} asks for no words. Name a run of a study dora-*.",
            code="run.other-study",
        )
    failures = read_failures(store, run.id)
    observations = stack(
        {s.name: gather_observations(s, stream_trials(store, run.id, s.name), failures, store.blob) for s in stages}
    )
    pairs = count_pairs(mentions(observations))
    if pairs.is_empty():
        raise DataError(f"run {run.name} has no word that could be read.", code="run.no-answers")
    measured = with_answers(measure_cells(pairs, level, reading), observations)
    return Discovered(run.name, run.id, manifest.study.roles.get("subject", ""), measured)


def shared_by(first: Discovered, second: Discovered, method: str) -> list[tuple[tuple[str, ...], Overlap]]:
    """Return what two runs share in each modality and setting that both have, and then in all settings together."""
    kept = [found.kept(method) for found in (first, second)]
    parts = [dict(_cells(pairs)) for pairs in kept]
    shared = [(cell, overlap(parts[0][cell], parts[1][cell])) for cell in parts[0] if cell in parts[1]]
    asked = [", ".join(found.pairs["modality"].unique().sort()) for found in (first, second)]
    name = asked[0] if asked[0] == asked[1] else " and ".join(asked)
    return [*shared, ((name, ALL), overlap(kept[0], kept[1]))]


def examples_of(store: Store, found: Discovered, keys: Sequence[bytes]) -> list[list[tuple[str, str]]]:
    """Return for each exchange what was asked and answered, as labels and texts."""
    used = used_answers(store, found.run_id, keys)
    rows = {number: (asked, said) for number, asked, said in store.exchanges(used.values())}
    shown = (rows[used[key]] for key in keys if key in used)
    return [[*show_request(decode_request(asked)), *show_response(decode_response(said))] for asked, said in shown]


def _cells(pairs: pl.DataFrame) -> list[tuple[tuple[str, ...], pl.DataFrame]]:
    return [(cell, part) for cell, part in pairs.group_by(*CELL, maintain_order=True)]


def _known(frame: pl.DataFrame, column: str, names: Sequence[str]) -> list[str]:
    """Return the levels of a column that are called so, in whatever case."""
    levels = [str(level) for level in frame[column].unique().sort()]
    found = [level for name in names for level in levels if level.casefold() == name.strip().casefold()]
    for name in names:
        if not any(level.casefold() == name.strip().casefold() for level in levels):
            raise UnknownNameError(column, name, levels)
    return found
