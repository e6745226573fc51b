"""Compare answers, and the numbers within one."""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.contracts.errors import ModelError
from ..core.contracts.records import AnyRequest, AnyResponse, Classification, Likelihood, Likelihoods, TokenScores

Answer = AnyResponse | ModelError


def plain(answer: Answer) -> Any:
    """Return an answer as lists, dicts and numbers; an error as its type."""
    return type(answer).__name__ if isinstance(answer, ModelError) else msgspec.to_builtins(answer)


def close(first: Any, second: Any, tolerance: float) -> bool:
    """Compare two plain structures: numbers with a fraction within the tolerance, all else exactly."""
    if isinstance(first, float) and isinstance(second, (float, int)):
        return first == second or abs(first - second) <= tolerance * max(1.0, abs(first), abs(second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(close(first[name], second[name], tolerance) for name in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(close(a, b, tolerance) for a, b in zip(first, second, strict=True))
    return bool(first == second)


def check_scores(request: AnyRequest, answer: AnyResponse, tolerance: float) -> None:
    """Check that one answer is consistent, and agrees with its request.

    Raises:
        AssertionError: the number of scores is wrong, values do not add up, a share is outside 0 to 1, or tokens that
            are a part of others are more than those.
    """
    used = answer.usage
    assert used.reasoning_tokens <= used.output_tokens, f"tokens of reasoning belong to those of the output: {used!r}"
    assert used.cached_tokens <= used.input_tokens, f"cached tokens belong to those of the input: {used!r}"
    scores = [answer] if isinstance(answer, TokenScores) else []
    if isinstance(answer, Likelihoods) and isinstance(request, Likelihood) and answer.status == "ok":
        scores = list(answer.scores)
        assert len(scores) == len(request.continuations), f"{len(scores)} scores for {request!r}"
    for score in scores:
        if score.values:
            assert len(score.values) == score.count, f"{len(score.values)} values, but a count of {score.count}"
            assert close(sum(score.values), score.log_probability, max(tolerance, 1e-9)), repr(score)
    if isinstance(answer, Classification) and answer.status == "ok":
        assert all(0 <= share <= 1 for share in answer.probabilities.values()), repr(answer)
