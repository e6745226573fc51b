"""The table of a stage's questions: which cells each belongs to, and which answers raise what the study measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..contracts.cells import Alternative, Cells, LevelColumn, question_digest
from ..contracts.errors import UsageError
from ..contracts.probe import Trial, Unreadable
from ..contracts.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Scalar,
    TokenScores,
)
from .factors import AnswerForm

if TYPE_CHECKING:
    from .design import Design
    from .stage import DesignedStage

PLANTABLE = frozenset({"label", "option", "continuation", "number", "yes_no"})
"""Forms of an answer in which an effect of so many nats has a meaning."""
YES_NO = ("yes", "no")
UNLIKELY = -30.0
Menu = tuple[Alternative, ...]


def cells_of(stage: DesignedStage) -> Cells | None:
    """Return the table of a stage's questions, of all cells of its design; None where nothing can be planted in it.

    Nothing can where the design has no answer form, or one of words, vectors or images.

    Raises:
        UsageError: The answer form does not say which answer raises the measure, and the stage's `read` does not.
    """
    design = stage.design
    form = design.answer
    if form is None or form.form not in PLANTABLE:
        return None
    menus: dict[Menu, int] = {}
    codes, questions = np.zeros(design.size, np.int32), bytearray()
    menu_of = _Menus(stage, form)
    for row, trial in enumerate(design.trials(stage.request, further=stage.further)):
        questions += question_digest(trial.request)
        codes[row] = menus.setdefault(menu_of(trial), len(menus))
    groups, contexts = design.named("group"), design.named("context")
    return Cells(
        form.form,
        {name: _column(design, name) for name in design.vocabulary.names},
        groups,
        contexts,
        {name: design.vocabulary.declared(name).controls for name in (*groups, *contexts)},
        tuple(menus),
        codes.tobytes(),
        bytes(questions),
    )


def _column(design: Design, name: str) -> LevelColumn:
    return LevelColumn(tuple(map(str, design.levels(name))), design.codes(name).astype(np.int32).tobytes())


class _Menus:
    """The possible answers to a trial, and which of them are up."""

    def __init__(self, stage: DesignedStage, form: AnswerForm) -> None:
        self._stage, self._form = stage, form
        self._answers, self._up = form.answers, form.up
        if form.form == "yes_no" and not form.answers:
            self._answers, self._up = YES_NO, form.up or YES_NO[:1]

    def __call__(self, trial: Trial) -> Menu:
        texts = [_text(trial, name) for name in self._answers]
        if self._form.form == "number":
            return tuple(Alternative(text, at == len(texts) - 1) for at, text in enumerate(texts))
        if not texts:
            self._ensure_open(trial)
            return ()
        up = {_text(trial, name) for name in self._up} or self._read_up(trial, texts)
        return tuple(Alternative(text, text in up) for text in texts)

    def _ensure_open(self, trial: Trial) -> None:
        if self._form.form != "continuation":
            raise UsageError(
                f"the answer form {self._form.form!r} names no answers. Name them, or the columns of the trials that "
                "hold their texts: AnswerForm(answers=...).",
                code="design.answer",
            )

    def _read_up(self, trial: Trial, texts: Sequence[str]) -> set[str]:
        """Return the answers for which the stage reads the largest outcome."""
        values: list[float | None] = [self._outcome(trial, texts, text) for text in texts]
        if None in values or len(set(values)) < 2:
            raise UsageError(
                f"nothing says which of the answers {', '.join(texts)} raises {self._form.outcome or 'the outcome'!r} "
                f"in trial {trial.id!r}. Name it: AnswerForm(up=...).",
                code="design.answer",
            )
        numbers = [value for value in values if value is not None]
        return {text for text, value in zip(texts, numbers, strict=True) if value == max(numbers)}

    def _outcome(self, trial: Trial, texts: Sequence[str], chosen: str) -> float | None:
        outcomes = self._stage.read(trial.factors, _response(trial.request, texts, chosen))
        value: Scalar = None if isinstance(outcomes, Unreadable) else outcomes.get(self._form.outcome)
        return float(value) if isinstance(value, (int, float)) else None


def _text(trial: Trial, name: str) -> str:
    """Return the text of an answer, which is named by itself or by the column of the trials that holds it."""
    return str(trial.factors[name]) if name in trial.factors else name


def _response(request: AnyRequest, texts: Sequence[str], chosen: str) -> AnyResponse:
    """Return the response of a model that certainly gives one of the answers."""
    if isinstance(request, Likelihood):
        scores = [0.0 if _names(text, chosen) else UNLIKELY for text in request.continuations]
        return Likelihoods(scores=tuple(TokenScores(log_probability=score - 1, count=1) for score in scores))
    if isinstance(request, Classify):
        return Classification(probabilities={text: float(text == chosen) for text in texts})
    if isinstance(request, Generate):
        return Generation(text=chosen)
    raise UsageError(
        f"a {type(request).__name__} has no answers to choose from. Leave AnswerForm(answers=...) empty.",
        code="design.answer",
    )


def _names(continuation: str, answer: str) -> bool:
    return bare(continuation) == bare(answer)


def bare(text: str) -> str:
    """Return an answer without blanks, brackets and case, as a continuation and a label are compared."""
    return text.strip(" \n\t().:[]").casefold()
