"""Fill the first screen from a scored run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from ..catalogue.certificates import flat
from ..catalogue.study import SUBJECT
from ..contracts.estimates import Estimate
from ..contracts.sizes import SURE, State
from ..engine.observations import UNFINISHED
from ..scoring.score import Scores
from .corrected import corrected_words
from .english import language_words
from .fit import first_sentences, unfit_remedy, unfit_reply
from .lost import lost_of, mend_words, misplaced_words, missing_words
from .records import Answer, Reply
from .replies import also_judged, asked_of, preferences, questions_over, reply_of
from .rows import Asked, with_rows
from .talk import talk_words
from .units import Counted, Units, counted_units, few_words, split

PRELIMINARY = (
    "The run is not complete: {done:,} of {planned:,} questions {stage}were asked, and not in random order. "
    "The verdicts may change."
)
NOT_BEGUN = "The run is not complete: nothing of the stage {stage!r} was asked."
NONE = "no number could be computed"


def answer_of(scores: Scores) -> Answer:
    """Return the first screen of a run: nothing of it is chosen by a page. It is worked out once."""
    if answer_of not in scores.kept:
        scores.kept[answer_of] = _answer_of(scores)
    answer: Answer = scores.kept[answer_of]
    return answer


def _answer_of(scores: Scores) -> Answer:
    study = scores.manifest.study
    question = study.summary or study.title or study.name
    lost = lost_of(scores)
    identity = scores.manifest.identities.get(SUBJECT)
    common = Answer(
        question=question,
        model=study.roles.get(SUBJECT) or (identity.model if identity is not None else ""),
        first=tuple(first_sentences(scores)),
        replies=(),
        missing=" ".join(filter(None, [missing_words(lost), talk_words(scores), language_words(scores)])),
        preliminary=_preliminary(scores),
        beside=scores.beside,
    )
    if (unfit := unfit_reply(question, scores)) is not None:
        return msgspec.structs.replace(common, replies=(unfit,), mend=unfit_remedy(scores))
    options = flat(scores.options)
    applying = [one for one in study.questions if one.applies(options)]
    estimates = questions_over(scores.estimates, scores.headline, applying)
    asked = asked_of(study.questions, question, estimates, options)
    units = counted_units(scores, [e for _, *found in asked for e in chain(*found)])
    kept = [_enough(one, units) for one in asked]
    replies, left = with_rows([_reply(one, few, scores) for one, few in kept], [one for one, _ in kept])
    return msgspec.structs.replace(
        common,
        replies=replies or (Reply(question, State.NOTHING, NONE, after=SURE),),
        left_out=left,
        also=" ".join(filter(None, [also_judged(asked, estimates), preferences(_every(scores))])),
        mend=misplaced_words(scores, lost) or mend_words(lost, scores.is_imported),
    )


def _enough(one: Asked, units: Counted | None) -> tuple[Asked, list[tuple[Estimate, Units]]]:
    """Return a question with the estimates that have enough units, and those that answer it and have too few."""
    answering, few = split(units, one.answering)
    return Asked(one.question, answering, split(units, one.finer)[0]), few


def _reply(one: Asked, few: Sequence[tuple[Estimate, Units]], scores: Scores) -> Reply:
    if not one.answering and few:
        return Reply(one.question.asks, State.OPEN, few_words(few, every=True).removesuffix("."), (SURE,))
    if not one.answering:
        return Reply(one.question.asks, State.NOTHING, NONE, after=SURE)
    reply = reply_of(one, scores)
    if few:
        reply = msgspec.structs.replace(reply, more=(*reply.more, few_words(few, every=False)))
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
