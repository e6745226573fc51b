"""Follow answers token by token until each is finished."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.contracts.records import Generation, TopToken, Usage
from ....core.reading.reasoning import find_stop
from ...shared.sampling import Choice
from ..text import Encoder


class Wish(NamedTuple):
    """How an answer is to be written."""

    choice: Choice
    most: int
    """Maximum number of tokens, at least 1."""
    stops: tuple[str, ...]
    top: int
    """Alternatives to report per token."""
    ends: frozenset[int]
    """Tokens that end an answer."""
    opened: bool = False
    """Whether the prompt ends with an opening mark of reasoning."""


class Answer:
    """One unfinished answer."""

    def __init__(self, ids: tuple[int, ...], wish: Wish) -> None:
        """Start an answer to a prompt of these tokens."""
        self.ids, self.choice, self.most = ids, wish.choice, wish.most
        self.reason = ""
        self._ends, self._stops, self._top = wish.ends, wish.stops, wish.top
        self._opened = wish.opened
        self._tokens: list[int] = []
        self._tops: list[tuple[TopToken, ...]] = []
        self._text: str | None = None

    @property
    def done(self) -> bool:
        """Whether no further token is wanted."""
        return bool(self.reason)

    @property
    def step(self) -> int:
        """Number of the token that comes next."""
        return len(self._tokens)

    def add(self, token: int, logits: Any, encoder: Encoder) -> None:
        """Take the next token, chosen from logits [vocabulary]."""
        if self._top and token not in self._ends:
            self._tops.append(_top_tokens(logits, self._top, encoder))
        if token in self._ends:
            self.reason = "stop"
            return
        self._tokens.append(token)
        if self._stops:
            self._look_for_stop(encoder)
        if not self.reason and len(self._tokens) >= self.most:
            self.reason = "length"

    def finish(self, encoder: Encoder) -> Generation:
        """Return the answer as a record."""
        text = encoder.decode(self._tokens) if self._text is None else self._text
        usage = Usage(input_tokens=len(self.ids), output_tokens=len(self._tokens))
        return Generation(
            text=text,
            opened=self._opened,
            finish_reason=self.reason,
            top_logprobs=tuple(self._tops),
            usage=usage,
        )

    def _look_for_stop(self, encoder: Encoder) -> None:
        text = encoder.decode(self._tokens)
        end = find_stop(text, self._stops, opened=self._opened)
        if end is not None:
            self._text, self.reason = text[:end], "stop"


def _top_tokens(logits: Any, count: int, encoder: Encoder) -> tuple[TopToken, ...]:
    best = logits.float().log_softmax(-1).topk(min(count, len(logits)))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return tuple(TopToken(encoder.token(token), value) for token, value in pairs)
