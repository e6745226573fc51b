"""Accuracy of the paper's prompts: inference on labelled pairs, such as those of SNLI.

The paper chose its prompt by accuracy on the validation set of SNLI (BIStereo, section 4.2, appendix K.1). The pairs
are your own CSV file with the columns `premise`, `hypothesis` and `label`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from ...core.contracts import Counting, Follows, Options, Probe, Stage, StageRules, Trial, Unreadable, harmless
from ...core.contracts.errors import UnknownNameError, UsageError
from ...core.contracts.records import AnyResponse, Generate, Likelihood, Request, Scalar
from ...core.tables import Form, Parsed, Row, TableOptions, parse_file
from ..shared.sampling import ensure_drawable
from .nli_asking import OUTCOMES, AskingOptions, ask, load_prompts, read
from .nli_labels import PRIORS, Labels, PriorStage, method_of, with_priors
from .terms import LABELS

if TYPE_CHECKING:
    import polars as pl

REQUIRED = ("premise", "hypothesis", "label")
UNDECIDED = "-"
"""SNLI's label of pairs on which its annotators did not agree."""


class NLIPromptsOptions(TableOptions, frozen=True, kw_only=True):
    """Parameters of `bistereo-nli-prompts`."""

    option_effects = {
        "data": "file",
        **harmless("prompts labels"),
    }

    data: str | None = None
    """The CSV file. Rows with the label `-` are left out."""
    prompts: tuple[str | int, ...] = ()
    """Prompts to compare; empty: all."""
    rereads: ClassVar[frozenset[str]] = frozenset({"labels"})
    asking: Literal["generate", "likelihood"] = "generate"
    labels: Labels = "calibrated"
    """How `likelihood` compares the three words, as in `bistereo-nli`."""
    per_label: int | None = None
    """Maximum number of rows per label, from the top; None: all."""
    temperature: float | None = 0.0
    max_tokens: int = 24

    def __post_init__(self) -> None:
        """Refuse invalid sampling options."""
        ensure_drawable(self)


class PromptsStage(Stage):
    """Every row of the file, with every prompt."""

    name: ClassVar[str] = "prompts"
    operation: ClassVar[type[Request]] = Generate
    rules: ClassVar[StageRules] = StageRules(prose=True)
    factors: ClassVar[tuple[str, ...]] = ("item", "prompt", "truth", "premise")
    outcomes: ClassVar[tuple[str, ...]] = OUTCOMES
    counting: ClassVar[Counting] = Counting(by=("prompt", "truth"), unit="answer")

    def __init__(self, options: NLIPromptsOptions) -> None:
        self._options = options

    @cached_property
    def parsed(self) -> Parsed[Row]:
        """Return all rows. The file is read only here, so answers can be scored again without it."""
        if self._options.data is None:
            raise UsageError(
                "no labelled pairs. Give a CSV of premise, hypothesis, label: --data FILE.", code="data.missing"
            )
        return parse_file(self._options.data, Form(REQUIRED), _labelled, self._options)

    @cached_property
    def rows(self) -> list[Row]:
        """Return the labelled rows that are asked."""
        chosen, counts = [], dict.fromkeys(LABELS, 0)
        for row in self.parsed.values:
            if (label := row.cells["label"]) == UNDECIDED:
                continue
            counts[label] += 1
            if self._options.per_label is None or counts[label] <= self._options.per_label:
                chosen.append(row)
        return chosen

    def notes(self) -> Sequence[str]:
        """Return what was left out of the file."""
        return self.parsed.notes()

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials, row by row."""
        first: dict[str, str] = {}
        for row in self.rows:
            # The premise is named by the first row that has it: several hypotheses are about one.
            premise = first.setdefault(row.cells["premise"], str(row.line))
            for prompt in self._prompts():
                request = ask(row.filled("premise"), row.filled("hypothesis"), self._asking(prompt))
                factors: dict[str, Scalar] = {"item": str(row.line), "prompt": prompt, "truth": row.cells["label"]}
                yield Trial(f"{row.line}/{prompt}", factors | {"premise": premise}, request)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the label as in `bistereo-nli`."""
        return read(response, self._asking(str(factors["prompt"])), factors)

    def _prompts(self) -> list[str]:
        return [str(prompt) for prompt in self._options.prompts or load_prompts()]

    def _asking(self, prompt: str) -> AskingOptions:
        chosen = self._options
        return AskingOptions(
            asking=chosen.asking,
            labels=chosen.labels,
            prompt=prompt,
            temperature=chosen.temperature,
            max_tokens=chosen.max_tokens,
        )


def _labelled(row: Row) -> Row:
    """Return a row whose label is one of the three, or undecided; raises `DataError`."""
    label = row.choice("label", (*LABELS, UNDECIDED))
    if label != UNDECIDED:
        row.filled("premise")
        row.filled("hypothesis")
    return msgspec.structs.replace(row, cells=row.cells | {"label": label})


class LikelihoodPromptsStage(PromptsStage):
    """The same, with the likelihoods of the three words."""

    operation: ClassVar[type[Request]] = Likelihood
    factors: ClassVar[tuple[str, ...]] = (*PromptsStage.factors, *PRIORS)

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials, with what each label has without content."""
        return with_priors(super().trials(earlier), earlier)

    def method(self) -> str:
        """Return how the labels are compared."""
        return method_of(self._options.labels)

    def priors(self) -> PriorStage:
        """Return the stage before."""
        return PriorStage(self._prompts(), lambda content, prompt: ask(content, content, self._asking(prompt)))


class NLIPrompts(Probe):
    """The probe: one stage of inferences with known answers."""

    options: ClassVar[type[Options]] = NLIPromptsOptions
    follows: ClassVar[tuple[Follows, ...]] = (Follows("asking", (("generate", Generate), ("likelihood", Likelihood))),)

    def stages(self, options: NLIPromptsOptions) -> Sequence[Stage]:
        """Return the one stage; by likelihood after that of the labels without content.

        Raises:
            UsageError: `per_label` is below 1.
            UnknownNameError: there is no such prompt.
        """
        if options.per_label is not None and options.per_label < 1:
            raise UsageError(
                f"per_label is {options.per_label}. Give 1 or more, or omit it for all rows.",
                code="options.value",
            )
        for prompt in map(str, options.prompts):
            if prompt not in load_prompts():
                raise UnknownNameError("prompt", prompt, load_prompts())
        if options.asking == "generate":
            return [PromptsStage(options)]
        stage = LikelihoodPromptsStage(options)
        return [stage.priors(), stage]
