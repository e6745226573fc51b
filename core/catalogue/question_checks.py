"""Check that the questions of a study can be answered: by a measure of its metrics, with options that it has."""

from __future__ import annotations

from difflib import get_close_matches

from ..contracts.errors import PrejudgeError, UsageError
from ..contracts.options import build_options
from .plugins import Plugins
from .questions import Question
from .registry import StudyEntry


def ensure_questions(plugins: Plugins, entry: StudyEntry) -> None:
    """Refuse a question that nothing answers.

    Raises:
        UsageError: its measure is of none of the study's metrics, or `when` names an option or a value that is unknown.
        UnknownNameError: the probe or a metric is not installed.
    """
    metrics = {name: plugins.load("metric", name) for name in entry.metrics}
    measures = {measure for metric in metrics.values() for measure in metric.measures}
    # A metric may give measures without declaring them.
    complete = all(metric.measures for metric in metrics.values())
    for question in entry.questions:
        if complete and question.measure not in measures:
            near = get_close_matches(question.measure, measures, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(measures))}."
            raise _refusal(question, f"no metric of the study has the measure {question.measure!r}. {hint}")
        _ensure_options(plugins, entry, question)


def _ensure_options(plugins: Plugins, entry: StudyEntry, question: Question) -> None:
    """Try each value under `when` as an option of the probe or of the metric that it names."""
    for name, values in question.when.items():
        metric, dot, option = name.partition(".")
        kind = plugins.load("metric", metric) if dot and metric in entry.metrics else plugins.load("probe", entry.probe)
        for value in values if isinstance(values, list) else [values]:
            try:
                build_options("when", kind.options, {option if dot and metric in entry.metrics else name: value})
            except PrejudgeError as error:
                raise _refusal(question, f"it is asked where {name} is {value!r}. {error}") from None


def _refusal(question: Question, why: str) -> UsageError:
    return UsageError(f"the question {question.asks!r} cannot be answered: {why}", code="study.question")
