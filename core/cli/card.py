"""The model card and the data sheet of a run, for `prejudge export --what card`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..catalogue.study import Catalogue
from ..engine.manifest import in_words, remeasured_in
from ..report.card import write_card
from ..report.place import folder_within
from ..scoring.score import score
from ..store import Store, get_run
from .outlet import echo
from .shared import read_assignments


def write_cards(name: str, out: str | None, assignments: tuple[str, ...], where: Mapping[str, Any]) -> None:
    """Write both in Markdown to `out`, or to the run's folder, with the options last used for the run."""
    with Store(where["store"], writable=False, unproved=where["unproved"]) as opened:
        folder = Path(where["runs"]) / get_run(opened, name).name
        held = remeasured_in(folder)
        options = held | read_assignments(assignments, None)
        scores = score(Catalogue.load(where["registry"]), opened, folder.name, options)
    if options:
        last = f", the options last used for {folder}" if options == held else ""
        echo(f"Measured with {in_words(options)}{last}.")
    for path in write_card(scores, Path(out) if out else folder_within(Path(where["runs"]), folder.name)):
        echo(f"Written: {path}")
