"""BIStereo-Pairs: does a model prefer stereotypically desirable bodies, and does the sentiment change that?

Two sentences differ in one body image descriptor, and each is scored by the pseudo-log-likelihood of their shared words
(the BIStereo paper, sections 3.1 and 4.1). The pairs are generated from `data/pairs`, or read from the user's own file
with the columns of `REQUIRED` and `OPTIONAL`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

from ...core.contracts import Counting, Follows, Options, Probe, Stage, harmless
from ...core.contracts.csv import Row, read_rows
from ...core.contracts.errors import UnknownNameError, UsageError
from ...core.contracts.records import Likelihood, PseudoLikelihood, Scalar
from ..shared.sentence_pairs import Pair, PairOptions, PairStage, Spans, checked_difference, sample_cells, words
from .attributes import Attributes, is_asked
from .causal import Alternatives, AlternativesStage, JointStage, LeftToRightStage, Scoring
from .pairs_design import CELL, FACTORS, Position, Selection, generate, load_design

SENTIMENTS = ("positive", "negative", "neutral")
REQUIRED = ("desirable", "undesirable", *CELL)
OPTIONAL = ("template", "number", "phrase", "attribute", "noun", "pair")


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
    attributes: Attributes = "screened"
    """`screened`: the paper's words, but `sexy` is not asked of boys and girls; `paper`: all words with all nouns."""
    beautiful: bool = False
    """Also the attribute `beautiful` of the paper's examples, which is not in its list."""
    before: str = ""
    """Text before every sentence; needed by causal models without a token for the beginning."""
    data: str | None = None
    """A CSV file of your own pairs, instead of the generated ones."""
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


class BIStereoStage(PairStage):
    """All pairs, the desirable sentence of each first."""

    factors: ClassVar[tuple[str, ...]] = FACTORS
    counting: ClassVar[Counting] = Counting(by=CELL, unit="pair", trials=2)

    def __init__(self, options: BIStereoOptions) -> None:
        super().__init__(options)
        self._chosen = options

    def pairs(self) -> Iterable[Pair]:
        """Return the selected pairs, generated lazily unless a sample is drawn.

        The file is read only here, so answers can be scored again without it.

        Raises:
            DataError: The file cannot be used.
            UnknownNameError: An axis, gender or sentiment is unknown.
        """
        own = None if self._chosen.data is None else read_pairs(self._chosen.data)
        selection = _select(self._chosen, own)
        per_cell, seed = self._chosen.per_cell, self._chosen.seed
        if own is None:
            return generate(load_design(), selection) if per_cell is None else _drawn(selection, per_cell, seed)
        chosen = self._filtered(own, selection)
        return chosen if per_cell is None else sample_cells(chosen, CELL, per_cell, seed)

    def everything(self) -> Iterable[Pair]:
        """Return all pairs of the design or of the file, without selection, also those that are not asked."""
        if (chosen := self._chosen).data is not None:
            return read_pairs(chosen.data)
        wider = BIStereoOptions(position=chosen.position, attributes="paper", beautiful=chosen.beautiful)
        return generate(load_design(), _select(wider, None))

    def asked(self, pair: Pair) -> bool:
        """Return whether the words of a pair are asked together."""
        own = self._chosen.data is not None
        return own or is_asked(pair.factors["attribute"], pair.factors["noun"], self._chosen.attributes)

    def _filtered(self, pairs: Iterable[Pair], selection: Selection) -> Iterator[Pair]:
        wanted = (selection.axes, selection.genders, selection.sentiments)
        for pair in pairs:
            if all(pair.factors[name] in names for name, names in zip(CELL, wanted, strict=True)):
                yield pair


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
        design, scoring = BIStereoStage(options), options.scoring
        if scoring == "pll":
            return [design]
        if scoring == "joint-minus-marginal":
            alternatives = AlternativesStage(
                design.pairs, Alternatives(design.everything, design.asked), options.before
            )
            return [alternatives, JointStage(design.pairs, options.before)]
        return [LeftToRightStage(design.pairs, options.before, whole=scoring == "sentence")]


@lru_cache(maxsize=4)
def _drawn(selection: Selection, per_cell: int, seed: int) -> list[Pair]:
    """Sample the generated pairs. Cached, because all pairs are generated, and a run counts, asks and scores them."""
    return sample_cells(generate(load_design(), selection), CELL, per_cell, seed)


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
    for name in ("position", "attributes", "beautiful") if options.data is not None else ():
        if getattr(options, name) != getattr(plain, name):
            raise UsageError(f"{name} is for generated pairs only. Omit it if you give data.", code="options.conflict")


def read_pairs(path: str) -> list[Pair]:
    """Read pairs from a CSV file with the columns `REQUIRED` and, if present, `OPTIONAL`.

    Raises:
        DataError: The file or one of its rows cannot be used.
    """
    seen: dict[str, int] = {}
    pairs: list[Pair] = []
    for number, row in enumerate(read_rows(path, REQUIRED), 1):
        pair = _from_row(row, f"row-{number}")
        if (first := seen.setdefault(pair.id, row.line)) != row.line:
            raise row.fault(
                f"pair {pair.id!r} is already on line {first}. Give every pair its own name.", "data.duplicate"
            )
        pairs.append(pair)
    return pairs


def _from_row(row: Row, number: str) -> Pair:
    texts = (row.filled("desirable"), row.filled("undesirable"))
    spans = checked_difference(row, texts)
    sentiment = row.choice("sentiment", SENTIMENTS)
    template = row.optional("template") or _frame(texts[0], spans[0], row)
    cell: dict[str, Scalar] = {"axis": row.filled("axis"), "gender": row.filled("gender"), "sentiment": sentiment}
    told: dict[str, Scalar] = {name: row.optional(name) for name in ("number", "phrase")}
    own: dict[str, Scalar] = {name: row.optional(name) for name in ("noun", "attribute")}
    differing = "/".join(
        " ".join(text[start:end] for start, end in places) for text, places in zip(texts, spans, strict=True)
    )
    factors = {**cell, **told, "template": template, **own, "descriptors": differing}
    return Pair(row.optional("pair") or number, ("desirable", "undesirable"), texts, factors, spans)


def _frame(text: str, spans: Spans, row: Row) -> str:
    """Name the cluster of a row without a template: its text, with the words that vary within a template removed."""
    varying = {row.optional("attribute"), row.optional("noun")}
    kept = ("_" if span in spans or word in varying else word for word, span in words(text))
    return " ".join("a" if word == "an" else word for word in kept)


def _select(options: BIStereoOptions, own: list[Pair] | None) -> Selection:
    design = load_design()
    known = [[axis.name for axis in design.axes], list(design.nouns), list(SENTIMENTS)]
    if own is not None:
        known = [list(dict.fromkeys(str(pair.factors[name]) for pair in own)) for name in CELL]
    asked = (options.axes, options.genders, options.sentiments)
    axes, genders, sentiments = (_known(*names) for names in zip(CELL, asked, known, strict=True))
    return Selection(axes, genders, sentiments, options.position, options.attributes, options.beautiful)


def _known(kind: str, asked: tuple[str, ...], known: list[str]) -> tuple[str, ...]:
    for name in asked:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return tuple(name for name in known if name in asked) if asked else tuple(known)
