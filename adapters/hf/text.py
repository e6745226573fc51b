"""Text to tokens and back, with the border between a prompt and its continuation found by characters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from ...core.contracts.errors import PermanentError
from ...core.reading.reasoning import MARK_TOKENS
from ..shared.border import check_continuations, common_start, first_beyond
from ..shared.sampling import piece_text
from ..shared.start import AUTO, BOS, EOS, NONE, SEPARATOR, first_token, no_context


class Row(NamedTuple):
    """A prompt with one continuation, as tokens."""

    ids: list[int]
    split: int
    """Number of the first token that is scored, the same for all continuations of a prompt; at least 1."""
    overlap: int = 0
    """Characters at the end of the prompt that are scored with the continuation."""


class Encoder:
    """A fast tokenizer that maps each token to its exact characters."""

    def __init__(self, tokenizer: Any, shown: Sequence[str] = MARK_TOKENS, start: str = AUTO) -> None:
        """Special tokens are no part of an answer's text, but for those `shown`: marks of reasoning may be such.

        `start`: what stands before every text that takes the tokenizer's special tokens.
        """
        self._tokenizer = tokenizer
        special = {n: one.content for n, one in tokenizer.added_tokens_decoder.items() if one.special}
        self._hidden = frozenset(number for number, text in special.items() if text not in shown)
        self._shows = len(self._hidden) < len(special)
        self._backend = _untrimmed(tokenizer.backend_tokenizer)
        normalizer = json.loads(self._backend.to_str())["normalizer"]
        self._blank = any(part.get("type") == "Prepend" for part in _parts(normalizer, "normalizers"))
        self._start = self._start_ids(start)
        self._first = self._first_ids(start)

    def encode(self, texts: Sequence[str], special: bool) -> list[list[int]]:
        """Return the tokens of prompts; `special` adds the tokenizer's initial special tokens, never its final ones."""
        return [ids for ids, _ in self._encode(texts, special)]

    def rows(self, prompt: str, continuations: Sequence[str], special: bool) -> list[Row]:
        """Encode each continuation together with its prompt.

        Raises:
            PermanentError: no continuation, one without a token, or a first token with nothing to condition on.
        """
        check_continuations(continuations)
        encoded = self._encode([prompt + text for text in continuations], special)
        firsts = [_first(ends, len(prompt), text) for (_, ends), text in zip(encoded, continuations, strict=True)]
        rows = [ids for ids, _ in encoded]
        split = common_start(rows, firsts)
        if split:
            return [Row(ids, split, len(prompt) - encoded[0][1][split - 1]) for ids in rows]
        if not self._first:
            raise no_context("the tokenizer")
        return [Row([*self._first, *ids], len(self._first), len(prompt)) for ids in rows]

    def text(self, prompt: Sequence[int], answer: Sequence[int]) -> str:
        """Return what `answer` adds to the text of `prompt`; a leading space survives where the prompt shows it."""
        last = list(prompt[-4:])
        before, whole = self.decode(last), self.decode([*last, *answer])
        return whole[len(before) :] if whole.startswith(before) else self.decode(answer)

    def token(self, number: int) -> str:
        """Return one token as text, with the blank it begins with."""
        return token_text(self._tokenizer, number)

    def decode(self, ids: Sequence[int]) -> str:
        """Return tokens as text, without the special ones that are not shown."""
        if self._shows:
            ids = [number for number in ids if number not in self._hidden]
        return str(self._tokenizer.decode(ids, skip_special_tokens=not self._shows, clean_up_tokenization_spaces=False))

    def _encode(self, texts: Sequence[str], special: bool) -> list[tuple[list[int], list[int]]]:
        """Return per text its tokens, and for each the character behind its last one.

        SentencePiece vocabularies put a blank before a text: one that begins with a blank has it already.
        """
        added_start = self._start if special else None
        special = special and added_start is None
        found = []
        given = [text[1:] if self._blank and text[:1] == " " != text else text for text in texts]
        for text, short, encoding in zip(
            texts, given, self._backend.encode_batch(given, add_special_tokens=special), strict=True
        ):
            lost = len(text) - len(short)
            ids, ends = encoding.ids, [end + lost if end else 0 for _, end in encoding.offsets]
            added = encoding.special_tokens_mask if special else ()
            if lost:
                _place_blank(encoding.offsets, ends)
            size = len(ids)
            # An end-of-text token behind the text would be conditioned on, and scored, as if it had been written.
            while added and size and added[size - 1] and not _all_special(added, size):
                size -= 1
            before = added_start or []
            found.append(([*before, *ids[:size]], [*([0] * len(before)), *ends[:size]]))
        return found

    def _start_ids(self, start: str) -> list[int] | None:
        """Return the tokens that stand before every plain text; None: those that the tokenizer adds."""
        if start == AUTO:
            return None
        if start in (BOS, EOS, NONE):
            ids = {BOS: self._tokenizer.bos_token_id, EOS: self._tokenizer.eos_token_id}
            return [] if (token := ids.get(start)) is None else [token]
        return list(self._backend.encode(start, add_special_tokens=False).ids)

    def _first_ids(self, start: str) -> list[int]:
        """Return the token that the first one of a text is given where nothing else stands before it."""
        separator = self._backend.token_to_id(SEPARATOR)
        token = first_token(self._tokenizer.bos_token, separator is not None) if start == AUTO else None
        if token is None:
            return []
        return [separator if token == SEPARATOR else self._tokenizer.bos_token_id]


def _place_blank(offsets: Sequence[tuple[int, int]], ends: list[int]) -> None:
    """Let a token that is nothing but the blank put before a text end behind it, and not behind the next character."""
    own = next((number for number, (_, end) in enumerate(offsets) if end), len(offsets))
    if own + 1 < len(offsets) and offsets[own + 1][0] == 0:
        ends[own] = 1


def _first(ends: Sequence[int], border: int, continuation: str) -> int:
    first = first_beyond(ends, border)
    if first is None:
        raise PermanentError(
            f"the continuation {continuation!r} has no separate token, so it has no likelihood.",
            code="request.no-token",
        )
    return first


def _all_special(added: Sequence[int], size: int) -> bool:
    return all(added[:size])


def _untrimmed(backend: Any) -> Any:
    """Copy a tokenizer so that spaces at the edge of a token count as its characters, and nothing is cut or padded."""
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    for part in _parts(state.get("post_processor"), "processors"):
        if "trim_offsets" in part:
            part["trim_offsets"] = False
    state["truncation"] = state["padding"] = None
    return Tokenizer.from_str(json.dumps(state))


def _parts(whole: Any, inner: str) -> list[dict[str, Any]]:
    return [whole, *(whole.get(inner) or ())] if whole else []


def token_text(tokenizer: Any, number: int) -> str:
    """Return one token as text, with the blank it begins with; parts of a character are named as bytes."""
    # Decoders drop the blank that a text begins with, so the token is read behind itself.
    before, both = (
        str(tokenizer.decode([number] * times, skip_special_tokens=False, clean_up_tokenization_spaces=False))
        for times in (1, 2)
    )
    text = both[len(before) :] if both.startswith(before) else before
    if "\ufffd" not in text:
        return text
    name = str(tokenizer.convert_ids_to_tokens(number))
    letters = _byte_letters()
    return piece_text(bytes(map(letters.__getitem__, name))) if all(map(letters.__contains__, name)) else name


@cache
def _byte_letters() -> dict[str, int]:
    """Return the letters by which byte-level vocabularies write bytes (Radford et al. 2019): unprintable ones moved."""
    shown = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    moved = (byte for byte in range(256) if byte not in shown)
    return {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(moved)}
