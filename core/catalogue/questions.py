"""The questions of a study: which measure answers each, and what its values mean in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ..contracts.estimates import Estimate
from ..contracts.records import Scalar
from ..contracts.sizes import Side, limit_for, limited

N = TypeVar("N")


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that a study answers, and the measure whose verdict is the answer."""

    asks: str
    """The question, for people who decide."""
    measure: str
    """Name of the measure; of its headline estimates, those with the fewest factors answer."""
    group: dict[str, Scalar] = {}
    """Levels that the estimates have, where the measure is given in several ways."""
    when: dict[str, Scalar | list[Scalar]] = {}
    """Options with which the study answers this question, such as `{ asking = "generate" }`; several values of one
    option as a list, options of a metric as `METRIC.option`. Empty: it does so with all options."""
    above: str = ""
    """What a value above neutral means, as a clause: `positive traits are chosen more often with the filter`."""
    below: str = ""
    """The same of a value below it."""
    side: Side = "above"
    """On which side of neutral the answer is yes; `either` for a question whether there is any difference."""
    limit: float | None = None
    """Distance from neutral, in the unit of the measure, up to which a difference does not matter. Without it: the
    margin of the metric, else 5 percentage points of a percentage, 0.05 of a share, and of other units none."""
    limit_reason: str = ""
    """Why this limit, in a few words, with the source."""
    counts: bool = False
    """Whether the measure counts what is significant after correction, so that any count above 0 is a finding."""

    def applies(self, options: Mapping[str, object]) -> bool:
        """Return whether a study with these options, defaults included, answers this question."""
        return all(
            options.get(name) in (values if isinstance(values, list) else [values])
            for name, values in self.when.items()
        )

    def covers(self, measure: str, group: Mapping[str, Scalar]) -> bool:
        """Return whether a number of this measure and group belongs to the answer, or to a finer one."""
        return measure == self.measure and self.group.items() <= group.items()

    def among(
        self, numbers: Iterable[N], place: Callable[[N], tuple[str, Mapping[str, Scalar]]]
    ) -> tuple[list[N], list[N]]:
        """Return the numbers whose verdict is the answer, and those of finer groups.

        Args:
            numbers: those of a headline.
            place: gives the measure of a number, and the levels of its group.
        """
        placed = [(number, *place(number)) for number in numbers]
        covered = [(number, len(at)) for number, name, at in placed if self.covers(name, at)]
        fewest = min((levels for _, levels in covered), default=0)
        coarsest = [number for number, levels in covered if levels == fewest]
        return coarsest, [number for number, levels in covered if levels > fewest]


def questions_of(
    questions: Sequence[Question], options: Mapping[str, object], summary: str, judged: str
) -> Sequence[Question]:
    """Return the questions that a study with these options answers.

    Args:
        questions: those of the study, whatever its options.
        options: every option of the probe, and `METRIC.option`.
        summary: asked instead, where the study has no question with these options.
        judged: the first measure that has a verdict, which answers the summary; empty: none has.
    """
    asked = questions_with(questions, options)
    return asked or ([Question(asks=summary, measure=judged, side="either")] if judged else [])


def questions_with(questions: Sequence[Question], options: Mapping[str, object]) -> list[Question]:
    """Return the questions that a study with these options answers; none where it names none of them."""
    return [question for question in questions if question.applies(options)]


def judged_by(questions: Sequence[Question], e: Estimate) -> Estimate:
    """Return an estimate judged by the limit of the question that it answers, or else by that of its unit."""
    limit = next((question.limit for question in questions if question.covers(e.metric, e.group)), None)
    return limited(e, limit_for(e, limit))


def judged_of(
    questions: Sequence[Question], options: Mapping[str, object], estimates: Mapping[str, Sequence[Estimate]]
) -> dict[str, list[Estimate]]:
    """Return estimates without the measures that answer a question with other options only: no headline of this run.

    Args:
        questions: those of the study, whatever its options.
        options: every option of the probe, and `METRIC.option`.
        estimates: by metric.
    """
    asked = {question.measure for question in questions_with(questions, options)}
    unasked = {question.measure for question in questions if asked} - asked
    return {name: [e for e in numbers if e.metric not in unasked] for name, numbers in estimates.items()}
