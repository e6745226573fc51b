"""`llamacpp` keeps beginnings that prompts share, by blocks that end at line breaks: fewer tokens, equal answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from prejudge.adapters.llamacpp.model import LEAST, MOST, Engine
from prejudge.core.contracts.records import Likelihood, Sampling

from .asking import Pair, ask, say

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")

SHARED = "Read the two sentences and answer with one word, which must be one of the three labels below.\n"
ENDS = ("The capital of France is Paris.", "The capital\nof Italy is Rome.\n", "one", "two three " * 60)
PROMPTS = [SHARED + SHARED * (number % 3) + end for number, end in enumerate(ENDS)]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return the places and lengths of the blocks that will be evaluated."""
    blocks: list[tuple[int, int]] = []
    plain = Engine._evaluate

    def evaluate(self: Engine, block: Sequence[int], start: int, wanted: int) -> None:
        blocks.append((start, len(block)))
        plain(self, block, start, wanted)

    monkeypatch.setattr(Engine, "_evaluate", evaluate)
    return blocks


def _draw(prompt: str) -> Any:
    return say(prompt, temperature=1.0, seed=3)


def _score(prompt: str) -> Any:
    return Likelihood(prompt=prompt, continuations=(" Paris", " Rome\n and more\n"))


def answers(pair: Pair, requests: Sequence[Any]) -> list[Any]:
    return [getattr(answer, "text", None) or answer.scores for answer in ask(pair[0], requests)]


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))][::5])
@pytest.mark.parametrize("asks", [_draw, _score])
def test_what_was_asked_before_changes_no_answer(pair: Pair, order: Sequence[int], asks: Callable[[str], Any]) -> None:
    requests = [asks(prompt) for prompt in PROMPTS]
    together = dict(zip(order, answers(pair, [requests[number] for number in order]), strict=True))
    assert together == {number: answers(pair, [request])[0] for number, request in enumerate(requests)}


def test_what_is_evaluated_is_the_end_of_what_a_prompt_alone_evaluates(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tiny model gives equal digits however its texts are divided; a real one does not."""
    blocks = counted(monkeypatch)
    prompts = [_draw(prompt) for prompt in PROMPTS]
    prompts = [msgspec.structs.replace(one, sampling=Sampling(max_tokens=1)) for one in prompts]
    alone = []
    for prompt in prompts:
        blocks.clear()
        ask(pair[0], [prompt])
        alone.append([*blocks])
    for one, first in enumerate(prompts):
        for other, second in enumerate(prompts):
            blocks.clear()
            ask(pair[0], [first, second])
            after = blocks[len(alone[one]) :]
            assert after == alone[other][len(alone[other]) - len(after) :]


def test_a_shared_beginning_is_evaluated_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = counted(monkeypatch)
    first, second = say(SHARED * 4 + "one", max_tokens=1), say(SHARED * 4 + "two", max_tokens=1)
    ask(pair[0], [first])
    alone = sum(length for _, length in blocks)
    blocks.clear()
    ask(pair[0], [first, second])
    assert sum(length for _, length in blocks) - alone < alone / 2


def test_blocks_end_at_line_breaks(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = counted(monkeypatch)
    ask(pair[0], [say("two three " * 200, max_tokens=1)])
    assert max(length for _, length in blocks) == MOST
    assert all(start + length == after for (start, length), (after, _) in itertools.pairwise(blocks))
    blocks.clear()
    ask(pair[0], [say("one\n" * 100, max_tokens=1)])
    assert all(LEAST <= length < MOST for _, length in blocks[:-1])


def test_ends_depend_on_what_is_before_them_alone(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[Engine] = []
    plain = Engine.prepare

    def prepare(self: Engine, tokens: Sequence[int]) -> Any:
        engines.append(self)
        whole = self.block_ends(tokens)
        for length in range(len(tokens)):
            assert self.block_ends(tokens[:length]) == [end for end in whole if end <= length]
        assert all(b - a <= MOST for a, b in itertools.pairwise([0, *whole, len(tokens)]))
        return plain(self, tokens)

    monkeypatch.setattr(Engine, "prepare", prepare)
    ask(pair[0], [say(prompt, max_tokens=1) for prompt in PROMPTS])
    assert len(engines) == len(PROMPTS)
