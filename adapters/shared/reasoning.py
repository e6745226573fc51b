"""What a model wrote before its answer, apart from the answer: one rule for all adapters that read text.

Models that reason write their thoughts between tags, or their template has written the opening one already, so that
only the closing one stands in the text. Both parts are kept word for word: together they are the text as received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec

from ...core.contracts.errors import UsageError
from ...core.contracts.records import Scalar
from .sampling import cut_at

Mark = Annotated[str, msgspec.Meta(pattern=r"\S")]
"""A text that is not blank."""


class Tags(NamedTuple):
    """The marks around reasoning; both must be given."""

    opening: Mark
    closing: Mark


class Marks(NamedTuple):
    """How an endpoint marks reasoning in the text of answers."""

    tags: Tags | None = None
    opened: bool = False
    """Its chat template writes the opening tag, so that every text begins within reasoning."""


USUAL = Tags("<think>", "</think>")


def check_tags(tags: Tags | None) -> None:
    """Refuse one mark for both ends, which could not tell reasoning from an answer.

    Raises:
        UsageError: naming it.
    """
    if tags is not None and tags[0] == tags[1]:
        raise UsageError(
            f"think_tags are both {tags[0]!r}. Give two different marks, such as {list(USUAL)}.",
            code="options.value",
            name="think_tags",
        )


class Thinking(Protocol):
    """Settings of a model that reasons."""

    @property
    def answer_room(self) -> int:
        """Tokens added to the limit of a request, for reasoning."""
        ...

    @property
    def think_tags(self) -> Tags | None:
        """The marks around its reasoning; None for the usual ones."""
        ...


def is_opened(prompt: str, tags: Tags | None = None) -> bool:
    """Return whether a prompt, as the model reads it, ends with the opening tag: what follows is reasoning."""
    opening, _ = tags or USUAL
    return prompt.rstrip().endswith(opening)


def apart(text: str, tags: Tags | None = None, *, opened: bool = False) -> tuple[str, str]:
    """Return reasoning and answer; together they are the text.

    Reasoning that does not end leaves no answer. A text without a closing tag is an answer, unless it begins with the
    opening one or the prompt has `opened` it. Where the prompt is not known, a closing tag that no opening one precedes
    ends reasoning, too.
    """
    opening, closing = tags or USUAL
    begun = opened or text.lstrip().startswith(opening)
    end = text.find(closing)
    if end < 0:
        return (text, "") if begun else ("", text)
    if not begun and 0 <= text.find(opening) < end:
        return "", text
    answer = text[end + len(closing) :].lstrip()
    return text[: len(text) - len(answer)], answer


def told_apart(told: str, text: str, marks: Marks) -> tuple[str, str]:
    """Return reasoning and answer where an endpoint gives reasoning beside the text, in it, or both at once."""
    written, answer = apart(text, marks.tags, opened=marks.opened and not told)
    return (written if told.strip() in written else "\n\n".join(filter(None, (told, written)))), answer


def cut_answer(text: str, stops: Sequence[str], tags: Tags | None = None, *, opened: bool = False) -> int | None:
    """Return where the first stop text begins in the answer; None if there is none. Reasoning is never cut."""
    if not stops:
        return None
    reasoning, answer = apart(text, tags, opened=opened)
    end = cut_at(answer, stops)
    return None if end is None else len(reasoning) + end


def thinking_settings(options: Thinking, template: Mapping[str, Any] | None = None) -> dict[str, Scalar]:
    """Return the part of these settings that belongs to a model's identity: those that are set."""
    settings: dict[str, Scalar] = {}
    if options.answer_room:
        settings["answer_room"] = options.answer_room
    if options.think_tags is not None:
        settings["think_tags"] = " ".join(options.think_tags)
    if template:
        settings["chat_template_kwargs"] = msgspec.json.encode(template, order="sorted").decode()
    return settings
