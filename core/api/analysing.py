"""The verbs that analyse stored runs: compare, variance, multiverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..catalogue.study import Catalogue
from ..compare import CompareOptions, compare_scores, rank_runs, ranks_possible, score_all, write_comparison
from ..compare.result import ComparisonResult
from ..contracts.options import build_options
from ..lab.multiverse import MultiverseOptions, universes, write_multiverse
from ..lab.multiverse import multiverse as analyse_multiverse
from ..lab.multiverse.result import MultiverseResult
from ..lab.variance import VarianceOptions, write_variance
from ..lab.variance import variance as analyse_variance
from ..lab.variance.result import VarianceResult
from ..scoring.score import score as score_run
from ..store import Store
from .settings import Settings
from .studies import roles_of


def compare(*names: str, settings: Settings | None = None, **options: Any) -> ComparisonResult:
    """Compare runs of one study with the first run, or the ranks of models across studies; write a report.

    Args:
        names: runs, the baseline first; at least two, or one with `published`.
        settings: paths of the store, the registry and the report.
        options: `all_pairs=True` compares every pair of runs; `margin`, the difference in percentage points below
            which it does not matter; `allow_different=True` compares the shared trials of runs with different options
            or data; `published`, models whose published values are set beside the runs (`["all"]`: every one);
            `assignments`, options of the metrics.

    Returns:
        The comparison: `.conclusion`, `.estimates` (a row per difference), `.report`, `.plot()`.

    Raises:
        UsageError: there is no such run or option, or the runs cannot be compared.

    Example:
        >>> import prejudge
        >>> small = {"per_cell": 2, "axes": ["height"]}
        >>> fair = prejudge.run("bistereo-pairs", "simulated-fair", **small)
        >>> biased = prejudge.run("bistereo-pairs", "simulated-biased", **small)
        >>> "against_value" in prejudge.compare(fair.name, biased.name, margin=2).estimates.columns
        True
    """
    settings, choice = settings or Settings(), build_options("compare", CompareOptions, options)
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        runs = score_all(catalogue, store, names, choice.assignments)
    comparison = (rank_runs if ranks_possible(runs) else compare_scores)(catalogue, runs, choice)
    return ComparisonResult(comparison, report=write_comparison(comparison, Path(settings.runs)))


def variance(*names: str, settings: Settings | None = None, **options: Any) -> VarianceResult:
    """Estimate where the variance of a measure comes from, and what to ask more of; from the store alone.

    Args:
        names: a run, or runs of one study on different models; by default the latest run.
        settings: paths of the store, the registry and the pages.
        options: `metric` and `measure`, by default the first that has a mean and a neutral value; `facets`, by default
            those that the metric declares; `random` and `fixed`, facets that are samples and that are not; `object`,
            the facet whose levels are told apart; `where`, the rows to take, such as `{"gender": "women"}`;
            `interactions`, most facets of one; `method`, `"moments"` or `"reml"`; `level` of the intervals; `error`,
            the standard error to be reached.

    Returns:
        The analysis: `.conclusion`, `.estimates` (a row per component), `.designs`, `.report`, `.plot()`.

    Raises:
        UsageError: there is no such run, option, measure or facet, or the runs are of different designs.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=24, axes=["height"])
        >>> prejudge.variance(run.name, facets=["template", "attribute"]).estimates["component"].to_list()
        ['side', 'template', 'attribute (in side)', 'side x template', 'template x attribute', 'residual']
    """
    settings, choice = settings or Settings(), build_options("variance", VarianceOptions, options)
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        analysis = analyse_variance(catalogue, store, names or ("latest",), choice)
    return VarianceResult(analysis, report=write_variance(analysis, Path(settings.runs)))


def multiverse(
    study: str,
    model: str | Mapping[str, str],
    settings: Settings | None = None,
    *,
    measure: str = "",
    group: Mapping[str, Any] | None = None,
    choices: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> MultiverseResult:
    """Show the result of a study under every defensible choice, from the runs of the store; no model is asked.

    Args:
        study: a study's name or file.
        model: the model of the role `subject`, or a model per role.
        settings: paths of the store, the registry and the pages.
        measure: the measure; by default the one that the study file declares.
        group: its group, such as `{"axis": "height"}`; by default the one that the study file declares.
        choices: more choices than those of the study file, or other values of these.
        options: options of the probe, as of the runs.

    Returns:
        The multiverse: `.conclusion`, `.estimates` (a row per combination of choices), `.report`, `.plot()`.

    Raises:
        UsageError: there are no choices, or one is none of the study.
        DataError: the store has no run of any combination of choices.

    Example:
        >>> import prejudge
        >>> small = {"per_cell": 4, "axes": ["height"]}
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", **small)
        >>> group = {"axis": "height", "gender": "women"}
        >>> result = prejudge.multiverse("bistereo-pairs", "simulated-biased", group=group, **small)
        >>> set(result.estimates["run"].drop_nulls()) == {run.name}
        True
    """
    settings = settings or Settings()
    choice = MultiverseOptions(measure=measure, group=group or {}, choices=choices or {})
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        analysis = analyse_multiverse(catalogue, store, universes(catalogue, study, roles_of(model), options, choice))
        report = write_multiverse(analysis, score_run(catalogue, store, analysis.own.run), Path(settings.runs))
    return MultiverseResult(analysis, report=report)
