"""Rules about answers: alone and in a batch, in order, of their kind, and what is refused."""

from __future__ import annotations

from random import Random

from ..core.contracts.abilities import OPERATIONS, methods_of
from ..core.contracts.adapter import ModelAdapter, abilities_of
from ..core.contracts.canonical import decode_response, encode_response
from ..core.contracts.errors import ModelError, UnsupportedOperationError
from ._compare import check_scores
from ._garbage import GARBAGE, RESPONSES
from ._kit import AdapterKit


class AnswerRules(AdapterKit):
    """Rules about the answers of an adapter."""

    def test_batch_equals_single(self) -> None:
        """An answer does not depend on the other requests of its batch."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                together = await adapter.answer(group)
                for request, answer in zip(group, together, strict=True):
                    (alone,) = await adapter.answer([request])
                    self._same(alone, answer, request)

        self._with(rule)

    def test_order_is_kept(self) -> None:
        """Answers are in the order of the requests, also if requests are reordered or repeated."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                answers = await adapter.answer(group)
                places = [*range(len(group)), 0]
                Random(0).shuffle(places)
                again = await adapter.answer([group[place] for place in places])
                assert len(again) == len(places), f"{len(again)} answers to {len(places)} requests"
                for place, answer in zip(places, again, strict=True):
                    self._same(answers[place], answer, group[place])

        self._with(rule)

    def test_nothing_asked_gives_nothing(self) -> None:
        """No request, no answer, no error."""

        async def rule(adapter: ModelAdapter) -> None:
            assert list(await adapter.answer([])) == []

        self._with(rule)

    def test_responses_are_of_their_kind(self) -> None:
        """Each request is answered by its own kind of record, whose numbers agree with each other."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                for request, answer in zip(group, await adapter.answer(group), strict=True):
                    wanted = RESPONSES[type(request)]
                    assert isinstance(answer, wanted), f"{request!r} is answered by {answer!r}, not {wanted.__name__}"
                    check_scores(request, answer, self.tolerance)

        self._with(rule)

    def test_responses_read_back_exactly(self) -> None:
        """A stored response is read back unchanged."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                for answer in await adapter.answer(group):
                    assert not isinstance(answer, ModelError), repr(answer)
                    assert decode_response(encode_response(answer)) == answer

        self._with(rule)

    def test_unsupported_operations_are_refused(self) -> None:
        """An unsupported operation is refused by name, before any work."""

        async def rule(adapter: ModelAdapter) -> None:
            able = abilities_of(adapter).operations
            for kind, operation in OPERATIONS.items():
                if operation in able:
                    continue
                try:
                    answers = await adapter.answer([GARBAGE[kind][0]])
                except UnsupportedOperationError:
                    continue
                raise AssertionError(f"{operation!r} is not refused; it gives {answers!r}")

        self._with(rule)

    def test_abilities_have_methods_and_reasons(self) -> None:
        """There is a method for each operation that the abilities name, and a reason for each that was taken away."""

        async def rule(adapter: ModelAdapter) -> None:
            able, methods = abilities_of(adapter), methods_of(type(adapter))
            absent = able.operations - methods
            assert not absent, f"the abilities name {sorted(absent)}, for which the class has no method"
            silent = [operation for operation in methods - able.operations if not able.reasons.get(operation)]
            assert not silent, f"the abilities give no reason why {silent} cannot be done; use `Abilities.without`"

        self._with(rule)

    def test_garbage_is_answered_or_refused(self) -> None:
        """An invalid request gets a `ModelError` in its place (or an answer), without an effect on other requests."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                garbage = GARBAGE[type(group[0])]
                answers = await adapter.answer([*garbage, group[0]])
                for request, answer in zip(garbage, answers, strict=False):
                    fit = isinstance(answer, (RESPONSES[type(request)], ModelError))
                    assert fit, f"{request!r} is answered by {answer!r}"
                (alone,) = await adapter.answer([group[0]])
                self._same(alone, answers[-1], group[0])

        self._with(rule)
