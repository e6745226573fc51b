"""Where a continuation begins: one rule, in characters for Transformers and in bytes for llama.cpp."""

from __future__ import annotations

import pytest

from prejudge.adapters.llamacpp.split import cut
from prejudge.adapters.shared.border import check_continuations, first_beyond
from prejudge.core.contracts.errors import PermanentError
from prejudge.testing import raises_code

# Texts cut into tokens at will, and the first token of the continuation.
CASES = [
    ("The wo", ["The", " woman"], 1),
    ("The", ["The", " woman"], 1),
    ("The ", ["The", " woman"], 1),
    ("The ", ["The", " ", "woman"], 2),
    ("", ["The", " woman"], 0),
    ("The woman i", ["The", " wo", "man", " is", " kind"], 3),
]


@pytest.mark.parametrize(("prompt", "pieces", "first"), CASES)
def test_shared_token_is_the_continuations(prompt, pieces, first):
    ends = [len("".join(pieces[: number + 1])) for number in range(len(pieces))]
    assert first_beyond(ends, len(prompt)) == first


@pytest.mark.parametrize(("prompt", "pieces", "first"), CASES)
def test_llama_cpp_has_the_same_border(prompt, pieces, first):
    ends, found = cut([piece.encode() for piece in pieces], prompt.encode(), "".join(pieces).encode())
    assert (ends[-1], found) == (len("".join(pieces)), first)


def test_token_in_front_is_the_prompts():
    assert first_beyond([0, 3, 9], 0) == 1


def test_no_token_beyond_is_none():
    assert first_beyond([2, 3], 3) is None


@pytest.mark.parametrize(("texts", "named"), [((), ""), ((" a", "", "b"), "")])
def test_nothing_to_score_is_permanent(texts, named):
    with raises_code(PermanentError, "request.empty", named):
        check_continuations(texts)
