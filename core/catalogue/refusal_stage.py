"""A later stage in which a model of the role `refusal` decides whether free texts decline, in any language.

It reads the answers that the rules take for answers; what the rules recognise stays refused. Its decisions are answers
of their own, stored with the identity of its model: those that it judges are not changed, and a run is scored again
with them without asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..contracts import Counting, Stage, StageRules, Trial, Unreadable
from ..contracts.records import AnyResponse, Generate, Generation, Message, Request, Sampling, Scalar, Text
from ..reading import Unread, read_yes_no

if TYPE_CHECKING:
    import polars as pl

ROLE = "refusal"
QUESTION = (
    "Somebody was asked to describe a person or a picture, and gave the answer below. Does the answer decline to do "
    "so, or talk about the request in place of doing it? An answer that describes anything that was asked for does not "
    "decline. Answer with yes or no only.\n\nAnswer: {text}"
)
TOKENS = 16
"""Most tokens of a decision."""


class RefusalStage(Stage):
    """Whether each free text of some stages declines, as a model decides."""

    name: ClassVar[str] = "refusals"
    role: ClassVar[str] = ROLE
    operation: ClassVar[type[Request]] = Generate
    factors: ClassVar[tuple[str, ...]] = ("answer_of", "answer_to")
    outcomes: ClassVar[tuple[str, ...]] = ("refuses",)
    rules: ClassVar[StageRules] = StageRules(optional=True)
    counting: ClassVar[Counting] = Counting(by=("answer_of",), unit="answer")

    def __init__(self, judged: Sequence[Stage]) -> None:
        """Take the stages with free texts (`StageRules.text`)."""
        self._judged = {stage.name: stage for stage in judged}

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield a question about each text that the rules take for an answer."""
        for name, stage in self._judged.items():
            frame, text = earlier.get(name), stage.rules.text
            if frame is None or text not in frame.columns:
                continue
            chosen = frame.filter(frame["status"] == "ok").select("trial", text).drop_nulls()
            for trial, answer in chosen.iter_rows():
                message = Message("user", (Text(QUESTION.format(text=answer)),))
                request = Generate(messages=(message,), sampling=Sampling(temperature=0.0, max_tokens=TOKENS))
                yield Trial(f"{name}/{trial}", {"answer_of": name, "answer_to": trial}, request)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read yes or no."""
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        decision = read_yes_no(response.text)
        return decision.unreadable() if isinstance(decision, Unread) else {"refuses": decision.value}

    def decided(self, frames: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
        """Return the observations of the judged stages in which the texts that decline are refused.

        An answer about which the model decides nothing stays an answer.

        Args:
            frames: observations by stage, those of this one among them; stages that are absent are left out.
        """
        import polars as pl

        decisions: pl.DataFrame | None = frames.get(self.name)
        if decisions is None or "refuses" not in decisions.columns:
            return {}
        declining = decisions.filter((pl.col("status") == "ok") & (pl.col("refuses") == "yes"))
        frames_judged = {name: frames[name] for name in self._judged if name in frames}
        return {
            name: _refused(frame, declining.filter(answer_of=name)["answer_to"], self._judged[name].outcomes)
            for name, frame in frames_judged.items()
        }


def with_refusals(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return stages with a `RefusalStage` behind the last one that has free texts; unchanged where none has."""
    listed = list(stages)
    judged = [stage for stage in listed if stage.rules.text]
    if judged:
        listed.insert(listed.index(judged[-1]) + 1, RefusalStage(judged))
    return tuple(listed)


def decided(frames: Mapping[str, Any], stages: Iterable[Stage]) -> dict[str, pl.DataFrame]:
    """Return the observations in which a model has found refusals, by stage; none where no such model was asked.

    Args:
        frames: observations by stage.
        stages: the stages, or the one whose decisions are new.
    """
    refusing = (stage for stage in stages if isinstance(stage, RefusalStage))
    return {name: frame for stage in refusing for name, frame in stage.decided(frames).items()}


def _refused(frame: pl.DataFrame, trials: pl.Series, outcomes: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    declines = pl.col("trial").is_in(trials.implode()) & (pl.col("status") == "ok")
    readable = [pl.when(~declines).then(pl.col(name)).alias(name) for name in outcomes if name in frame.columns]
    status = pl.when(declines).then(pl.lit("refused")).otherwise(pl.col("status")).alias("status")
    return frame.with_columns(*readable, status)
