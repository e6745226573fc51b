"""Words of what was computed: those of the measures, in which own data have words of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..catalogue.material import reworded
from ..catalogue.questions import Question, judged_by
from ..contracts import Chart, Estimate, Example, Metric
from ..contracts.estimates import COMMON, Measure
from ..statistics.estimates import judge

ALPHA = 0.05
"""Level of the tests of a metric that has no such option."""
Shown = TypeVar("Shown", Chart, Example)


def described(
    estimate: Estimate,
    metric: Metric,
    options: Any,
    questions: Sequence[Question] = (),
    words: Mapping[str, str] = {},
) -> Estimate:
    """Return an estimate with the words of its measure, and with its verdict.

    The verdict is by its corrected p if it has none, and by the limit of the question that it answers. `words` are
    those of own data, which stand in the place of some of the study's.
    """
    if estimate.verdict is None and estimate.p_adjusted is not None:
        estimate = judge(estimate, float(getattr(options, "alpha", ALPHA)))
    estimate = judged_by(questions, estimate)
    measure = metric.measures.get(estimate.metric) or COMMON.get(estimate.metric)
    if measure is None:
        return estimate
    texts = {name: getattr(estimate, name) or getattr(measure, name) for name in Measure.__struct_fields__}
    return estimate.replace(**{name: reworded(text, words) for name, text in texts.items()} if words else texts)


def measure_in(measure: Measure, words: Mapping[str, str]) -> Measure:
    """Return the words of a measure in those of own data."""
    texts = {name: reworded(getattr(measure, name), words) for name in Measure.__struct_fields__}
    return msgspec.structs.replace(measure, **texts)


def worded(shown: Shown, words: Mapping[str, str]) -> Shown:
    """Return a figure or an example with title and caption in the words of own data."""
    if not words:
        return shown
    texts = {name: reworded(getattr(shown, name), words) for name in ("title", "caption")}
    return msgspec.structs.replace(shown, **texts)
