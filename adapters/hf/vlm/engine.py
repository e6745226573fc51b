"""Ask encoded prompts: in batches after their images if the model allows it, else one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from ...shared.budget import Budget
from ...shared.sampling import pick
from ...shared.torch import Stopped, attempt
from ..base import too_large
from .answers import Answer, Wish
from .cache import Sharing, Stem, Stems, Strip, place_media
from .groups import Asked, Work
from .model import Loaded
from .prompt import Encoded
from .writer import Question, VLMWriter

MAX_LOGITS, MAX_LOGITS_CPU = 1 << 28, 1 << 24
"""Most logits of one pass."""
BUDGET, BUDGET_CPU = 4096, 512
"""Tokens of the questions of one pass, if nobody says otherwise: each is compared with all others and with the image,
so a processor fares best with about as many as the image has."""
MOST_GROWTH = 8
"""Times the first budget: on an H200, passes of 32,768 tokens answered 299 questions/s, of 65,536 no more than 226,
since each token is compared with all others."""
ONE = "one prompt alone"
T = TypeVar("T")


class Engine:
    """A loaded model that answers encoded prompts."""

    def __init__(self, loaded: Loaded, sharing: Sharing, budget: int | None = None) -> None:
        self._loaded, self._shares = loaded, sharing != "none"
        slow = loaded.device == "cpu"
        self.budget = Budget(loaded.device, BUDGET_CPU if slow else BUDGET, budget, growth=MOST_GROWTH)
        self._most_logits = MAX_LOGITS_CPU if slow else MAX_LOGITS
        self._stems = Stems(loaded)
        self._writer = VLMWriter(loaded, self._stems, self.budget, self._most_rows)
        self._writer.refills = sharing == "refilled"

    def generate(self, groups: Iterable[Sequence[Work[Wish]]], stop: threading.Event) -> dict[int, Answer | None]:
        """Answer groups of prompts that share images and stem, by number of their request.

        None stands for a prompt that does not fit into memory.

        Raises:
            Stopped: `stop` was set.
        """
        found: dict[int, Answer | None] = {}

        def questions() -> Iterator[tuple[int, Question]]:
            for group, works in enumerate(groups):
                for request, asked, wish in sorted(works, key=_length_and_tokens):
                    if self._can_share(asked.prompt):
                        yield request, Question(asked, wish, group)
                    else:
                        found[request] = self._plainly(asked, wish, stop)

        found.update(self._writer.write_all(questions(), stop))
        return found

    def score(self, asked: Sequence[Asked], starts: Sequence[int], stop: threading.Event) -> list[list[float]]:
        """Return log P of every token from `starts` on, for prompts that share image and stem."""
        if not self._can_share(asked[0].prompt) or min(starts) <= asked[0].prompt.stem:
            return [self._score_plainly(one, start, stop) for one, start in zip(asked, starts, strict=True)]
        stem = self._stem(asked[0])
        # The last token is only predicted, so continuations that differ in it share one row.
        sharing: dict[tuple[int, ...], list[int]] = {}
        for number, one in enumerate(asked):
            sharing.setdefault(one.prompt.ids[:-1], []).append(number)
        keep = max(len(one.prompt.ids) - start for one, start in zip(asked, starts, strict=True))
        found: list[list[float]] = [[] for _ in asked]

        def run(part: Sequence[tuple[int, ...]]) -> None:
            most = min(keep, max(len(row) for row in part) - stem.length)
            logits = Strip(self._loaded).open([(0, stem, row[stem.length :]) for row in part], most)
            for row, scores in zip(part, logits.log_softmax(-1), strict=True):
                for number in sharing[row]:
                    wanted = asked[number].prompt.ids[starts[number] :]
                    found[number] = _pick(scores[-len(wanted) :], wanted)

        self._in_parts(sorted(sharing, key=len), lambda row: len(row) - stem.length, keep, run, stop)
        return found

    def _can_share(self, prompt: Encoded) -> bool:
        # With nothing after the image there is nothing to ask from.
        return self._shares and prompt.stem < len(prompt.ids)

    def _plainly(self, asked: Asked, wish: Wish, stop: threading.Event) -> Answer | None:
        _check(stop)
        answer = Answer(asked.prompt.ids, wish)
        return attempt(partial(continue_plainly, self._loaded, asked.prompt, answer), self._loaded.device)

    def _score_plainly(self, asked: Asked, start: int, stop: threading.Event) -> list[float]:
        _check(stop)
        return self._guard(lambda: score_plainly(self._loaded, asked.prompt, start))

    def _stem(self, asked: Asked) -> Stem:
        return self._guard(lambda: self._stems.find(asked.images, asked.prompt))

    def _most_rows(self, keep: int = 1) -> int:
        """Return how many prompts may have the logits of so many positions in memory."""
        vocabulary = int(self._loaded.model.get_input_embeddings().num_embeddings)
        return max(1, self._most_logits * self.budget.growth // (vocabulary * keep))

    def _in_parts(
        self,
        rows: Sequence[T],
        size: Callable[[T], int],
        keep: int,
        run: Callable[[Sequence[T]], None],
        stop: threading.Event,
    ) -> None:
        """Run rows, the shortest first, in parts that fit the budget; halve it where memory runs out."""
        start = 0
        while start < len(rows):
            _check(stop)
            end, tokens = start + 1, size(rows[start])
            while end < len(rows) and (tokens := tokens + size(rows[end])) <= self.budget.tokens:
                end += 1
            end = min(end, start + self._most_rows(keep))
            part = rows[start:end]
            if self._fits(partial(run, part), sum(map(size, part)) if len(part) > 1 else 0):
                start = end
            elif len(part) == 1:
                raise too_large(ONE)

    def _fits(self, run: Callable[[], None], size: int) -> bool:
        def done() -> bool:
            run()
            return True

        return self.budget.attempt(done, lambda: size) is not None

    def _guard(self, run: Callable[[], T]) -> T:
        made = attempt(run, self._loaded.device)
        if made is None:
            raise too_large(ONE)
        return made


def _length_and_tokens(work: Work[Wish]) -> tuple[int, tuple[int, ...]]:
    """Order questions by length, repeats of one beside each other."""
    return len(work.asked.prompt.ids), work.asked.prompt.ids


def _check(stop: threading.Event) -> None:
    if stop.is_set():
        raise Stopped


def _pick(table: Any, wanted: Sequence[int]) -> list[float]:
    import torch

    index = torch.tensor(wanted, device=table.device)[:, None]
    return [float(value) for value in table.gather(1, index)[:, 0].tolist()]


def continue_plainly(loaded: Loaded, prompt: Encoded, answer: Answer) -> Answer:
    """Complete one answer.

    Transformers drives the model here, since models number positions and keep states in different ways; tokens
    are chosen as in the other adapters.
    """
    import torch
    from transformers import GenerationConfig

    def force(ids: Any, logits: Any) -> Any:
        (token,) = pick(logits.float(), [answer.choice], answer.step).tolist()
        answer.add(token, logits[0], loaded.encoder)
        return torch.full_like(logits, -torch.inf).index_fill(1, torch.tensor([token], device=logits.device), 0.0)

    def enough(ids: Any, scores: Any, **_: Any) -> Any:
        return torch.tensor([answer.done], device=ids.device)

    with torch.inference_mode():
        loaded.model.generate(
            **_inputs(loaded, prompt, len(prompt.ids)),
            generation_config=GenerationConfig(max_new_tokens=answer.most, do_sample=False, pad_token_id=0),
            logits_processor=[force],
            stopping_criteria=[enough],
        )
    return answer


def score_plainly(loaded: Loaded, prompt: Encoded, start: int) -> list[float]:
    """Return log P of every token of one prompt from `start` on."""
    table = logits_plainly(loaded, prompt).log_softmax(-1)
    return [float(table[place - 1, prompt.ids[place]]) for place in range(start, len(prompt.ids))]


def logits_plainly(loaded: Loaded, prompt: Encoded) -> Any:
    """Return the logits of one whole pass: [token, vocabulary] in float32."""
    import torch

    with torch.inference_mode():
        return loaded.model(**_inputs(loaded, prompt, len(prompt.ids)), use_cache=False).logits[0].float()


def _inputs(loaded: Loaded, prompt: Encoded, length: int) -> dict[str, Any]:
    import torch

    ids = torch.tensor([prompt.ids[:length]], device=loaded.device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **place_media(loaded, prompt.media)}
