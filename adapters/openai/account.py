"""Who asks OpenAI: the key and the account in the headers of a request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ...core.contracts.version import VERSION

if TYPE_CHECKING:
    from ..responses.options import ResponsesOptions
    from .options import OpenAIOptions


class Account(NamedTuple):
    """Who asks."""

    key: str | None
    organization: str | None
    project: str | None
    field: str = "authorization"
    """Header that carries the key."""

    def __repr__(self) -> str:
        """Show nothing of the key."""
        return "Account()"

    @classmethod
    def at(cls, home: bool, key: str | None, options: OpenAIOptions | ResponsesOptions) -> Account:
        """Return who asks; the environment names an account of the provider, which no other address is told."""
        return cls(
            key,
            options.organization or (os.environ.get("OPENAI_ORG_ID") if home else None),
            options.project or (os.environ.get("OPENAI_PROJECT_ID") if home else None),
            getattr(options, "header", "authorization"),
        )

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, as the API has them."""
        given = {
            "Authorization": f"Bearer {self.key}" if self.key is not None and self.field == "authorization" else None,
            "api-key": self.key if self.field == "api-key" else None,
            "OpenAI-Organization": self.organization,
            "OpenAI-Project": self.project,
        }
        own = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"prejudge/{VERSION}"}
        return own | {name: value for name, value in given.items() if value}
