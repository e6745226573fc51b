"""Follow answers token by token until each is done."""

from __future__ import annotations

from typing import Any

from ..core.records import Generate, Generation, TopToken, Usage
from ._vlm_sampling import Chooser, Defaults


class Answer:
    """One answer in the making."""

    def __init__(self, request: Generate, ids: tuple[int, ...], defaults: Defaults, room: int | None) -> None:
        """Start an answer to a prompt of these tokens; `room` is how many more the model can take."""
        self.ids = ids
        self.chooser = Chooser(request, defaults, ids)
        self.reason = ""
        wish = request.sampling
        asked = defaults.max_tokens if wish.max_tokens is None else wish.max_tokens
        self.most = asked if room is None else min(asked, room)
        self._ends, self._stops, self._top = defaults.ends, wish.stop, request.top_logprobs
        self._tokens: list[int] = []
        self._tops: list[tuple[TopToken, ...]] = []
        self._text: str | None = None
        if self.most < 1:
            self.reason = "length"

    @property
    def done(self) -> bool:
        """Whether no further token is wanted."""
        return bool(self.reason)

    def add(self, token: int, logits: Any, tokenizer: Any) -> None:
        """Take the next token, chosen from logits [vocabulary]."""
        if self._top and token not in self._ends:
            self._tops.append(_top_tokens(logits, self._top, tokenizer))
        if token in self._ends:
            self.reason = "stop"
            return
        self._tokens.append(token)
        if self._stops:
            self._look_for_stop(tokenizer)
        if not self.reason and len(self._tokens) >= self.most:
            self.reason = "length"

    def finish(self, tokenizer: Any) -> Generation:
        """Return the answer as a record."""
        text = self._decode(tokenizer) if self._text is None else self._text
        usage = Usage(input_tokens=len(self.ids), output_tokens=len(self._tokens))
        return Generation(text=text, finish_reason=self.reason, top_logprobs=tuple(self._tops), usage=usage)

    def _look_for_stop(self, tokenizer: Any) -> None:
        text = self._decode(tokenizer)
        places = [place for stop in self._stops if stop and (place := text.find(stop)) >= 0]
        if places:
            self._text, self.reason = text[: min(places)], "stop"

    def _decode(self, tokenizer: Any) -> str:
        return str(tokenizer.decode(self._tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _top_tokens(logits: Any, count: int, tokenizer: Any) -> tuple[TopToken, ...]:
    best = logits.float().log_softmax(-1).topk(min(count, len(logits)))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return tuple(TopToken(tokenizer.decode([token]), value) for token, value in pairs)
