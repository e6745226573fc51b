"""Text to tokens and back, with the border between a prompt and its continuation found by characters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.contracts.errors import PermanentError
from ..shared.border import check_continuations, first_beyond


class Row(NamedTuple):
    """A prompt with one continuation, as tokens."""

    ids: list[int]
    split: int
    """Number of the first token of the continuation; at least 1."""


class Encoder:
    """A fast tokenizer that maps each token to its exact characters."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._bos: int | None = tokenizer.bos_token_id
        self._backend = _untrimmed(tokenizer.backend_tokenizer)

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
        return [
            self._cut(ids, ends, len(prompt), text) for (ids, ends), text in zip(encoded, continuations, strict=True)
        ]

    def text(self, prompt: Sequence[int], answer: Sequence[int]) -> str:
        """Return what `answer` adds to the text of `prompt`; a leading space survives where the prompt shows it."""
        last = list(prompt[-4:])
        before, whole = self._decode(last), self._decode([*last, *answer])
        return whole[len(before) :] if whole.startswith(before) else self._decode(answer)

    def token(self, number: int) -> str:
        """Return one token as text."""
        return self._decode([number], skip=False)

    def _decode(self, ids: Sequence[int], skip: bool = True) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False))

    def _encode(self, texts: Sequence[str], special: bool) -> list[tuple[list[int], list[int]]]:
        """Return per text its tokens, and for each the character behind its last one."""
        found = []
        for encoding in self._backend.encode_batch(list(texts), add_special_tokens=special):
            ids, ends = encoding.ids, [end for _, end in encoding.offsets]
            added = encoding.special_tokens_mask if special else ()
            size = len(ids)
            # An end-of-text token behind the text would be conditioned on, and scored, as if it had been written.
            while added and size and added[size - 1] and not _all_special(added, size):
                size -= 1
            found.append((ids[:size], ends[:size]))
        return found

    def _cut(self, ids: list[int], ends: list[int], border: int, continuation: str) -> Row:
        split = first_beyond(ends, border)
        if split is None:
            raise PermanentError(
                f"the continuation {continuation!r} has no separate token, so it has no likelihood.",
                code="request.no-token",
            )
        if split:
            return Row(ids, split)
        if self._bos is None:
            raise PermanentError(
                "the prompt has no token before the continuation, and this tokenizer has no token for the beginning "
                "of a text: the first token has nothing to be conditioned on. Give a prompt.",
                code="request.no-context",
            )
        return Row([self._bos, *ids], 1)


def _all_special(added: Sequence[int], size: int) -> bool:
    return all(added[:size])


def _untrimmed(backend: Any) -> Any:
    """Copy a tokenizer so that spaces at the edge of a token count as its characters, and nothing is cut or padded."""
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    for part in _parts(state.get("post_processor")):
        if "trim_offsets" in part:
            part["trim_offsets"] = False
    state["truncation"] = state["padding"] = None
    return Tokenizer.from_str(json.dumps(state))


def _parts(processor: Any) -> list[dict[str, Any]]:
    return [processor, *(processor.get("processors") or ())] if processor else []
