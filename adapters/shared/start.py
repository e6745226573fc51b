"""What stands before the first token of a plain text: one rule for all local adapters.

A likelihood of a text without a prompt is one given its start, and tokenizers disagree on what that is. By default it
is what the tokenizer itself puts there (as in lm-evaluation-harness since its pull request 3347: without its `<bos>`,
Gemma's perplexity rises from 3.5 to 6e9, pull request 1465), and nothing where it puts nothing. The first token of a
text must be given something: then it is the token for the beginning of a text, or, where that opens a turn of a chat
(SmolLM2-Instruct: 5.1 nats less per sentence than after `<|endoftext|>`, `benchmarks/text_start.py`) or there is none
(Qwen), the token that separates the documents of the training.
"""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Scalar

AUTO, BOS, EOS, NONE = "auto", "bos", "eos", "none"
SEPARATOR = "<|endoftext|>"
"""Stands between the documents on which models of GPT-2's and ChatML's families are trained."""
TURN_MARKS = frozenset(
    {
        *("<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|eot_id|>", "<start_of_turn>", "<end_of_turn>"),
        *("<|user|>", "<|assistant|>", "<|system|>", "<|start|>", "<|end|>", "[INST]", "<|turn>", "<turn|>"),
        *("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    }
)
"""Tokens that open or end a turn of a chat: no plain text follows them in the training."""

Start = Annotated[str, msgspec.Meta(min_length=1)]


class Starting(Protocol):
    """Settings of a model that scores or continues plain texts."""

    @property
    def start(self) -> str:
        """What stands before the first token of a plain text."""
        ...


def first_token(bos: str | None, separates: bool) -> str | None:
    """Return the token that a text without a prompt is given by default; None: there is none.

    Args:
        bos: The tokenizer's token for the beginning of a text.
        separates: Whether its vocabulary has `SEPARATOR`.
    """
    if bos and bos not in TURN_MARKS:
        return bos
    return SEPARATOR if separates else None


def start_settings(options: Starting, bos: str | None, separates: bool) -> dict[str, Scalar]:
    """Return the part of a model's identity that says what stands before a plain text, with the token that it names."""
    if options.start == AUTO:
        return {"start": f"auto ({first_token(bos, separates) or 'no token'})"}
    return {"start": f"bos ({bos or 'no token'})" if options.start == BOS else options.start}


def no_context(model: str) -> PermanentError:
    """Return the error of a first token that has nothing before it."""
    return PermanentError(
        f"the first token of the text has nothing before it, and {model} puts no token there: its likelihood is not "
        "defined. Set what stands before every text: the model's setting start = '</s>', for example, or the study's "
        "option before, if it has one.",
        code="request.no-context",
    )
