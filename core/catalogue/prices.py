"""`Prices`: the prices of a model, from the registry."""

from __future__ import annotations

from typing import Annotated

import msgspec

Price = Annotated[float, msgspec.Meta(ge=0)]
MILLION = 1_000_000


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """US dollars. If some prices are given, the others are 0; if none is given, the cost is unknown."""

    input: Price | None = None
    """Price of a million input tokens."""
    cached_input: Price | None = None
    """Price of a million input tokens that the endpoint had cached; None: that of any input token."""
    output: Price | None = None
    """Price of a million output tokens."""
    request: Price | None = None
    """Price of a request, in addition."""
    image: Price | None = None
    """Price of a generated image."""
    batch: Price | None = None
    """What a request of a batch costs, as a part of the prices above, such as 0.5; None: as much as any other."""

    @property
    def known(self) -> bool:
        """Return whether any price is given."""
        return any(getattr(self, name) is not None for name in _PRICES)

    def in_batches(self) -> Prices:
        """Return the prices of what is asked in batches."""
        if self.batch is None:
            return self
        parts = {name: price * self.batch for name in _PRICES if (price := getattr(self, name)) is not None}
        return Prices(**parts)

    def cost(
        self, input_tokens: float, output_tokens: float, requests: int = 1, images: int = 0, cached_tokens: float = 0.0
    ) -> float | None:
        """Return the cost of some requests in US dollars; None if no price is known.

        `cached_tokens` are a part of the input tokens, as tokens of reasoning are a part of the output tokens: each
        token is paid for once.
        """
        if not self.known:
            return None
        cached = min(cached_tokens, input_tokens) if self.cached_input is not None else 0.0
        tokens = (input_tokens - cached) * (self.input or 0.0) + output_tokens * (self.output or 0.0)
        tokens += cached * (self.cached_input or 0.0)
        return tokens / MILLION + requests * (self.request or 0.0) + images * (self.image or 0.0)


_PRICES = tuple(name for name in Prices.__struct_fields__ if name != "batch")
