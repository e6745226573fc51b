"""The whole study that a run asked a part of, before any answer: for forecasts of what all of it finds."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ..catalogue.study import Catalogue
from ..contracts import Stage
from ..contracts.errors import PrejudgeError
from ..contracts.probe import count_trials
from .planned_units import PlannedDesign, planned_design

if TYPE_CHECKING:
    from .score import Scores


class WholeStudy(msgspec.Struct, frozen=True, dict=True):
    """A study without a limit on how much is asked, and the run of a part of it."""

    stages: tuple[Stage, ...]
    part: Scores
    questions: int
    """Trials of the first stage; 0: not known, since its files are gone."""
    thinned: bool = False
    """Whether the part also asks less about each unit, such as fewer samples: its units vary more than the whole's."""

    @cached_property
    def design(self) -> PlannedDesign:
        """Return the factors of all trials, with the part as the pilot; gone through at the first use."""
        return planned_design(self.stages, self.part, self.part.manifest.design)


def whole_study(catalogue: Catalogue, scores: Scores) -> WholeStudy | None:
    """Return the whole study of a run; None where the run is of all of it.

    It is the run's own study, without the limit on how much is asked. A run that ended early is a part, too.
    """
    study = catalogue.whole(scores.made)
    # A catalogue of its own: the one at hand keeps the instrument that the run is scored with.
    fresh = catalogue if study == scores.made else Catalogue(catalogue.registry, catalogue.plugins)
    stages = tuple(fresh.instrument(study, scores.manifest.design).stages())
    first = scores.stages[0].name
    planned = {name: record.planned for name, record in scores.manifest.stages.items()}
    questions = _counted(stages[0])
    if not questions and study == scores.made and scores.manifest.ending is None:
        questions = planned.get(first, 0)
    complete = all(scores.recorded(stage.name) >= planned.get(stage.name, 0) for stage in scores.stages)
    if complete and questions and scores.recorded(first) >= questions:
        return None
    return WholeStudy(stages, scores, questions, thinned=bool(scores.made.limit and scores.made.limit.also))


def _counted(stage: Stage) -> int:
    """Return the number of trials; 0 where the files that they are made of are gone."""
    try:
        return count_trials(stage, {})
    except PrejudgeError:
        return 0
