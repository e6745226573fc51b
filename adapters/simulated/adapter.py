"""`simulated`: a model with a known, planted bias, for calibration and for tests.

Every answer is a closed form of the settings and the request (`answers.py`), needs no weights and takes
some microseconds, so that a whole study can be asked a hundred times.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec

from ...core.contracts import Options, harmless
from ...core.contracts.adapter import Identity, Limits, ModelAdapter, Services
from ...core.contracts.cells import ComputedResponses, LocatedRequests
from ...core.contracts.errors import ModelError, ModelLoadError, PermanentError
from ...core.contracts.records import (
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Prompt,
    PseudoLikelihood,
    Request,
    Response,
    Scalar,
    TokenScores,
)
from ...core.design import Planting, Preference
from .answers import Answers
from .by_cell import CellAnswers
from .habits import Habits
from .masks import read_masks
from .noise import Leans, Noise
from .pictures import face_in
from .planted import ANALOGIES, HABITS, NUISANCES, Planted
from .words import (
    BLANKS_VARYING,
    DESIRABLE,
    LISTS,
    NEGATIVE,
    POSITIVE,
    UNDESIRABLE,
    VARYING,
    has_blank,
    read_blanks,
    shared_lists,
)

VERSION, LEANING = "5", "7"
"""Of answers, and of those in which more leans than the templates'."""
CHUNK = 250
"""Number of answers after which other tasks of the event loop can run."""
Q = TypeVar("Q", bound=Request)
R = TypeVar("R", bound=Response)
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class SimulatedOptions(Options, frozen=True, kw_only=True):
    """Settings of `simulated`."""

    option_effects = {
        "blanks": "file",
        "masks": "file",
        **harmless(
            "model strength noise spread word_spread group_spread item_spread face_spread prompt_spread "
            "correlation unequal analogy copying copying_other position_lean label_spread length_lean "
            "frequency_spread drift drift_after refusal_lean unreadable_share error_rate same_samples reworded "
            "misread_stereotype misread_opposite scenes polite seed desirable undesirable positive negative varying "
            "planted_by preferences dimension refusal_rate failure_rate latency_seconds concurrency batch_items"
        ),
    }

    model: str = "simulated"
    """Name of the model; no answer depends on it."""
    planted_by: Literal["words", "cells"] = "words"
    """What decides what is planted in a question: the listed `words` in it, or its `cells` in the study's declared
    design, whatever its words and language. By cells, `strength` and `preferences` are planted, with `noise`."""
    strength: float = 0.0
    """The planted log-odds, in nats, of a desirable word over an undesirable one beside positive words; beside
    negative words they are its opposite. By cells, those of the first group over the last one in the first context; in
    the last context they are the opposite."""
    preferences: tuple[Preference, ...] = ()
    """By cells: random preferences for levels of factors or parts of the design, which are no bias where these are
    sampled."""
    noise: NotNegative = 1.0
    """Standard deviation of an item's own noise in those log-odds, in nats."""
    spread: NotNegative = 0.5
    """Standard deviation of the random effect of a template, in nats."""
    word_spread: NotNegative = 0.0
    """Standard deviation of the random effect of a positive or negative word, in nats: a nuisance, not a bias."""
    group_spread: NotNegative = 0.0
    """The same of a desirable or undesirable word: of a group of people, or of a given term."""
    item_spread: NotNegative = 0.0
    """The same of an item: what two sentences that are compared have in common, or a premise and its hypothesis."""
    face_spread: NotNegative = 0.0
    """The same of a face: what a full filter does to this face more than to others."""
    prompt_spread: NotNegative = 0.0
    """The same of a prompt that asks for an inference: how much it favours each label."""
    correlation: Share = 0.0
    """Share of the variance of every random effect that belongs to the words of a level: two levels of the same words
    correlate by it."""
    unequal: NotNegative = 0.0
    """How unequal the random effects of a facet are: standard deviation of the logarithm of their size. Their variance
    does not depend on it."""
    analogy: float = 0.0
    """The planted log-odds, in nats, of the other end of an analogy `A: B:: C:` over B where C is undesirable; where C
    is desirable they are the opposite."""
    copying: NotNegative = 0.0
    """How much likelier, in nats, B is after the same subject, `A: B:: A:`: a nuisance, not a bias."""
    copying_other: NotNegative = 0.0
    """The same after another subject."""
    position_lean: float = 0.0
    """How much likelier, in nats, the first of listed options is: a nuisance, as all up to `same_samples`."""
    label_spread: NotNegative = 0.0
    """Standard deviation of the random effect of an option's label, such as `a`, or of a class, in nats."""
    length_lean: float = 0.0
    """How much likelier, in nats, a text is for each ten characters that it is longer, of what is scored."""
    frequency_spread: NotNegative = 0.0
    """Standard deviation of the random effect of any word that is scored, in nats: how common it is."""
    drift: float = 0.0
    """What is added, in nats, to scores of sentences, and to the log-odds of positive over negative words, once
    `drift_after` requests were answered."""
    drift_after: Count = 0
    """Number of requests after which the model changes; counted since it was loaded."""
    refusal_lean: Share = 0.0
    """Share of answers that are refused in addition where a prompt is about an undesirable word, and where a drawing of
    `scenes` shows some people, a fourth of all that are drawn at random."""
    unreadable_share: Share = 0.0
    """Share of answers that cannot be read, of those that name the option with the first label."""
    error_rate: Share = 0.0
    """Share of answers and of classes that are drawn with equal chances, whatever was asked: a noisy judge."""
    same_samples: bool = False
    """Give one draw to all samples of a prompt, as a cache in front of a model does."""
    reworded: bool = False
    """Complete the sentences of `masks` in words that no reference has; the group that is named stays the same."""
    misread_stereotype: Share = 0.0
    """As an encoder: share of the stereotypes of `masks`, completed so, whose vector is that of the opposite. It errs
    on no reference."""
    misread_opposite: Share = 0.0
    """The same of the opposites."""
    scenes: bool = False
    """Say in the comment of each drawing whom its prompt is about and what else it shows, and describe such drawings by
    that, with words that are associated with some people by `strength`. Otherwise drawings show nothing."""
    polite: bool = False
    """Refuse in polite sentences that no rule recognises, and that no status marks. Otherwise refusals are marked."""
    seed: int = 0
    """Seed of the noise; another seed is another model with the same bias."""
    desirable: tuple[str, ...] = DESIRABLE
    """Desirable words or phrases, matched as a whole, in any case."""
    undesirable: tuple[str, ...] = UNDESIRABLE
    """Undesirable words or phrases."""
    positive: tuple[str, ...] = POSITIVE
    """Positive words or phrases."""
    negative: tuple[str, ...] = NEGATIVE
    """Negative words or phrases."""
    varying: tuple[str, ...] = VARYING
    """Words that vary within a template; these and the other lists are removed from a text to find its template."""
    blanks: str | None = None
    """A TOML file of pairs of words by domain; in sentences with a BLANK they replace the four lists above. None uses
    the lists above."""
    masks: str | None = None
    """A CSV file of sentences with a `<MASK>`, and of the `stereotype` and its `opposite` that complete them (columns
    `masked`, `stereotype`, `opposite`). `strength` is the log-odds of the stereotype."""
    dimension: Positive = 64
    """Length of embeddings."""
    refusal_rate: Share = 0.0
    """Share of answers that are refused, and of images that are filtered."""
    failure_rate: Share = 0.0
    """Share of requests that are never answered. No answer depends on it, so it is not in the identity."""
    latency_seconds: NotNegative = 0.0
    """Minimum duration of a call in seconds. Not in the identity."""
    concurrency: Positive = 4
    """Maximum number of concurrent calls."""
    batch_items: Positive = 1000
    """Maximum number of requests per call."""


class Simulated(ModelAdapter):
    """All operations in closed form, with a planted bias of known strength."""

    options: ClassVar[type[msgspec.Struct]] = SimulatedOptions

    def __init__(self, options: SimulatedOptions | None = None) -> None:
        """Prepare the word lists.

        Raises:
            ModelLoadError: a listed word is empty or stands in two lists, or a number is not finite.
        """
        self._options = chosen = options or SimulatedOptions()
        for name in ("strength", "noise", "spread", *NUISANCES, *ANALOGIES, *HABITS):
            if not math.isfinite(value := getattr(chosen, name)):
                raise ModelLoadError(f"{name} is {value}. Give a finite number of nats.", code="model.option")
        if chosen.preferences and chosen.planted_by != "cells":
            raise ModelLoadError(
                'preferences are planted by cells of a design. Set planted_by = "cells" too.', code="model.option"
            )
        self._planting = Planting(chosen.strength, chosen.preferences) if chosen.planted_by == "cells" else None
        self._by_cell: CellAnswers | None = None
        lists = {name: getattr(chosen, name) for name in LISTS}
        words = shared_lists(_named(lists, chosen.varying))
        masks = {} if chosen.masks is None else read_masks(chosen.masks)
        planted = msgspec.convert(chosen, Planted, from_attributes=True)
        if self._planting is not None:
            planted = msgspec.structs.replace(planted, spread=0.0)
        settings = _settings(planted, chosen)
        if self._planting is not None:
            planted = msgspec.structs.replace(planted, strength=0.0)
        self._noise = Noise(chosen.seed)
        self._habits = Habits(planted, Leans(self._noise, planted.correlation, planted.unequal))
        self._answers = self._blanks = Answers(planted, self._noise, words, tuple(lists.values()), self._habits, masks)
        self._answers.services = lambda: self.services
        blanks = {} if chosen.blanks is None else read_blanks(chosen.blanks)
        if blanks:
            words = shared_lists(_named(blanks, BLANKS_VARYING))
            self._blanks = Answers(
                planted, self._noise, words, tuple(blanks[name] for name in LISTS), self._habits, masks
            )
        more = {f"blanks {name}": words for name, words in blanks.items()}
        more |= {f"mask {name}": tuple(sentence) for name, sentence in masks.items()}
        self.identity = Identity(
            adapter="simulated",
            version=LEANING if planted.leans or planted.correlation or planted.unequal else VERSION,
            model=chosen.model,
            digest=_digest({**lists, "varying": chosen.varying} | more),
            settings=settings,
        )
        self._unplaced = self.identity
        self._services = Services()
        self.limits = Limits(concurrency=chosen.concurrency, batch_items=chosen.batch_items)

    @property
    def services(self) -> Services:
        """The services of a run."""
        return self._services

    @services.setter
    def services(self, services: Services) -> None:
        self._services = services
        if self._planting is None:
            return
        cells = None if services.cells is None else services.cells()
        if cells is None:
            self._by_cell, self.identity = None, self._unplaced
        elif self._by_cell is None or self._by_cell.cells is not cells:
            chosen = self._options
            self._by_cell = CellAnswers(cells, self._planting, self._noise, chosen.noise, chosen.refusal_rate)
            settings = self._unplaced.settings | {"cells": cells.digest}
            self.identity = msgspec.structs.replace(self._unplaced, settings=settings)

    def check(self, request: Request) -> None:
        """Refuse what nothing can be planted in.

        Raises:
            PermanentError: The model is planted by cells, and the study declares no design that it can be planted in.
        """
        if self._planting is not None and self._by_cell is None:
            raise PermanentError(
                "this model is planted by the cells of a design, and the study declares none with an answer form that "
                'it can answer in. Declare `AnswerForm`, or set planted_by = "words".',
                code="model.cells",
            )

    def in_closed_form(self, located: LocatedRequests) -> ComputedResponses | None:
        """Answer at once where effects are planted by cells, every question is of the design, and no call fails."""
        if self._by_cell is None or self._options.failure_rate or not located.inside:
            return None
        return self._by_cell.answers(located)

    def note_on(self, image: bytes) -> str:
        """Say that nothing is planted in pictures other than drawn faces."""
        if self._planting is not None or not self._options.strength or face_in(image) is not None:
            return ""
        return "`simulated` sees no picture but the schematic faces: what it says of these shows no planted effect."

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Choose an option that the prompt lists, or name a listed word."""
        return await self._all(lambda request: self._on(request.messages).generate(request), requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations of prompts."""
        return await self._all(lambda request: self._on(request.prompt).likelihood(request), requests)

    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        """Score sentences; `variant` changes nothing."""
        return await self._all(self._answers.pseudo_likelihood, requests)

    async def classify_batch(self, requests: Sequence[Classify]) -> Sequence[Classification | ModelError]:
        """Give the sentiment of texts, or the entailment of pairs."""
        return await self._all(self._answers.classify, requests)

    async def embed_batch(self, requests: Sequence[Embed]) -> Sequence[Embedding | ModelError]:
        """Embed texts as bags of words."""
        return await self._all(self._answers.embed, requests)

    async def draw_batch(self, requests: Sequence[Draw]) -> Sequence[Drawing | ModelError]:
        """Draw coloured squares."""
        return await self._all(self._answers.draw, requests, chunk=1)

    async def _all(self, one: Callable[[Q], R], requests: Sequence[Q], chunk: int = CHUNK) -> list[R | ModelError]:
        await asyncio.sleep(self._options.latency_seconds)
        answers: list[R | ModelError] = []
        for start in range(0, len(requests), chunk):
            answers += [self._settle(one, request) for request in requests[start : start + chunk]]
            await asyncio.sleep(0)
        return answers

    def _on(self, prompt: Prompt) -> Answers:
        """Return the answers to a prompt."""
        return self._blanks if self._blanks is not self._answers and has_blank(prompt) else self._answers

    def _settle(self, one: Callable[[Q], R], request: Q) -> R | ModelError:
        try:
            if self._options.failure_rate and self._fails(request):
                return PermanentError(
                    f"simulated failure (failure_rate = {self._options.failure_rate:g}).",
                    code="request.simulated-failure",
                )
            self._habits.asked += 1
            self.check(request)
            planted = None if self._by_cell is None else self._by_cell.answer(request)
            return one(request) if planted is None else planted  # type: ignore[return-value]
        except ModelError as error:
            return error
        except UnicodeEncodeError as error:
            return PermanentError(f"text is not valid unicode: {error}.", code="request.unicode")

    def _fails(self, request: Request) -> bool:
        return self._noise.draws(msgspec.json.encode(request)).failure < self._options.failure_rate


def _settings(planted: Planted, chosen: SimulatedOptions) -> dict[str, Scalar]:
    """Return what an answer depends on; amounts of what few models have are left out where they are 0."""
    settings = {**msgspec.structs.asdict(planted), "seed": chosen.seed}
    if chosen.planted_by == "cells":
        preferences = msgspec.json.encode(chosen.preferences).decode()
        settings |= {"planted_by": chosen.planted_by, "preferences": preferences}
    return {name: value for name, value in settings.items() if value or name not in NUISANCES + ANALOGIES + HABITS}


def _named(lists: Mapping[str, Sequence[str]], varying: Sequence[str]) -> frozenset[tuple[str, tuple[str, ...]]]:
    return frozenset((name, tuple(words)) for name, words in [*lists.items(), ("varying", varying)])


def _digest(lists: dict[str, tuple[str, ...]]) -> str:
    # The order counts: it decides which word an answer names.
    return "sha256:" + hashlib.sha256(msgspec.json.encode(lists, order="sorted")).hexdigest()
