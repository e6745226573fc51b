"""The verbs that ask more than one run, or until a policy is decided: vary, decide and converge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..catalogue.constructs import find_construct
from ..catalogue.study import Catalogue
from ..catalogue.variants import written
from ..compare import CompareOptions, compare_scores, score_all, write_comparison
from ..compare.result import ComparisonResult
from ..contracts.errors import HaltedError, UnsupportedOperationError, UsageError
from ..engine.roles import ensure_ready
from ..engine.runs import execute
from ..engine.varying import SharedBudget, ensure_accepted, varied_studies
from ..gate import Deciding, followed_in, judge, parse_policy, read_policy
from ..gate.result import DecisionResult
from ..lab.converge import Case, cases_of, write_convergence
from ..lab.converge import converge as judge_methods
from ..lab.converge.cases import OF_THE_METHOD
from ..lab.converge.result import ConvergenceResult
from ..scoring.score import score as score_run
from ..store import Store
from .blocking import blocking
from .running import reported
from .settings import Settings
from .studies import resolve, roles_of


async def avary(
    study: str,
    model: str | Mapping[str, str],
    varied: Mapping[str, Sequence[Any]],
    settings: Settings | None = None,
    **options: Any,
) -> ComparisonResult:
    """Run a study on variants of a model and compare the runs, each with each.

    `vary` blocks, also in a notebook; `avary` is awaited.

    Args:
        study: a study's name, or a study file.
        model: the model of the role `subject`, or a model per role.
        varied: values by setting of the subject, such as `{"thinking": ["off", "low", "high"]}`; several settings make
            every combination.
        settings: paths, cache mode, and one budget for all runs.
        options: options of the probe.

    Returns:
        The comparison: `.conclusion`, `.estimates` (a row per difference), `.report`, `.plot()`.

    Raises:
        UsageError: an error that the user can fix; that of a variant is raised before any variant is asked more than
            its first prompt.

    Example:
        >>> import prejudge
        >>> small = {"per_cell": 2, "axes": ["height"]}
        >>> result = await prejudge.avary("bistereo-pairs", "simulated-fair", {"strength": [0, 2]}, **small)
        >>> list(result.comparison.runs)
        ['simulated-fair[strength=0]', 'simulated-fair[strength=2]']
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    values = {name: [written(value) for value in every] for name, every in varied.items()}
    studies = await asyncio.to_thread(varied_studies, catalogue, study, roles_of(model), values, options)
    budget, names = SharedBudget(settings.run_options.caps), []
    with Store(settings.store, later=True) as store:
        await ensure_accepted(catalogue, studies, store, settings.run_options, budget)
        for variant in studies:
            name = await execute(catalogue, variant, store, settings.run_options, settings.progress, budget.budget())
            names.append(reported(score_run(catalogue, store, name), store, settings).name)
        comparison = compare_scores(catalogue, score_all(catalogue, store, names), CompareOptions(all_pairs=True))
    return ComparisonResult(comparison, report=write_comparison(comparison, Path(settings.runs)))


async def adecide(
    study: str,
    model: str | Mapping[str, str],
    policy: str | Path,
    settings: Settings | None = None,
    **options: Any,
) -> DecisionResult:
    r"""Run a study in whole units of random order until a policy is decided, and judge the run by it.

    `decide` blocks, also in a notebook; `adecide` is awaited.

    Args:
        study: a study's name, or a study file.
        model: the model of the role `subject`, or a model per role.
        policy: the path of a policy, or its text (TOML).
        settings: paths, cache mode, budget.
        options: options of the probe.

    Returns:
        The decision: `.state`, `.checks` (a row per check), `.looks` (a row per look), `.run`, `.conclusion`.

    Raises:
        UsageError: an error that the user can fix, such as a rule for which no bound holds at every look, or
            `settings.batch`: batches send all requests at once.

    Example:
        >>> import prejudge
        >>> group = '{ threshold = 0.02, axis = "height", gender = "women" }'
        >>> rule = f'[[rules]]\nmeasure = "favouritism"\ngroup = {group}\nmax = 20\n'
        >>> small = {"per_cell": 10, "axes": ["height"], "genders": ["women"]}
        >>> result = await prejudge.adecide("bistereo-pairs", "simulated-biased", rule, **small)
        >>> result.state == result.looks["state"][-1]
        True
    """
    settings = settings or Settings()
    if settings.batch:
        raise UsageError(
            "batches hand in all requests at once, and this run looks between them. Leave `batch` out.",
            code="options.conflict",
        )
    rules = parse_policy(str(policy)) if "\n" in str(policy) else read_policy(policy)
    catalogue = Catalogue.load(settings.registry)
    resolved = resolve(catalogue, study, model, options)
    asking = msgspec.structs.replace(settings.run_options, decider=Deciding(catalogue, resolved, rules))
    with Store(settings.store, later=True) as store:
        name = await execute(catalogue, resolved, store, asking, settings.progress)
        result = reported(score_run(catalogue, store, name), store, settings)
    verdicts = judge(result.scores, rules, followed=followed_in(result.scores, rules))
    return DecisionResult(result, tuple(verdicts), report=result.report)


async def aconverge(
    constructs: str | Sequence[str],
    models: str | Sequence[str] = (),
    settings: Settings | None = None,
    *,
    runs: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> ConvergenceResult:
    """Measure constructs on models by every method that they can answer, and judge whether the methods agree.

    `converge` blocks, also in a notebook; `aconverge` is awaited.

    Args:
        constructs: names such as `skin-tone-and-desirability`, or construct files. Two or more are compared, too.
        models: the models to study, one after another. From three on, methods are correlated over them.
        settings: paths, cache mode, and one budget for all methods and models.
        runs: runs that are used instead of asking, of any of the methods.
        roles: models of other roles than `subject`.
        options: as on the command line: `{"forced-choice.per_cell": 60}`.

    Returns:
        The convergence: `.conclusions` by construct and model, `.estimates` (a row per method), `.report`.

    Raises:
        UsageError: an error that the user can fix; that of a construct, a model or an option before any is asked.

    Example:
        >>> import prejudge
        >>> part = {"axes": ["skin complexion"], "genders": ["women"], "sentiments": ["positive", "negative"]}
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=4, scoring="pll", **part)
        >>> result = await prejudge.aconverge("skin-tone-and-desirability", runs=[run.name])
        >>> [method for method, value in result.estimates.select("method", "value").iter_rows() if value is not None]
        ['pseudo-likelihood']
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    names = [constructs] if isinstance(constructs, str) else list(constructs)
    measured = [find_construct(name, catalogue.plugins.constructs) for name in names]
    subjects = [models] if isinstance(models, str) else list(models)
    if not subjects and not runs:
        raise UsageError("name what to measure: a model, or runs of it.", code="converge.nothing")
    cases = await asyncio.to_thread(cases_of, catalogue, measured, subjects, roles or {}, options or {})
    await ensure_ready(catalogue, (case.study for case in cases if case.study is not None))
    with Store(settings.store, later=True) as store:
        asked = await _ask(catalogue, cases, store, settings)
        convergence = judge_methods(catalogue, store, measured, cases, asked, runs)
    return ConvergenceResult(convergence, report=write_convergence(convergence, Path(settings.runs)))


async def _ask(catalogue: Catalogue, cases: list[Case], store: Store, settings: Settings) -> list[str | None]:
    """Run each case within one budget, and return the names of the runs; a case that cannot be run says why."""
    budget, names = SharedBudget(settings.run_options.caps), list[str | None]()
    for index, case in enumerate(cases):
        name = None
        if case.study is not None:
            try:
                name = await execute(
                    catalogue, case.study, store, settings.run_options, settings.progress, budget.budget()
                )
            except (HaltedError, UnsupportedOperationError) as error:
                if error.code not in OF_THE_METHOD:
                    raise
                cases[index] = case.failed(str(error))
        names.append(name)
    return names


vary = blocking(avary)
decide = blocking(adecide)
converge = blocking(aconverge)
