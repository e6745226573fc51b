"""The Python interface: run, score, plan, compare and load, blocking or async, also in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec
import polars as pl

from .catalogue.constructs import find_construct
from .catalogue.study import SUBJECT, Catalogue, Study
from .catalogue.variants import written
from .compare import (
    CompareOptions,
    Comparison,
    compare_scores,
    differences_frame,
    rank_runs,
    ranks_possible,
    score_all,
    write_comparison,
)
from .contracts.canonical import decode_request, decode_response
from .contracts.errors import HaltedError, UnknownNameError, UnsupportedOperationError, UsageError
from .converge import Convergence, cases_of, evidence_frame, write_convergence
from .converge import converge as judge_methods
from .converge.cases import OF_THE_METHOD
from .converge.words import conclusion as said_of
from .correction import corrected_run
from .engine.batch.options import SENTINELS, BatchOptions
from .engine.budget import Caps
from .engine.manifest import manifest_of
from .engine.observations import stack
from .engine.plan import StagePlan
from .engine.plan import plan as plan_study
from .engine.progress import Progress
from .engine.reading import Outcome
from .engine.retry import LONGEST_SECONDS
from .engine.roles import ensure_ready
from .engine.runs import RunOptions, execute
from .engine.scheduler import Mode
from .engine.varying import Purse, ensure_accepted, varied_studies
from .gate import Deciding, State, Verdict, followed_in, judge, parse_policy, read_policy, worst
from .multiverse import Found as FoundMultiverse
from .multiverse import MultiverseOptions, universes, write_multiverse
from .multiverse import chart as multiverse_chart
from .multiverse import conclusion as multiverse_in_words
from .multiverse import frame as multiverse_frame
from .multiverse import multiverse as analyse_multiverse
from .report.examples import show_request, show_response
from .report.export import Format, encode
from .report.export import write_bytes as write_bytes
from .report.output import write_output
from .report.results import Run as Run
from .report.results import load as load
from .report.results import plotted
from .scoring.score import observations_of, score_published
from .scoring.score import score as score_run
from .scoring.sensitivity import ASSUMED, Assumed, ensure_apart
from .scoring.sensitivity import Detectable as Detectable
from .scoring.sensitivity import smallest_effects as find_smallest
from .store import Store, get_run, used_answers
from .variance import Variance as Found
from .variance import VarianceOptions, component_rows, design_rows, write_variance
from .variance import charts as variance_charts
from .variance import conclusion as variance_in_words
from .variance import variance as analyse_variance
from .view.labels import Sample as Sample
from .view.room import Room
from .view.taking import Wanted
from .view.taking import draw_sample as draw
from .workers.options import worker_options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
TABLES: tuple[Format, ...] = ("parquet", "csv", "json")
"""File formats of `write_table`."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Paths, cache mode, budget, and the parts of the report."""

    store: str = "prejudge.db"
    """A file or a SQLAlchemy URL."""
    runs: str = "runs"
    """The folder for reports."""
    registry: str | None = None
    """Your own registry file, which is trusted for this call; None: registry.toml in the working directory, if any."""
    mode: Mode = "use"
    """`use`: ask only requests without a stored answer; `replay`: ask nothing; `refresh`: ask all requests again."""
    refresh: tuple[Outcome, ...] = ()
    """Stored answers to ask anew: `unreadable`, `refused`, `filtered`, `empty`. The report says that they were chosen
    by their outcome."""
    sign: str | None = None
    """The path of an SSH key, with which the finished run is signed."""
    progress: Progress | None = None
    max_requests: int | None = None
    """Stop with `BudgetError` after this many requests. All answers are stored, and the next run uses them."""
    max_tokens: int | None = None
    max_cost: float | None = None
    """US dollars, from the registry's prices."""
    keep_going: bool = False
    """Ask on where many requests in a row fail alike, are answered with nothing, or cannot be read. Without it
    such a run stops with `HaltedError`; all answers are stored."""
    accept_repeats: bool = False
    """Ask an endpoint that repeats itself all the same: it ignores the temperature, or a cache answers repeats. Each
    prompt then counts as one draw, and the report says so. Without it such a run stops with `HaltedError`."""
    max_wait: float = LONGEST_SECONDS
    """Longest wait in seconds that an endpoint may ask for. If it asks for more again, the run
    stops with `HaltedError`."""
    leave_out: tuple[str, ...] = ()
    """Parts to leave out of the report: `examples`, `images`."""
    batch: bool = False
    """Ask in batches of the provider, at its price for them and within hours; models without any are asked as usual."""
    batch_wait: bool = True
    """Wait for the batches. Otherwise the run ends with `PendingError` once they are with the provider."""
    batch_items: int | None = None
    """Most requests of one batch; None: as many as the provider takes."""
    sentinel: int = SENTINELS
    """Requests of a stage that are asked by single calls, too, and compared with those of the batches."""
    engine: str | None = None
    """What starts workers, processes that each load the local models: `local` on this machine, `ray` on those of a
    cluster. None: this process asks, unless `workers` or `devices` is set."""
    workers: int | None = None
    """Number of workers; None: one for each device."""
    devices: str | None = None
    """GPUs of the workers: `all`, or numbers such as `0,1`."""
    address: str | None = None
    """Cluster of Ray: `HOST:PORT`, or `auto` for the one that runs on this machine. None: one for this run alone."""

    @property
    def caps(self) -> Caps:
        """Return the budget of a run."""
        return Caps(requests=self.max_requests, tokens=self.max_tokens, cost=self.max_cost)

    @property
    def run_options(self) -> RunOptions:
        """Return the settings of a new run."""
        return RunOptions(
            mode=self.mode,
            refresh=self.refresh,
            sign=self.sign,
            caps=self.caps,
            keep_going=self.keep_going,
            accept_repeats=self.accept_repeats,
            longest_wait=self.max_wait,
            batch=BatchOptions(wait=self.batch_wait, sentinel=self.sentinel, items=self.batch_items)
            if self.batch
            else None,
            workers=worker_options(self.engine, self.workers, self.devices, self.address),
        )

    def __post_init__(self) -> None:
        """Refuse an unknown mode, a budget that is not above 0, and workers that cannot be."""
        _ = self.caps
        worker_options(self.engine, self.workers, self.devices, self.address)
        if self.mode not in (modes := get_args(Mode)):
            raise UnknownNameError("mode", str(self.mode), modes)


class Observed(msgspec.Struct, frozen=True):
    """The observations of a run, unscored."""

    run: str
    """Name of the run."""
    study: Study
    stages: dict[str, Any]
    """A polars frame per stage, in the order the stages were run."""

    @property
    def last(self) -> pl.DataFrame:
        """Return the observations of the last stage."""
        frame: pl.DataFrame = list(self.stages.values())[-1]
        return frame

    @property
    def stacked(self) -> pl.DataFrame:
        """Return the observations of all stages in one frame, with a column `stage`."""
        return stack(self.stages)


class Compared(msgspec.Struct, frozen=True):
    """A comparison of runs, and the path of its report."""

    comparison: Comparison
    report: Path
    """The HTML report."""

    def __repr__(self) -> str:
        """Return the title, the conclusion and the path of the report."""
        return "\n".join([self.comparison.title, self.conclusion, f"Report: {self.report}"])

    @property
    def differences(self) -> pl.DataFrame:
        """Return the differences as a tidy frame, one row each."""
        return differences_frame(self.comparison)

    @property
    def conclusion(self) -> str:
        """Return the conclusion, one sentence."""
        return self.comparison.conclusion

    def plot(self, name: str | None = None) -> Figure | dict[str, Figure]:
        """Return the figure of this name, or all figures by name. Raises `UnknownNameError` if there is none."""
        return plotted(self.comparison.charts, name)


class Converged(msgspec.Struct, frozen=True):
    """Constructs measured by several methods, and the path of the page."""

    convergence: Convergence
    report: Path
    """The HTML page; `convergence.json` and the tables lie beside it."""

    def __repr__(self) -> str:
        """Return the conclusion on each construct and model, and the path of the page."""
        return "\n".join([*self.conclusions.values(), f"Report: {self.report}"])

    @property
    def methods(self) -> pl.DataFrame:
        """Return a row per construct, model and method: its own value, the common scale, p, or what it lacks."""
        return evidence_frame(self.convergence)

    @property
    def conclusions(self) -> dict[tuple[str, str], str]:
        """Return what is said by construct and model."""
        return {(one.construct, one.model): said_of(self.convergence, one) for one in self.convergence.judged}


class Variance(msgspec.Struct, frozen=True):
    """Where the variance of a measure comes from, and the path of the page."""

    found: Found
    report: Path
    """The HTML page; `variance.json` and the tables lie beside it."""

    def __repr__(self) -> str:
        """Return the conclusion, what cannot be estimated, and the path of the page."""
        notes = [f"Note ({note.code}): {note.text}" for note in self.found.notes]
        return "\n".join([self.conclusion, *notes, f"Report: {self.report}"])

    @property
    def components(self) -> pl.DataFrame:
        """Return a row per component: variance, interval, and its shares of the variance and of the squared error."""
        return pl.DataFrame(component_rows(self.found), infer_schema_length=None)

    @property
    def designs(self) -> pl.DataFrame:
        """Return a row per design: levels of each facet, standard error, smallest detectable effect, requests, cost."""
        return pl.DataFrame(design_rows(self.found), infer_schema_length=None)

    @property
    def conclusion(self) -> str:
        """Return what varies most, the standard error and its source, the reliability, and what a smaller one needs."""
        return variance_in_words(self.found)

    def plot(self, name: str | None = None) -> Figure | dict[str, Figure]:
        """Return the figure of this name, or all figures by name. Raises `UnknownNameError` if there is none."""
        return plotted(variance_charts(self.found), name)


class Multiverse(msgspec.Struct, frozen=True):
    """The result of a study under every defensible choice, and the path of the page."""

    found: FoundMultiverse
    report: Path
    """The HTML page; the tables lie beside it."""

    def __repr__(self) -> str:
        """Return the conclusion and the path of the page."""
        return f"{self.conclusion}\nReport: {self.report}"

    @property
    def universes(self) -> pl.DataFrame:
        """Return a row per universe, least value first: its choices, value, interval, verdict and run."""
        return multiverse_frame(self.found)

    @property
    def conclusion(self) -> str:
        """Return how many universes agree, and which choice moves the result most."""
        return multiverse_in_words(self.found)

    def plot(self, name: str | None = None) -> Figure | dict[str, Figure]:
        """Return the figure of this name, or all figures by name. Raises `UnknownNameError` if there is none."""
        return plotted((multiverse_chart(self.found),), name)


class Decided(msgspec.Struct, frozen=True):
    """A run that ended when its policy was decided, and the verdicts."""

    run: Run
    verdicts: tuple[Verdict, ...]

    def __repr__(self) -> str:
        """Return the result, when it was reached, and the run."""
        last = self.looks.row(-1, named=True)
        asked = f"{last['units']} units and {last['trials']:,} requests, at look {self.looks.height}"
        return f"{self.state} after {asked}: {self.run.name}"

    @property
    def state(self) -> State:
        """Return `pass`, `fail` or `not enough data`, of all rules together."""
        return worst(verdict.state for verdict in self.verdicts)

    @property
    def looks(self) -> pl.DataFrame:
        """Return a row per look: units and trials that were asked by then, and the result."""
        ending = self.run.scores.manifest.ending
        assert ending is not None
        return pl.DataFrame([msgspec.structs.asdict(look) for look in ending.looks])

    @property
    def checks(self) -> pl.DataFrame:
        """Return a row per check: the rule, what was checked, what must hold, what was found, and the result."""
        rows = [
            {"rule": v.rule, "subject": o.subject, "check": o.check, "found": o.found, "state": str(o.state)}
            for v in self.verdicts
            for o in v.outcomes
        ]
        return pl.DataFrame(rows)


def _resolve(
    catalogue: Catalogue, study: str, model: str | Mapping[str, str] | None, options: Mapping[str, Any]
) -> Study:
    return catalogue.study(study, _by_role(model), options)


def _by_role(model: str | Mapping[str, str] | None) -> dict[str, str]:
    return {SUBJECT: model} if isinstance(model, str) else dict(model or {})


async def arun(
    study: str, model: str | Mapping[str, str] | None = None, settings: Settings | None = None, **options: Any
) -> Run:
    """Run a study on a model, score it, and write its report.

    Args:
        study: a study's name, such as `bistereo-pairs`.
        model: the model of the role `subject`, or a model per role.
        settings: paths, cache mode, budget.
        options: options of the probe, such as `per_cell=60`.

    Raises:
        UsageError: an error that the user can fix. All answers are stored.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    resolved = _resolve(catalogue, study, model, options)
    with Store(settings.store, later=True) as store:
        name = await execute(catalogue, resolved, store, settings.run_options, settings.progress)
        return _scored(catalogue, store, name, settings)


def run(
    study: str, model: str | Mapping[str, str] | None = None, settings: Settings | None = None, **options: Any
) -> Run:
    """Do the same as `arun`, and block until it is done; also in a running event loop, such as a notebook's."""
    return _block(arun(study, model, settings, **options))


async def adecide(
    study: str,
    model: str | Mapping[str, str],
    policy: str | Path,
    settings: Settings | None = None,
    **options: Any,
) -> Decided:
    """Run a study in whole units of random order until a policy is decided, and judge the run by it.

    Args:
        study: a study's name.
        model: the model of the role `subject`, or a model per role.
        policy: the path of a policy, or its text (TOML).
        settings: paths, cache mode, budget.
        options: options of the probe.

    Raises:
        UsageError: an error that the user can fix, such as a rule of which no bound holds at every look.
    """
    settings = settings or Settings()
    if settings.batch:
        raise UsageError(
            "batches hand in all requests at once, and this run looks between them. Leave `batch` out.",
            code="options.conflict",
        )
    rules = parse_policy(str(policy)) if "\n" in str(policy) else read_policy(policy)
    catalogue = Catalogue.load(settings.registry)
    resolved = _resolve(catalogue, study, model, options)
    asking = msgspec.structs.replace(settings.run_options, decider=Deciding(catalogue, resolved, rules))
    with Store(settings.store, later=True) as store:
        name = await execute(catalogue, resolved, store, asking, settings.progress)
        done = _scored(catalogue, store, name, settings)
    return Decided(done, tuple(judge(done.scores, rules, followed=followed_in(done.scores, rules))))


def decide(
    study: str,
    model: str | Mapping[str, str],
    policy: str | Path,
    settings: Settings | None = None,
    **options: Any,
) -> Decided:
    """Do the same as `adecide`, and block until it is done; also in a running event loop, such as a notebook's."""
    return _block(adecide(study, model, policy, settings, **options))


async def avary(
    study: str,
    model: str | Mapping[str, str],
    varied: Mapping[str, Sequence[Any]],
    settings: Settings | None = None,
    **options: Any,
) -> Compared:
    """Run a study on variants of a model and compare the runs, each with each.

    Args:
        study: a study's name.
        model: the model of the role `subject`, or a model per role.
        varied: values by setting of the subject, such as `{"thinking": ["off", "low", "high"]}`; several settings make
            every combination.
        settings: paths, cache mode, and one budget for all runs.
        options: options of the probe.

    Raises:
        UsageError: an error that the user can fix; that of a variant is raised before any is asked more than its first
            prompt.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    values = {name: [written(value) for value in every] for name, every in varied.items()}
    studies = await asyncio.to_thread(varied_studies, catalogue, study, _by_role(model), values, options)
    purse, names = Purse(settings.run_options.caps), []
    with Store(settings.store, later=True) as store:
        await ensure_accepted(catalogue, studies, store, settings.run_options, purse)
        for one in studies:
            name = await execute(catalogue, one, store, settings.run_options, settings.progress, purse.budget())
            names.append(_scored(catalogue, store, name, settings).name)
        done = compare_scores(catalogue, score_all(catalogue, store, names), CompareOptions(all_pairs=True))
    return Compared(done, write_comparison(done, Path(settings.runs)))


def vary(
    study: str,
    model: str | Mapping[str, str],
    varied: Mapping[str, Sequence[Any]],
    settings: Settings | None = None,
    **options: Any,
) -> Compared:
    """Do the same as `avary`, and block until it is done; also in a running event loop, such as a notebook's."""
    return _block(avary(study, model, varied, settings, **options))


async def aconverge(
    constructs: str | Sequence[str],
    models: str | Sequence[str] = (),
    settings: Settings | None = None,
    *,
    runs: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Converged:
    """Measure constructs on models by every method that they can answer, and judge whether the methods agree.

    Args:
        constructs: names such as `skin-tone-and-desirability`, or construct files. Two or more are compared, too.
        models: the models to study, one after another. From three on, methods are correlated over them.
        settings: paths, cache mode, and one budget for all methods and models.
        runs: runs that are used instead of asking, of any of the methods.
        roles: models of other roles than `subject`.
        options: as on the command line: `{"forced-choice.per_cell": 60}`.

    Raises:
        UsageError: an error that the user can fix; that of a construct, a model or an option before any is asked.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    names = [constructs] if isinstance(constructs, str) else list(constructs)
    known = [find_construct(name, catalogue.plugins.constructs) for name in names]
    subjects = [models] if isinstance(models, str) else list(models)
    if not subjects and not runs:
        raise UsageError("name what to measure: a model, or runs of it.", code="converge.nothing")
    cases = await asyncio.to_thread(cases_of, catalogue, known, subjects, roles or {}, options or {})
    await ensure_ready(catalogue, (case.study for case in cases if case.study is not None))
    purse, asked = Purse(settings.run_options.caps), list[str | None]()
    with Store(settings.store, later=True) as store:
        for place, case in enumerate(cases):
            name = None
            if case.study is not None:
                try:
                    name = await execute(
                        catalogue, case.study, store, settings.run_options, settings.progress, purse.budget()
                    )
                except (HaltedError, UnsupportedOperationError) as error:
                    if error.code not in OF_THE_METHOD:
                        raise
                    cases[place] = case.failed(str(error))
            asked.append(name)
        done = judge_methods(catalogue, store, known, cases, asked, runs)
    return Converged(done, write_convergence(done, Path(settings.runs)))


def converge(
    constructs: str | Sequence[str],
    models: str | Sequence[str] = (),
    settings: Settings | None = None,
    *,
    runs: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Converged:
    """Do the same as `aconverge`, and block until it is done; also in a running event loop, such as a notebook's."""
    return _block(aconverge(constructs, models, settings, runs=runs, roles=roles, options=options))


def score(name: str = "latest", settings: Settings | None = None, assignments: Mapping[str, Any] | None = None) -> Run:
    """Score a run from the store alone, without a model or backend, and write its report.

    `assignments` such as `{"trisentbias.cluster": "attribute"}` override options of the metrics.
    """
    settings = settings or Settings()
    with Store(settings.store, writable=False) as store:
        return _scored(Catalogue.load(settings.registry), store, name, settings, assignments)


def corrected(
    run: str | Run,
    labels: str | Path | Sample | None = None,
    matrix: str | None = None,
    outcome: str = "",
    settings: Settings | None = None,
) -> Run:
    """Correct the numbers of a run for the errors of its reader or judge, and write its report with both.

    `Run.estimates` has the raw value as ever, and beside it `corrected`, `corrected_low`, `corrected_high`,
    `corrected_method`, or `corrected_code` and `corrected_why` where an estimate cannot be corrected.

    Args:
        run: a run or its name.
        labels: a sample of its answers that people labelled (`draw_sample`, `prejudge view`), or its folder:
            prediction-powered inference (PPI++).
        matrix: instead of labels, a CSV file with the known errors: `verdict`, `label`, `n`, and factors in which
            errors differ (Rogan and Gladen).
        outcome: the outcome that has the errors of the matrix; by default the one with its labels.
        settings: paths of the store, the registry and the report.

    Raises:
        UsageError: nothing can be corrected: labels are too few, not drawn at random, or of other answers.
    """
    settings, given = settings or Settings(), labels.folder if isinstance(labels, Sample) else labels
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        scores = run.scores if isinstance(run, Run) else score_run(catalogue, store, run)
        done = corrected_run(catalogue, scores, given, matrix, outcome)
        return Run(done, write_output(done, store, Path(settings.runs), settings.leave_out))


def draw_sample(
    run: str,
    outcome: str,
    labels: Sequence[str],
    n: int = 200,
    *,
    cells: Sequence[str] = (),
    question: str = "",
    seed: int | None = None,
    samples: str | Path = "samples",
    settings: Settings | None = None,
) -> Sample:
    """Draw a random sample of a run's answers to be labelled by people, as `prejudge view` does.

    People label it with `prejudge view --label FOLDER`; `Sample.add(person, item, label)` keeps labels from elsewhere.

    Args:
        run: its name.
        outcome: the outcome of the reader or judge that the labels check.
        labels: what people can say, as values of the outcome.
        n: answers to draw.
        cells: factors within whose levels it is drawn, such as the groups that are compared.
        question: what people are asked.
        seed: of the draw; by default any.
        samples: the folder for samples.
        settings: paths of the store and the registry.

    Raises:
        UsageError: the outcome has no levels, or nothing can be drawn.
    """
    settings = settings or Settings()
    wanted = Wanted(verdict=outcome, labels=tuple(labels), n=n, cells=tuple(cells), question=question, seed=seed or 0)
    with Store(settings.store, writable=False) as store:
        room = Room(store, Catalogue.load(settings.registry), Path(settings.runs))
        return draw(room, get_run(store, run), Path(samples), wanted)


def compare(*names: str, settings: Settings | None = None, options: CompareOptions | None = None) -> Compared:
    """Compare runs of one study with the first run, or the ranks of models across studies; write a report.

    Raises:
        UsageError: there is no such run, or the runs cannot be compared.
    """
    settings, options = settings or Settings(), options or CompareOptions()
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        runs = score_all(catalogue, store, names, options.assignments)
    done = (rank_runs if ranks_possible(runs) else compare_scores)(catalogue, runs, options)
    return Compared(done, write_comparison(done, Path(settings.runs)))


def variance(*names: str, settings: Settings | None = None, options: VarianceOptions | None = None) -> Variance:
    """Estimate where the variance of a measure comes from, and what to ask more of; from the store alone.

    Args:
        names: a run, or runs of one study on different models.
        settings: paths of the store, the registry and the pages.
        options: the measure and its facets; by default those that the metric declares.

    Raises:
        UsageError: there is no such run, measure or facet, or the runs are of different designs.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        found = analyse_variance(catalogue, store, names or ("latest",), options or VarianceOptions())
    return Variance(found, write_variance(found, Path(settings.runs)))


def multiverse(
    study: str,
    model: str | Mapping[str, str],
    settings: Settings | None = None,
    choices: MultiverseOptions | None = None,
    **options: Any,
) -> Multiverse:
    """Show the result of a study under every defensible choice, from the runs of the store; no model is asked.

    Args:
        study: a study's name or file.
        model: the model of the role `subject`, or a model per role.
        settings: paths of the store, the registry and the pages.
        choices: the measure, its group, and more choices than the study file declares.
        options: options of the probe, as of the runs.

    Raises:
        UsageError: there are no choices, or one is none of the study.
        DataError: the store has no run of any universe.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        every = universes(catalogue, study, _by_role(model), options, choices or MultiverseOptions())
        found = analyse_multiverse(catalogue, store, every)
        page = write_multiverse(found, score_run(catalogue, store, found.own.run), Path(settings.runs))
    return Multiverse(found, page)


def plan(
    study: str, model: str | Mapping[str, str] | None = None, settings: Settings | None = None, **options: Any
) -> list[StagePlan]:
    """Count the requests of a study, and those with a stored answer. For detectable effects, see `smallest_effects`.

    Raises:
        UsageError: an error that the user can fix.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    resolved = _resolve(catalogue, study, model, options)
    own = catalogue.plugins.load("probe", resolved.probe).options.__struct_fields__
    if named := [name for name in ASSUMED if name in options and name not in own]:
        raise UsageError(
            f"plan has no setting {named[0]!r}. Pass it to smallest_effects({study!r}, ...).", code="plan.choice"
        )
    if model is None or not ("://" in settings.store or Path(settings.store).exists()):
        return plan_study(catalogue, resolved)
    with Store(settings.store, writable=False) as store:
        return plan_study(catalogue, resolved, store)


def smallest_effects(
    study: str,
    model: str | Mapping[str, str] | None = None,
    settings: Settings | None = None,
    *,
    pilot: str | Run | None = None,
    **options: Any,
) -> Detectable:
    """Return the smallest effects that a study can detect, and the assumptions behind them. No model is asked.

    Args:
        study: a study's name, such as `bistereo-pairs`.
        model: a model per role; needed if the stages depend on it.
        settings: paths of the store, which has the pilot, and of the registry.
        pilot: a run of the same study, or its name; it gives standard deviations and correlations.
        options: as on the command line: `spread`, a unit's standard deviation for measures without limits; `icc`, the
            correlation of units in one cluster; `row_icc`, the same of units in one row; `power`, by default 0.8;
            `effects`, by measure, for which the levels needed of each crossed facet are computed. All others are
            options of the probe, such as `per_cell=60`, or of a metric.

    Raises:
        UsageError: an error that the user can fix, such as a pilot of another study, or both a spread and a pilot.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    known = {name: options.pop(name) for name in ASSUMED[1:] if options.get(name) is not None}
    ensure_apart(pilot, known.get("spread"))
    resolved = _resolve(catalogue, study, model, options)
    scores = pilot.scores if isinstance(pilot, Run) else None
    if isinstance(pilot, str):
        with Store(settings.store, writable=False) as store:
            scores = score_run(catalogue, store, pilot)
    return find_smallest(catalogue, resolved, Assumed(pilot=scores, **known))


def import_scores(study: str, path: str, settings: Settings | None = None, **options: Any) -> Run:
    """Measure published scores instead of asking a model.

    Raises:
        UsageError: the study's probe reads no published scores, or cannot read these.
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    scores = score_published(catalogue, _resolve(catalogue, study, None, options), path)
    return Run(scores, write_output(scores, None, Path(settings.runs)))


def observe(name: str = "latest", settings: Settings | None = None) -> Observed:
    """Read the observations of a run from the store alone; nothing is scored.

    Raises:
        UnknownNameError: there is no such run, or its probe is not installed.
    """
    settings = settings or Settings()
    with Store(settings.store, writable=False) as store:
        found = get_run(store, name)
        study = manifest_of(found).study
        stages = Catalogue.load(settings.registry).instrument(study).stages()
        return Observed(found.name, study, observations_of(store, found, stages))


def exchanges(name: str, keys: Iterable[bytes], settings: Settings | None = None) -> dict[bytes, list[tuple[str, str]]]:
    """Return (label, text) pairs of requests and answers, by the keys of a run's observations."""
    with Store((settings or Settings()).store, writable=False) as store:
        used = used_answers(store, get_run(store, name).id, keys)
        rows = {number: (asked, said) for number, asked, said in store.exchanges(used.values())}
        shown = {key: rows[number] for key, number in used.items()}
    return {
        key: [*show_request(decode_request(asked)), *show_response(decode_response(said))]
        for key, (asked, said) in shown.items()
    }


def write_table(frame: pl.DataFrame, path: Path) -> Path:
    """Write a frame as .parquet, .csv or .json, by the ending of the file name.

    Raises:
        UsageError: the ending is unknown, or the file cannot be written.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in TABLES:
        endings = ", ".join(f".{name}" for name in TABLES)
        raise UsageError(
            f"the file name {path.name!r} has an unknown ending. Use one of {endings}.", code="options.file-kind"
        )
    return write_bytes(encode(frame, kind), path)


def _scored(
    catalogue: Catalogue, store: Store, name: str, settings: Settings, assignments: Mapping[str, Any] | None = None
) -> Run:
    scores = score_run(catalogue, store, name, assignments)
    return Run(scores, write_output(scores, store, Path(settings.runs), settings.leave_out))


def _block(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="prejudge-run") as pool:
        return pool.submit(asyncio.run, work).result()
