"""Answer one request at a time with a loaded GGUF model: drawn continuations, and likelihoods of given ones."""

from __future__ import annotations

import codecs
import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import (
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    Prompt,
    TokenScores,
    TopToken,
    Usage,
)
from ..shared.refusals import reads_as_refusal
from .chat import FILE, PLAIN, Rendered, read_turns, render_builtin, render_jinja, render_plain, render_text
from .model import Engine
from .sampling import Row, draw, seed_of, uniform
from .split import first_scored


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for turning requests into tokens, and their limits."""

    chat_format: str
    template: str
    system_prompt: str | None
    max_tokens: int
    refusal_rule: bool
    n_ctx: int
    name: str


class Encoded(NamedTuple):
    """A context and one continuation, as tokens."""

    tokens: list[int]
    start: int
    """Number of the first token that is scored."""


class Answers:
    """Answers of one model."""

    def __init__(self, engine: Engine, asking: Asking) -> None:
        self.engine = engine
        self._asking = asking

    def likelihood(self, request: Likelihood) -> Likelihoods:
        """Score continuations.

        Raises:
            PermanentError: too long, empty, or no token comes before the first scored one.
        """
        prompt = self._render(request.prompt)
        encoded = [self._encode(prompt, continuation) for continuation in request.continuations]
        if not encoded:
            return Likelihoods(scores=())
        scores = self._score_all(encoded)
        return Likelihoods(scores=tuple(scores), usage=Usage(input_tokens=sum(len(one.tokens) for one in encoded)))

    def generate(self, request: Generate, cancelled: threading.Event) -> Generation:
        """Draw an answer.

        Raises:
            PermanentError: images, too long, or messages the chat template does not take.
        """
        rendered = self._render(request.messages)
        tokens = self._begin(rendered) + self.engine.encode(rendered.text)
        most = self._asking.max_tokens if request.sampling.max_tokens is None else request.sampling.max_tokens
        if not tokens:
            raise PermanentError(
                "the messages hold no text, and the model has no token to begin a text with.", code="request.empty"
            )
        if most < 0 or (request.sampling.temperature or 0) < 0:
            raise PermanentError("max_tokens and temperature cannot be negative.", code="request.value")
        self._check_size(len(tokens), most)
        answer = _Drawing(self.engine, request, tokens).run(most, cancelled)
        refused = self._asking.refusal_rule and reads_as_refusal(answer.text)
        return msgspec.structs.replace(answer, status="refused") if refused else answer

    def _score_all(self, encoded: Sequence[Encoded]) -> list[TokenScores]:
        shared = _shared(encoded)
        scores = []
        for number, one in enumerate(encoded):
            held = shared or one.tokens[: one.start]
            if number == 0 or not shared or not self.engine.rewind(len(shared)):
                row = self.engine.prepare(held)
            scores.append(self._score(one, len(held), row))
        return scores

    def _render(self, prompt: Prompt) -> Rendered:
        if isinstance(prompt, str):
            return render_text(prompt, self._asking.system_prompt)
        return self._render_turns(prompt)

    def _render_turns(self, messages: Sequence[Message]) -> Rendered:
        asking = self._asking
        turns = read_turns(messages, asking.system_prompt)
        if asking.chat_format == PLAIN:
            return render_plain(turns)
        if asking.chat_format == FILE:
            return render_jinja(asking.template, turns, self.engine.token_texts())
        return render_builtin(self.engine.lib, asking.chat_format, turns)

    def _begin(self, rendered: Rendered) -> list[int]:
        return [] if rendered.whole or self.engine.bos is None else [self.engine.bos]

    def _encode(self, prompt: Rendered, continuation: str) -> Encoded:
        if not continuation:
            raise PermanentError("a continuation is empty, so there is nothing to score.", code="request.empty")
        whole = prompt.text + continuation
        begin = self._begin(prompt)
        tokens = self.engine.encode(whole)
        pieces = [self.engine.piece(token, special=True) for token in tokens]
        start = len(begin) + first_scored(pieces, prompt.text.encode(), whole.encode())
        if start == 0 and self.engine.any_bos is not None:
            begin, start = [self.engine.any_bos], 1
        if start == 0:
            raise PermanentError(
                f"no token comes before the first of {continuation[:40]!r}, and {self._asking.name!r} has none to "
                "begin a text with, so its likelihood is not defined. Give a prompt.",
                code="request.no-context",
            )
        self._check_size(len(begin) + len(tokens), 0)
        return Encoded(begin + tokens, start)

    def _check_size(self, tokens: int, more: int) -> None:
        if tokens + more > self._asking.n_ctx:
            answer = f" and the answer up to {more}" if more else ""
            raise PermanentError(
                f"the text has {tokens} tokens{answer}; {self._asking.name!r} is loaded for {self._asking.n_ctx} "
                "(n_ctx, at most its training length). Shorten it; cutting it here would change the question.",
                code="request.too-long",
            )

    def _score(self, one: Encoded, held: int, row: Row) -> TokenScores:
        """Score one continuation; the cache holds `held` tokens, after which `row` is what the model expects."""
        values = [row[one.tokens[held]]] if one.start == held else []
        rest = one.tokens[held:-1]
        for place, expected in self.engine.run(rest, held, max(one.start - 1, held)):
            values.append(expected[one.tokens[place + 1]])
        if not np.isfinite(values).all():
            raise PermanentError(
                f"{self._asking.name!r} gives a token of the continuation zero probability: no finite likelihood.",
                code="request.not-finite",
            )
        scores = tuple(float(value) for value in values)
        return TokenScores(log_probability=math.fsum(scores), count=len(scores), values=scores)


def _shared(encoded: Sequence[Encoded]) -> list[int]:
    """Return the tokens that all continuations come after; a merge over the boundary can leave none."""
    most = min(one.start for one in encoded)
    rows = zip(*(one.tokens[:most] for one in encoded), strict=True)
    length = next((number for number, row in enumerate(rows) if len(set(row)) > 1), most)
    return encoded[0].tokens[:length]


class _Drawing:
    """One unfinished answer."""

    def __init__(self, engine: Engine, request: Generate, tokens: list[int]) -> None:
        self._engine, self._request, self._tokens = engine, request, tokens
        self._seed = seed_of(request)
        # What an answer that is cut short leaves of a character is dropped.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self._tops: list[tuple[TopToken, ...]] = []

    def run(self, most: int, cancelled: threading.Event) -> Generation:
        row = self._engine.prepare(self._tokens)
        for step in range(most):
            token = draw(row, self._request.sampling, uniform(self._seed, step))
            self._note(row)
            if self._engine.ends(token):
                return self._answer("stop", step + 1)
            if self._stopped(self._engine.piece(token, special=False)):
                return self._answer("stop", step + 1)
            if cancelled.is_set():
                break
            if step + 1 < most:
                place = len(self._tokens) + step
                ((_, row),) = self._engine.run([token], place, place)
        return self._answer("length", most)

    def _stopped(self, piece: bytes) -> bool:
        """Add to the text; cut it where the earliest stop begins."""
        before, self._text = len(self._text), self._text + self._decoder.decode(piece)
        stops = [stop for stop in self._request.sampling.stop if stop]
        found = [self._text.find(stop, max(0, before - len(stop))) for stop in stops]
        places = [place for place in found if place >= 0]
        if places:
            self._text = self._text[: min(places)]
        return bool(places)

    def _note(self, row: Row) -> None:
        if count := self._request.top_logprobs:
            best = np.argsort(-row, kind="stable")[:count]
            texts = [self._engine.piece(int(token), special=True).decode(errors="replace") for token in best]
            self._tops.append(tuple(TopToken(t, float(row[n])) for t, n in zip(texts, best, strict=True)))

    def _answer(self, reason: str, count: int) -> Generation:
        return Generation(
            text=self._text,
            finish_reason=reason,
            top_logprobs=tuple(self._tops),
            usage=Usage(input_tokens=len(self._tokens), output_tokens=count),
        )
