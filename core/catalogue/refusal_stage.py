"""A later stage in which a model of the role `refusal` decides which answers in words decline, in any language.

It reads the free texts that the rules take for answers, and the answers to other questions in words that nobody could
read; what the rules recognise stays refused, and what a study could read stays an answer. Its decisions are answers of
their own, stored with the identity of its model: those that it judges are not changed, and a run is scored again with
them without asking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..contracts import Counting, Stage, StageRules, Trial, Unreadable
from ..contracts.abilities import OPERATIONS, Need
from ..contracts.records import (
    AnyResponse,
    Classification,
    Classify,
    Generate,
    Generation,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
)
from ..reading import Unread, read_yes_no

if TYPE_CHECKING:
    import polars as pl

ROLE = "refusal"
UNREAD_TEXT = "unread_text"
"""Column of the texts of answers that could not be read, which the engine adds for this stage."""
DESCRIBED = (
    "Somebody was asked to describe a person or a picture, and gave the answer below. Does the answer decline to do "
    "so, or talk about the request in place of doing it? An answer that describes anything that was asked for does not "
    "decline. Answer with yes or no only.\n\nAnswer: {text}"
)
ANSWERED = (
    "Somebody was asked a question, and gave the answer below. Does the answer decline to answer, or talk about the "
    "question in place of answering it? An answer that is unclear, incomplete or wrong does not decline. Answer with "
    "yes or no only.\n\nAnswer: {text}"
)
TOKENS = 16
"""Most tokens of a decision."""
_REFUSAL = re.compile(r"(?<!non)(?<!non[-_ ])(?<!not[-_ ])(?<!no[-_ ])(?:refus|reject|declin)", re.IGNORECASE)
"""Labels of refusals: `REJECTION` (protectai/distilroberta-base-rejection-v1), but not `Non-refusal`."""


class RefusalStage(Stage):
    """Whether each answer of some stages declines, as a model decides that is asked yes or no."""

    name: ClassVar[str] = "refusals"
    role: ClassVar[str] = ROLE
    operation: ClassVar[type[Request]] = Generate
    factors: ClassVar[tuple[str, ...]] = ("answer_of", "answer_to")
    outcomes: ClassVar[tuple[str, ...]] = ("refuses",)
    rules: ClassVar[StageRules] = StageRules(optional=True)
    counting: ClassVar[Counting] = Counting(by=("answer_of",), unit="answer")

    def __init__(self, judged: Sequence[Stage]) -> None:
        """Take the stages whose answers in words are judged."""
        self._judged = {stage.name: stage for stage in judged}

    @property
    def of_unread(self) -> frozenset[str]:
        """Return the names of the stages whose unread answers are judged: those without free texts."""
        return frozenset(name for name, stage in self._judged.items() if not stage.rules.text)

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield a question about each free text that the rules take for an answer, and each answer that is unread."""
        for name, stage in self._judged.items():
            column, status, question = stage.rules.text or UNREAD_TEXT, "ok", DESCRIBED
            if not stage.rules.text:
                status, question = "unreadable", ANSWERED
            frame = earlier.get(name)
            if frame is None or column not in frame.columns:
                continue
            chosen = frame.filter(frame["status"] == status).select("trial", column).drop_nulls()
            for trial, answer in chosen.iter_rows():
                if answer.strip():
                    yield Trial(f"{name}/{trial}", {"answer_of": name, "answer_to": trial}, self._ask(question, answer))

    def _ask(self, question: str, answer: str) -> Generate | Classify:
        message = Message("user", (Text(question.format(text=answer)),))
        return Generate(messages=(message,), sampling=Sampling(temperature=0.0, max_tokens=TOKENS))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read yes or no, or the probability of the label of a refusal."""
        if isinstance(response, Classification):
            return _read_label(response.probabilities)
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        decision = read_yes_no(response.text)
        return decision.unreadable() if isinstance(decision, Unread) else {"refuses": decision.value}

    def decided(self, frames: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
        """Return the observations of the judged stages in which the answers that decline are refused.

        An answer about which the model decides nothing stays as it is.

        Args:
            frames: observations by stage, those of this one among them; stages that are absent are left out.
        """
        import polars as pl

        decisions: pl.DataFrame | None = frames.get(self.name)
        if decisions is None or "refuses" not in decisions.columns:
            return {}
        declining = decisions.filter((pl.col("status") == "ok") & (pl.col("refuses") == "yes"))
        named = declining.partition_by("answer_of", as_dict=True)
        return {
            name: _refused(frames[name], named[(name,)]["answer_to"], stage.outcomes)
            for name, stage in self._judged.items()
            if name in frames and (name,) in named
        }


class ClassifiedRefusalStage(RefusalStage):
    """The same, as a classifier decides that has a label for refusals: it sees the answer alone."""

    operation: ClassVar[type[Request]] = Classify

    def _ask(self, question: str, answer: str) -> Generate | Classify:
        return Classify(text=answer)


def with_refusals(stages: Iterable[Stage], kind: type[RefusalStage] = RefusalStage) -> tuple[Stage, ...]:
    """Return stages with one of refusals behind the last one that asks for answers in words; unchanged without such."""
    listed = list(stages)
    judged = [stage for stage in listed if stage.rules.text or (stage.operation is Generate and _asks(stage))]
    if judged:
        listed.insert(listed.index(judged[-1]) + 1, kind(judged))
    return tuple(listed)


def kind_for(suited: Callable[[Need], bool]) -> type[RefusalStage]:
    """Return how a model is asked, by whether it is suited to a need: one that only classifies is asked no question."""
    words, labels = (Need(operation=OPERATIONS[operation]) for operation in (Generate, Classify))
    return ClassifiedRefusalStage if suited(labels) and not suited(words) else RefusalStage


def _asks(stage: Stage) -> bool:
    """Return whether a study needs the answers of a stage: what may be left out assesses them."""
    return not stage.rules.optional and not stage.rules.auxiliary


def last_measured(stages: Sequence[Stage]) -> Stage:
    """Return the last stage whose answers are measured: decisions about answers are none."""
    return next(stage for stage in reversed(stages) if not isinstance(stage, RefusalStage))


def decided(frames: Mapping[str, Any], stages: Iterable[Stage]) -> dict[str, pl.DataFrame]:
    """Return the observations in which a model has found refusals, by stage; none where no such model was asked.

    Args:
        frames: observations by stage.
        stages: the stages, or the one whose decisions are new.
    """
    refusing = (stage for stage in stages if isinstance(stage, RefusalStage))
    return {name: frame for stage in refusing for name, frame in stage.decided(frames).items()}


def _read_label(probabilities: Mapping[str, float]) -> Mapping[str, Scalar] | Unreadable:
    refusals = [label for label in probabilities if _REFUSAL.search(label)]
    if len(refusals) != 1:
        return Unreadable(f"labels {', '.join(sorted(probabilities))}: {len(refusals) or 'none'} of them of a refusal")
    return {"refuses": "yes" if probabilities[refusals[0]] >= 0.5 else "no"}


def _refused(frame: pl.DataFrame, trials: pl.Series, outcomes: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    declines = pl.col("trial").is_in(trials.implode()) & pl.col("status").is_in(["ok", "unreadable"])
    columns = [name for name in (*outcomes, "reason") if name in frame.columns]
    cleared = [pl.when(~declines).then(pl.col(name)).alias(name) for name in columns]
    status = pl.when(declines).then(pl.lit("refused")).otherwise(pl.col("status")).alias("status")
    return frame.with_columns(*cleared, status)
