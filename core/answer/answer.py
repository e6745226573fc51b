"""Fill the first screen from a scored run."""

from __future__ import annotations

import msgspec

from ..catalogue.certificates import flat
from ..catalogue.study import SUBJECT
from ..contracts.estimates import Estimate
from ..contracts.sizes import SURE, State
from ..engine.observations import UNFINISHED
from ..scoring.score import Scores
from .corrected import corrected_words
from .lost import lost_of, mend_words, misplaced_words, missing_words
from .records import Answer, Reply
from .replies import Asked, also_judged, asked_of, preferences, questions_over, reply_of, rows_of
from .talk import talk_words

PRELIMINARY = (
    "The run is not complete: {done:,} of {planned:,} questions {stage}were asked, and not in random order. "
    "The verdicts may change."
)
NOT_BEGUN = "The run is not complete: nothing of the stage {stage!r} was asked."
NONE = "No number could be computed. " + SURE


def answer_of(scores: Scores) -> Answer:
    """Return the first screen of a run: nothing of it is chosen by a page. It is worked out once."""
    if answer_of not in scores.kept:
        scores.kept[answer_of] = _answer_of(scores)
    answer: Answer = scores.kept[answer_of]
    return answer


def _answer_of(scores: Scores) -> Answer:
    study = scores.manifest.study
    question = study.summary or study.title or study.name
    estimates = questions_over(scores.estimates, scores.headline)
    asked = asked_of(study.questions, question, estimates, flat(scores.options))
    replies = tuple(
        _reply(one, scores) if one.answering else Reply(one.question.asks, State.NOTHING, NONE) for one in asked
    )
    rows, left = rows_of(asked)
    lost = lost_of(scores)
    identity = scores.manifest.identities.get(SUBJECT)
    return Answer(
        question=question,
        model=study.roles.get(SUBJECT) or (identity.model if identity is not None else ""),
        replies=replies or (Reply(question, State.NOTHING, NONE),),
        rows=rows,
        left_out=left,
        also=" ".join(filter(None, [also_judged(asked, estimates), preferences(_every(scores))])),
        missing=" ".join(filter(None, [missing_words(lost), talk_words(scores)])),
        mend=misplaced_words(scores, lost) or mend_words(lost, scores.is_imported),
        preliminary=_preliminary(scores),
        beside=scores.beside,
    )


def _reply(one: Asked, scores: Scores) -> Reply:
    reply = reply_of(one, scores)
    return msgspec.structs.replace(reply, more=(*reply.more, *corrected_words(one.answering)))


def _every(scores: Scores) -> list[Estimate]:
    return [e for every in scores.estimates.values() for e in every]


def _preliminary(scores: Scores) -> str:
    if scores.run.state == "imported":
        return ""
    for stage in scores.stages:
        done, record = scores.recorded(stage.name), scores.manifest.stages.get(stage.name)
        if record is not None and done < record.planned:
            of_stage = f"of the stage {stage.name!r} " if len(scores.stages) > 1 else ""
            return PRELIMINARY.format(done=done, planned=record.planned, stage=of_stage)
        if record is None and scores.run.state in UNFINISHED:
            return NOT_BEGUN.format(stage=stage.name)
    return ""
