"""The rows of a run's estimates, and what labels of answers change in them: the metric itself says, asked again.

A label takes the place of the verdict of one answer, and the metric gives its rows anew. What a row has changed by is
the label's doing, whatever the metric computes from a verdict. Where a row has several answers, such as a pair, at most
one of them is replaced at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..catalogue.plugins import blamed
from ..catalogue.study import Catalogue
from ..compare.pair import key_of, parts_of, units_of
from ..contracts import FACET, Metric, facet_columns
from ..contracts.errors import PrejudgeError, UsageError
from ..contracts.estimates import Key
from ..contracts.words import level_word
from ..scoring.score import Scores
from ..statistics.clusters import Codes
from .labelled import LabelledAnswers, drawn_from
from .powered import Labelled, Rows, least_step

Identity = tuple[str, ...]
TRIAL = "trial"
UNUSED = "annotation.unused"
PLACE, ROUND = "_place", "_round"
MOST_ROUNDS = 50
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")


class Changed(NamedTuple):
    """An estimate's rows and labels; or why it cannot be corrected."""

    rows: Rows | None = None
    labelled: Labelled | None = None
    step: float = 0.0
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the greatest that the estimate can be."""
    code: str = ""
    why: str = ""


def changes(catalogue: Catalogue, scores: Scores, name: str, labels: LabelledAnswers) -> dict[Key, Changed] | None:
    """Return what labels change in every estimate of a metric that is a mean of rows, or the difference of two.

    None: the metric does not see what was labelled.

    Raises:
        UsageError: the labels are of other answers, or the metric does not read what was labelled.
    """
    metric, options = scores.metrics[name]
    observations = scores.seen_by(metric).with_row_index(PLACE)
    column = labels.design.verdict
    if column not in observations.columns or column == "status":
        return None
    units = units_of(catalogue, scores, name)
    if units is None:
        return {}
    answers = _answers(observations, labels)
    owner = catalogue.plugins.offers["metric"][name].plugin
    seen = _Seen(metric, options, owner, observations, column)
    read = seen.read_by(units.frame, labels.labels)
    names = identities_of(observations, units.frame)
    units_by = {identity: unit_names(observations, identity) for identity in set(names.values())}
    moved = (
        seen.moved(units.frame, answers, {name: units_by[identity] for name, identity in names.items()}) if read else {}
    )
    covered = drawn_from(labels.design, observations)
    results = {}
    for key, part in parts_of(units.frame):
        if key not in read:
            results[key] = Changed(code=UNUSED, why=f"it is not computed from {column!r}")
        elif (identity := names.get(key[0])) is not None:
            named = observations.with_columns(units_by[identity].alias("unit"))
            within = _Within(named, answers, column, covered, named["unit"].n_unique() == named.height)
            results[key] = within.changed(key, part, moved.get(key, {}))
        else:
            why = "its rows cannot be told from the factors of the answers"
            results[key] = Changed(code="annotation.rows", why=why)
    return results


def _answers(observations: pl.DataFrame, labels: LabelledAnswers) -> pl.DataFrame:
    """Return the labelled answers with their places among the observations.

    Raises:
        UsageError: there is one that the run has not.
    """
    trials = observations.select(PLACE, TRIAL, pl.col("key").bin.encode("hex").alias("key"), "status")
    answers = labels.frame.join(trials, on=[TRIAL, "key"], how="left", maintain_order="left")
    # A sample may be of several stages; only those of this one are labelled for it.
    absent = answers.filter(pl.col(PLACE).is_null())
    if absent.height == answers.height:
        raise UsageError(
            f"none of the {answers.height:,} labels is of an answer of this run, such as {absent[TRIAL][0]!r}: they "
            "correct nothing here.",
            code="annotation.other-run",
        )
    return answers.filter(pl.col(PLACE).is_not_null() & (pl.col("status") == "ok"))


def identities_of(observations: pl.DataFrame, units: pl.DataFrame) -> dict[str, Identity]:
    """Return by measure the columns of observations that name its rows: the trial, a pair, a pair and its side."""
    identities: dict[frozenset[str], Identity | None] = {}
    by_measure = {}
    for name, part in units.select("metric", "unit").unique().partition_by("metric", as_dict=True).items():
        wanted = frozenset(part["unit"])
        if wanted not in identities:
            identities[wanted] = _identity(observations, wanted)
        if (identity := identities[wanted]) is not None:
            by_measure[str(name[0])] = identity
    return by_measure


def _identity(observations: pl.DataFrame, wanted: frozenset[str]) -> Identity | None:
    factors = [name for name, kind in observations.schema.items() if kind == pl.String and name != "key"]
    names = [TRIAL, *(name for name in factors if name != TRIAL)]
    few = set(list(wanted)[:3])
    for number in (1, 2):
        fit = []
        for identity in permutations(names, number):
            row_names = unit_names(observations, identity)
            if few <= set(row_names.filter(row_names.is_in(list(few)))) and wanted <= set(row_names):
                fit.append((row_names.n_unique(), identity))
        if fit:
            return max(fit, key=lambda match: match[0])[1]
    return None


def unit_names(observations: pl.DataFrame, identity: Identity) -> pl.Series:
    """Return the name of the row that each answer is in."""
    if identity == (TRIAL,):
        return observations[TRIAL].cast(pl.String)
    return observations.select(pl.concat_str(identity, separator=" ", ignore_nulls=True)).to_series()


class _Seen(NamedTuple):
    """A metric and what it sees."""

    metric: Metric
    options: Any
    owner: str
    observations: pl.DataFrame
    column: str

    def with_labels(self, labels: Mapping[int, str]) -> pl.DataFrame:
        """Return the units with other verdicts, by place.

        Raises:
            UsageError: the metric takes none of the labels for a verdict.
        """
        series = self.observations[self.column]
        values = series.to_list()
        for place, label in labels.items():
            values[place] = as_verdict(label, series.dtype, self.column)
        try:
            relabelled = self.observations.with_columns(pl.Series(self.column, values, dtype=series.dtype)).drop(PLACE)
            with blamed(self.owner, "units with labels"):
                units = self.metric.units(relabelled, self.options)
        except PrejudgeError as error:
            raise UsageError(
                f"the labels are no values of {self.column!r} that its metric can read: {error}",
                code="annotation.label",
            ) from None
        assert units is not None
        return units

    def read_by(self, units: pl.DataFrame, labels: tuple[str, ...]) -> set[Key]:
        """Return the estimates that read the column: another verdict everywhere changes them."""
        series = self.observations[self.column]
        levels = series.drop_nulls().unique(maintain_order=True).to_list()
        words = list(dict.fromkeys([*map(level_word, levels), *labels]))
        turned: set[Key] = set()
        for shift in range(1, min(len(words), 4)):
            other = {word: words[(n + shift) % len(words)] for n, word in enumerate(words)}
            replaced = {
                place: other[level_word(value)] for place, value in enumerate(series.to_list()) if value is not None
            }
            turned |= set(_differing(units, self.with_labels(replaced)))
        return turned

    def moved(
        self, units: pl.DataFrame, answers: pl.DataFrame, names: Mapping[str, pl.Series]
    ) -> dict[Key, dict[tuple[int, int], float | None]]:
        """Return by estimate what each label changes: by its place and the sign of the row; None: it takes it out."""
        series = self.observations[self.column]
        wrong = {
            place: label
            for place, label in answers.select(PLACE, "label").iter_rows()
            if series[place] != as_verdict(label, series.dtype, self.column)
        }
        changes_by_key: dict[Key, dict[tuple[int, int], float | None]] = {}
        for part in _rounds(list(wrong), list({id(series): series for series in names.values()}.values())):
            by = {name: {series[place]: place for place in part} for name, series in names.items()}
            after = self.with_labels({place: wrong[place] for place in part})
            for key, changed in _differing(units, after).items():
                for (unit, sign), change in changed.items():
                    if (place := by.get(key[0], {}).get(unit)) is not None:
                        changes_by_key.setdefault(key, {})[place, sign] = change
        return changes_by_key


def _rounds(places: list[int], names: list[pl.Series]) -> Iterator[list[int]]:
    """Yield parts in which no row has two labels."""
    parts: list[list[int]] = []
    taken: list[set[tuple[int, str]]] = []
    for place in places:
        members = {(number, series[place]) for number, series in enumerate(names)}
        number = next((n for n, seen in enumerate(taken) if not seen & members), len(parts))
        if number == len(parts):
            parts.append([])
            taken.append(set())
        parts[number].append(place)
        taken[number] |= members
    if len(parts) > MOST_ROUNDS:
        raise UsageError(
            f"a row of this metric has more than {MOST_ROUNDS} labelled answers: nothing is corrected.",
            code="annotation.rows",
        )
    yield from parts


def _differing(before: pl.DataFrame, after: pl.DataFrame) -> dict[Key, dict[tuple[str, int], float | None]]:
    """Return the rows that differ, by estimate, unit and sign: by how much, or None for one that has no value now."""
    aside = ("value", "status", "least", "greatest", *(name for name in before.columns if name.startswith(FACET)))
    others = [name for name in before.columns if name not in aside]
    ok = pl.col("status") == "ok"
    first, second = (f.filter(ok & pl.col("value").is_not_null()) for f in (before, after))
    # A unit may have several rows on one side.
    first, second = (f.with_columns(pl.int_range(pl.len()).over(others).alias(ROUND)) for f in (first, second))
    joined = first.join(
        second.select(*others, ROUND, pl.col("value").alias("now")), on=[*others, ROUND], how="left", nulls_equal=True
    )
    changed = joined.filter(pl.col("now").is_null() | (pl.col("now") != pl.col("value")))
    factors = [name for name in others if name not in ("metric", "unit", "sign")]
    by_key: dict[Key, dict[tuple[str, int], float | None]] = {}
    for row in changed.iter_rows(named=True):
        rows = by_key.setdefault(key_of(row["metric"], {name: row[name] for name in factors}), {})
        rows[row["unit"], row["sign"]] = None if row["now"] is None else row["now"] - row["value"]
    return by_key


class _Within(NamedTuple):
    """What the rows of one estimate are made from."""

    observations: pl.DataFrame
    """With the name of the row that each is in, as `unit`."""
    answers: pl.DataFrame
    """The labelled ones."""
    column: str
    covered: pl.Series | None
    """Which observations the sample was drawn from."""
    single: bool
    """Whether a row is one answer."""

    def changed(self, key: Key, part: pl.DataFrame, moved: Mapping[tuple[int, int], float | None]) -> Changed:
        """Return the rows of an estimate, and the labels of the answers behind them."""
        ok = part.filter((pl.col("status") == "ok") & pl.col("value").is_not_null()).with_row_index("_row")
        behind = self._behind(ok, dict(key[1]))
        if self.covered is None or not self.covered.gather(behind[PLACE]).all():
            why = "the sample was not drawn from all answers that this number is of"
            return Changed(code="annotation.filtered", why=why)
        if any(moved.get((place, 1), 0.0) is None or moved.get((place, -1), 0.0) is None for place in behind[PLACE]):
            return Changed(code="annotation.rows", why="a label takes an answer out of this number")
        single = self.single and ok["unit"].is_unique().all()
        verdicts = None
        if single:
            answers = behind.join(ok.select("unit", "_row"), on="unit").sort("_row")
            places = answers[PLACE].to_numpy()
            verdicts = codes_of(self.observations[self.column].gather(places).cast(pl.String))
        rows = Rows(ok["value"].to_numpy(), ok["sign"].to_numpy().astype(np.float64), ways_in(ok), verdicts)
        labelled = self._labelled(ok, behind, moved)
        ends = _ends(ok)
        levels = np.concatenate([rows.values, rows.values[labelled.rows] + labelled.changes])
        step = least_step(levels)
        if np.ptp(levels.round(12)) == 0 and np.isfinite(ends[1] - ends[0]):
            step = ends[1] - ends[0]
        return Changed(rows, labelled, step, ends)

    def _behind(self, ok: pl.DataFrame, group: Mapping[str, Any]) -> pl.DataFrame:
        """Return the observations behind the rows."""
        fits = pl.col("unit").is_in(ok["unit"].unique().to_list())
        for name, level in group.items():
            if name in self.observations.columns:
                fits &= pl.col(name).cast(pl.String) == level_word(level)
        return self.observations.filter(fits & (pl.col("status") == "ok")).select(PLACE, "unit")

    def _labelled(
        self, ok: pl.DataFrame, behind: pl.DataFrame, moved: Mapping[tuple[int, int], float | None]
    ) -> Labelled:
        labelled = self.answers.select(PLACE, "chance").join(behind, on=PLACE, how="inner", maintain_order="left")
        joined = labelled.join(ok.select("unit", "sign", "_row"), on="unit", how="inner", maintain_order="left")
        changes = [moved.get((place, sign), 0.0) or 0.0 for place, sign in joined.select(PLACE, "sign").iter_rows()]
        return Labelled(
            joined["_row"].to_numpy().astype(np.int64),
            np.array(changes, dtype=np.float64),
            np.minimum(joined["chance"].to_numpy().astype(np.float64), 1.0),
        )


def ways_in(ok: pl.DataFrame) -> tuple[Codes, ...]:
    """Return the clusters of rows; none where each is its own."""
    ways = [codes_of(ok[name].cast(pl.String)) for name in facet_columns(ok)]
    return tuple(way for way in ways if int(way.max()) + 1 < ok.height)


def codes_of(values: pl.Series) -> Codes:
    """Return a number from 0 for each level."""
    return np.asarray(values.fill_null("").rank("dense").to_numpy(), dtype=np.int64) - 1


def _ends(ok: pl.DataFrame) -> tuple[float, float]:
    """Return the least and the greatest that the estimate can be."""
    least, greatest = ok["least"].min(), ok["greatest"].max()
    if least is None or greatest is None or ok["least"].null_count() or ok["greatest"].null_count():
        return -np.inf, np.inf
    low, high = float(least), float(greatest)  # type: ignore[arg-type]  # numbers
    return (low, high) if ok["sign"].n_unique() == 1 and ok["sign"][0] > 0 else (low - high, high - low)


def as_verdict(label: str, dtype: Any, column: str) -> Any:
    """Return a label as a value of the column that was labelled.

    Raises:
        UsageError: it is none.
    """
    low = label.strip().lower()
    try:
        if dtype == pl.Boolean:
            return {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}[low]
        return int(low) if dtype.is_integer() else float(low) if dtype.is_float() else label
    except (KeyError, ValueError):
        raise UsageError(
            f"the label {label!r} is no value of {column!r}, which is {dtype}. Draw a sample whose labels are.",
            code="annotation.label",
        ) from None
