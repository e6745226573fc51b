"""Answer one request at a time with a loaded GGUF model: drawn continuations, and likelihoods of given ones."""

from __future__ import annotations

import codecs
import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

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
from ...core.reading.reasoning import MARK_TOKENS, find_stop, is_opened
from ..shared.border import check_continuations, common_start
from ..shared.sampling import answer_length, check_limits, piece_text
from ..shared.start import AUTO, BOS, EOS, NONE, SEPARATOR, first_token, no_context
from .chat import FILE, PLAIN, Rendered, read_turns, render_builtin, render_jinja, render_plain, render_text
from .grammar import Grammar, grammar_text
from .model import Engine
from .sampling import Row, draw, seed_of, uniform
from .split import cut

_SHOWN = frozenset(mark.encode() for mark in MARK_TOKENS)


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for turning requests into tokens, and their limits."""

    chat_format: str
    template: str
    system_prompt: str | None
    max_tokens: int
    answer_room: int
    arguments: dict[str, Any]
    n_ctx: int
    name: str
    start: str = AUTO


class Encoded(NamedTuple):
    """A prompt and its continuations, as tokens."""

    rows: list[list[int]]
    """Prompt and continuation, one row per continuation."""
    start: int
    """Number of the first token that is scored in every row."""
    overlap: int
    """Characters at the end of the prompt that are scored with every continuation."""


class Answers:
    """Answers of one model."""

    def __init__(self, engine: Engine, asking: Asking) -> None:
        self.engine = engine
        self._asking = asking
        self._start = _start_tokens(engine, asking.start)
        self._first = _first_tokens(engine, asking.start)

    def likelihood(self, request: Likelihood) -> Likelihoods:
        """Score continuations.

        Raises:
            PermanentError: too long, empty, or no token comes before the first scored one.
        """
        check_continuations(request.continuations)
        encoded = self._encode(self._render(request.prompt), request.continuations)
        return Likelihoods(
            scores=tuple(self._score_all(encoded)),
            overlap=encoded.overlap,
            usage=Usage(input_tokens=sum(map(len, encoded.rows))),
        )

    def generate(self, request: Generate, cancelled: threading.Event) -> Generation:
        """Draw an answer.

        Raises:
            PermanentError: images, too long, or messages the chat template does not take.
        """
        rendered = self._render(request.messages)
        tokens = self._begin(rendered) + self.engine.encode(rendered.text)
        if not tokens:
            raise PermanentError(
                "the messages hold no text, and the model has no token to begin a text with.", code="request.empty"
            )
        if (request.sampling.temperature or 0) < 0:
            raise PermanentError("the temperature cannot be negative.", code="request.value")
        check_limits(request.sampling)
        self._check_size(len(tokens), 1)
        asking = self._asking
        most = answer_length(request, asking.max_tokens, asking.n_ctx - len(tokens), asking.answer_room)
        return _Drawing(self.engine, request, tokens, is_opened(rendered.text)).run(most, cancelled)

    def _score_all(self, encoded: Encoded) -> list[TokenScores]:
        held, scores = encoded.rows[0][: encoded.start], []
        for number, tokens in enumerate(encoded.rows):
            if number == 0 or not self.engine.rewind(len(held)):
                expected = self.engine.prepare(held)
            scores.append(self._score(tokens, encoded.start, expected))
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
            return render_jinja(asking.template, turns, {**self.engine.token_texts(), **asking.arguments})
        return render_builtin(self.engine.lib, asking.chat_format, turns)

    def _begin(self, rendered: Rendered) -> list[int]:
        return [] if rendered.whole else self._start

    def _encode(self, prompt: Rendered, continuations: Sequence[str]) -> Encoded:
        begin, before = self._begin(prompt), prompt.text.encode()
        rows: list[list[int]] = []
        firsts: list[int] = []
        places = [0]
        for continuation in continuations:
            whole = prompt.text + continuation
            tokens = self.engine.encode(whole)
            ends, first = cut([self.engine.piece(token, special=True) for token in tokens], before, whole.encode())
            places = ends if not rows else places
            rows.append([*begin, *tokens])
            firsts.append(len(begin) + first)
            self._check_size(len(rows[-1]), 0)
        start = common_start(rows, firsts)
        own = start - len(begin)
        overlap = len(before[places[own - 1] if own > 0 else 0 :].decode(errors="replace"))
        if start == 0 and not self._first:
            raise no_context(repr(self._asking.name))
        if start == 0:
            rows, start = [[*self._first, *row] for row in rows], len(self._first)
            self._check_size(max(map(len, rows)), 0)
        return Encoded(rows, start, overlap)

    def _check_size(self, tokens: int, more: int) -> None:
        if tokens + more > self._asking.n_ctx:
            answer = " and leaves no room to answer" if more else ""
            raise PermanentError(
                f"the text has {tokens} tokens{answer}; {self._asking.name!r} is loaded for {self._asking.n_ctx} "
                "(n_ctx, at most its training length). Shorten it; cutting it here would change the question.",
                code="request.too-long",
            )

    def _score(self, tokens: Sequence[int], start: int, expected: Row) -> TokenScores:
        """Score one continuation; the cache holds the tokens before it, after which `expected` is what follows."""
        values = [expected[tokens[start]]]
        for place, row in self.engine.run(tokens[start:-1], start, start):
            values.append(row[tokens[place + 1]])
        if not np.isfinite(values).all():
            raise PermanentError(
                f"{self._asking.name!r} gives a token of the continuation zero probability: no finite likelihood.",
                code="request.not-finite",
            )
        scores = tuple(float(value) for value in values)
        return TokenScores(log_probability=math.fsum(scores), count=len(scores), values=scores)


def _start_tokens(engine: Engine, start: str) -> list[int]:
    """Return the tokens that stand before every plain text."""
    if start in (AUTO, BOS, EOS, NONE):
        token = {AUTO: engine.bos, BOS: engine.any_bos, EOS: engine.eos}.get(start)
        return [] if token is None else [token]
    return engine.encode(start)


def _first_tokens(engine: Engine, start: str) -> list[int]:
    """Return the token that the first one of a text is given where nothing else stands before it."""
    if start != AUTO:
        return []
    bos = engine.token_texts()["bos_token"]
    separator = engine.encode(SEPARATOR)
    token = first_token(bos, len(separator) == 1)
    if token == bos and engine.any_bos is not None:
        return [engine.any_bos]
    return [] if token is None else separator


class _Drawing:
    """One unfinished answer."""

    def __init__(self, engine: Engine, request: Generate, tokens: list[int], opened: bool) -> None:
        self._engine, self._request, self._tokens, self._opened = engine, request, tokens, opened
        self._seed = seed_of(request)
        # What an answer that is cut short leaves of a character is dropped.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self._tops: list[tuple[TopToken, ...]] = []
        text = grammar_text(request)
        self._grammar = Grammar(engine, text) if text else None

    def run(self, most: int, cancelled: threading.Event) -> Generation:
        try:
            return self._run(most, cancelled)
        finally:
            if self._grammar is not None:
                self._grammar.close()

    def _run(self, most: int, cancelled: threading.Event) -> Generation:
        row = self._engine.prepare(self._tokens)
        for step in range(most):
            fitting = row if self._grammar is None else self._grammar.allow(row)
            token = draw(fitting, self._request.sampling, uniform(self._seed, step))
            if self._grammar is not None:
                self._grammar.accept(token)
            self._note(row)
            if self._engine.ends(token):
                return self._answer("stop", step + 1)
            if self._stopped(self._piece(token)):
                return self._answer("stop", step + 1)
            if cancelled.is_set():
                break
            if step + 1 < most:
                place = len(self._tokens) + step
                ((_, row),) = self._engine.run([token], place, place)
        return self._answer("length", most)

    def _stopped(self, piece: bytes) -> bool:
        """Add to the text; cut it where the earliest stop begins in the answer."""
        self._text += self._decoder.decode(piece)
        end = find_stop(self._text, self._request.sampling.stop, opened=self._opened)
        self._text = self._text[:end]
        return end is not None

    def _piece(self, token: int) -> bytes:
        """Return what a token adds to the text: special ones nothing, but for the marks of reasoning."""
        named = self._engine.piece(token, special=True)
        return named if named in _SHOWN else self._engine.piece(token, special=False)

    def _note(self, row: Row) -> None:
        if count := self._request.top_logprobs:
            best = np.argsort(-row, kind="stable")[:count]
            texts = [piece_text(self._engine.piece(int(token), special=True)) for token in best]
            self._tops.append(tuple(TopToken(t, float(row[n])) for t, n in zip(texts, best, strict=True)))

    def _answer(self, reason: str, count: int) -> Generation:
        return Generation(
            text=self._text,
            opened=self._opened,
            finish_reason=reason,
            top_logprobs=tuple(self._tops),
            usage=Usage(input_tokens=len(self._tokens), output_tokens=count),
        )
