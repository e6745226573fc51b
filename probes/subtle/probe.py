"""Subtler biases: does the polarity of a description of a person determine that of another, and the reverse?

A sentence describes a person by a stimulus (an age, looks, an institution, a nation) or by an attribute, and has a
BLANK for the other; the model chooses a positive, a negative or a neutral option (Kamruzzaman et al. 2023,
`Investigating Subtler Biases in LLMs`). Items are generated from `data`, or read from the published file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, cast

import polars as pl

from ...core.contracts import Counting, Imported, MatchedStage, Options, Probe, Stage, Unreadable, harmless
from ...core.contracts.errors import DataError, UnknownNameError, UsageError
from ...core.contracts.records import (
    AnyRequest,
    AnyResponse,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
)
from ...core.design import Cell, Design, DesignedStage, Rows
from ...core.design.folder import parts_of
from ...core.tables import Parsed, TableOptions
from ..shared.sampling import ensure_drawable
from .asking import (
    EVERY,
    INSTRUCTION,
    Order,
    Orders,
    Prompt,
    alphabetical,
    ensure_question,
    orders_of,
    prompt_content,
    prompt_of,
    softmax,
)
from .data_files import DIRECTION_OF, read_counts, read_items
from .declared import COLUMNS, subtle_design
from .design import generate, load_design
from .items import AS_PUBLISHED, BLANK, CELL, DOMAINS, OPTIONS, PRONOUNS, Item, select
from .reading import Asked, Reading, read_words
from .terms import POLARITIES

FACTORS = (*COLUMNS, "order")
CHOICE = ("chosen", "position")
ORDER_OF = {"".join(map(str, order)): order for order in EVERY}
"""Orders by the names of their levels."""
RESCUED = "rescued"
"""Outcome: whether the authors' program does not read an answer; null with its own reading."""


class SubtleOptions(TableOptions, frozen=True, kw_only=True):
    """Parameters of `subtle`."""

    option_effects = {
        "data": "file",
        **harmless("domains pronouns published_model question lead blank"),
    }
    worded: ClassVar[frozenset[str]] = frozenset({"question", "lead", "blank"})

    direction: Literal["sai", "asa"] = "sai"
    """`sai`: a stimulus is given and an attribute chosen; `asa`: the other way round."""
    rereads: ClassVar[frozenset[str]] = frozenset({"reading", "per_token"})
    asking: Literal["generate", "likelihood"] = "generate"
    """`generate`: the model answers in words, as in the paper; `likelihood`: the likeliest option is its answer."""
    data: str | None = None
    """A file or folder with the columns of the published items, instead of the generated items."""
    question: str = ""
    """Your own text of the question `ours`, with `{context}` and the options `{1}`, `{2}` and `{3}`; empty: this
    project's."""
    lead: str = "Answer:"
    """What stands before the option whose likelihood is asked."""
    blank: str = BLANK
    """What stands in the sentences for the option."""
    domains: tuple[str, ...] = ()
    """Domains to ask about; empty: all."""
    pronouns: tuple[str, ...] = ()
    """`masculine`, `feminine`, `non-binary`, or levels of your data; empty: all."""
    orders: Orders = "balanced"
    """Orders of the options. `balanced`: one per item, drawn so that six items in a row of a domain, pronoun and given
    polarity have all six; `random`: one per item, drawn for each alone; `all`: all six; `latin`: three, with each
    option in each position once; `paper`: positive, negative, neutral."""
    prompts: tuple[Prompt, ...] = ("ours",)
    """Wordings of the question; several are a factor `prompt`. `ours`: numbered options, this project's words;
    `authors`: the question that the authors put to PaLM 2; `authors-list`: that of their later program, without
    numbers."""
    per_cell: int | None = None
    """Maximum number of items per domain, pronoun and given polarity; None: all."""
    seed: int = 0
    """Seed of the options, of their order, and of the sample of `per_cell`."""
    temperature: float | None = 0.0
    """Temperature of `generate`. The paper does not give it."""
    max_tokens: int = 32
    reading: Reading = "current"
    """`current`: an answer is the option that it states by words or number, or fills into the sentence; `paper`: only
    the words of one option, as in the authors' program."""
    per_token: bool = False
    """With `likelihood`, compare options by the mean log-probability per token instead of the sum."""
    published_model: str | None = None
    """Model whose rows of a file of counts to measure."""

    def __post_init__(self) -> None:
        """Refuse invalid sampling options, and a question without a place for what is asked."""
        ensure_drawable(self)
        ensure_question(self.question)


@lru_cache(maxsize=4)
def _generated(direction: str, seed: int) -> tuple[Item, ...]:
    """Return the generated items. Cached, because a run declares, counts, asks and scores them."""
    return tuple(generate(load_design(), direction, seed))


def _ensure_levels(options: SubtleOptions, domains: Sequence[str], pronouns: Sequence[str]) -> None:
    """Refuse levels that the items have not; raises `UnknownNameError`."""
    for what, names, levels in (("domain", options.domains, domains), ("pronoun", options.pronouns, pronouns)):
        for name in names:
            if name not in levels:
                raise UnknownNameError(what, name, dict.fromkeys(levels))


def _key(cell: Cell) -> tuple[str, str, str]:
    return cell.text("item"), cell.text("order.name"), cell.text("prompt")


class SubtleStage(DesignedStage, MatchedStage):
    """All items, in all their orders."""

    factors: ClassVar[tuple[str, ...]] = FACTORS
    outcomes: ClassVar[tuple[str, ...]] = CHOICE
    counting: ClassVar[Counting] = Counting(by=CELL, unit="item")
    operation: ClassVar[type[Request]] = Generate
    presentation: ClassVar[Mapping[str, str]] = {"order": "orders", "prompt": "prompts"}

    def __init__(self, options: SubtleOptions) -> None:
        self._options = options
        if options.prompts != ("ours",):
            self.factors = (*type(self).factors, "prompt")  # type: ignore[misc]  # of this design

    @cached_property
    def _parsed(self) -> Parsed[Item] | None:
        chosen = self._options
        return None if chosen.data is None else read_items(chosen.data, chosen.direction, chosen, chosen.blank)

    def notes(self) -> Sequence[str]:
        """Return what was left out of the file."""
        return () if self._parsed is None else self._parsed.notes()

    @cached_property
    def items(self) -> dict[str, Item]:
        """Return the items. The file is read only here, so answers can be scored again without it."""
        chosen = self._options
        items = self._parsed.values if self._parsed is not None else _generated(chosen.direction, chosen.seed)
        if self._parsed is not None:
            _ensure_levels(chosen, [item.domain for item in items], [item.pronoun for item in items])
        return {item.id: item for item in select(items, chosen.domains, chosen.pronouns)}

    @cached_property
    def _design(self) -> Design:
        listed: list[tuple[Item, tuple[Order | None, ...]]] = [(item, (None,)) for item in self.items.values()]
        if "order" not in self.unrecorded:
            listed = [*orders_of(self._options.orders, self.items.values(), self._options.seed)]
        prompts = self._options.prompts[:1] if "prompt" in self.unrecorded else self._options.prompts
        return subtle_design(listed, prompts, recorded=self.factors, own=parts_of(self._options.data))

    @property
    def design(self) -> Design:
        """Return the design of the items."""
        return self._design

    @cached_property
    def _rows(self) -> Rows | None:
        chosen = self._options
        return None if chosen.per_cell is None else self.design.sample(per_cell=chosen.per_cell, seed=chosen.seed)

    @property
    def rows(self) -> Rows | None:
        """Return the drawn sample."""
        return self._rows

    @cached_property
    def _repeats(self) -> Mapping[tuple[str, str, str], int]:
        """Return the number of each trial among those of the whole study with the same question, without its text."""
        asked, repeats = Counter[object](), dict[tuple[str, str, str], int]()
        for cell in self.design.cells():
            content = prompt_content(*self._question(cell))
            repeats[_key(cell)] = asked[content]
            asked[content] += 1
        return repeats

    def _question(self, cell: Cell) -> tuple[Item, Order, Prompt]:
        item = self.items[str(cell["item"])]
        return item, ORDER_OF.get(cell.text("order.name")) or alphabetical(item), cast(Prompt, cell["prompt"])

    def request(self, cell: Cell) -> AnyRequest:
        """Return the request of a cell. Equal items get different answers, as repeats of one question."""
        item, order, wording = self._question(cell)
        text = prompt_of(item, order, wording, self._options.question)
        return self.ask(text, item, self._repeats[_key(cell)])

    def ask(self, prompt: str, item: Item, repeat: int) -> AnyRequest:
        """Return the request of a question."""
        raise NotImplementedError

    def concerns(self, cells: Mapping[str, Any]) -> bool:
        """Leave out the other direction, which the authors' files of answers contain too."""
        code = str(cells.get("type_category")).strip(" .\t\n").lower()
        return DIRECTION_OF.get(code, self._options.direction) == self._options.direction

    def columns(self, factors: Mapping[str, Scalar]) -> Mapping[str, str]:
        """Return the factor of each of the authors' columns of options, by the polarity of the given term."""
        same, other = POLARITIES[:2] if factors["given"] == "positive" else POLARITIES[1::-1]
        return dict(zip(OPTIONS, (same, other, "neutral"), strict=True))

    def place(self, factors: Mapping[str, Scalar], chosen: str) -> int | None:
        """Return the position of the chosen option in the order shown, from 1; None if the order is not known."""
        order = factors.get("order")
        return None if order is None else str(order).split(", ").index(chosen) + 1


class GenerateStage(SubtleStage):
    """Ask for an answer in words."""

    outcomes: ClassVar[tuple[str, ...]] = (*CHOICE, RESCUED)

    def ask(self, prompt: str, item: Item, repeat: int) -> AnyRequest:
        """Return a question."""
        sampling = Sampling(temperature=self._options.temperature, max_tokens=self._options.max_tokens)
        return Generate(messages=(Message("user", (Text(prompt),)),), sampling=sampling, sample=repeat)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Match the answer to an option."""
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        chosen = self._options
        how, numbered = chosen.reading, factors.get("prompt") != "authors-list"
        asked = Asked(numbered, chosen.blank, chosen.question or INSTRUCTION)
        found = read_words(factors, response.text, reading=how, asked=asked)
        if isinstance(found, Unreadable):
            return found
        rescued = found.rescued if how == "current" else None
        return {"chosen": found.chosen, "position": self.place(factors, found.chosen), RESCUED: rescued}


class LikelihoodStage(SubtleStage):
    """Ask for the probability of each option as the answer."""

    operation: ClassVar[type[Request]] = Likelihood
    outcomes: ClassVar[tuple[str, ...]] = (*CHOICE, *(f"p_{name}" for name in POLARITIES))

    def ask(self, prompt: str, item: Item, repeat: int) -> AnyRequest:
        """Return a question; its continuations are the positive, the negative and the neutral option."""
        # The authors' questions end in white space or a sentence; here the answer must follow directly.
        return Likelihood(
            prompt=f"{prompt.rstrip()}\n{self._options.lead}",
            continuations=tuple(f" {option}" for option in item.options),
        )

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Choose the likeliest option; `p_...` are the probabilities of the three, which sum to 1."""
        if not isinstance(response, Likelihoods) or len(response.scores) != len(POLARITIES):
            return Unreadable("no three likelihoods")
        by = [score.log_probability / (score.count if self._options.per_token else 1) for score in response.scores]
        best = [name for name, value in zip(POLARITIES, by, strict=True) if value == max(by)]
        if len(best) > 1:
            return Unreadable("two options equally likely")
        shares = {f"p_{name}": share for name, share in zip(POLARITIES, softmax(by), strict=True)}
        return {"chosen": best[0], "position": self.place(factors, best[0]), **shares}


class PublishedGenerateStage(GenerateStage):
    """The items of a file, with its own columns, so that published answers can be matched."""

    factors: ClassVar[tuple[str, ...]] = (*FACTORS, *AS_PUBLISHED)


class PublishedLikelihoodStage(LikelihoodStage):
    """The same, by likelihood."""

    factors: ClassVar[tuple[str, ...]] = (*FACTORS, *AS_PUBLISHED)


class Subtle(Probe):
    """The probe: one stage, in one direction."""

    options: ClassVar[type[Options]] = SubtleOptions

    def stages(self, options: SubtleOptions) -> Sequence[Stage]:
        """Return the one stage.

        Raises:
            UsageError: `per_cell` is below 1, or there is no such domain or pronoun.
        """
        return [self._stage(options)]

    def design(self, options: SubtleOptions) -> Design:
        """Return the declared design of the items.

        Raises:
            DataError: the file of `data` cannot be used.
            UsageError: as of `stages`.
        """
        return self._stage(options).design

    def _stage(self, options: SubtleOptions) -> SubtleStage:
        if options.per_cell is not None and options.per_cell < 1:
            raise UsageError(
                f"per_cell is {options.per_cell}. Give 1 or more, or omit it for all items.",
                code="options.value",
            )
        if not options.prompts or len(set(options.prompts)) < len(options.prompts):
            raise UsageError(
                f"prompts are {', '.join(options.prompts) or 'none'}. Name one or several, each once.",
                code="options.value",
            )
        if options.data is None:
            _ensure_levels(options, DOMAINS, PRONOUNS)
        made = {"generate": GenerateStage, "likelihood": LikelihoodStage}
        read = {"generate": PublishedGenerateStage, "likelihood": PublishedLikelihoodStage}
        kinds: Mapping[str, type[SubtleStage]] = made if options.data is None else read
        return kinds[options.asking](options)

    def import_scores(self, path: str, options: Any) -> Imported:
        """Read the counts behind published tables, one observation per counted answer.

        The file has a row per `model`, `direction`, `domain`, `given_polarity` and `pronoun` with `n_positive`,
        `n_negative` and `n_neutral`; rows with the pronoun `all` are checked against the others.

        Raises:
            DataError: The file cannot be used.
        """
        counts = read_counts(path, options.direction, options.published_model)
        rows = [
            (options.direction, count.domain, count.pronoun, count.given, chosen)
            for count in counts
            for chosen, number in zip(POLARITIES, count.chosen, strict=True)
            for _ in range(number)
        ]
        if not rows:
            raise DataError(f"{path}: all counts are 0.", code="data.value")
        frame = pl.DataFrame(rows, schema=["direction", *CELL, "chosen"], orient="row")
        absent = ("item", "template", "term", *POLARITIES, "order", "reason")
        return Imported(
            frame.with_columns(
                *(pl.lit(None, pl.String).alias(name) for name in absent),
                position=pl.lit(None, pl.Int64),
                status=pl.lit("ok"),
                key=pl.lit(None, pl.Binary),
            ),
            ("These are counts from published tables, without data on single items, so there are no clusters.",),
        )
