"""Messages as the tokens that vLLM continues; images stay beside them, each with one placeholder among the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Image, Message, Prompt, Text
from ..hf.causal.prompt import Rendered, Style, fill_template


class Picturing(NamedTuple):
    """How a vision-language model takes messages."""

    style: Style
    marker: str | None
    """The placeholder of an image in a text; None for a model that reads text only."""
    begins: str | None
    """The tokenizer's token for the beginning of a text, which a template may have written."""
    most_images: int

    def render(self, prompt: Prompt, tokenizer: Any) -> Rendered:
        """Return the text to be continued, a placeholder per image.

        Raises:
            PermanentError: images for a model that takes none or fewer, text with a placeholder in it, or a
                conversation that the template refuses.
        """
        if self.marker is None or self.style.template is None or isinstance(prompt, str):
            return self.style.render(prompt, tokenizer)
        self._check(prompt)
        if not prompt:
            raise PermanentError("the request has no message to answer.", code="request.empty")
        text = fill_template(self.style.template, self._turns(prompt), tokenizer, self.style.arguments)
        return Rendered(text, special=not (self.begins and text.startswith(self.begins)))

    def _check(self, prompt: tuple[Message, ...]) -> None:
        for part in (part for message in prompt for part in message.parts if isinstance(part, Text)):
            if self.marker and self.marker in part.text:
                raise PermanentError(
                    f"the text contains {self.marker!r}, this model's placeholder for an image: {part.text[:80]!r}.",
                    code="request.placeholder",
                )
        if (count := len(images_of(prompt))) > self.most_images:
            raise PermanentError(
                f"the request has {count} images, but the engine was started for at most {self.most_images}. "
                "Raise max_images.",
                code="request.images",
            )

    def _turns(self, prompt: tuple[Message, ...]) -> list[Mapping[str, Any]]:
        turns = [{"role": message.role, "content": [_part(part) for part in message.parts]} for message in prompt]
        if self.style.system is None:
            return list(turns)
        own = turns.pop(0)["content"] if turns[0]["role"] == "system" else []
        return [{"role": "system", "content": [_part(Text(self.style.system)), *own]}, *turns]


def images_of(prompt: Prompt) -> tuple[str, ...]:
    """Return the sha256 of a prompt's images, in order."""
    if isinstance(prompt, str):
        return ()
    return tuple(part.sha256 for message in prompt for part in message.parts if isinstance(part, Image))


def _part(part: Text | Image) -> dict[str, str]:
    return {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"}
