"""The verbs that score runs: score, load, import_scores, measure, corrected, draw_sample."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..annotation import corrected_run
from ..annotation.samples import Sample
from ..catalogue.study import Catalogue
from ..report.results import Run, scores_in_folder
from ..scoring.own_table import measure_table
from ..scoring.published import score_published, store_published
from ..scoring.score import score as score_run
from ..store import Store, get_run
from ..view.room import Room
from ..view.sampling import Wanted
from ..view.sampling import draw_sample as draw
from .running import reported
from .settings import Settings
from .studies import resolve


def score(name: str = "latest", settings: Settings | None = None, assignments: Mapping[str, Any] | None = None) -> Run:
    """Score a run from the store alone, without a model or backend, and write its report.

    Args:
        name: the run's name, the beginning of it, or `latest`.
        settings: paths of the store, the registry and the report.
        assignments: options of the metrics to change, such as `{"trisentbias.resamples": 999}`.

    Returns:
        The run; `.remeasured` has the changed options.

    Raises:
        UsageError: there is no such run or option, or the store cannot be read.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> prejudge.score(run.name, assignments={"trisentbias.resamples": 99}).remeasured
        {'trisentbias.resamples': 99}
    """
    settings = settings or Settings()
    with Store(settings.store, writable=False) as store:
        scores = score_run(Catalogue.load(settings.registry), store, name, assignments)
        return reported(scores, store, settings)


def load(
    run: str | Path = "latest", settings: Settings | None = None, assignments: Mapping[str, Any] | None = None
) -> Run:
    """Return an earlier run; no report is written.

    From the store it is scored with its original options, from a folder with those of the folder's last writing:
    `prejudge score --set` rewrites the folder, but not the store. `Run.remeasured` has the changed options.

    Args:
        run: its name, the beginning of it, or `latest`; or its output folder, which needs no store.
        settings: paths of the store and the registry.
        assignments: options of the metrics to change, such as `{"trisentbias.resamples": 999}`.

    Returns:
        The run, without a report.

    Raises:
        UsageError: there is no such run, store or option, or the folder lacks a file.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> prejudge.load(run.report.parent).estimates.equals(prejudge.load(run.name).estimates)
        True
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    if (folder := Path(run)).is_dir():
        return Run(scores_in_folder(catalogue, folder, assignments))
    with Store(settings.store, writable=False) as store:
        return Run(score_run(catalogue, store, str(run), assignments))


def import_scores(study: str, path: str, settings: Settings | None = None, model: str = "", **options: Any) -> Run:
    """Measure published scores instead of asking a model, and write the report.

    Args:
        study: a study's name, or a study file; its probe must read published scores.
        path: the file or folder of the scores.
        settings: paths of the registry, the store and the report.
        model: name of the model that the scores are of.
        options: options of the probe.

    Returns:
        The run; each row is stored as an observation.

    Raises:
        UsageError: the study's probe reads no published scores, or cannot read these.

    Example:
        >>> import polars, prejudge
        >>> from pathlib import Path
        >>> row = {"model": "phi", "category": "Caste", "n_stereotype": 6, "n_total": 9, "category_size": 10}
        >>> path = prejudge.write_table(polars.DataFrame([row]), Path("counts.csv"))
        >>> prejudge.import_scores("indicasa", str(path)).observations.height
        10
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    published = score_published(catalogue, resolve(catalogue, study, None, options), path, model)
    with Store(settings.store) as store:
        return reported(score_run(catalogue, store, store_published(store, published)), store, settings)


def measure(table: Any, settings: Settings | None = None, model: str = "", **declared: Any) -> Run:
    """Measure a table of outcomes: groups, rates and differences with intervals. No model is asked.

    Args:
        table: a file (CSV, JSON, JSON Lines, Parquet, xlsx), or a data frame of polars or pandas; one outcome a row.
        settings: paths of the registry, the store and the report.
        model: name of the model that gave the outcomes.
        declared: `outcome` and `group` (columns), `between` (levels), `sampled`, `by`, `within` (columns), `positive`
            (outcomes that count), `independent`, `limit`, `because`, `title`, `measures`, `questions`; and how a file
            is read: `columns`, `values`, `bad_rows`, `encoding`. As for `prejudge measure`.

    Returns:
        The run; each row is stored as an observation.

    Raises:
        DataError: the table cannot be used.
        UsageError: what is declared contradicts itself.

    Example:
        >>> import polars, prejudge
        >>> rows = [{"name": f"{g}{n}", "gender": g, "rating": 5 + n % 3} for g in ("f", "m") for n in range(9)]
        >>> run = prejudge.measure(polars.DataFrame(rows), outcome="rating", group="gender", sampled=["name"])
        >>> run.estimates.filter(metric="difference")["value"].to_list()
        [0.0]
    """
    settings = settings or Settings()
    catalogue = Catalogue.load(settings.registry)
    with tempfile.TemporaryDirectory(prefix="prejudge-") as folder:
        path = table
        if not isinstance(table, str | Path):
            import polars as pl  # only a frame in memory needs it here

            path = Path(folder) / "frame.csv"
            frame = pl.DataFrame(table)
            frame.select(name for name, kind in frame.schema.items() if not kind.is_nested()).write_csv(path)
        published = measure_table(catalogue, str(path), declared, model)
    with Store(settings.store) as store:
        return reported(score_run(catalogue, store, store_published(store, published)), store, settings)


def corrected(
    run: str | Run,
    labels: str | Path | Sample | None = None,
    matrix: str | None = None,
    outcome: str = "",
    settings: Settings | None = None,
) -> Run:
    """Correct the numbers of a run for the errors of its reader or judge, and write its report with both.

    Args:
        run: a run or its name.
        labels: a sample of its answers that people labelled (`draw_sample`, `prejudge view`), or its folder:
            prediction-powered inference (PPI++).
        matrix: instead of labels, a CSV file with the known errors: `verdict`, `label`, `n`, and factors in which
            errors differ (Rogan and Gladen).
        outcome: the outcome that has the errors of the matrix; by default the one with its labels.
        settings: paths of the store, the registry and the report.

    Returns:
        The run: `.estimates` has the uncorrected value as before, and also `corrected`, `corrected_low`,
        `corrected_high`, `corrected_method`, or `corrected_code` and `corrected_why` where an estimate cannot be
        corrected.

    Raises:
        UsageError: nothing can be corrected: labels are too few, not drawn at random, or of other answers.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("subtle-sai", "simulated-biased", per_cell=4)
        >>> sample = prejudge.draw_sample(run.name, "chosen", ["positive", "negative", "neutral"], n=60, seed=4)
        >>> verdicts = {item.item: sample.design.strata[item.stratum].verdict for item in sample.design.items}
        >>> for item, verdict in verdicts.items():
        ...     sample.add("Ana", item, verdict)
        >>> prejudge.corrected(run.name, sample).estimates["corrected"].is_not_null().any()
        True
    """
    settings, folder = settings or Settings(), labels.folder if isinstance(labels, Sample) else labels
    catalogue = Catalogue.load(settings.registry)
    with Store(settings.store, writable=False) as store:
        scores = run.scores if isinstance(run, Run) else score_run(catalogue, store, run)
        return reported(corrected_run(catalogue, scores, folder, matrix, outcome), store, settings)


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

    People label it with `prejudge view --label FOLDER`; `Sample.add(person, item, label)` adds labels from elsewhere.

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

    Returns:
        The sample, in a new folder.

    Raises:
        UsageError: the outcome has no levels, or nothing can be drawn.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("subtle-sai", "simulated-biased", per_cell=4)
        >>> sample = prejudge.draw_sample(run.name, "chosen", ["positive", "negative", "neutral"], n=20)
        >>> len(sample.sheet.items)
        20
    """
    settings = settings or Settings()
    wanted = Wanted(verdict=outcome, labels=tuple(labels), n=n, cells=tuple(cells), question=question, seed=seed or 0)
    with Store(settings.store, writable=False) as store:
        room = Room(store, Catalogue.load(settings.registry), Path(settings.runs))
        return draw(room, get_run(store, run), Path(samples), wanted)
