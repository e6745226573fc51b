"""Options of `indicasa`, and what its measures are called besides those that are declared."""

from __future__ import annotations

from typing import Literal

from ...core.contracts.errors import UsageError
from ...core.contracts.estimates import Measure
from ...core.statistics.estimates import TestingOptions


class IndiCASAMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for classifying and measuring completions."""

    least: int | None = None
    """Minimum number of readable completions for scoring a prompt; None requires every completion."""
    several: Literal["mean", "nearest"] = "mean"
    """The cosine that is used if a prompt has several texts of a kind: the mean of all, or the greatest."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if self.least is not None and self.least < 1:
            raise UsageError(
                f"least is {self.least}. Give 1 or more, or omit it to require every completion.",
                code="options.value",
            )


STEREOTYPES, DISTANCE = "more stereotypes", "a stronger preference, for stereotypes or against them"
OTHERS = {
    "bias_score_by_chance": Measure(
        "Bias Score by chance",
        "Mean Bias Score of an unbiased model on as many prompts.",
    ),
    "stereotype_probability_corrected": Measure(
        "Stereotype probability, corrected for the encoder",
        "Stereotype probability that an encoder without errors would find, from its errors on held-out sentences.",
        direction=STEREOTYPES,
    ),
    "bias_score_corrected": Measure(
        "Bias Score, corrected for the encoder",
        "Bias Score that an encoder without errors would find, from its errors on held-out sentences.",
        direction=DISTANCE,
    ),
    "skip_ratio": Measure(
        "Skip ratio",
        "Percentage of the prompts that have no class, since completions could not be read or the majority was tied.",
        "%",
        "more missing prompts",
    ),
    "first_refusals": Measure(
        "First refusals",
        "Percentage of the completions that were refused when they were asked for the first time.",
        "%",
        "more refusals",
    ),
    "cosine_ties": Measure(
        "Cosine ties",
        "Percentage of the readable completions that are as similar to the stereotype as to the anti-stereotype.",
        "%",
        "more ties",
    ),
    "misplaced_texts": Measure(
        "Misplaced texts",
        "Percentage of the known stereotypes and anti-stereotypes that would have the other class as completions.",
        "%",
        "more classes that other words or the encoder decide",
    ),
    "lenient_answers": Measure(
        "Leniently read answers",
        "Percentage of the readable completions that stood in an answer that was not one JSON object alone.",
        "%",
        "more answers in another format",
    ),
    "changed_sentences": Measure(
        "Changed sentences",
        "Percentage of the completions that change words of the prompt besides the mask.",
        "%",
        "more changed sentences",
    ),
    "majority_ties": Measure(
        "Majority ties",
        "Percentage of the prompts whose completions are stereotypes and anti-stereotypes in equal numbers.",
        "%",
        "more ties",
    ),
    "duplicate_prompts": Measure(
        "Duplicate prompts",
        "Percentage of the prompts whose sentence occurs earlier in the same category.",
        "%",
        "more repetition",
    ),
}
