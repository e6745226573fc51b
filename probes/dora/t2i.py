"""`dora-t2i`: what a model draws for a descriptor, as described by another model (BiasDora, Raj et al. 2024).

Images of each descriptor, then an objective description of each; there is no list of associations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Counting, Options, Probe, Stage, Trial
from ...core.contracts.errors import UsageError
from ...core.contracts.records import Scalar
from ...core.design import Design
from .assessment import assess
from .associations import Associations
from .authors import asked_about
from .descriptors import T2I_SETTINGS, ensure_settings
from .design import drawings_design
from .image_questions import OBJECTIVE, TextStage, about
from .images import DrawingOptions, DrawingStage, drawn
from .wordings import ensure_wordings

if TYPE_CHECKING:
    import polars as pl


class DoraT2IOptions(DrawingOptions, frozen=True, kw_only=True):
    """Parameters of `dora-t2i`."""

    variants: tuple[int, ...] = (3,)
    """Prompts for the description, of the three in Figure 10; 3 has an example, and section 2.2 mentions one-shot."""


class DescriptionStage(TextStage):
    """A description of every image."""

    name: ClassVar[str] = "descriptions"
    role: ClassVar[str] = "describer"
    factors: ClassVar[tuple[str, ...]] = (*DrawingStage.factors, "image", "variant")
    counting: ClassVar[Counting] = Counting(by=("setting",), unit="description", about=("descriptor",))

    def __init__(self, options: DoraT2IOptions) -> None:
        self._options = options

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the questions, grouped by image."""
        sampling = self._options.sampling()
        for setting, one in drawn(earlier[DrawingStage.name]):
            told: dict[str, Scalar] = {
                "modality": "t2i",
                "setting": setting,
                "dimension": one.dimension,
                "descriptor": one.descriptor,
                "form": one.form,
                "wording": one.wording,
                "sample": one.sample,
                "image": one.sha256,
            }
            name = f"{setting}/{one.dimension}/{one.form}/{one.sample}/{one.sha256[:12]}"
            for variant in self._options.variants:
                request = about(one.sha256, OBJECTIVE[variant - 1], sampling)
                yield Trial(f"{name}/{variant}", told | {"variant": variant}, request)


class DoraT2I(Probe):
    """The probe: drawings, descriptions, and assessments of the words by classifiers and a judge."""

    options: ClassVar[type[Options]] = DoraT2IOptions

    def stages(self, options: DoraT2IOptions) -> Sequence[Stage]:
        """Return the stages.

        Raises:
            UnknownNameError: there is no such setting.
            UsageError: no setting or variant, a duplicate, or a variant that is not 1, 2 or 3.
        """
        ensure_settings(options.numbers, T2I_SETTINGS)
        ensure_wordings(options)
        variants, known = options.variants, range(1, len(OBJECTIVE) + 1)
        if not variants or len(set(variants)) < len(variants) or not set(variants) <= set(known):
            raise UsageError(
                f"variants are {list(variants)}. Give one or more of 1, 2 and 3, each once.", code="options.value"
            )
        return [DrawingStage(options), DescriptionStage(options), *assess(options, Associations(DescriptionStage.name))]

    def design(self, options: DoraT2IOptions) -> Design:
        """Return the declared design of the drawings.

        Raises:
            DataError: a file of descriptors cannot be used.
        """
        return drawings_design(asked_about("t2i", options.numbers, options), options.numbers, options)
