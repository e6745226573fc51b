"""Find the tokens of a continuation among those that an endpoint reports.

Servers report tokens as text, each in its own way: with or without the special token in front, blanks lost or written
as a mark, the bytes of one character shown as nothing. So the continuation is looked for from the end of the text, and
what is found must spell it; where it does not, the reported offsets decide, if they agree with the text. A token that
carries a character of both prompt and continuation belongs to the continuation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Usage

_BLANKS = str.maketrans("", "", " \t\n\r\u2581\u00a0")
UNSHOWN = "\ufffd"
"""What many servers show for a part of a character."""


class Tokens(NamedTuple):
    """Tokens of a text as an endpoint reports them."""

    texts: list[str]
    values: list[float | None]
    offsets: list[int] | None = None
    """The character each begins at."""


class Found(NamedTuple):
    """Prompt and continuation as tokens, and where the continuation begins."""

    texts: list[str]
    values: list[float | None]
    first: int


def find_continuation(tokens: Tokens, prompt: str, continuation: str, counted: Usage, where: str) -> Found:
    """Return prompt and continuation, from an echo of both with a token behind.

    The token behind must be there: llama-cpp-python leaves it out where its numbers stand one place off, because the
    text has no special token in front. It also leaves out a token that ends or begins a text; then the count of the
    prompt's tokens shows that there is one in front, and the numbers stand where they should.

    Raises:
        PermanentError: the tokens are not those of the text, or cannot be told apart.
    """
    whole = prompt + continuation
    if counted.input_tokens == len(tokens.texts) + 1:
        tokens = _with_one_behind(tokens, len(whole))
    end = _cut_generated(tokens.texts, whole, counted.output_tokens)
    start = None
    if end is not None:
        start = find_start(tokens.texts[:end], tokens.values[:end], prompt, continuation)
    if end is None or start is None:
        start, end = _by_offsets(tokens, whole, len(prompt)) or (None, 0)
    if start is None:
        raise PermanentError(
            f"{where} does not echo the prompt token by token with the one it generated behind, so its numbers "
            "cannot be assigned to tokens. llama_cpp.server does so for a model that begins no text with a token of "
            "its own (BOS): run its GGUF file with the adapter llamacpp (llamacpp:FILE.gguf). For other servers, use "
            "another way of `likelihood`.",
            code="endpoint.echo",
            adapter="llamacpp",
        )
    return Found(tokens.texts[:end], tokens.values[:end], start)


def find_start(
    texts: Sequence[str], values: Sequence[float | None], prompt: str | None, continuation: str
) -> int | None:
    """Return the place of the first token that carries a character of the continuation, which ends the text.

    Where the tokens do not spell the text blank by blank, its other characters decide. None: they do not spell it.
    """
    start = _walk(texts, prompt, continuation)
    if start is None and _bare(continuation) and not (prompt or "").endswith((" ", "\n", "\t")):
        start = _walk([_bare(text) for text in texts], None if prompt is None else _bare(prompt), _bare(continuation))
        blank = continuation[:1].isspace()
        while blank and start and texts[start - 1] and not _bare(texts[start - 1]):
            start -= 1
    return None if start is None else _with_unshown(texts, values, start)


def _walk(texts: Sequence[str], prompt: str | None, continuation: str) -> int | None:
    start, spelled = len(texts), ""
    while len(spelled) < len(continuation) and start > 0:
        start -= 1
        spelled = texts[start] + spelled
    if not spelled.endswith(continuation):
        return None
    before = spelled[: len(spelled) - len(continuation)]
    return start if prompt is None or prompt.endswith(before) else None


def _with_one_behind(tokens: Tokens, size: int) -> Tokens:
    offsets = None if tokens.offsets is None else [*tokens.offsets, size]
    return Tokens([*tokens.texts, ""], [*tokens.values, None], offsets)


def _cut_generated(texts: Sequence[str], whole: str, generated: int) -> int | None:
    """Return how many tokens the whole text has, if at least one that was generated stands behind them."""
    if texts[-1] and "".join(texts).endswith(whole):
        # A blank that ends the text would pass for a generated one below.
        return None
    for extra in dict.fromkeys((max(generated, 1), 1)):
        if _bare("".join(texts[: len(texts) - extra])).endswith(_bare(whole)) and len(texts) > extra:
            return len(texts) - extra
    return None


def _by_offsets(tokens: Tokens, whole: str, border: int) -> tuple[int, int] | None:
    """Return the places of the continuation's first token and of the one behind its last, if the offsets hold."""
    texts, offsets = tokens.texts, tokens.offsets
    if not offsets or len(offsets) != len(texts) or offsets[0] != 0 or sorted(offsets) != offsets:
        return None
    end = bisect_left(offsets, len(whole))
    if end == len(texts) or offsets[end] != len(whole):
        return None
    shown = zip(texts[:end], offsets, strict=False)
    if any(UNSHOWN not in text and not whole.startswith(text, offset) for text, offset in shown):
        return None
    return _with_unshown(texts, tokens.values, bisect_right(offsets[1 : end + 1], border)), end


def _with_unshown(texts: Sequence[str], values: Sequence[float | None], start: int) -> int:
    # The first bytes of a character can be tokens of their own that show as nothing.
    while start and texts[start - 1] == "" and values[start - 1] is not None:
        start -= 1
    return start


def _bare(text: str) -> str:
    return text.translate(_BLANKS)
