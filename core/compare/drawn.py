"""The figures of a comparison: all runs in one forest per measure, and the metrics' own figures of several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..catalogue.plugins import blamed
from ..catalogue.published import Published
from ..catalogue.study import Catalogue
from ..charts.levels import draw_levels
from ..contracts import Chart, Metric
from ..contracts.estimates import with_neutral
from ..scoring.score import Scores
from .beside import printed


def forests(runs: Mapping[str, Scores], published: Sequence[Published]) -> list[Chart]:
    """Draw the main measures of all runs in one forest each, beside the values that papers print."""
    main = {label: [e for e in with_neutral(scores.headline) if not e.subject] for label, scores in runs.items()}
    return draw_levels(main, printed(runs, published))


def side_by_side(catalogue: Catalogue, runs: Mapping[str, Scores]) -> list[Chart]:
    """Draw the metrics' own figures of all runs, as the papers do."""
    charts: list[Chart] = []
    for name in next(iter(runs.values())).estimates:
        metric: Metric = catalogue.plugins.load("metric", name)()
        with blamed(catalogue.plugins.offers["metric"][name].plugin, f"figures of metric {name!r}"):
            charts += metric.side_by_side({label: scores.judged[name] for label, scores in runs.items()})
    return charts


def each_once(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """Return the charts without those of a name that came before: a metric may draw a forest that stands there."""
    found: dict[str, Chart] = {}
    for chart in charts:
        found.setdefault(chart.name, chart)
    return tuple(found.values())
