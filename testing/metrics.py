"""`MetricContract`: the tests that every metric must pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ..core.catalogue.study import Catalogue
from ..core.compare.pair import checked_units
from ..core.contracts import PROMPT_KEY, Metric, Options
from ..core.contracts.errors import PluginError
from ..core.contracts.estimates import COLUMNS, COMMON, MISSING, TOPICS, Caveat, Chart, Estimate
from ..core.contracts.options import build_options
from ..core.lab.calibration.certify import Recipe
from ..core.lab.calibration.numbers import differing_numbers, golden_path
from ..core.statistics.estimates import FEW
from ..core.statistics.intervals import LEAST_P, normal_isf
from ._compare import close

KEPT = ("key", "trial", "stage", "status", "reason", PROMPT_KEY)
SLACK = 1e-9
FOR_EVERY_COUNT = ("exact", "Wilson")
"""Beginnings of the names of intervals that are valid for every number of independent rows."""
NARROWER = 0.8
"""Ratio of widths, and of z, at which repeats count as evidence; as independent answers they would give 0.71."""
SLACK_OF_Z = 0.1
"""What another test, or another draw of a permutation test, may change of z without being stronger."""
THIS_WORDING = "for this wording"
"""Words of a measure, in its label or meaning, whose claim is about the prompts at hand alone."""
NONSENSE = "undefined; few clusters; significant above neutral; shown to differ; 3 of 4"


class MetricContract:
    """The rules, one test each. Set `make`, `observations` and `outcomes`; the other settings have defaults."""

    make: ClassVar[Callable[[], Metric]]
    """Make the metric."""
    observations: ClassVar[Callable[[], pl.DataFrame]]
    """Return observations as a run gives them; `observe` makes them from a probe."""
    outcomes: ClassVar[Sequence[str]]
    """The columns that come from answers; all other columns are known before the run."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Options by name, such as few `resamples`."""
    answers: ClassVar[Sequence[str]] = ()
    """Statuses that this metric counts as an outcome, such as `unreadable` if an answer without a label is wrong."""
    repeats: ClassVar[Sequence[str]] = ("sample", "seed")
    """Columns that number the samples of one prompt, where the observations have one."""
    tolerance: ClassVar[float] = 1e-9
    """Tolerance, absolute or relative, between equal numbers."""
    study: ClassVar[str] = ""
    """A study with this metric, whose golden file is computed again: stored responses must give the stored numbers."""
    _known: ClassVar[dict[str, list[Estimate]]]

    def _chosen(self) -> tuple[Metric, Options]:
        metric = type(self).make()
        return metric, build_options("the metric", metric.options, dict(self.options))

    def _compute(self, observations: pl.DataFrame) -> list[Estimate]:
        metric, options = self._chosen()
        return metric.compute(observations, options)

    def _found(self, status: str = "") -> list[Estimate]:
        """Return the estimates of the observations, or of a run whose answers are all missing.

        They are computed once for all the rules that only read them; whether they are the same when computed again
        is a rule of its own.
        """
        if "_known" not in vars(type(self)):
            type(self)._known = {}
        known = type(self)._known
        if status not in known:
            known[status] = self._compute(self._all_missing(status) if status else type(self).observations())
        return list(known[status])

    def _all_missing(self, status: str) -> pl.DataFrame:
        """Return the observations of a run without answers."""
        frame = type(self).observations()
        none = [pl.lit(None, dtype=frame.schema[name]).alias(name) for name in self.outcomes if name in frame.columns]
        return frame.with_columns(*none, pl.lit(status).alias("status"), pl.lit("why").alias("reason"))

    def test_needs_are_columns_of_the_observations(self) -> None:
        """The observations have the columns that the metric needs."""
        metric, options = self._chosen()
        lacking = set(metric.columns(options)) - set(type(self).observations().columns)
        assert not lacking, f"`needs` names {sorted(lacking)}, which the observations do not have"

    def test_what_it_needs_is_enough(self) -> None:
        """With the declared columns alone the metric gives the same estimates as with all columns."""
        metric, options = self._chosen()
        frame = type(self).observations()
        declared = [name for name in frame.columns if name in metric.columns(options) or name in KEPT]
        values = {_name(estimate): estimate.value for estimate in self._found()}
        for estimate in self._compute(frame.select(declared)):
            name = _name(estimate)
            assert name not in values or close(estimate.value, values[name], max(self.tolerance, 1e-7)), (
                f"{name} is {values[name]}, and {estimate.value} without the columns that `needs` does not name"
            )

    def test_computing_is_pure(self) -> None:
        """Computed twice, the estimates are equal, and the observations stay as they were."""
        frame = type(self).observations()
        before = frame.clone()
        first = self._compute(frame)
        assert frame.equals(before), "the metric changed the observations"
        self._equal(first, self._compute(frame), "computed again")

    def test_order_of_rows_changes_no_value(self) -> None:
        """Observations in another order give the same values."""
        frame = type(self).observations()
        first, second = self._found(), self._compute(frame.reverse())
        values = {_name(estimate): estimate.value for estimate in second}
        for estimate in first:
            assert _name(estimate) in values, f"{_name(estimate)}: missing when the rows are in another order"
            same = close(values[_name(estimate)], estimate.value, max(self.tolerance, 1e-7))
            assert same, f"{_name(estimate)}: {estimate.value}, or {values[_name(estimate)]} in another order"

    def test_no_observations_give_no_value(self) -> None:
        """Without observations no estimate has a value."""
        for estimate in self._compute(type(self).observations().clear()):
            assert estimate.value is None, f"{_name(estimate)} is {estimate.value} without observations"
            self._check(estimate)

    def test_missing_is_never_zero(self) -> None:
        """Without answers, only the share of missing answers has a value."""
        for status in {"refused", "filtered", "unreadable", "failed"} - set(self.answers):
            for estimate in self._found(status):
                self._check(estimate)
                if estimate.subject != MISSING:
                    assert estimate.value is None, f"{_name(estimate)} is {estimate.value}, though all are {status}"

    def test_missing_answers_are_counted(self) -> None:
        """Without answers, an estimate counts the missing ones."""
        found = self._found("refused")
        told = any(estimate.missing.counts.get("refused") for estimate in found) or any(
            e.subject == MISSING for e in found
        )
        assert told or not found, "no estimate counts the refused answers"

    def test_estimates_are_sound(self) -> None:
        """Numbers are finite, limits enclose values, p-values are probabilities, and every test has a neutral value."""
        found = self._found()
        assert found, "the observations give no estimates"
        names = [_name(estimate) for estimate in found]
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"two estimates of one measure and group: {sorted(twice)[:3]}"
        for estimate in found:
            self._check(estimate)

    def test_intervals_on_few_clusters_say_so(self) -> None:
        """An interval on fewer than ten clusters (without clusters: rows), or few levels of a facet, has the caveat.

        Exact intervals and Wilson's are valid for every number of independent rows.
        """
        for estimate in self._found():
            clustered = estimate.interval.method.startswith("cluster")
            assert estimate.clusters is not None or not clustered, (
                f"{_name(estimate)}: {estimate.interval.method} without `clusters`: on how many does it rest?"
            )
            rests_on = estimate.n if estimate.clusters is None else estimate.clusters
            if estimate.low is None or rests_on >= FEW or estimate.interval.method.startswith(FOR_EVERY_COUNT):
                continue
            assert {Caveat.FEW_CLUSTERS, Caveat.FEW_LEVELS} & {*estimate.caveats}, (
                f"{_name(estimate)}: an interval on {rests_on} clusters ({estimate.interval.method}) without "
                "`Caveat.FEW_CLUSTERS`: it may be too narrow"
            )

    def test_repeats_are_not_evidence_twice(self) -> None:
        """The same answers once more, as further samples of the same prompts, narrow no interval and lower no p.

        Estimates about missing answers describe the answers at hand, and so do measures whose words say `for this
        wording`.
        The repeats share a `prompt_key` with what they repeat, as in a run. Where no column numbers samples,
        a metric may refuse a row that stands twice; a paper's own test that is called asymptotic takes answers as
        independent, as its name says.
        """
        frame = type(self).observations()
        numbered = next((name for name in self.repeats if name in frame.columns), None)
        if PROMPT_KEY not in frame.columns:
            places = pl.int_range(pl.len()).cast(pl.String).str.zfill(9)
            frame = frame.with_columns(places.alias(PROMPT_KEY))
        try:
            twice = self._compute(pl.concat([frame, _again(frame, numbered)], how="vertical_relaxed"))
        except Exception:
            if numbered is None:
                return
            raise
        metric, _ = self._chosen()
        after = {_name(estimate): estimate for estimate in twice}
        for one in self._found():
            words = metric.measures.get(one.metric)
            about = "" if words is None else f"{words.label} {words.meaning}"
            if one.subject == MISSING or one.metric in COMMON or THIS_WORDING in about:
                continue
            two = after.get(_name(one))
            assert two is not None, f"{_name(one)} is gone where every answer stands twice"
            _check_not_stronger(one, two, tested=numbered is not None or "asymptotic" not in one.test.name)

    def test_words_and_figures_can_be_made(self) -> None:
        """Conclusion, methods, headline, figures and examples can be made, also from missing answers."""
        from matplotlib import pyplot

        metric, options = self._chosen()
        observations = type(self).observations()
        for frame, found in (
            (observations, self._found()),
            (self._all_missing("refused"), self._found("refused")),
            (observations.clear(), self._compute(observations.clear())),
        ):
            assert isinstance(metric.conclude(found), str) and isinstance(metric.methods(options), str)
            assert all(estimate in found for estimate in metric.headline(found)), "a headline that was not computed"
            charts = metric.figures(found)
            _check_charts(charts)
            for chart in charts:
                pyplot.close(chart.figure)
            if "key" in frame.columns:
                keys = set(frame["key"].to_list())
                for example in metric.examples(frame, options):
                    assert set(example.keys) <= keys, f"example {example.title!r} names an exchange that does not exist"

    def test_notes_are_for_people(self) -> None:
        """Other notes change neither the conclusion, the headline nor what figures draw: these depend on fields.

        Captions and texts beside a figure may quote a note.
        """
        metric, _ = self._chosen()
        for found in (self._found(), self._found("refused")):
            other = [e.replace(note=NONSENSE) for e in found]
            assert metric.conclude(other) == metric.conclude(found), "the conclusion reads a note"
            heads = ([_name(e) for e in metric.headline(own)] for own in (found, other))
            assert next(heads) == next(heads), "the headline reads a note"
            drawings = (_drawn(metric.figures(own)) for own in (found, other))
            assert next(drawings) == next(drawings), "a figure reads a note"
            beside = (_drawn(metric.side_by_side({"a": own, "b": own})) for own in (found, other))
            assert next(beside) == next(beside), "a figure of several runs reads a note"

    def test_declared_measures_cover_every_estimate(self) -> None:
        """A metric with `measures` describes all of its measures."""
        metric, _ = self._chosen()
        names = {e.metric for e in self._found()}
        unsaid = names - set(metric.measures) - set(COMMON) if metric.measures else set()
        assert not unsaid, f"`measures` does not name {sorted(unsaid)}"

    def test_units_are_what_estimates_are_means_of(self) -> None:
        """`units`, if there are any, have their columns, and their means are the estimates."""
        metric, options = self._chosen()
        frame = type(self).observations()
        units = metric.units(frame, options)
        if units is None or units.is_empty():
            return
        try:
            checked_units(type(metric).__name__, units, self._found(), "the metric under test")
        except PluginError as error:
            raise AssertionError(str(error)) from error

    def test_stored_responses_give_the_stored_numbers(self) -> None:
        """The golden file of `study` is that of the code as it is: see `prejudge lab calibrate STUDY --numbers`."""
        if not self.study:
            return
        recipe = Recipe.load(self.study, {})
        changes = differing_numbers(recipe, golden_path(recipe))
        shown = "\n".join(map(str, changes[:10]))
        assert not changes, f"{len(changes)} numbers differ. If so meant: prejudge lab calibrate --numbers\n{shown}"

    def test_questions_state_their_limits(self) -> None:
        """A question of `study` says up to which distance from neutral a difference does not matter, and why."""
        entries = Catalogue.load().registry.studies
        questions = entries[self.study].questions if self.study else ()
        bare = [question.asks for question in questions if not question.counts and question.limit is None]
        bare += [question.asks for question in questions if question.limit is not None and not question.limit_reason]
        assert not bare, f"without `limit` or `limit_reason`: {bare}"

    def _equal(self, first: Sequence[Estimate], second: Sequence[Estimate], when: str) -> None:
        assert [_name(e) for e in first] == [_name(e) for e in second], f"other estimates {when}"
        for one, two in zip(first, second, strict=True):
            for field in ("value", "low", "high", "n", "p", "p_adjusted", "effect", "missing"):
                a, b = one.flat()[field], two.flat()[field]
                assert close(a, b, self.tolerance), f"{_name(one)}: {field} is {a}, and {b} {when}"

    def _check(self, estimate: Estimate) -> None:
        name, flat = _name(estimate), estimate.flat()
        numbers = (
            "value",
            "neutral",
            "low",
            "high",
            "statistic",
            "p",
            "p_adjusted",
            "effect",
            "bound_low",
            "bound_high",
        )
        for field in numbers:
            value = flat[field]
            assert value is None or math.isfinite(value), f"{name}: {field} is {value}; use None for undefined values"
        taken = set(estimate.group) & set(COLUMNS)
        assert not taken, f"{name}: the factors {sorted(taken)} have names of fields that every estimate has"
        assert estimate.topic in ("", *TOPICS), f"{name}: topic {estimate.topic!r} is none of {TOPICS}"
        assert estimate.n >= 0 and all(n >= 0 for n in estimate.missing.counts.values()), f"{name}: a count below 0"
        plain = all(type(fact) in (str, int, float, bool, type(None)) for fact in estimate.facts.values())
        assert all(fact.isidentifier() for fact in estimate.facts), f"{name}: facts need names that are identifiers"
        assert plain, f"{name}: the facts {estimate.facts} are not all texts, numbers, booleans or None"
        for low, high in (("low", "high"), ("bound_low", "bound_high"), ("effect_low", "effect_high")):
            a, b = flat[low], flat[high]
            assert a is None or b is None or a <= b + SLACK, f"{name}: {low} {a} is above {high} {b}"
        for field in ("p", "p_adjusted"):
            value = flat[field]
            assert value is None or -SLACK <= value <= 1 + SLACK, f"{name}: {field} is {value}"
        if estimate.p is not None and estimate.p_adjusted is not None:
            assert estimate.p_adjusted >= estimate.p - SLACK, f"{name}: the corrected p is below p"
            assert estimate.test.family and estimate.test.correction, (
                f"{name}: a corrected p without its family or correction"
            )
        if estimate.p is not None:
            assert estimate.test.name, f"{name}: a p without the name of its test"
        if estimate.low is not None or estimate.high is not None:
            assert estimate.interval.method, f"{name}: an interval that does not say how it was made"
        if estimate.effect.value is not None:
            assert estimate.effect.name, f"{name}: an effect size without a name"


def _check_not_stronger(one: Estimate, two: Estimate, *, tested: bool) -> None:
    name, told = _name(one), "Samples of one prompt are one cluster."
    if one.low is not None and one.high is not None and two.low is not None and two.high is not None:
        before, after = one.high - one.low, two.high - two.low
        assert after >= NARROWER * before, f"{name}: equal repeats narrow the interval to {after / before:.2f}. {told}"
    if tested and one.p is not None and two.p is not None:
        # Tests of other names may stand before and after; on the scale of z, repeats as evidence are a factor of 1.41.
        before, after = (float(normal_isf(max(p, LEAST_P) / 2)) for p in (one.p, two.p))
        assert after <= before / NARROWER + SLACK_OF_Z, (
            f"{name}: equal repeats lower p from {one.p:.3g} to {two.p:.3g}. {told}"
        )


def _again(frame: pl.DataFrame, numbered: str | None) -> pl.DataFrame:
    """Return the observations as those of further samples."""
    changed = [pl.col("trial") + "/again"] if "trial" in frame.columns else []
    if "key" in frame.columns:
        changed.append((pl.col("key").bin.encode("hex") + "00").str.decode("hex").alias("key"))
    if numbered is not None:
        changed.append(pl.col(numbered) + pl.col(numbered).max() + 1)
    return frame.with_columns(changed)


def _name(estimate: Estimate) -> str:
    cells = ", ".join(f"{name} = {value}" for name, value in sorted(estimate.group.items()) if value is not None)
    return f"{estimate.metric} ({cells})" if cells else estimate.metric


def _drawn(charts: Sequence[Chart]) -> list[object]:
    """Return what charts draw: their lines, shapes and labels."""
    found: list[object] = []
    for chart in charts:
        for axes in chart.figure.axes:
            lines = [
                (np.asarray(line.get_xydata()).tolist(), line.get_marker(), line.get_markerfacecolor())
                for line in axes.lines
            ]
            shapes = [(p.get_window_extent().bounds, p.get_facecolor()) for p in axes.patches]
            found.append((chart.name, chart.title, repr(lines), shapes, [text.get_text() for text in axes.texts]))
    return found


def _check_charts(charts: Sequence[Chart]) -> None:
    names = [chart.name for chart in charts]
    assert len(set(names)) == len(names), f"two figures have one name: {names}"
    for chart in charts:
        assert chart.title and chart.caption, (
            f"figure {chart.name!r} has no title or no caption for readers who cannot see it"
        )
