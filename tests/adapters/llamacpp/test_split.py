"""`llamacpp`: where a continuation begins among the tokens."""

from __future__ import annotations

import pytest

from prejudge.adapters.llamacpp.split import cut
from prejudge.core.contracts.errors import PermanentError
from prejudge.testing import raises_code

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")


@pytest.mark.parametrize(
    ("pieces", "context", "continuation", "first"),
    [
        ([b"a", b" b"], "a", " b", 1),
        ([b"a", b" b"], "a ", "b", 1),
        ([b" a", b" b"], "a", " b", 1),
        ([b" ", b"a", b"b"], "a", "b", 2),
        ([b"<s>", b" a", b"b"], "<s>a", "b", 2),
        ([b"a", b"\xc3", b"\xa9"], "a", "é", 1),
    ],
)
def test_border_is_found(pieces: list[bytes], context: str, continuation: str, first: int) -> None:
    assert cut(pieces, context.encode(), (context + continuation).encode())[1] == first


def test_lossy_tokenizer_is_refused() -> None:
    with raises_code(PermanentError, "request.border"):
        cut([b"a", b"<unk>"], b"a", b"ab")
