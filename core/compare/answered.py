"""The first screen of a comparison: a verdict per question of the study, on the differences of its measure.

It is the model of a run's first screen, filled from differences: its rules of what is shown and what is small are the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..answer import Answer
from ..answer.lost import lost_of, missing_words
from ..answer.records import COMPARED
from ..answer.replies import reply_of
from ..answer.rows import Asked, furthest, label_of, with_rows
from ..catalogue.certificates import flat
from ..catalogue.questions import Question
from ..contracts.estimates import Estimate
from .beside import PUBLISHED
from .differences import ENDS
from .records import Comparison

MOST_QUESTIONS = 3
"""Measures that are asked about, where the study has no questions."""
MODELS, AGAINST = "models", " against "


def answer_of_comparison(comparison: Comparison) -> Answer | None:
    """Return the first screen of a comparison; None of one that ranks models, or tests nothing."""
    tested = [d.estimate for d in comparison.headline or comparison.differences if PUBLISHED not in d.estimate.facts]
    if comparison.ranked or not any(e.verdict is not None for e in tested):
        return None
    scores = next(iter(comparison.runs.values()))
    options = flat(scores.options)
    questions = [question for question in scores.manifest.study.questions if question.applies(options)]
    asked = list(_asked([_told(e) for e in tested], questions))
    replies, left = with_rows([reply_of(one, scores, paired=True) for one in asked], asked)
    names = list(comparison.runs)
    lost = [f"{label}: {missing_words(lost_of(own))}" for label, own in comparison.runs.items()]
    return Answer(
        question=f"Do {', '.join(names[:-1])} and {names[-1]} differ?",
        model="",
        replies=replies,
        left_out=left,
        missing=" ".join(lost),
    )


def _told(e: Estimate) -> Estimate:
    """Return a difference whose group says in one level which run is compared with which."""
    ends = f"{e.group['run']}{AGAINST}{e.group['against']}"
    levels = {name: level for name, level in e.group.items() if name not in ENDS}
    return e.replace(group={MODELS: ends, **levels}, facts={**e.facts, COMPARED: True})


def _asked(differences: Sequence[Estimate], questions: Sequence[Question]) -> Iterable[Asked]:
    """Yield a question per measure that the study's questions name, or else of the first ones."""
    by_measure: dict[str, list[Estimate]] = {}
    for e in differences:
        if e.verdict is not None:
            by_measure.setdefault(e.metric, []).append(e)
    named = list(dict.fromkeys(one.measure for one in questions if one.measure in by_measure))
    for measure in named or list(by_measure)[:MOST_QUESTIONS]:
        found = by_measure[measure]
        label = label_of(found[0])
        single = len({e.group[MODELS] for e in found}) == 1
        first, second = str(found[0].group[MODELS]).split(AGAINST) if single else ("the first named", "the second")
        question = Question(
            asks=f"{label}: do they differ?",
            measure=measure,
            side="either",
            above=f"{label} is greater for {first} than for {second}",
            below=f"{label} is less for {first} than for {second}",
        )
        fewest = min(len(e.group) for e in found)
        answering = furthest([e for e in found if len(e.group) == fewest])
        yield Asked(question, answering, furthest([e for e in found if len(e.group) > fewest]))
