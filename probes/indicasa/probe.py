"""IndiCASA: does a model complete masked sentences with the stereotype or with its opposite?

Sentences about caste, religion, gender, disability and socioeconomic status in India are completed in free words; an
encoder decides which of two known sentences a completion is closer to (Santhosh et al. 2025, `IndiCASA: A Dataset and
Bias Evaluation Framework in LLMs Using Contrastive Embedding Similarity in the Indian Context`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import polars as pl

from ...core.contracts import (
    Counting,
    Identity,
    Imported,
    Options,
    Probe,
    Stage,
    StageRules,
    Trial,
    Unreadable,
    harmless,
)
from ...core.contracts.errors import DataError, UnknownNameError, UsageError
from ...core.contracts.records import (
    AnyResponse,
    Embed,
    Embedding,
    Generate,
    Generation,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
)
from ...core.design import AnswerForm, By, Cell, Design, DesignedStage, Fixed, Levels, Repeat, Sampled
from ...core.design.folder import parts_of
from ...core.tables import Parsed, TableOptions
from ..shared.sampling import ensure_drawable
from .asking import Hint, changes_sentence, prompt_of, read_answer
from .confusion import Confusion, read_confusion, read_file
from .masked import CATEGORIES, KNOWN
from .prompts import Prompt, read_prompts
from .published import NOTES, read_counts
from .terms import COMPLETION, ENCODER, LOST, REFUSED_FIRST, SEVERAL

CELL = ("prompt", "source", "category", "direction")


class IndiCASAOptions(TableOptions, frozen=True, kw_only=True):
    """Parameters of `indicasa`."""

    option_effects = {
        "data": "file",
        "truths": "file",
        "confusion": "file",
        **harmless("categories published_model question"),
    }
    worded: ClassVar[frozenset[str]] = frozenset({"question"})

    data: str | None = None
    """A file or folder in the format of the authors' `Masked_IndiBias.csv`; None: twenty example prompts."""
    question: str = ""
    """Your own question, with `{sentence}` and `{category}`, for the same JSON object; empty: the paper's."""
    truths: str | None = None
    """The stereotypes and anti-stereotypes to compare with: the sentence pairs of IndiBias, or texts of your own."""
    categories: tuple[str, ...] = CATEGORIES
    """Categories to ask about: the five of the paper; unless set, all of data that have others than IndiBias."""
    per_cell: int | None = None
    """Maximum number of prompts per category, the first ones; None: all."""
    samples: int = 5
    """Completions per prompt."""
    temperature: float | None = 0.8
    top_p: float | None = 0.9
    max_tokens: int = 512
    hint: Hint = "program"
    """Text for `{bias_type}`. `program`: `Indian Caste`, `Indian Religion`, `gender`; `paper`: without `Indian`."""
    lenient: bool = True
    """Whether to read a JSON object among other words too."""
    confusion: str | None = None
    """A JSON file of the encoder's confusion on held-out sentences, as `train-encoder` writes it."""
    published_model: str | None = None
    """Model whose rows of a file of counts to measure."""

    def __post_init__(self) -> None:
        """Refuse invalid sampling options."""
        ensure_drawable(self)
        if self.question and "{sentence}" not in self.question:
            raise UsageError("question lacks {sentence}. Write where the sentence is to stand.", code="options.value")


class _Data:
    """Content of the files. They are read only here, so answers can be scored again without them."""

    def __init__(self, options: IndiCASAOptions) -> None:
        self.options = options

    @cached_property
    def parsed(self) -> Parsed[Prompt]:
        """Return all prompts of the file."""
        return read_prompts(self.options.data, self.options.truths, self.options)

    @cached_property
    def chosen(self) -> list[Prompt]:
        """Return the selected prompts."""
        options, most = self.options, Counter[str]()
        found = []
        prompts = self.parsed.values
        categories = dict.fromkeys(prompt.category for prompt in prompts)
        wanted = (
            options.categories if options.categories != CATEGORIES or {*categories} <= {*KNOWN} else tuple(categories)
        )
        for prompt in prompts:
            most[prompt.category] += prompt.category in wanted
            if 0 < most[prompt.category] <= (options.per_cell or most[prompt.category]):
                found.append(prompt)
        if not found:
            where = options.data or f"the {len(prompts)} example prompts"
            mend = f"Choose among {', '.join(dict.fromkeys(prompt.category for prompt in prompts))}"
            others = "" if options.data else ", or give prompts of your own: --data FILE"
            raise DataError(
                f"no prompt of {', '.join(options.categories)} in {where}. {mend}{others}.", code="data.no-match"
            )
        return found

    @cached_property
    def texts(self) -> dict[str, str]:
        """Return the question of each prompt."""
        hint, question = self.options.hint, self.options.question
        return {prompt.id: prompt_of(prompt.masked, prompt.category, hint, question) for prompt in self.chosen}

    @cached_property
    def equal_before(self) -> dict[str, int]:
        """Return how many earlier prompts ask the question of each."""
        asked, numbers = Counter[str](), dict[str, int]()
        for prompt, text in self.texts.items():
            numbers[prompt] = asked[text]
            asked[text] += 1
        return numbers

    @cached_property
    def design(self) -> Design:
        """Return what is varied: prompts, of which several may be one sentence, and samples of each."""
        rows = ({**_cell(prompt), **prompt.parts, "name": prompt.id} for prompt in self.chosen)
        parts = (By("category"), Sampled("source"), Fixed("direction"), *parts_of(self.options.data))
        samples = Levels.of_rows({"name": str(number), "number": number} for number in range(self.options.samples))
        return Design(
            (Sampled("prompt", Levels.of_rows(rows), parts), Repeat("sample", samples)),
            columns={name: name for name in CELL} | {"sample": "sample.number"},
            within_unit=("sample",),
            answer=AnswerForm("words", outcome="sentence"),
        )

    @cached_property
    def errors(self) -> dict[str, tuple[int, int, int, int]]:
        """Return the encoder's confusion by category."""
        return read_confusion(self.options.confusion)

    @cached_property
    def confusion(self) -> Confusion | None:
        """Return the file of this confusion."""
        return None if self.options.confusion is None else read_file(self.options.confusion)

    def check_encoder(self, identity: Identity) -> None:
        """Check that the confusion is that of this encoder and these prompts.

        Raises:
            UsageError: it is not.
        """
        if self.confusion is not None:
            self.confusion.check_encoder(str(self.options.confusion), identity, *self._singles())

    def notes(self) -> list[str]:
        """Return what is not known of the confusion, or differs."""
        if self.confusion is None:
            return []
        return self.confusion.notes(str(self.options.confusion), self.options.samples, *self._singles())

    def _singles(self) -> tuple[int, int]:
        singles = sum(len(prompt.stereotypes) == len(prompt.antis) == 1 for prompt in self.chosen)
        return singles, len(self.chosen)


class CompletionStage(DesignedStage):
    """Every masked sentence, several times."""

    name: ClassVar[str] = "completions"
    operation: ClassVar[type[Request]] = Generate
    factors: ClassVar[tuple[str, ...]] = (*CELL, "sample")
    outcomes: ClassVar[tuple[str, ...]] = ("sentence", "reading")
    rules: ClassVar[StageRules] = StageRules(attempts=5, again=("unreadable", "refused", "filtered"))
    counting: ClassVar[Counting] = Counting(by=("category",), unit="completion")

    def __init__(self, data: _Data) -> None:
        self._data = data

    @property
    def design(self) -> Design:
        """Return the design of the completions."""
        _ = self._data.errors  # an error in the file must be found before the first request
        return self._data.design

    def notes(self) -> Sequence[str]:
        """Return what was left out of the file."""
        return self._data.parsed.notes()

    def request(self, cell: Cell) -> Generate:
        """Return the request of a completion. Equal prompts get different answers, as samples of one question."""
        options, number = self._data.options, self._data.equal_before[cell.text("prompt")]
        text = self._data.texts[cell.text("prompt")]
        sampling = Sampling(temperature=options.temperature, top_p=options.top_p, max_tokens=options.max_tokens)
        sample = number * options.samples + int(cell.text("sample"))
        return Generate(messages=(Message("user", (Text(text),)),), sampling=sampling, sample=sample)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the completed sentence, and record the rule."""
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        answer = read_answer(response.text, self._data.options.lenient)
        return answer if isinstance(answer, Unreadable) else answer._asdict()


class EmbeddingStage(Stage):
    """The vector of every completed sentence, and of the stereotypes and anti-stereotypes of every prompt.

    A prompt's ground truths are embedded even if it has no completion, because their rows record its missing answers.
    """

    name: ClassVar[str] = "embeddings"
    role: ClassVar[str] = "encoder"
    operation: ClassVar[type[Request]] = Embed
    factors: ClassVar[tuple[str, ...]] = (
        *(*CELL, "kind", "number", "text", "changed"),
        *("asked", *LOST, REFUSED_FIRST, "lenient", *ENCODER, SEVERAL),
    )
    outcomes: ClassVar[tuple[str, ...]] = ("vector",)
    counting: ClassVar[Counting] = Counting(by=("category", "kind"), unit="sentence")

    def __init__(self, data: _Data) -> None:
        self._data = data

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the sentences, prompt by prompt: stereotypes, anti-stereotypes, completions."""
        completed = earlier[CompletionStage.name].partition_by("prompt", as_dict=True)
        errors = self._data.errors
        for prompt in self._data.chosen:
            if (rows := completed.get((prompt.id,))) is None:
                continue  # of a part of the study: this prompt was not asked
            ready = rows.filter(pl.col("status") == "ok").select("sample", "sentence")
            said = [(COMPLETION, number, str(text)) for number, text in ready.iter_rows()]
            shared = _fate(rows) | dict(zip(ENCODER, errors.get(prompt.category, (None,) * len(ENCODER)), strict=True))
            shared |= {SEVERAL: None if self._data.confusion is None else self._data.confusion.several}
            for kind, number, text in (*prompt.texts(), *said):
                changed = changes_sentence(prompt.masked, text) if kind == COMPLETION else None
                own: dict[str, Scalar] = {"kind": kind, "number": number, "text": text, "changed": changed}
                yield Trial(f"{prompt.id}/{kind}/{number}", _cell(prompt) | own | shared, Embed(text=text))

    def check_model(self, identity: Identity) -> None:
        """Refuse the confusion of another encoder, or of another comparison."""
        self._data.check_encoder(identity)

    def notes(self) -> Sequence[str]:
        """Say what is not known of the confusion, or differs."""
        return self._data.notes()

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the vector, as JSON."""
        if not isinstance(response, Embedding) or not response.vector:
            return Unreadable("no vector")
        return {"vector": msgspec.json.encode(response.vector).decode()}


class IndiCASA(Probe):
    """The probe: completions of a model, then their vectors by an encoder."""

    options: ClassVar[type[Options]] = IndiCASAOptions

    def stages(self, options: IndiCASAOptions) -> Sequence[Stage]:
        """Return the two stages.

        Raises:
            UsageError: `samples` or `per_cell` is below 1, or no category is named.
            UnknownNameError: there is no such category.
        """
        for name, value in (("samples", options.samples), ("per_cell", options.per_cell)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}. Give 1 or more.", code="options.value")
        if not options.categories:
            raise UsageError(f"categories is empty. Name one or more of {', '.join(KNOWN)}.", code="options.value")
        for name in options.categories if options.data is None else ():
            if name not in KNOWN:
                raise UnknownNameError("category", name, KNOWN)
        data = _Data(options)
        return [CompletionStage(data), EmbeddingStage(data)]

    def design(self, options: IndiCASAOptions) -> Design:
        """Return the declared design of the completions.

        Raises:
            DataError: a file cannot be used.
        """
        return _Data(options).design

    def import_scores(self, path: str, options: Any) -> Imported:
        """Read the counts behind published tables: `model`, `category`, `n_stereotype`, `n_total`, `category_size`.

        Raises:
            DataError: The file cannot be used.
        """
        return Imported(read_counts(path, options.published_model), NOTES)


def _cell(prompt: Prompt) -> dict[str, Scalar]:
    values = (prompt.id, prompt.source, prompt.category, prompt.direction)
    return dict(zip(CELL, values, strict=True))


def _fate(rows: pl.DataFrame) -> dict[str, Scalar]:
    """Count the completions of one prompt by status."""
    # Counted in Python, because the outcome columns have no type if no answer could be read.
    statuses, readings = (Counter(rows[name].to_list()) for name in ("status", "reading"))
    lost = {name: statuses[name] for name in LOST}
    refused_first = rows["first"].to_list().count("refused") if "first" in rows.columns else None
    return {"asked": rows.height, **lost, REFUSED_FIRST: refused_first, "lenient": readings["lenient"]}
