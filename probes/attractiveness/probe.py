"""Attractiveness: do a model's judgements of a person change when a beauty filter is applied to the face?

91 scenarios of two options each, asked about an original and a filtered image of every face, in four orders (Gulati et
al. 2025, `Uncovering an Attractiveness Bias in Multimodal Large Language Models`). Faces come from your own folder
(`--data`); without one, schematic faces are drawn, which are no substitute for faces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
import numpy as np
import polars as pl

from ...core.contracts import Counting, Options, Probe, Stage, StageRules, Trial, Unreadable, harmless
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.records import (
    AnyRequest,
    AnyResponse,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
)
from ...core.contracts.words import SMALLEST_P, counted
from ...core.design import Cell, Design, DesignedStage
from ...core.design.folder import table_at
from ...core.design.levels import Value
from ...core.pictures.names import WHITE, background_colour
from ...core.statistics.estimates import TestingOptions, fewest_together
from ...core.tables import TableOptions
from ..shared.sampling import ensure_drawable
from .asking import LABELS, ORDERS, PROMPT, Articles, prompt_of, read_answer, score_of, share_of_a
from .design import FACTORS, face_design, image_table
from .faces import Face, draw, paper_faces, stimulus
from .scenarios import Scenario, load_scenarios
from .stimuli import Stimuli, Stimulus, read_stimuli
from .terms import ATTRACTIVENESS, PERSON, VARIANTS

_decode = msgspec.json.Decoder(Generation).decode


class AttractivenessOptions(TableOptions, frozen=True, kw_only=True):
    """Parameters of `attractiveness`."""

    option_effects = {
        "data": "file",
        "scenarios": "file",
        **harmless("categories background question"),
    }
    worded: ClassVar[frozenset[str]] = frozenset({"question", "built_in"})

    data: str | None = None
    """A folder with `metadata.csv`, or that file; None: schematic faces, in the numbers of the paper."""
    asking: Literal["generate", "likelihood"] = "generate"
    """`generate`: an answer in words per seed, as in the paper; `likelihood`: the probabilities of (a) and (b)."""
    seeds: tuple[int, ...] = (0, 42, 742)
    """Seeds of `generate`: the paper's, appendix B."""
    temperature: float | None = None
    """Temperature of `generate`; None: the model's own default, as in the paper."""
    max_tokens: int = 16
    scenarios: str | None = None
    """A file of your own scenarios, asked in addition to the 91; unless set, `scenarios.csv` beside the faces."""
    question: str = PROMPT
    """The question, with the options as `{a}` and `{b}`, their article as `{article}`, and the labels in the order in
    which they are named, `{x}` and `{y}`; the paper's unless it is set."""
    built_in: bool = True
    """Whether to ask the 91 scenarios."""
    categories: tuple[str, ...] = ()
    """Categories to ask about; empty: all."""
    per_cell: int | None = None
    """Maximum number of faces per gender, race, age group and source, the first ones; None: all."""
    articles: Articles = "listed"
    """`listed`: `a` before options that are nouns; `always`: before all, as in the paper's one printed question."""
    strength: float = 0.5
    """Strength of the filter on schematic faces, from 0 (only noise) to 1."""
    background: str = WHITE
    """Colour behind transparent pixels of your pictures: red, green and blue as six hexadecimal digits."""

    def __post_init__(self) -> None:
        """Refuse invalid sampling options and colours, and a question without an option."""
        ensure_drawable(self)
        background_colour(self.background)
        if lacking := [slot for slot in ("{a}", "{b}") if slot not in self.question]:
            raise UsageError(f"question lacks {', '.join(lacking)}. Write where they stand.", code="options.value")


class AskedStage(DesignedStage):
    """Every question about every image, grouped by image."""

    name: ClassVar[str] = "choices"
    operation: ClassVar[type[Request]] = Generate
    rules: ClassVar[StageRules] = StageRules(images=True)
    factors: ClassVar[tuple[str, ...]] = FACTORS
    outcomes: ClassVar[tuple[str, ...]] = ("score", "p_a")
    counting: ClassVar[Counting] = Counting(by=("category", "kind"), unit="question")

    def __init__(self, options: AttractivenessOptions) -> None:
        self._options = options

    @cached_property
    def design(self) -> Design:
        """Return the design; no image is drawn for it."""
        return face_design(self._people, image_table(self._variants, self._ratings), self.scenarios, self.seeds)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of each question."""
        return ()

    @cached_property
    def _people(self) -> list[dict[str, Value]]:
        if self._options.data is None:
            return [{"name": face.id, **{name: getattr(face, name) for name in PERSON}} for face in self._drawn]
        first = {one.face: one for one in reversed(self.stimuli)}
        return [{"name": face, **first[face].person()} for face in dict.fromkeys(one.face for one in self.stimuli)]

    @cached_property
    def _variants(self) -> list[tuple[str, str]]:
        """Return the images, by face and variant."""
        if self._options.data is not None:
            return [(image.face, image.variant) for image in self.stimuli]
        return [(face.id, variant) for face in self._drawn for variant in VARIANTS]

    @cached_property
    def _ratings(self) -> dict[tuple[str, str], dict[str, str]]:
        return {(one.face, one.variant): one.ratings for one in self.stimuli if one.ratings}

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """Return the chosen scenarios. The file is read only here, so answers can be scored again without it."""
        path, data = self._options.scenarios, self._options.data
        if path is None and data is not None:
            path = table_at(data, "scenarios")
        found = load_scenarios(path, self._options.built_in)
        known = dict.fromkeys(scenario.category for scenario in found)
        for name in self._options.categories:
            if name not in known:
                raise DataError(
                    f"no scenario has the category {name!r}. There are {', '.join(map(repr, known))}.",
                    code="data.no-match",
                )
        wanted = self._options.categories or tuple(known)
        return [scenario for scenario in found if scenario.category in wanted]

    @cached_property
    def stimuli(self) -> list[Stimulus]:
        """Return the chosen images of own data; schematic faces are drawn later."""
        return [] if self._read is None else _first(self._read.stimuli, self._options.per_cell)

    @cached_property
    def _read(self) -> Stimuli | None:
        options = self._options
        return (
            None if options.data is None else read_stimuli(options.data, options, background_colour(options.background))
        )

    @cached_property
    def _drawn(self) -> list[Face]:
        """Return the chosen schematic faces."""
        most: Counter[tuple[Scalar, ...]] = Counter()
        faces = []
        for face in paper_faces():
            cell = (face.gender, face.race, face.age_group)
            most[cell] += 1
            if self._options.per_cell is None or most[cell] <= self._options.per_cell:
                faces.append(face)
        return faces

    def images(self) -> Iterator[tuple[bytes, str]]:
        """Yield the bytes and media type of every image that is asked about, which the store needs for a run."""
        asked = dict.fromkeys(self.design.column("image", self.rows))
        if self._options.data is None:
            for face in self._drawn:
                for variant in VARIANTS:
                    if f"{face.id}/{variant}" in asked:
                        yield draw(face, variant, self._options.strength), "image/png"
            return
        for one in self.stimuli:
            if f"{one.face}/{one.variant}" in asked:
                yield Path(one.path).read_bytes(), one.media

    def notes(self) -> Sequence[str]:
        """Say what so few faces cannot show, whether the filter was rated, and what was left out or converted."""
        faces, scenarios = len(self._people), len(self.scenarios)
        found = []
        if floor := fewest_together(faces, scenarios, TestingOptions()).get("facts"):
            found.append(
                f"With {counted(faces, 'face')} no p of a paired test can be below {floor[SMALLEST_P]:.2g}: after "
                f"correction for {counted(scenarios, 'scenario')} a change in one of them alone cannot be significant."
            )
        if self._read is None:
            return found
        if not any(ATTRACTIVENESS in one.ratings for one in self.stimuli):
            found.append(
                f"The faces have no ratings of attractiveness (`rating_{ATTRACTIVENESS}`): whether the filter makes "
                "them more attractive to people is not known."
            )
        found += self._read.notes
        return found

    def alike(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[tuple[Trial, int]]:
        """Yield the questions about one image, each with the number of images, so that a plan draws no images."""
        images = len(self._variants)
        about = np.arange(self.design.size // images if images else 0)
        for trial in self.design.trials(lambda cell: self._ask(cell, Image("0" * 64)), about):
            yield trial, images

    def further(self, cell: Cell) -> Mapping[str, Scalar]:
        """Return people's ratings of the image that belong to the scenario."""
        ratings = self._ratings.get((cell.text("face"), cell.text("variant")), {})
        return {"human": ratings.get(cell.text("scenario.rating"))}

    def request(self, cell: Cell) -> AnyRequest:
        """Return the question about an image."""
        return self._ask(cell, self._image_of(str(cell["image"])))

    def _image_of(self, name: str) -> Image:
        """Return an image; a schematic face is drawn when it is first asked about."""
        if name not in self._images:
            face, _, variant = name.rpartition("/")
            self._images[name] = Image(stimulus(self._face_of[face], variant, self._options.strength).name)
        return self._images[name]

    @cached_property
    def _images(self) -> dict[str, Image]:
        return {f"{one.face}/{one.variant}": Image(one.name) for one in self.stimuli}

    @cached_property
    def _face_of(self) -> dict[str, Face]:
        return {face.id: face for face in self._drawn}

    @cached_property
    def _texts(self) -> dict[tuple[Value, Value], Text]:
        # All images have the same few hundred questions, made once, because there may be a million trials.
        return {
            (scenario.id, "/".join(order)): Text(
                prompt_of(scenario, order, self._options.articles, self._options.question)
            )
            for scenario in self.scenarios
            for order in ORDERS
        }

    def _messages(self, cell: Cell, image: Image) -> tuple[Message, ...]:
        return (Message("user", (image, self._texts[cell["scenario"], cell["order"]])),)

    def _ask(self, cell: Cell, image: Image) -> AnyRequest:
        raise NotImplementedError

    def _outcome(self, factors: Mapping[str, Scalar], share: float) -> dict[str, Scalar]:
        positive = factors["positive"]
        score = score_of(share, str(factors["first_is"]), None if positive is None else str(positive))
        return {"score": score, "p_a": share}


class GenerateStage(AskedStage):
    """Ask for an answer in words, once per seed."""

    factors: ClassVar[tuple[str, ...]] = (*FACTORS, "seed")

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of each question."""
        return self._options.seeds

    @cached_property
    def _samplings(self) -> dict[Value, Sampling]:
        chosen = self._options
        return {
            str(seed): Sampling(temperature=chosen.temperature, max_tokens=chosen.max_tokens, seed=seed)
            for seed in chosen.seeds
        }

    def _ask(self, cell: Cell, image: Image) -> AnyRequest:
        return Generate(messages=self._messages(cell, image), sampling=self._samplings[cell["seed"]])

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read (a) or (b)."""
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        label = read_answer(response.text)
        return label if isinstance(label, Unreadable) else self._outcome(factors, float(label == LABELS[0]))

    def read_frame(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Read all answers at once; equal answers are read only once."""
        distinct = frame["response"].unique()
        shares: dict[str, float] = {}
        for text in distinct:
            label = read_answer(_decode(text).text)
            if isinstance(label, Unreadable):
                return None
            shares[text] = float(label == LABELS[0])
        if not shares:
            return None
        share = frame["response"].replace_strict(list(shares), list(shares.values()), return_dtype=pl.Float64)
        return frame.select(_score(share.alias("p_a")), share.alias("p_a"))


class LikelihoodStage(AskedStage):
    """Ask for the probabilities of (a) and (b), without seeds."""

    operation: ClassVar[type[Request]] = Likelihood

    def _ask(self, cell: Cell, image: Image) -> AnyRequest:
        return Likelihood(prompt=self._messages(cell, image), continuations=tuple(f"({label})" for label in LABELS))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the probability of (a)."""
        if not isinstance(response, Likelihoods):
            return Unreadable("no two likelihoods")
        share = share_of_a(response)
        return share if isinstance(share, Unreadable) else self._outcome(factors, share)


class Attractiveness(Probe):
    """The probe: one stage."""

    options: ClassVar[type[Options]] = AttractivenessOptions

    def stages(self, options: AttractivenessOptions) -> Sequence[Stage]:
        """Return the one stage.

        Raises:
            UsageError: `per_cell` is below 1, `strength` is not from 0 to 1, or there is no seed or a duplicate seed.
        """
        if options.per_cell is not None and options.per_cell < 1:
            raise UsageError(
                f"per_cell is {options.per_cell}. Give 1 or more, or omit it for all faces.",
                code="options.value",
            )
        if not 0 <= options.strength <= 1:
            raise UsageError(f"strength is {options.strength}. Give a number from 0 to 1.", code="options.value")
        if not options.seeds or len(set(options.seeds)) < len(options.seeds):
            raise UsageError(f"seeds are {list(options.seeds)}. Give one or more, each once.", code="options.duplicate")
        return [KINDS[options.asking](options)]

    def design(self, options: AttractivenessOptions) -> Design:
        """Return the declared design of the questions; no image is drawn.

        Raises:
            DataError: A file cannot be used.
        """
        return KINDS[options.asking](options).design


KINDS: dict[str, type[AskedStage]] = {"generate": GenerateStage, "likelihood": LikelihoodStage}
"""By the option `asking`."""


def _score(share: pl.Series) -> pl.Expr:
    """Return `score_of` for all rows; `share` is the probability of (a)."""
    first = pl.when(pl.col("first_is") == LABELS[0]).then(share).otherwise(1 - share)
    turned = pl.col("positive").cast(pl.String) == "second"
    return pl.when(turned.fill_null(value=False)).then(1 - first).otherwise(first).alias("score")


def _first(stimuli: Sequence[Stimulus], per_cell: int | None) -> list[Stimulus]:
    if per_cell is None:
        return list(stimuli)
    seen: dict[tuple[Scalar, ...], list[str]] = {}
    kept = []
    for one in stimuli:
        faces = seen.setdefault(tuple(one.person().values()), [])
        if one.face not in faces and len(faces) < per_cell:
            faces.append(one.face)
        if one.face in faces:
            kept.append(one)
    return kept
