"""Expect an error by its code; the wording of its message may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from ..core.contracts.errors import PrejudgeError

E = TypeVar("E", bound=PrejudgeError)


@contextmanager
def raises_code(kind: type[E], code: str, *named: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of a class with a code, whose message names each given value.

    Args:
        kind: Class of the error.
        code: What its `code` must be, as docs/errors.md lists them.
        named: Values that the message must name, such as the wrong value or the nearest valid one.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"the code is {error.code!r}, not {code!r}: {error}"
    for value in named:
        assert str(value) in str(error), f"the message does not name {value!r}: {error}"
