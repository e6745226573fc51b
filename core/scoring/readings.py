"""Two readings of one run: which answers are read otherwise. Nothing is asked, and no text is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ..catalogue.study import Catalogue
from ..contracts import Stage
from ..contracts.errors import UsageError
from ..engine.manifest import as_made, manifest_of
from ..engine.reading import READERS
from ..store import Store, get_run
from .score import Scores, opened

READING = "reading"
"""The option of a probe that says how its answers are read."""
EXAMPLES = 3


def versions_words(recorded: Mapping[str, int]) -> str:
    """Return with which versions of the readers both readings are made, and with which the run was last read.

    Args:
        recorded: versions by name, of the run's manifest; empty for a run that has none on record.
    """
    if dict(recorded) == dict(READERS):
        return f"Both with {_versions(READERS)}, as when the run was asked."
    asked = f"with {_versions(recorded)}" if recorded else "with versions that are not on record"
    return f"Both with {_versions(READERS)}; the run was asked {asked}."


def _versions(readers: Mapping[str, int]) -> str:
    return " and ".join(f"{name} reader {version}" for name, version in sorted(readers.items()))


class Changed(NamedTuple):
    """A trial that two readings read otherwise."""

    trial: str
    before: str
    after: str


class StageReadings(NamedTuple):
    """How the answers of a stage differ between two readings."""

    stage: str
    answers: int
    """Answered trials."""
    newly_read: int
    """Trials with a value in the second reading alone."""
    no_longer_read: int
    """Trials with a value in the first reading alone."""
    other_value: int
    """Trials with a value in both, which differs."""
    other_reason: int
    """Trials without a value in both, for another status or reason."""
    examples: tuple[Changed, ...]

    @property
    def changed(self) -> int:
        """Return the number of trials whose value changed."""
        return self.newly_read + self.no_longer_read + self.other_value


def ensure_reading(catalogue: Catalogue, store: Store, name: str) -> None:
    """Refuse a run whose study has one reading only.

    Raises:
        UsageError: it has no option for it.
    """
    study = as_made(catalogue, manifest_of(get_run(store, name)))
    options = catalogue.plugins.load("probe", study.probe).options
    if READING not in options.rereads:
        raise UsageError(
            f"{study.name} has one way to read its answers, so --reading cannot choose another. Leave it out.",
            code="score.no-reading",
        )


def compare_readings(catalogue: Catalogue, store: Store, name: str, before: str, after: str) -> list[StageReadings]:
    """Return by stage how the answers of a run differ between two readings.

    Args:
        catalogue: has the study.
        store: has the run.
        name: of the run.
        before: value of the option `reading`, such as `paper`.
        after: another one.

    Raises:
        UsageError: the study has one reading only, or not these.
        DataError: the run is not as it was stored.
    """
    ensure_reading(catalogue, store, name)
    first, second = (opened(catalogue, store, name, {READING: value})[0] for value in (before, after))
    return [_stage_readings(stage, first, second) for stage in second.stages if second.height(stage.name)]


def _stage_readings(stage: Stage, first: Scores, second: Scores) -> StageReadings:
    rows = [_values(scores.lazy(stage.name).collect(engine="streaming"), stage.outcomes) for scores in (first, second)]
    both = rows[0].join(rows[1], on="_place", suffix="_after")
    read, read_after = pl.col("status") == "ok", pl.col("status_after") == "ok"
    # An outcome that only one reading has, such as how tolerant it was, is no other value of the answer.
    shared = (name for name in stage.outcomes if name in both.columns and f"{name}_after" in both.columns)
    differs = pl.any_horizontal(pl.lit(False), *((pl.col(n) != pl.col(f"{n}_after")).fill_null(False) for n in shared))
    kinds = {
        "newly_read": ~read & read_after,
        "no_longer_read": read & ~read_after,
        "other_value": read & read_after & differs,
        "other_reason": ~read & ~read_after & (pl.col("_value") != pl.col("_value_after")),
    }
    counts = both.select(**{name: kind.sum() for name, kind in kinds.items()}).row(0, named=True)
    changed = both.filter(pl.any_horizontal(*(kinds[name] for name in list(kinds)[:3]))).head(EXAMPLES)
    examples = (Changed(row["trial"], row["_value"], row["_value_after"]) for row in changed.iter_rows(named=True))
    answers = both.filter(pl.col("status_after") != "failed").height
    return StageReadings(stage=stage.name, answers=answers, **counts, examples=tuple(examples))


def _values(frame: pl.DataFrame, outcomes: Sequence[str]) -> pl.DataFrame:
    """Return per trial its status and what was read, as text: the outcomes, or status and reason."""
    shown = [name for name in outcomes if name in frame.columns]
    outcome = [pl.format("{} = {}", pl.lit(name), pl.col(name).cast(pl.String).fill_null("-")) for name in shown]
    lost = pl.concat_str("status", "reason", separator=": ", ignore_nulls=True)
    value = pl.when(pl.col("status") == "ok").then(pl.concat_str(*outcome, separator=", ")).otherwise(lost)
    return frame.select("trial", "status", *shown, _value=value).with_row_index("_place")
