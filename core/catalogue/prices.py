"""`Prices`: what a model costs, as the registry states it."""

from __future__ import annotations

from typing import Annotated

import msgspec

Price = Annotated[float, msgspec.Meta(ge=0)]
MILLION = 1_000_000


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """US dollars. A price that is not stated beside one that is, is none; with none stated, the cost is unknown."""

    input: Price | None = None
    """Of a million tokens read."""
    output: Price | None = None
    """Of a million tokens written."""
    request: Price | None = None
    """Of a request, whatever it holds."""
    image: Price | None = None
    """Of an image drawn."""

    @property
    def known(self) -> bool:
        """Say whether anything is stated."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def cost(self, input_tokens: float, output_tokens: float, requests: int = 1, images: int = 0) -> float | None:
        """Return the cost of some requests in US dollars; None where no price is known."""
        if not self.known:
            return None
        tokens = input_tokens * (self.input or 0.0) + output_tokens * (self.output or 0.0)
        return tokens / MILLION + requests * (self.request or 0.0) + images * (self.image or 0.0)
