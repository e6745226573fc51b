"""Which attribute words stand beside which nouns: BIStereo's Table 5 as printed, or no sexual words beside children."""

from __future__ import annotations

from typing import Literal

Attributes = Literal["screened", "paper"]
SEXUAL = frozenset({"sexy"})
CHILDREN = frozenset({"boy", "boys", "girl", "girls"})
BEAUTIFUL = "beautiful"
"""The word of the paper's examples (section 3.1, Table 4) that its Table 5 does not have."""


def is_asked(attribute: object, noun: object, attributes: Attributes) -> bool:
    """Return whether an attribute is asked of a noun; `screened` asks no sexual word of boys and girls."""
    return attributes == "paper" or not (attribute in SEXUAL and noun in CHILDREN)
