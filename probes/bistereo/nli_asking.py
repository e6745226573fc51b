"""Requests on a premise and a hypothesis, and reading of the answers. Labels are identified by name, not by index."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import ClassVar, Literal

import msgspec

from ...core.contracts import Unreadable, harmless
from ...core.contracts.errors import UnknownNameError, UsageError
from ...core.contracts.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    Sampling,
    Scalar,
    Text,
)
from ...core.reading.results import Unread
from ...core.tables import TableOptions
from ..shared.sampling import ensure_drawable
from .nli_labels import Labels, label_shares
from .nli_reading import OwnWords, read_words
from .terms import LABELS

PROBABILITIES = tuple(f"p_{label}" for label in LABELS)
OUTCOMES = ("label", *PROBABILITIES)
Asking = Literal["classify", "generate", "likelihood"]
PAPERS = "4"
"""The prompt that the paper chose, because it was best on SNLI."""
_SLOT = re.compile(r"\{(?:premise|hypothesis)\}")


class AskingOptions(TableOptions, frozen=True, kw_only=True):
    """Options of the requests."""

    option_effects = harmless("prompt names labels question answers lead")
    rereads: ClassVar[frozenset[str]] = frozenset({"labels"})
    worded: ClassVar[frozenset[str]] = frozenset({"question", "answers", "lead", "names"})

    asking: Asking = "classify"
    """`classify`: a model fine-tuned on inference; `generate`: an instruction model answers in words, as in the paper;
    `likelihood`: the likeliest of the three words is the answer, as `labels` compares them."""
    labels: Labels = "calibrated"
    """How `likelihood` compares the words: `calibrated`, by how much likelier each is than in the same question without
    content; `sum`, by their probabilities, which favour frequent words; `per_token`, by the mean over tokens, which
    favours words of many tokens."""
    prompt: str | int = PAPERS
    """Prompt of `generate` and `likelihood`: `1`, `2`, `3`, `3-as-printed` or `4` of appendix K.1."""
    question: str = ""
    """Your own text of the question, with `{premise}` and `{hypothesis}`; empty: that of `prompt`."""
    answers: tuple[str, ...] = ()
    """Words for entailment, contradiction and neutral in the question; empty: these."""
    lead: str = "Inference:"
    """What stands before the word whose likelihood is asked."""
    names: tuple[str, ...] = LABELS
    """The classifier's names of entailment, contradiction and neutral, if they differ."""
    temperature: float | None = 0.0
    """Temperature of `generate`. The paper does not give it."""
    max_tokens: int = 24

    def __post_init__(self) -> None:
        """Refuse invalid label names, unknown prompts, and invalid sampling options."""
        ensure_drawable(self)
        if len({name.lower() for name in self.names}) != len(LABELS):
            raise UsageError(
                f"names has {', '.join(self.names) or 'nothing'}. Name three labels: {', '.join(LABELS)}.",
                code="options.value",
            )
        if self.answers and len({word.strip().lower() for word in self.answers} - {""}) != len(LABELS):
            raise UsageError(
                f"answers has {', '.join(self.answers)}. Name three words: for {', '.join(LABELS)}.",
                code="options.value",
            )
        if lacking := [slot for slot in ("{premise}", "{hypothesis}") if self.question and slot not in self.question]:
            raise UsageError(f"question lacks {', '.join(lacking)}. Write where they stand.", code="options.value")
        # On the command line, `prompt=1` is read as a number.
        msgspec.structs.force_setattr(self, "prompt", str(self.prompt))
        if self.prompt not in load_prompts():
            raise UnknownNameError("prompt", str(self.prompt), load_prompts())


@functools.cache
def load_prompts() -> dict[str, str]:
    """Return the paper's prompts by name."""
    file = resources.files(__package__) / "data" / "nli" / "prompts.toml"
    prompts = msgspec.toml.decode(file.read_bytes(), type=dict[str, dict[str, str]])["prompts"]
    return prompts


def ask(premise: str, hypothesis: str, options: AskingOptions) -> AnyRequest:
    """Return the request for one pair."""
    if options.asking == "classify":
        return Classify(text=premise, pair=hypothesis)
    # Not `format`, which would replace braces in the user's own sentences.
    told = {"{premise}": premise, "{hypothesis}": hypothesis}
    text = _SLOT.sub(lambda slot: told[slot[0]], options.question or load_prompts()[str(options.prompt)])
    if options.asking == "likelihood":
        words = options.answers or tuple(name.title() for name in LABELS)
        return Likelihood(prompt=f"{text}\n{options.lead}", continuations=tuple(f" {word}" for word in words))
    stop = () if options.question else ("\nPremise:",)
    sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, stop=stop)
    return Generate(messages=(Message("user", (Text(text),)),), sampling=sampling)


def read(
    response: AnyResponse, options: AskingOptions, factors: Mapping[str, Scalar] = {}
) -> Mapping[str, Scalar] | Unreadable:
    """Return the label, and the probabilities if the model gives them.

    Args:
        response: The answer.
        options: How it was asked.
        factors: Of the trial; with likelihoods among them the labels' priors.
    """
    if isinstance(response, Generation):
        words = OwnWords(options.answers, options.lead) if options.answers else None
        pair = [str(factors[name]) for name in ("premise", "hypothesis")] if "hypothesis" in factors else []
        numbered = options.prompt in ("1", "2") and not options.question
        found = read_words(response.text, numbered=numbered, pair=pair, own=words)
        if isinstance(found, Unread):
            return found.unreadable()
        return {"label": found.value, **dict.fromkeys(PROBABILITIES)}
    if isinstance(response, Classification):
        return _named(response.probabilities, options.names)
    if isinstance(response, Likelihoods) and len(response.scores) == len(LABELS):
        shares = label_shares(response, options.labels, factors)
        return shares if isinstance(shares, Unreadable) else _chosen(shares)
    return Unreadable("no answer that has a label")


def _named(probabilities: Mapping[str, float], names: Sequence[str]) -> Mapping[str, Scalar] | Unreadable:
    by_name = {label.strip().lower(): p for label, p in probabilities.items()}
    if len(by_name) != len(LABELS) or set(by_name) != {name.lower() for name in names}:
        return Unreadable(f"labels {', '.join(probabilities)}: not those of inference")
    return _chosen([by_name[name.lower()] for name in names])


def _chosen(shares: list[float]) -> Mapping[str, Scalar] | Unreadable:
    if not all(math.isfinite(share) for share in shares):
        return Unreadable("a probability that is no number")
    best = [label for label, share in zip(LABELS, shares, strict=True) if share == max(shares)]
    if len(best) > 1:
        return Unreadable("two labels equally likely")
    return {"label": best[0], **dict(zip(PROBABILITIES, shares, strict=True))}
