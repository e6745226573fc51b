"""BIStereo-NLI: does a premise about looks or behaviour entail a skin tone, and the reverse?

The correct answer is always `neutral`: looks and behaviour do not imply a skin tone (BIStereo, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import (
    Counting,
    Follows,
    LargeStage,
    Options,
    Probe,
    Stage,
    StageRules,
    Trial,
    Unreadable,
    harmless,
)
from ...core.contracts.errors import UnknownNameError, UsageError
from ...core.contracts.records import AnyResponse, Classify, Generate, Likelihood, Request, Scalar
from ..shared.sentence_pairs import Pair, sample_cells
from .attributes import Attributes
from .nli_asking import OUTCOMES, AskingOptions, ask, read
from .nli_design import CELL, FACTORS, Words, generate, load_design
from .terms import SKINS

if TYPE_CHECKING:
    import polars as pl


class BIStereoNLIOptions(AskingOptions, frozen=True, kw_only=True):
    """Parameters of `bistereo-nli`."""

    option_effects = harmless("genders categories")

    genders: tuple[str, ...] = ()
    """`women`, `men`; empty: both."""
    categories: tuple[str, ...] = ()
    """`attractiveness`, `unattractiveness`, `good behaviour`, `bad behaviour`; empty: all."""
    attributes: Attributes = "screened"
    """`screened`: the paper's words, but `sexy` is not asked of boys and girls; `paper`: all words with all nouns."""
    beautiful: bool = False
    """Also the attribute `beautiful` of the paper's examples, which is not in its list."""
    per_cell: int | None = None
    """Maximum number of pairs of a fair and a dark skin tone per gender and category; None: all."""
    seed: int = 0
    """Seed of `per_cell`."""


class NLIStage(LargeStage):
    """All pairs; the fair and the dark skin tone of a pair are adjacent."""

    name: ClassVar[str] = "pairs"
    operation: ClassVar[type[Request]] = Classify
    factors: ClassVar[tuple[str, ...]] = ("pair", "skin", *FACTORS, "premise", "hypothesis")
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES
    counting: ClassVar[Counting] = Counting(by=(*CELL, "skin"), unit="pair")

    def __init__(self, options: BIStereoNLIOptions) -> None:
        self._options = options

    @cached_property
    def pairs(self) -> list[Pair]:
        """Return the pairs of both skin tones, in order."""
        design, chosen = load_design(), self._options
        genders = [name for name in design.nouns if not chosen.genders or name in chosen.genders]
        categories = [c.name for c in design.categories if not chosen.categories or c.name in chosen.categories]
        words = Words(chosen.attributes, chosen.beautiful)
        found = list(generate(design, genders, categories, words))
        return found if chosen.per_cell is None else sample_cells(found, CELL, chosen.per_cell, chosen.seed)

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield two trials per pair of skin tones."""
        for pair in self.pairs:
            for side, text in zip(SKINS, pair.texts, strict=True):
                premise, hypothesis = text.split("\n")
                factors: dict[str, Scalar] = {"pair": pair.id, "skin": side, **pair.factors}
                told: dict[str, Scalar] = {"premise": premise, "hypothesis": hypothesis}
                yield Trial(f"{pair.id}/{side}", factors | told, ask(premise, hypothesis, self._options))

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count two trials per pair of skin tones."""
        return len(SKINS) * len(self.pairs)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the label, and its probability if there is one."""
        return read(response, self._options)


class GenerateNLIStage(NLIStage):
    """The same, with generated answers."""

    operation: ClassVar[type[Request]] = Generate
    rules: ClassVar[StageRules] = StageRules(prose=True)


class LikelihoodNLIStage(NLIStage):
    """The same, with the likelihoods of the three words."""

    operation: ClassVar[type[Request]] = Likelihood


STAGES: dict[str, type[NLIStage]] = {
    "classify": NLIStage,
    "generate": GenerateNLIStage,
    "likelihood": LikelihoodNLIStage,
}


class BIStereoNLI(Probe):
    """The probe: one stage of inferences."""

    options: ClassVar[type[Options]] = BIStereoNLIOptions
    follows: ClassVar[tuple[Follows, ...]] = (
        Follows("asking", tuple((name, stage.operation) for name, stage in STAGES.items())),
    )

    def stages(self, options: BIStereoNLIOptions) -> Sequence[Stage]:
        """Return the one stage.

        Raises:
            UsageError: `per_cell` is below 1.
            UnknownNameError: there is no such gender or category.
        """
        if options.per_cell is not None and options.per_cell < 1:
            raise UsageError(
                f"per_cell is {options.per_cell}. Give 1 or more, or omit it for all pairs.",
                code="options.value",
            )
        design = load_design()
        known = {"gender": list(design.nouns), "category": [c.name for c in design.categories]}
        for (what, names), asked in zip(known.items(), (options.genders, options.categories), strict=True):
            for name in asked:
                if name not in names:
                    raise UnknownNameError(what, name, names)
        return [STAGES[options.asking](options)]
