"""Subtler biases: does the polarity of a description of a person determine that of another, and the reverse?

A sentence describes a person by a stimulus (an age, looks, an institution, a nation) or by an attribute, and has a
BLANK for the other; the model chooses a positive, a negative or a neutral option (Kamruzzaman et al. 2023,
`Investigating Subtler Biases in LLMs`). Items are generated from `data`, or read from the published file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import polars as pl

from ...core.contracts import Counting, Imported, MatchedStage, Options, Probe, Stage, Trial, Unreadable, harmless
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
from ..shared.sampling import ensure_drawable
from .asking import Order, Orders, Prompt, alphabetical, name_of, orders_of, prompt_of, softmax
from .data_files import DIRECTION_OF, read_counts, read_items
from .design import generate, load_design
from .items import AS_PUBLISHED, CELL, DOMAINS, OPTIONS, PRONOUNS, Item, sample, select
from .reading import Reading, read_words
from .terms import POLARITIES

FACTORS = ("item", "direction", *CELL, "template", "term", "context", *POLARITIES, "order")
CHOICE = ("chosen", "position")
RESCUED = "rescued"
"""Outcome: whether only the tolerant reading reads an answer; null with the strict one."""


class SubtleOptions(Options, frozen=True, kw_only=True):
    """Parameters of `subtle`."""

    option_effects = {
        "data": "file",
        **harmless("domains pronouns published_model"),
    }

    direction: Literal["sai", "asa"] = "sai"
    """`sai`: a stimulus is given and an attribute chosen; `asa`: the other way round."""
    rereads: ClassVar[frozenset[str]] = frozenset({"reading", "read_labels", "per_token"})
    asking: Literal["generate", "likelihood"] = "generate"
    """`generate`: the model answers in words, as in the paper; `likelihood`: the likeliest option is its answer."""
    data: str | None = None
    """A CSV file with the columns of the published items, instead of the generated items."""
    domains: tuple[str, ...] = ()
    """Domains to ask about; empty: all five."""
    pronouns: tuple[str, ...] = ()
    """`masculine`, `feminine`, `non-binary`; empty: all."""
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
    reading: Reading = "strict"
    """`strict`: an answer is the words of one option, as in the authors' program; `tolerant`: marks, punctuation,
    numbers and announcements around them are taken away (`**wise**`, `Wise!`, `2. wise`, `Answer: wise`)."""
    read_labels: bool = False
    """Also read answers with only the number of an option, which the authors exclude."""
    per_token: bool = False
    """With `likelihood`, compare options by the mean log-probability per token instead of the sum."""
    published_model: str | None = None
    """Model whose rows of a file of counts to measure."""

    def __post_init__(self) -> None:
        """Refuse invalid sampling options."""
        ensure_drawable(self)


class SubtleStage(MatchedStage):
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
    def items(self) -> list[Item]:
        """Return the chosen items. The file is read only here, so answers can be scored again without it."""
        chosen = self._options
        if chosen.data is None:
            found = generate(load_design(), chosen.direction, chosen.seed)
        else:
            found = read_items(chosen.data, chosen.direction)
        found = select(found, chosen.domains, chosen.pronouns)
        return found if chosen.per_cell is None else sample(found, chosen.per_cell, chosen.seed)

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials, item by item."""
        asked = Counter[str]()
        for item, orders in self._orders():
            for order in orders:
                name = item.id if order is None else f"{item.id}/{''.join(map(str, order))}"
                factors = item.factors() | {"order": None if order is None else name_of(order)}
                for wording in self._wordings:
                    prompt = prompt_of(item, order or alphabetical(item), wording)
                    own = factors | ({"prompt": wording} if "prompt" in self.factors else {})
                    told = name if wording == "ours" else f"{name}/{wording}"
                    # Equal items get different answers, as repeats of one question.
                    yield Trial(told, own, self.request(prompt, item, asked[prompt]))
                    asked[prompt] += 1

    def _orders(self) -> Iterator[tuple[Item, tuple[Order | None, ...]]]:
        if "order" in self.unrecorded:
            return ((item, (None,)) for item in self.items)
        return orders_of(self._options.orders, self.items, self._options.seed)

    @property
    def _wordings(self) -> tuple[Prompt, ...]:
        return self._options.prompts[:1] if "prompt" in self.unrecorded else self._options.prompts

    def request(self, prompt: str, item: Item, repeat: int) -> AnyRequest:
        """Return the request."""
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

    def request(self, prompt: str, item: Item, repeat: int) -> AnyRequest:
        """Return a question."""
        sampling = Sampling(temperature=self._options.temperature, max_tokens=self._options.max_tokens)
        return Generate(messages=(Message("user", (Text(prompt),)),), sampling=sampling, sample=repeat)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Match the answer to an option."""
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        how = self._options.reading
        found = read_words(factors, response.text, labels=self._options.read_labels, reading=how)
        if isinstance(found, Unreadable):
            return found
        rescued = found.rescued if how == "tolerant" else None
        return {"chosen": found.chosen, "position": self.place(factors, found.chosen), RESCUED: rescued}


class LikelihoodStage(SubtleStage):
    """Ask for the probability of each option as the answer."""

    operation: ClassVar[type[Request]] = Likelihood
    outcomes: ClassVar[tuple[str, ...]] = (*CHOICE, *(f"p_{name}" for name in POLARITIES))

    def request(self, prompt: str, item: Item, repeat: int) -> AnyRequest:
        """Return a question; its continuations are the positive, the negative and the neutral option."""
        # The authors' questions end in white space or a sentence; here the answer must follow directly.
        return Likelihood(
            prompt=f"{prompt.rstrip()}\nAnswer:", continuations=tuple(f" {option}" for option in item.options)
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
        for what, names, known in (("domain", options.domains, DOMAINS), ("pronoun", options.pronouns, PRONOUNS)):
            for name in names:
                if name not in known:
                    raise UnknownNameError(what, name, known)
        made = {"generate": GenerateStage, "likelihood": LikelihoodStage}
        read = {"generate": PublishedGenerateStage, "likelihood": PublishedLikelihoodStage}
        kinds: Mapping[str, type[SubtleStage]] = made if options.data is None else read
        return [kinds[options.asking](options)]

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
        absent = ("item", "template", "term", "order", "reason")
        return Imported(
            frame.with_columns(
                *(pl.lit(None, pl.String).alias(name) for name in absent),
                position=pl.lit(None, pl.Int64),
                status=pl.lit("ok"),
                key=pl.lit(None, pl.Binary),
            ),
            ("These are counts from published tables, without data on single items, so there are no clusters.",),
        )
