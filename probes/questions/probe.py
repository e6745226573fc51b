"""`questions`: a probe whose design, texts and form of answers are options, which a folder sets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ...core.contracts import Counting, Follows, Options, Probe, Stage, StageRules, Trial, Unreadable
from ...core.contracts.declared import LABEL, OUTCOME
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.records import (
    AnyRequest,
    AnyResponse,
    Classify,
    Generate,
    Generation,
    Image,
    Likelihood,
    Message,
    PseudoLikelihood,
    Request,
    Sampling,
    Scalar,
    Text,
)
from ...core.design import Cell, Design, DesignedStage
from ..shared.images import inside
from ..shared.sampling import ensure_drawable
from .asking import LEAD, Row, candidates, listed, read_judgement, read_likelihoods, read_words
from .declared import ORDER, SAMPLE, FolderForm, QuestionsOptions
from .design import TEXT, design_of, options_of, shown_order
from .folder import DIGEST, folder_study, media_of
from .slots import fill, slots_of

if TYPE_CHECKING:
    import polars as pl

ANSWER = "answer"
"""Outcome: a free text."""
OPTIONS = "options"
"""Slot of the listed options."""


class QuestionStage(DesignedStage):
    """Every prompt of the design."""

    operation: ClassVar[type[Request]] = Generate
    outcomes: ClassVar[tuple[str, ...]] = (OUTCOME, LABEL)

    def __init__(self, options: QuestionsOptions) -> None:
        """Take the options; rules and factors follow from them."""
        self._options, self._answer = options, options.answer
        free = self._answer.form in ("judged", "length")
        self.rules = StageRules(images=bool(options.design.image), prose=free, text=ANSWER if free else "")  # type: ignore[misc]
        if free:
            self.outcomes = (*type(self).outcomes, ANSWER)  # type: ignore[misc]
        self.factors = (*self.design.trial_columns, *self._texts)  # type: ignore[misc]
        self.counting = Counting(by=self.design.named("by", "context"), unit="prompt")  # type: ignore[misc]

    @cached_property
    def design(self) -> Design:
        """Return the declared design."""
        return design_of(self._options)

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Return the options that have a text besides their name, which trials have as columns."""
        return {name: text for name, text in options_of(self._answer).items() if name != text}

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.design.vocabulary.names)

    def _slot(self, cell: Cell, slot: str) -> str:
        return cell.text(f"{slot}.{TEXT}" if slot in self._options.design.factors else slot)

    def fill(self, text: str, cell: Cell, further: Mapping[str, str] = {}) -> str:
        """Return a text of the folder for a cell: slots of a level in it are filled too, those within these not."""

        def level(slot: str) -> str:
            if slot in further:
                return further[slot]
            words, of_factor = self._slot(cell, slot), slot in self._options.design.factors
            return fill(words, lambda inner: self._slot(cell, inner), self._names) if of_factor else words

        return fill(text, level)

    def further(self, cell: Cell) -> Mapping[str, Scalar]:
        """Return the texts of the options."""
        return {name: self.fill(text, cell) for name, text in self._texts.items()}

    def text(self, cell: Cell) -> str:
        """Return the last turn to the model."""
        text, names = self._options.design.text, list(options_of(self._answer))
        if self._answer.form != "choice":
            return self.fill(text, cell)
        texts = {name: name for name in names} | {name: str(value) for name, value in self.further(cell).items()}
        order = cell[ORDER] if ORDER in self._names else None
        menu = listed(shown_order(order, names), texts)
        asked = self.fill(text, cell, {OPTIONS: menu})
        return asked if OPTIONS in slots_of(text) else f"{asked}\n\n{menu}\n\nAnswer with the letter only."

    def messages(self, cell: Cell) -> tuple[Message, ...]:
        """Return all turns."""
        form = self._options.design
        system = [Message("system", (Text(self.fill(form.system, cell)),))] if form.system else []
        turns = [Message(turn.role, (Text(self.fill(turn.text, cell)),)) for turn in form.turns]
        picture = [Image(cell.text(self._digest_column))] if form.image else []
        return (*system, *turns, Message("user", (*picture, Text(self.text(cell)))))

    @property
    def _digest_column(self) -> str:
        """Return the column of the names of images in requests."""
        return f"{self.design.vocabulary.term(self._options.design.image).factor}.{DIGEST}"

    def images(self) -> Iterator[tuple[bytes, str]]:
        """Yield the images that are asked about, from the folder.

        Raises:
            DataError: one has changed since the study was made, or is no longer there.
        """
        form = self._options.design
        if not form.image:
            return
        term = self.design.vocabulary.term(form.image)
        digests = self.design.vocabulary.term(self._digest_column).values
        for file, digest in dict(zip(term.values, digests, strict=True)).items():
            path = inside(Path(self._options.folder), str(file))
            data = path.read_bytes() if path.is_file() else b""
            if not str(digest).startswith(hashlib.sha256(data).hexdigest()):
                raise DataError(f"{path} is no longer the image that the study names.", code="folder.changed")
            yield data, media_of(data)

    def shortage(self) -> str:
        """Say what to look at where nothing is asked."""
        return "No level of its factors goes with the others: look at `within` and `without`."

    def request(self, cell: Cell) -> AnyRequest:
        """Return the question of a cell."""
        chosen = self._options
        sampling = Sampling(temperature=chosen.temperature, max_tokens=chosen.max_tokens)
        sample = int(cell.text(SAMPLE)) - 1
        return Generate(messages=self.messages(cell), sampling=sampling, sample=sample)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Row | Unreadable:
        """Read the number that an answer becomes."""
        if self._answer.form == "judged" and isinstance(response, Generation):
            return {OUTCOME: None, LABEL: None, ANSWER: response.text}
        shown = shown_order(factors.get(ORDER), list(options_of(self._answer)))
        outcome = read_words(self._answer, response, shown, factors)
        if self._answer.form == "length" and isinstance(response, Generation) and not isinstance(outcome, Unreadable):
            return {**outcome, ANSWER: response.text}
        return outcome


class LikelihoodStage(QuestionStage):
    """The same by the likelihoods of the answers."""

    operation: ClassVar[type[Request]] = Likelihood

    def request(self, cell: Cell) -> AnyRequest:
        """Return the question of a cell; text alone is asked as text, so that a base model can be."""
        form, answer = self._options.design, self._answer
        lead = "" if answer.form == "continuation" else LEAD
        if answer.form == "continuation":
            words = [f" {self.fill(answer.continuation, cell).strip()}"]
        else:
            texts = {name: str(value) for name, value in self.further(cell).items()}
            words = [f" {text}" for text in candidates(answer, texts).values()]
        if form.system or form.turns or form.image:
            return Likelihood(prompt=self.messages(cell), continuations=tuple(words))
        return Likelihood(prompt=f"{self.text(cell).rstrip()}{lead}", continuations=tuple(words))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Row | Unreadable:
        """Read the expected number."""
        return read_likelihoods(self._answer, response)


class PseudoLikelihoodStage(QuestionStage):
    """A text with its continuation, of which a masked model scores the continuation."""

    operation: ClassVar[type[Request]] = PseudoLikelihood

    def request(self, cell: Cell) -> AnyRequest:
        """Return the sentence of a cell."""
        text = self.text(cell).rstrip()
        end = self.fill(self._answer.continuation, cell).strip()
        return PseudoLikelihood(text=f"{text} {end}", given=((0, len(text)),))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Row | Unreadable:
        """Read the score."""
        return read_likelihoods(self._answer, response)


class JudgementStage(Stage):
    """What a judge, or a classifier, says of each answer."""

    name: ClassVar[str] = "judgements"
    role: ClassVar[str] = "judge"
    operation: ClassVar[type[Request]] = Generate
    outcomes: ClassVar[tuple[str, ...]] = (OUTCOME, LABEL)
    counting: ClassVar[Counting] = Counting(unit="judgement")

    def __init__(self, judged: QuestionStage, options: QuestionsOptions) -> None:
        """Take the stage whose answers are judged."""
        self._answer = options.answer
        self.factors = (*judged.factors, ANSWER)  # type: ignore[misc]

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the question about each answer."""
        frame = earlier.get(QuestionStage.name)
        if frame is None or ANSWER not in frame.columns:
            return
        for row in frame.filter(status="ok").select("trial", *self.factors).iter_rows(named=True):
            name = str(row.pop("trial"))
            yield Trial(name, row, self._ask(str(row[ANSWER])))

    def _ask(self, answer: str) -> AnyRequest:
        text = fill(self._answer.judge, lambda slot: answer)
        sampling = Sampling(temperature=0.0, max_tokens=16)
        return Generate(messages=(Message("user", (Text(text),)),), sampling=sampling)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Row | Unreadable:
        """Read the judgement."""
        return read_judgement(self._answer, response)


class ClassifierStage(JudgementStage):
    """The same by a classifier's probability of a label."""

    role: ClassVar[str] = "classifier"
    operation: ClassVar[type[Request]] = Classify

    def _ask(self, answer: str) -> AnyRequest:
        return Classify(text=answer)


STAGES: Mapping[str, type[QuestionStage]] = {
    "generate": QuestionStage,
    "likelihood": LikelihoodStage,
    "pseudo_likelihood": PseudoLikelihoodStage,
}
IN_WORDS = frozenset({"length", "refusal", "judged"})


class Questions(Probe):
    """The probe: one stage, and a second one where answers are judged."""

    options: ClassVar[type[Options]] = QuestionsOptions
    follows: ClassVar[tuple[Follows, ...]] = (
        Follows("asking", tuple((name, stage.operation) for name, stage in STAGES.items())),
    )

    folder_form: type[msgspec.Struct] = FolderForm

    def stages(self, options: QuestionsOptions) -> Sequence[Stage]:
        """Return the stages.

        Raises:
            UsageError: the answer cannot be asked for so, or several samples are drawn without a temperature.
        """
        ensure_drawable(options)
        form, asking = options.answer.form, options.asking
        if form == "continuation" and asking == "generate":
            asking = "likelihood"
        if (form in IN_WORDS and asking != "generate") or (form != "continuation" and asking == "pseudo_likelihood"):
            raise UsageError(
                f"asking is {asking!r}, which cannot give an answer of the form {form!r}.", code="options.conflict"
            )
        if options.samples > 1 and not options.temperature and options.temperature is not None:
            raise UsageError(
                f"samples is {options.samples} and temperature 0: all samples would be the same. Set temperature=1.",
                code="options.conflict",
            )
        stage = STAGES[asking](options)
        if form != "judged":
            return [stage]
        return [stage, (JudgementStage if options.answer.judge else ClassifierStage)(stage, options)]

    def design(self, options: QuestionsOptions) -> Design:
        """Return the declared design."""
        return design_of(options)

    def read_folder(self, path: str) -> Mapping[str, Any]:
        """Return the study of a folder, as the fields of a study file.

        Raises:
            DataError: the folder cannot be used; with every error.
        """
        return folder_study(path)
