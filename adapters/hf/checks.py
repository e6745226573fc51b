"""What can be wrong with one request to a model on Transformers, in one wording."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.contracts.errors import PermanentError


def check_known(ids: Sequence[int], vocabulary: int, name: str) -> None:
    """Refuse tokens that the model does not know.

    Raises:
        PermanentError: tokenizer and model do not belong together.
    """
    if max(ids, default=0) >= vocabulary:
        raise PermanentError(
            f"the tokenizer of {name!r} gives token {max(ids)}, the model knows {vocabulary}: "
            "they do not belong together.",
            code="request.tokenizer",
        )


def too_large(what: str) -> PermanentError:
    """Return the error of a request that memory does not hold even alone."""
    return PermanentError(
        f"{what} does not fit into this device's memory. Use device = 'cpu' or a smaller dtype.", code="request.memory"
    )


def not_finite(what: str, name: str, dtype: str) -> PermanentError:
    """Return the error of a model that answers with infinities or with what is no number."""
    return PermanentError(
        f"{name!r} gives {what} not finite in {dtype}. Use dtype = 'float32'.", code="request.not-finite"
    )
