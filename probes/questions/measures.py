"""Measures and questions of a folder, as options of the metric and as questions of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.contracts.declared import OUTCOME, measure_name
from .declared import DesignForm, Form, QuestionForm, QuestionsOptions
from .design import options_of, rows_of, values_of

COMPARED = ("difference", "ranks", "ratio")
METRIC = "measures"


def metrics_of(measures: Sequence[Mapping[str, Any]], options: QuestionsOptions) -> dict[str, Any]:
    """Return the metric with the measures."""
    labels = {"labels": list(options_of(options.answer))} if options.answer.form in ("choice", "yes_no") else {}
    return {METRIC: {"measures": [_completed(measure, options) for measure in measures]} | labels}


def questions_of(
    questions: Sequence[QuestionForm], measures: Sequence[Mapping[str, Any]], design: DesignForm
) -> tuple[list[Mapping[str, Any]], list[dict[str, Any]]]:
    """Return all measures, those of questions among them, and the questions as a study has them.

    Without any measure there is the difference of each group, or the mean where there is no group.
    """
    declared, asked = list(measures), list[dict[str, Any]]()
    for question in questions:
        measure = question.measure
        if isinstance(measure, dict):
            measure = {"name": _name_of(measure), **measure}
            declared += [] if measure in declared else [measure]
            measure = measure["name"]
        asked.append(question.entry | {"measure": measure})
    groups = [name for name, form in design.factors.items() if form.role == "group"]
    return declared or [{"difference": name} for name in groups] or [{"mean": OUTCOME}], asked


def multiverse_of(
    measures: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]], options: QuestionsOptions
) -> dict[str, Any]:
    """Return the choices of a study that leave its question as it is: how the answer is asked for, and the interval."""
    name = asked[0]["measure"] if asked else _name_of(measures[0])
    measure = next(_completed(measure, options) for measure in measures if _name_of(measure) == name)
    factor = next((measure[kind] for kind in ("difference", "ranks") if kind in measure), None)
    levels = measure.get("levels", [])
    asking = {"asking": ["generate", "likelihood"]} if options.answer.form in ("number", "choice", "yes_no") else {}
    return {
        "measure": name,
        "group": {factor: f"{levels[0]} minus {levels[1]}"} if factor and len(levels) > 1 else {},
        "choices": asking | {f"{METRIC}.level": [0.95, 0.99]},
    }


def unknown_measures(measures: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with the measures that questions name."""
    names = [_name_of(measure) for measure in measures]
    for question in asked:
        if question["measure"] not in names:
            yield f"the question names the measure {question['measure']!r}. There are: {', '.join(names)}."


def _name_of(measure: Mapping[str, Any]) -> str:
    """Return the name of a measure: the stated one, or what it is and of which factor."""
    kind = next((kind for kind in (*COMPARED, "correlation", "share", "mean") if kind in measure), "measure")
    return str(measure.get("name") or measure_name(kind, measure.get(kind)))


def _completed(measure: Mapping[str, Any], options: QuestionsOptions) -> dict[str, Any]:
    """Return a measure with what the design and the form of the answer say: levels in their order, and the range."""
    table, factors = {"name": _name_of(measure), **measure}, options.design.factors
    form: Form = options.answer.form
    if table.get("of") == form:
        table["of"] = OUTCOME
    factor = next((table[kind] for kind in COMPARED if kind in table), None)
    if factor in factors:
        table.setdefault("levels", [row["name"] for row in rows_of(factor, factors[factor])])
    if table.get("of", OUTCOME) == OUTCOME and "share" not in table and not {"correlation", "ratio"} & {*table}:
        values = options.answer.range or (form in ("choice", "yes_no") and values_of(options.answer).values())
        if values:
            table.setdefault("range", [float(min(values)), float(max(values))])
    return table
