"""Compare runs of one study: differences with their uncertainty. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isclose
from typing import Any

import msgspec
import polars as pl

from ..catalogue.plugins import blamed
from ..catalogue.study import SUBJECT, Catalogue
from ..contracts import Chart, Estimate, Listing, Metric
from ..contracts.errors import UsageError
from ..contracts.estimates import Caveat, with_neutral
from ..contracts.options import build_options
from ..contracts.sizes import limit_for, limited
from ..contracts.words import MARGIN
from ..scoring.reasoning import Reasoned, reasoned
from ..scoring.score import Scores, score
from ..scoring.warnings import warnings_of
from ..statistics.inference import PERCENT
from ..store import Store, get_run
from .beside import PUBLISHED, in_words, published_of, set_beside
from .check import by_study, ensure_comparable
from .differences import POINTS, Difference
from .drawn import each_once, forests, side_by_side
from .marking import marked
from .pair import Units, families, groups_in, key_of, pair, units_of, widest
from .records import CompareOptions, Comparison

UNTESTED = "this measure is not a mean of units; each run's value is over all its own units"
UNDEFINED = "undefined in one of the runs"
IGNORED = {
    True: "{} was told not to think, and its answers have reasoning: the setting was ignored, at least in part.",
    False: "{} was told to think, and no answer shows reasoning: it was ignored, or the endpoint does not tell.",
}
"""By whether thinking was off."""
SHARED = "of the units that both runs answered: not the difference of the runs' own values"


def compare(catalogue: Catalogue, store: Store, names: Sequence[str], options: CompareOptions) -> Comparison:
    """Score the runs from the store and compare them.

    Raises:
        UsageError: there is no such run, or the runs cannot be compared.
    """
    return compare_scores(catalogue, score_all(catalogue, store, names, options.assignments), options)


def score_all(
    catalogue: Catalogue, store: Store, names: Sequence[str], assignments: Mapping[str, Any] | None = None
) -> dict[str, Scores]:
    """Score runs, and label each by its model where that tells them apart, else by its name.

    Args:
        catalogue: where their studies are.
        store: where their answers are.
        names: their names.
        assignments: options of their metrics.

    Raises:
        UsageError: a run is named twice, or cannot be scored.
    """
    runs = [get_run(store, name).name for name in names]
    if twice := [name for name in runs if runs.count(name) > 1]:
        raise UsageError(f"run {twice[0]} is named twice. Name each run once.", code="compare.twice")
    paired = f"{paired_metric(catalogue)}."
    own = {name: value for name, value in (assignments or {}).items() if not name.startswith(paired)}
    scored = [_with_reasoning(store, score(catalogue, store, name, own)) for name in runs]
    models = [scores.manifest.study.roles.get(SUBJECT, "") for scores in scored]
    labels = models if all(models) and len(set(models)) == len(models) else runs
    return dict(zip(labels, scored, strict=True))


def paired_metric(catalogue: Catalogue) -> str:
    """Return the name of the metric of differences between runs, whose options are `NAME.option`."""
    return catalogue.registry.defaults["compare"]


def _with_reasoning(store: Store, scores: Scores) -> Scores:
    if scores.manifest.is_published:
        return scores  # the rows of a table hold no answers in words
    model = scores.manifest.study.roles.get(SUBJECT, "")
    return msgspec.structs.replace(scores, reasoned=reasoned(store, scores.run.id, scores.stages, model))


def compare_scores(catalogue: Catalogue, runs: Mapping[str, Scores], options: CompareOptions) -> Comparison:
    """Compare scored runs, by label; the first run of each study is the baseline of its other runs.

    Raises:
        UsageError: the runs cannot be compared: those of several studies, if no metric of all of them lists over runs.
    """
    metric, settings = _paired(catalogue, options)
    listings = listings_of(catalogue, runs)
    notes: list[str] = []
    found: list[Difference] = []
    headline: list[Difference] = []
    charts: list[Chart] = []
    drawn: list[Chart] = []
    said: list[str] = []
    methods = [metric.methods(settings)]
    fewest = 1 if options.published else 2
    for own in by_study(runs).values() if listings else [runs]:
        first = next(iter(own.values()))
        methods += [text for text in first.methods if text]
        if listings and len(own) < fewest:
            notes += [f"{label}: {warning}" for label in own for warning in warnings_of(first)]
            continue
        notes += ensure_comparable(catalogue, own, allow_different=options.allow_different, fewest=fewest)
        apart = [d for name in first.estimates for d in _compare_metric(catalogue, own, name, options)]
        shown = {key_of(e.metric, e.group) for e in with_neutral(first.headline)}
        found += apart
        beside = _beside(catalogue, own, options)
        found += beside
        headline += [d for d in [*apart, *beside] if key_of(d.estimate.metric, _own(d.estimate.group)) in shown]
        charts += forests(own, published_of(catalogue, own))
        drawn += side_by_side(catalogue, own)
        said += [in_words(beside)] if beside else []
    notes += _reasoning_notes(runs)
    found, headline = (_doubted(runs, part) for part in (found, headline))
    top = [d.estimate for d in headline or found]
    paired = [e for e in top if not e.facts.get(PUBLISHED)]
    titles = dict.fromkeys(s.manifest.study.title or s.manifest.study.name for s in runs.values())
    comparison = Comparison(
        title=f"{'; '.join(titles)}: {len(runs)} runs compared",
        runs=dict(runs),
        differences=tuple(found),
        headline=tuple(headline),
        conclusion=" ".join([*([metric.conclude(paired)] if paired else []), *said]),
        notes=tuple(notes),
        methods=tuple(dict.fromkeys(methods)),
        charts=each_once([*charts, *metric.figures(top), *drawn]),
        listings=listings,
    )
    return marked(comparison)


def _reasoning_notes(runs: Mapping[str, Scores]) -> list[str]:
    """Say of each run how many answers came with reasoning, if any did or was asked for; and what was not heeded."""
    known = {label: scores.reasoned for label, scores in runs.items() if scores.reasoned is not None}
    if not any(one.reasoned or one.level for one in known.values()):
        return []
    said = "; ".join(f"{label}: {one.words()}" for label, one in known.items())
    ignored = [IGNORED[one.level == "off"].format(label) for label, one in known.items() if one.ignored]
    return [f"Reasoning: {said}.", *ignored]


def _doubted(runs: Mapping[str, Scores], found: Sequence[Difference]) -> list[Difference]:
    """Add the caveat to the differences of runs whose model did not heed how much it was told to think."""

    def doubted(label: Any) -> bool:
        known: Reasoned | None = runs[label].reasoned if label in runs else None
        return known is not None and known.ignored

    def judged(one: Difference) -> Difference:
        e = one.estimate
        if not any(doubted(e.group.get(end)) for end in ("run", "against")):
            return one
        return one._replace(estimate=e.replace(caveats=(*e.caveats, Caveat.NOT_HEEDED)))

    return [judged(one) for one in found]


def listings_of(catalogue: Catalogue, runs: Mapping[str, Scores]) -> tuple[Listing, ...]:
    """Return what the metrics that all runs have list over them; nothing of a single run."""
    found: list[Listing] = []
    for name in next(iter(runs.values())).estimates if len(runs) > 1 else ():
        if all(name in scores.estimates for scores in runs.values()):
            metric: Metric = catalogue.plugins.load("metric", name)()
            seen = {
                label: (
                    scores.seen_by(metric),
                    catalogue.instrument(scores.made, scores.manifest.design).metrics[name][1],
                )
                for label, scores in runs.items()
            }
            with blamed(catalogue.plugins.offers["metric"][name].plugin, f"listings of metric {name!r}"):
                found += metric.across(seen)
    return tuple(found)


def _beside(catalogue: Catalogue, runs: Mapping[str, Scores], options: CompareOptions) -> list[Difference]:
    """Return the differences from published models, if some are named."""
    return set_beside(runs, published_of(catalogue, runs), options.published) if options.published else []


def _own(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: level for name, level in group.items() if name not in ("run", "against")}


def _paired(catalogue: Catalogue, options: CompareOptions) -> tuple[Metric, Any]:
    name = paired_metric(catalogue)
    metric: Metric = catalogue.plugins.load("metric", name)()
    settings = {n.partition(".")[2]: v for n, v in options.assignments.items() if n.startswith(f"{name}.")}
    return metric, build_options(name, metric.options, settings)


def _compare_metric(
    catalogue: Catalogue, runs: Mapping[str, Scores], name: str, options: CompareOptions
) -> list[Difference]:
    """Return the differences of one metric's estimates, in the order the metric gives them."""
    units = {label: units_of(catalogue, scores, name) for label, scores in runs.items()}
    pairs = list(combinations(runs, 2)) if options.all_pairs else [(next(iter(runs)), b) for b in list(runs)[1:]]
    tested = _tested(catalogue, _frame(runs, units, pairs, options, name), options)
    found = []
    for against, run in pairs:
        values = {key_of(e.metric, e.group): e for e in runs[against].estimates[name]}
        limits = _limits(units[run], units[against])
        # The whole-study estimates of `missing` and the like stand in every run; a group of one run only in none.
        for e in runs[run].estimates[name]:
            key = key_of(e.metric, e.group)
            if key not in values:
                continue
            group = {"run": run, "against": against, **e.group}
            made = tested.get(key_of(e.metric, group)) or _untested(values[key], e, group)
            note = "; ".join(filter(None, [made.note, _apart(made, values[key].value, e.value)]))
            named = {"label": e.label, "meaning": e.meaning, "direction": e.direction}
            made = made.replace(group=group, unit=POINTS.get(e.unit, e.unit), topic=e.topic, note=note, **named)
            made = within_range(made, limits.get(key))
            made = limited(made, _limit(options, made, values[key], e))
            found.append(Difference(made, values[key].value, e.value))
    return found


def _limits(*runs: Units | None) -> dict[tuple[Any, ...], float]:
    """Return how far runs can be apart in each estimate, where both runs have the same limits."""
    first, second = ({} if one is None else widest(one) for one in runs)
    return {key: width for key, width in first.items() if second.get(key) == width}


def within_range(difference: Estimate, widest: float | None) -> Estimate:
    """Return a difference whose interval has no values that are impossible.

    A true difference is never one of them, so that the interval covers it as often as before.
    """
    low, high = difference.low, difference.high
    if widest is None or low is None or high is None:
        return difference
    return difference.replace(low=max(low, -widest), high=min(high, widest))


def _limit(options: CompareOptions, difference: Estimate, *estimates: Estimate) -> float | None:
    """Return up to which a difference does not matter: as asked for shares, else the greatest limit of the estimates.

    Without either, the convention of its unit; None where there is none.
    """
    scale = PERCENT.get(estimates[0].unit)
    if options.margin is not None and scale is not None:
        return options.margin * scale
    limits = [limit for e in estimates if isinstance(limit := e.facts.get(MARGIN), int | float)]
    return max(map(float, limits)) if limits else limit_for(difference)


def _frame(
    runs: Mapping[str, Scores],
    units: Mapping[str, Units | None],
    pairs: Sequence[tuple[str, str]],
    options: CompareOptions,
    name: str,
) -> pl.DataFrame | None:
    """Return the paired units of all pairs of runs, with the family of each."""
    parts = []
    for against, run in pairs:
        first, second = units[against], units[run]
        if first is None or second is None:
            continue
        labels = [pl.lit(run).alias("run"), pl.lit(against).alias("against")]
        joined = pair(first, second, shared_only=options.allow_different).select(*labels, pl.all())
        known = groups_in(first) & groups_in(second)
        told = {k: f for k, f in families(runs[against].estimates[name]).items() if k in known}
        parts.append(_with_family(joined, first.factors, told))
    return pl.concat(parts) if parts else None


def _with_family(joined: pl.DataFrame, factors: Sequence[str], told: Mapping[tuple[Any, ...], str]) -> pl.DataFrame:
    """Add `family`, and drop units of an estimate that one of the runs does not have."""
    cells = joined.select("metric", *factors).unique(maintain_order=True)
    keys = [key_of(row.pop("metric"), row) for row in cells.to_dicts()]
    named = cells.with_columns(pl.Series("family", [told.get(key) for key in keys], dtype=pl.String))
    placed = joined.join(named, on=["metric", *factors], how="left", nulls_equal=True, maintain_order="left")
    return placed.filter(pl.col("family").is_not_null())


def _tested(
    catalogue: Catalogue, frame: pl.DataFrame | None, options: CompareOptions
) -> dict[tuple[Any, ...], Estimate]:
    if frame is None or frame.is_empty():
        return {}
    metric, settings = _paired(catalogue, options)
    name = paired_metric(catalogue)
    with blamed(catalogue.plugins.offers["metric"][name].plugin, f"metric {name!r}"):
        found = metric.compute(frame, settings)
    return {key_of(e.metric, e.group): e for e in found}


def _apart(difference: Estimate, first: float | None, second: float | None) -> str:
    """Explain why a difference is not the difference of the runs' own values; empty if it is."""
    if difference.value is None or first is None or second is None:
        return ""
    return "" if isclose(difference.value, second - first, rel_tol=1e-9, abs_tol=1e-9) else SHARED


def _untested(first: Estimate, second: Estimate, group: dict[str, Any]) -> Estimate:
    """Return the difference of two estimates that are not means of units."""
    defined = first.value is not None and second.value is not None
    value = None
    if first.value is not None and second.value is not None:
        # Values that are the same but for the rounding of their sums are no 3.6e-15 apart.
        same = isclose(second.value, first.value, rel_tol=1e-12, abs_tol=1e-12)
        value = 0.0 if same else second.value - first.value
    return Estimate.from_flat(
        metric=second.metric,
        group=group,
        value=value,
        neutral=0.0,
        n=min(first.n, second.n),
        caveats=(Caveat.UNTESTED if defined else Caveat.UNDEFINED,),
        note=UNTESTED if defined else UNDEFINED,
    )
