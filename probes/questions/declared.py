"""What `study.toml` of a folder may say, and the same as options of the probe, where tables stand in place of files."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ...core.contracts import Options, harmless
from ...core.contracts.declared import DeclaredQuestion
from ...core.contracts.records import Scalar
from ...core.design.factors import RoleName

Form = Literal["number", "choice", "yes_no", "length", "refusal", "judged", "continuation"]
Asking = Literal["generate", "likelihood", "pseudo_likelihood"]
Texts = str | tuple[str, ...]
SAMPLE, ORDER = "sample", "order"
"""Factors that every study of several samples or options has."""


class FactorForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that the study varies."""

    role: RoleName
    """`group`: what is compared; `sampled`: examples of a larger population; `fixed`: these levels alone; `by`:
    reported apart; `context`: what the difference of the groups is contrasted over; `repeat`: repeated draws."""
    levels: tuple[str | int | float | dict[str, Scalar], ...] = ()
    """Texts, or tables with a `text` and further columns."""
    file: str = ""
    """A CSV file of the folder in place of `levels`: a row per level. Its text stands in the column `text`, in that of
    the factor's name, or in the first; further columns are attributes."""
    within: Texts = ()
    """Factors declared before that decide which levels a prompt has: a column of that name says with which it goes."""
    roles: dict[str, RoleName] = {}
    """Roles of attributes; the others are fixed."""


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    text: str


class DesignForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is asked: texts with slots such as `{name}` or `{name.country}`, and what stands in them."""

    text: str
    factors: dict[str, FactorForm]
    system: str = ""
    turns: tuple[Turn, ...] = ()
    """Turns before the text."""
    image: str = ""
    """A factor or attribute whose values are image files of the folder, which are shown before the text."""
    orders: Literal["balanced", "all", "as written"] = "balanced"
    """Orders of the options: one for each prompt, in turn; every one; or as they are written."""
    without: tuple[dict[str, Texts], ...] = ()
    """Prompts that are not asked: those that meet all conditions of a table."""


class AnswerDeclared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The form of an answer, and the number that it becomes."""

    form: Form
    range: tuple[int, int] | None = None
    """Of `number`, and of a number that a judge gives: the lowest and the highest."""
    options: dict[str, str] | tuple[str, ...] = ()
    """Of `choice`: texts, or texts by name; they may have slots. They stand at `{options}`, or else behind the text."""
    values: dict[str, float] = {}
    """Of `choice` and `yes_no`: the number of each answer, 0 for others. By default the first option and yes are 1."""
    continuation: str = ""
    """Of `continuation`: the words behind the text whose likelihood is asked."""
    judge: str = ""
    """Of `judged`: the question to the judge, with `{answer}`; without `range` its answer is yes or no. Empty: a
    classifier, whose label `label` is counted."""
    label: str = ""


class QuestionsOptions(Options, frozen=True, kw_only=True):
    """Parameters of `questions`; a folder sets the first three."""

    option_effects = {"folder": "file", **harmless("design answer files")}
    rereads: ClassVar[frozenset[str]] = frozenset()

    design: DesignForm
    """What is asked: texts with slots, and the factors that stand in them."""
    answer: AnswerDeclared
    """The form of an answer, and the number that it becomes."""
    files: dict[str, str] = {}
    """Files of the folder, with their sha256."""
    folder: str = ""
    """The folder, where its images are read from when they are asked about; empty: it has none."""
    asking: Asking = "generate"
    """`generate`: the model answers in words; `likelihood`: the answer is how likely it finds each of the answers;
    `pseudo_likelihood`: a masked model scores the sentence with its continuation."""
    samples: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """Answers to each prompt; several need a temperature above 0."""
    temperature: float | None = 0.0
    """Temperature of `generate`."""
    max_tokens: int = 64
    """Most tokens of an answer in words."""
    seed: int = 0
    """Seed of the orders of the options."""


class QuestionForm(DeclaredQuestion, frozen=True, forbid_unknown_fields=True):
    """A question that the study answers; `measure` is the name of a measure, or the measure itself."""

    measure: str | dict[str, Any]  # type: ignore[assignment]


class FolderForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file `study.toml` of a folder."""

    title: str
    design: DesignForm
    answer: AnswerDeclared
    summary: str = ""
    source: str = ""
    limits: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    """Further options of the probe: `asking`, `samples`, `temperature`, `max_tokens`, `seed`."""
    measures: tuple[dict[str, Any], ...] = ()
    questions: tuple[QuestionForm, ...] = ()
    roles: dict[str, str] = {}
    """Models that the author proposes for other roles, such as `judge`; `--model ROLE=NAME` decides."""
