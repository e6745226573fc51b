"""Questions of studies: the built-in ones say up to which distance from neutral a difference does not matter."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.questions import Question, judged_by
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Estimate
from prejudge.core.contracts.estimates import Verdict

QUESTIONS = [
    (name, question) for name, entry in Catalogue.load().registry.studies.items() for question in entry.questions
]


@pytest.mark.parametrize(("study", "question"), QUESTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_judged_question_states_its_limit_with_a_reason(study, question):
    assert question.counts or (question.limit and question.limit_reason), question.asks


def test_the_question_that_covers_an_estimate_judges_it():
    questions = [
        Question(asks="?", measure="gap", group={"by": "age"}, limit=3.0),
        Question(asks="?", measure="gap", limit=0.5),
    ]
    e = Estimate.from_flat(
        metric="gap", group={"by": "age"}, value=1.0, neutral=0.0, low=0.4, high=1.6, verdict=Verdict.ABOVE
    )
    assert judged_by(questions, e).verdict is Verdict.NEAR
    assert judged_by(questions, e.replace(group={"by": "look"})).verdict is Verdict.ABOVE
    assert judged_by((), e) is e
    assert judged_by(questions, e.replace(verdict=None)).verdict is None
