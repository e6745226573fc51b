"""Measures and questions of a folder, as options of the metric and as questions of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .declared import QuestionForm, QuestionsOptions
from .design import rows_of


def metrics_of(measures: Sequence[dict[str, Any]], options: QuestionsOptions) -> dict[str, Any]:
    """Return the metric with the measures."""
    forms = options.design.factors
    group = next(name for name, form in forms.items() if form.role == "group")
    levels = [str(row["name"]) for row in rows_of(group, forms[group])]
    span = (
        {}
        if options.answer.range is None
        else dict(zip(("least", "greatest"), map(float, options.answer.range), strict=True))
    )
    return {"contrast": {"outcome": "outcome", "between": group, "first": levels[0], "second": levels[-1], **span}}


def questions_of(
    questions: Sequence[QuestionForm],
    measures: Sequence[dict[str, Any]],
    options: QuestionsOptions,
    fault: Callable[..., None],
    at: Callable[..., str],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return all measures, those of questions among them, and the questions as a study has them."""
    return [], [
        {
            "asks": q.asks,
            "measure": "contrast",
            "side": q.yes,
            **({"limit": q.limit.value, "limit_reason": q.limit.because} if q.limit else {}),
        }
        for q in questions
    ]
