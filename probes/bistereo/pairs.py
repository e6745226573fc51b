"""BIStereo-Pairs: does a model prefer stereotypically desirable bodies, and does the sentiment change that?

Two sentences differ in one body image descriptor, and each is scored by the pseudo-log-likelihood of their shared words
(the BIStereo paper, sections 3.1 and 4.1). The pairs are generated from `data/pairs`, or read from the user's own file
that `own_pairs` describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ...core.contracts import Follows, Options, Probe, Stage, harmless
from ...core.contracts.errors import UsageError
from ...core.contracts.records import Likelihood, PseudoLikelihood
from ...core.design import Cell, Design
from ..shared.sentence_pairs import PairOptions, ScoredStage
from .asked_pairs import AskedPairs, AskedStage
from .attributes import Attributes
from .causal import AlternativesStage, JointStage, LeftToRightStage, Scoring
from .pairs_design import Position, Selection
from .pairs_texts import SIDES, Texts


class BIStereoOptions(PairOptions, frozen=True, kw_only=True):
    """Parameters of `bistereo-pairs`."""

    option_effects = {
        "data": "file",
        **harmless("before axes genders sentiments"),
    }

    scoring: Scoring = "pll"
    """`pll`: pseudo-log-likelihood, for masked models. For causal ones `joint-minus-marginal`: the likelihood of the
    shared words given the modified ones; `left-to-right`: the shared words given the words before them; `sentence`."""
    position: Position = "attributive"
    """Position of the descriptor: before the noun as in the paper, `last` in the sentence, or `first`."""
    texts: Texts = "wide"
    """`wide`: 36 attribute words, and 504 templates of 12 openings and 39 phrases, each with its own verb or place.
    `paper`: Table 5's 14 words and 450 templates after the paper's description, which share verbs and places."""
    attributes: Attributes = "screened"
    """`screened`: `sexy` is not asked of boys and girls; `paper`: all words with all nouns."""
    beautiful: bool = False
    """Also the attribute `beautiful` of the paper's examples, which is not in its list."""
    before: str = ""
    """Text before every sentence; needed by causal models without a token for the beginning."""
    data: str | None = None
    """A file or folder of your own pairs, instead of the generated ones."""
    axes: tuple[str, ...] = ()
    """Axes to ask about; empty: all."""
    genders: tuple[str, ...] = ()
    """Genders to ask about; empty: all."""
    sentiments: tuple[str, ...] = ()
    """`positive`, `negative`, `neutral`; empty: all."""
    per_cell: int | None = None
    """Maximum number of pairs per axis, gender and sentiment, spread over templates; None: all."""
    seed: int = 0
    """Seed of the sample of `per_cell`."""


class BIStereoStage(AskedStage, ScoredStage):
    """All pairs by their pseudo-log-likelihoods."""

    def __init__(self, options: BIStereoOptions, pairs: AskedPairs) -> None:
        super().__init__(pairs)
        self._options = options

    def request(self, cell: Cell) -> PseudoLikelihood:
        """Return the request of one sentence; with the unit `token` it names the other one."""
        text, spans = self._pairs.sentence(cell)
        if self._options.unit == "word":
            return PseudoLikelihood(text=text, given=spans, variant=self._options.variant)
        place = SIDES.index(str(cell["side"]))
        return PseudoLikelihood(
            text=text,
            contrast=self._pairs.sentence(cell.twin(side=SIDES[1 - place])).text,
            contrast_first=place == 1,
            variant=self._options.variant,
        )


class BIStereoPairs(Probe):
    """The probe: one stage of pseudo-log-likelihoods, or of likelihoods; the templates' sentences may come first."""

    options: ClassVar[type[Options]] = BIStereoOptions
    follows: ClassVar[tuple[Follows, ...]] = (
        Follows("scoring", (("pll", PseudoLikelihood), ("joint-minus-marginal", Likelihood))),
    )

    def stages(self, options: BIStereoOptions) -> Sequence[Stage]:
        """Return the stage of the pairs; with `joint-minus-marginal`, after that of their templates' sentences.

        Raises:
            UsageError: `per_cell` is below 1, or an option has no effect with this scoring.
        """
        _check(options)
        pairs, scoring = _asked(options), options.scoring
        if scoring == "pll":
            return [BIStereoStage(options, pairs)]
        if scoring == "joint-minus-marginal":
            return [AlternativesStage(pairs, options.before), JointStage(pairs, options.before)]
        return [LeftToRightStage(pairs, options.before, whole=scoring == "sentence")]

    def design(self, options: BIStereoOptions) -> Design:
        """Return the declared design of the pairs.

        Raises:
            DataError: The file of `data` cannot be used.
            UnknownNameError: An axis, gender or sentiment is unknown.
        """
        return _asked(options).design


def _asked(options: BIStereoOptions) -> AskedPairs:
    chosen = (options.axes, options.genders, options.sentiments)
    selection = Selection(*chosen, options.position, options.attributes, options.beautiful, options.texts)
    return AskedPairs(selection, options.data, options.per_cell, options.seed, options)


def _check(options: BIStereoOptions) -> None:
    if options.per_cell is not None and options.per_cell < 1:
        raise UsageError(
            f"per_cell is {options.per_cell}. Give 1 or more, or omit it for all pairs.", code="options.value"
        )
    plain = BIStereoOptions()
    masked = {"unit": options.unit != plain.unit, "variant": options.variant != plain.variant}
    idle = masked if options.scoring != "pll" else {"before": options.before != plain.before}
    if names := [name for name, given in idle.items() if given]:
        raise UsageError(f"{names[0]} has no effect with scoring={options.scoring}. Omit it.", code="options.conflict")
    for name in ("position", "texts", "attributes", "beautiful") if options.data is not None else ():
        if getattr(options, name) != getattr(plain, name):
            raise UsageError(f"{name} is for generated pairs only. Omit it if you give data.", code="options.conflict")
