"""One page with the answers of several runs, each for itself: nothing is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..catalogue.study import SUBJECT
from ..charts.forest import Panel, Point, forest
from ..contracts.estimates import Chart, Estimate
from ..engine.manifest import new_name
from ..scoring.score import Scores
from ..scoring.warnings import warnings_of
from .content import ReportContent, StudyInfo
from .render import write

LABEL = "model"
PANELS = 4
"""Most models of a figure."""


def write_together(title: str, runs: Mapping[str, Scores], answers: Mapping[str, str], folder: Path) -> Path:
    """Write the page to a new folder, and return its path.

    Args:
        title: of the page.
        runs: scored runs of one study, by what they are called.
        answers: what is said of each, by the same names; the study's own conclusions follow them all.
        folder: the folder of reports.

    Raises:
        UsageError: the folder cannot be written.
    """
    first = next(iter(runs.values())).manifest.study
    shown = _first_measure(runs)
    own = {f"{label}, in the words of the study": " ".join(s.conclusions.values()) for label, s in runs.items()}
    return write(
        ReportContent(
            title=title,
            study=StudyInfo(name=first.name, summary=first.summary, citation=first.source),
            models={label: scores.manifest.identities[SUBJECT] for label, scores in runs.items()},
            names={label: scores.manifest.study.roles[SUBJECT] for label, scores in runs.items()},
            estimates=[_named(label, e) for label, s in runs.items() for every in s.estimates.values() for e in every],
            headline=[_named(label, e) for label, every in shown.items() for e in every] or None,
            conclusions={**answers, **{label: said for label, said in own.items() if said}},
            confused=list(dict.fromkeys(sentence for scores in runs.values() for sentence in scores.confused)),
            warnings=[f"{label}: {warning}" for label, scores in runs.items() for warning in warnings_of(scores)],
            charts=_charts(shown),
            methods=[text for text in next(iter(runs.values())).methods if text],
            limits=first.limits,
            deviations=first.deviations,
            provenance={
                "runs": {label: scores.run.name for label, scores in runs.items()},
                "options of the probe that were set": first.options,
            },
        ),
        folder / f"together-{new_name(first.name, f'{len(runs)}-models')}",
    )


def _named(label: str, e: Estimate) -> Estimate:
    return e.replace(group={LABEL: label, **e.group})


def _first_measure(runs: Mapping[str, Scores]) -> dict[str, list[Estimate]]:
    """Return the estimates of the first measure of the headline that has verdicts, by run."""
    tested = {label: [e for e in scores.headline if e.verdict is not None] for label, scores in runs.items()}
    measure = next((e.metric for every in tested.values() for e in every), None)
    return {label: [e for e in every if e.metric == measure] for label, every in tested.items()}


def _charts(shown: Mapping[str, Sequence[Estimate]]) -> list[Chart]:
    """Draw the estimates of every run, a panel each."""
    first = next((every[0] for every in shown.values() if every), None)
    if first is None:
        return []
    panels = [
        Panel(label, f"{first.label or first.metric} ({first.unit})", list(map(Point.of, every)), first.neutral)
        for label, every in list(shown.items())[:PANELS]
        if every
    ]
    caption = "Values with intervals, by model; the vertical line is the value of an unbiased model."
    return [Chart("models", first.label or first.metric, caption, forest(panels))]
