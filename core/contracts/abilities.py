"""`Abilities`: what a model can do, and why not where it cannot. The one answer to "can this model do that?"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from .records import Classify, Draw, Embed, Generate, Likelihood, PseudoLikelihood, Request

OPERATIONS: dict[type[Request], str] = {
    Generate: "generate",
    Likelihood: "likelihood",
    PseudoLikelihood: "pseudo_likelihood",
    Classify: "classify",
    Embed: "embed",
    Draw: "draw",
}
"""Kinds of request with the name of the operation that answers them: the name of the adapter's method, too."""
IMAGES = "images"
"""Key of `Abilities.reasons` for a model that reads text only."""
CHAT = "chat"
"""Key of `Abilities.reasons` for a base model: it continues texts, and was not trained to answer messages."""
NO_TEMPLATE = "It is asked without a chat template, so it continues the text of a question and may not answer it."
"""The reason of `CHAT`."""


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage or a request needs of a model."""

    operation: str
    """Name of the operation, as in `OPERATIONS`."""
    images: bool = False
    """Whether messages have images."""
    fields: frozenset[str] = frozenset()
    """Settings of `Generate` that not every model honours: top_k, min_p, json_schema, choices."""

    def __str__(self) -> str:
        return f"{self.operation!r}" + (" about images" if self.images else "")


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model can do.

    Example:
        >>> import prejudge
        >>> able = prejudge.Abilities(operations=frozenset({"generate", "likelihood"}))
        >>> sorted(able.without({"likelihood": "It gives no log-probabilities. Take another model."}).operations)
        ['generate']
    """

    operations: frozenset[str] = frozenset()
    """Names of the operations, as in `OPERATIONS`."""
    images: bool = True
    """Whether messages may have images."""
    chat: bool = True
    """Whether messages reach it in a chat template; False: their texts are joined, and it continues them."""
    fields: frozenset[str] = frozenset()
    """Settings of `Generate` that it honours: top_k, min_p, json_schema, choices. All others are refused."""
    reasons: Mapping[str, str] = {}
    """Why it cannot do something, in a sentence that says how to change that: by operation, field, `images` or
    `chat`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the operations, and `chat`, in order."""
        return tuple(sorted({*self.operations, *([CHAT] if self.chat else [])}))

    def without(self, reasons: Mapping[str, str]) -> Abilities:
        """Return these abilities less some operations, fields, `images` or `chat`.

        Args:
            reasons: why each of them is missing, in a sentence that says how to change that.
        """
        return msgspec.structs.replace(
            self,
            operations=self.operations - reasons.keys(),
            images=self.images and IMAGES not in reasons,
            chat=self.chat and CHAT not in reasons,
            fields=self.fields - reasons.keys(),
            reasons={**self.reasons, **reasons},
        )

    def missing(self, need: Need) -> str:
        """Return why a model cannot do what is needed, in a sentence; empty if it can."""
        if need.operation not in self.operations:
            able = ", ".join(sorted(self.operations)) or "nothing"
            return self.reasons.get(need.operation) or f"its adapter cannot do {need.operation!r}; it can do: {able}."
        if need.images and not self.images:
            return self.reasons.get(IMAGES) or "it reads text only."
        return "" if need.fields <= self.fields else self._refused(sorted(need.fields - self.fields))

    def _refused(self, fields: Iterable[str]) -> str:
        reasons = [self.reasons[name] for name in fields if name in self.reasons]
        return " ".join(reasons) or f"it cannot honour {', '.join(fields)}. Ask without, or take a model that can."


def need_of(request: Request) -> Need:
    """Return what a request needs of a model, its images aside: an adapter refuses these with an error of its own."""
    fields = request.beyond() if isinstance(request, Generate) else frozenset[str]()
    return Need(operation=OPERATIONS[type(request)], fields=fields)


def methods_of(adapter: type[Any]) -> frozenset[str]:
    """Return the operations for which an adapter's class has a method, for one request or for many."""
    return frozenset(
        name for name in OPERATIONS.values() if hasattr(adapter, name) or hasattr(adapter, f"{name}_batch")
    )
