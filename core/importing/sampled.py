"""Files that hold a sample of a study of their own: matched with all that the study may ask, and no more is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ..catalogue.study import Catalogue, Study
from ..contracts import Trial
from .answers import Row

UNMATCHED = ("import.unmatched", "import.no-match")
"""Codes of rows that are for no trial."""
WIDEST: Mapping[str, Any] = {"per_cell": None, "orders": "all"}
"""Values of options with which a study asks all that a sample of it may hold."""


class Chosen(NamedTuple):
    """What a stage asked and the file answers."""

    trials: Callable[[], Iterator[Trial]]
    """Yield the trials as the answers were asked."""
    rows: dict[int, Row]
    """By the ordinal of a trial."""
    stated: dict[int, dict[str, Any]]
    """By ordinal, factors that the row states otherwise."""
    counts: dict[str, int]
    """Numbers of rows."""


def widest(catalogue: Catalogue, study: Study) -> Study:
    """Return a study that asks all that a sample of it may hold; the study itself where it does."""
    whole = catalogue.whole(study)
    probe = catalogue.instrument(study).options
    wider = {name: value for name, value in WIDEST.items() if getattr(probe, name, value) != value}
    return msgspec.structs.replace(whole, options={**whole.options, **wider})


def only_answered(chosen: Chosen, requested: Iterable[Trial]) -> tuple[Chosen, str]:
    """Return the trials that the files answer, and how they lie to the requested ones, as a sentence."""
    wanted = {trial.id for trial in requested}
    ids = {trial.id for ordinal, trial in enumerate(chosen.trials()) if ordinal in chosen.rows}
    places = {ordinal: place for place, ordinal in enumerate(sorted(chosen.rows))}

    def trials() -> Iterator[Trial]:
        return (trial for ordinal, trial in enumerate(chosen.trials()) if ordinal in places)

    sample = Chosen(
        trials,
        {places[ordinal]: row for ordinal, row in chosen.rows.items()},
        {places[ordinal]: factors for ordinal, factors in chosen.stated.items()},
        chosen.counts | {"not_in_files": len(wanted - ids)},
    )
    return sample, (
        f"The files hold a sample of their own: {len(ids):,} trials of the whole study, which are this run. Of the "
        f"{len(wanted):,} trials of the study as it was stated, {len(wanted - ids):,} are not in them."
    )
