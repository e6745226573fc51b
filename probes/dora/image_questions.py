"""Questions about images, answered by texts."""

from __future__ import annotations

from typing import ClassVar

from ...core.contracts import Counting, Stage, StageRules, Unreadable
from ...core.contracts.records import (
    AnyResponse,
    Generate,
    Generation,
    Image,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
)

OBJECTIVE = (
    "Describe this image objectively.",
    "Describe this image objectively, using verifiable information based on facts and evidence.",
    "Describe this image objectively. Objective descriptions should be free from personal feelings, interpretations, "
    "or prejudice, presenting only factual and observable information. Follow these rules for an objective "
    "description:\n"
    "1. Identify and describe only the elements that are clearly visible in the image.\n"
    "2. Avoid any assumptions or interpretations about the context or meaning of the image.\n"
    "3. Describe attributes such as color, shape, or size using clear and measurable terms.\n"
    "Example: Instead of saying 'a large, scary dog', describe it as 'a dog approximately three feet tall at the "
    "shoulder, with a broad build and black fur'.",
)
"""Straightforward, moderate, comprehensive. Source: the paper, Figure 10."""


def about(image: str, question: str, sampling: Sampling) -> Generate:
    """Return a question about an image. The image is first, so that a model can encode it once for many questions."""
    return Generate(messages=(Message("user", (Image(image), Text(question))),), sampling=sampling)


class TextStage(Stage):
    """Questions that are answered by a text."""

    operation: ClassVar[type[Request]] = Generate
    rules: ClassVar[StageRules] = StageRules(images=True, text="text")
    outcomes: ClassVar[tuple[str, ...]] = ("text",)
    counting: ClassVar[Counting] = Counting(by=("setting",), about=("descriptor",))

    def read(self, factors: object, response: AnyResponse) -> dict[str, Scalar] | Unreadable:
        """Return the text."""
        if not isinstance(response, Generation):
            return Unreadable("no answer in words")
        text = response.text.strip()
        return {"text": text} if text else Unreadable("an empty answer")
