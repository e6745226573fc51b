"""The probabilities of the three labels by likelihood, and what each label has without any content.

A model prefers some words whatever is asked: their likelihoods compare words as much as answers. Contextual calibration
(Zhao et al. 2021, Calibrate Before Use) asks the same question without content, and divides by what it gets there;
Holtzman et al. (2021, Surface Form Competition) divide for the same reason. The mean over tokens is no remedy: all but
the first token of `Entailment` are nearly certain, so that it is divided by three for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl

from ...core.contracts import Counting, Stage, StageRules, Trial, Unreadable
from ...core.contracts.records import AnyResponse, Likelihood, Likelihoods, Request, Scalar
from .terms import LABELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.contracts.records import AnyRequest

Labels = Literal["calibrated", "sum", "per_token"]
WITHOUT_CONTENT = ("N/A", "[MASK]", "")
"""Premise and hypothesis without content, as Zhao et al. take them; their mean is the prior of a label."""
PRIORS = tuple(f"prior_{label}" for label in LABELS)


METHODS: dict[Labels, str] = {
    "calibrated": "The same question is asked without content first (N/A, [MASK] and nothing as both sentences), and "
    "each label's probability is divided by the mean of its probabilities there (Zhao et al. 2021), because a model "
    "prefers some labels whatever is asked.",
    "sum": "The labels' probabilities are compared as they are, which favours labels that the model prefers whatever "
    "is asked.",
    "per_token": "The means of the log-probabilities over the tokens of each label are compared, which favours labels "
    "of several tokens whose later ones are nearly certain.",
}


def method_of(labels: Labels) -> str:
    """Return how an answer is read from likelihoods, in sentences."""
    return (
        f"The model writes nothing: it gives the probability of each label ({', '.join(LABELS)}) as the continuation "
        f"of the question. {METHODS[labels]} The three are scaled to sum to 1, and the likeliest is the answer "
        f"(labels = {labels})."
    )


class PriorStage(Stage):
    """The question without content, of each prompt."""

    name: ClassVar[str] = "priors"
    operation: ClassVar[type[Request]] = Likelihood
    factors: ClassVar[tuple[str, ...]] = ("prompt", "content")
    outcomes: ClassVar[tuple[str, ...]] = PRIORS
    counting: ClassVar[Counting] = Counting(by=("prompt",), unit="question")
    rules: ClassVar[StageRules] = StageRules(auxiliary=True)

    def __init__(self, prompts: Sequence[str], ask: Callable[[str, str], AnyRequest]) -> None:
        """Ask each prompt; `ask` gives the request of a content and a prompt."""
        self._prompts, self._ask = prompts, ask

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield a trial per prompt and content."""
        for prompt in self._prompts:
            for content in WITHOUT_CONTENT:
                factors: dict[str, Scalar] = {"prompt": prompt, "content": content or "empty"}
                yield Trial(f"{prompt}/{content or 'empty'}", factors, self._ask(content, prompt))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the share of each label."""
        if not isinstance(response, Likelihoods) or len(response.scores) != len(LABELS):
            return Unreadable("no likelihoods of the labels")
        shares = _shares([score.log_probability for score in response.scores])
        return dict(zip(PRIORS, shares, strict=True))


def priors_of(earlier: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, Scalar]]:
    """Return the priors of the labels by prompt, as factors of trials: the means over what has no content."""
    observations = earlier.get(PriorStage.name)
    if observations is None or observations.is_empty():
        return {}
    readable = observations.filter(pl.col("status") == "ok")
    means = readable.group_by("prompt", maintain_order=True).agg(pl.col(PRIORS).mean())
    return {row["prompt"]: {name: row[name] for name in PRIORS} for row in means.iter_rows(named=True)}


def with_priors(
    trials: Iterator[Trial], earlier: Mapping[str, pl.DataFrame], prompt: str | None = None
) -> Iterator[Trial]:
    """Yield trials with the priors of their prompt among their factors, None where it has none.

    `prompt` is that of all trials; None: their factor.
    """
    priors, absent = priors_of(earlier), dict.fromkeys(PRIORS)
    for trial in trials:
        shares = priors.get(str(trial.factors["prompt"]) if prompt is None else prompt, absent)
        yield Trial(trial.id, {**trial.factors, **shares}, trial.request)


def label_shares(response: Likelihoods, labels: Labels, factors: Mapping[str, Scalar]) -> list[float] | Unreadable:
    """Return the probabilities of the labels, which sum to 1."""
    if labels == "per_token":
        return _shares([score.log_probability / score.count for score in response.scores])
    sums = [score.log_probability for score in response.scores]
    if labels == "sum":
        return _shares(sums)
    priors = [prior for prior in map(factors.get, PRIORS) if isinstance(prior, float) and prior > 0]
    if len(priors) < len(LABELS):
        return Unreadable("no likelihoods of the labels without content")
    return _shares([value - math.log(prior) for value, prior in zip(sums, priors, strict=True)])


def _shares(values: Sequence[float]) -> list[float]:
    weights = [math.exp(value - max(values)) for value in values]
    return [weight / sum(weights) for weight in weights]
