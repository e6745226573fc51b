"""The model contract: one form is made from the other; capabilities follow from what is overridden."""

from __future__ import annotations

import asyncio

from fakes import FakeModel, FakeOptions, ask

from prejudge.core.contracts.adapter import Identity, ModelAdapter, Services, Worker
from prejudge.core.contracts.errors import PermanentError, UnsupportedOperationError
from prejudge.core.contracts.records import Classification, Classify, Draw, Drawing, Embed, Generate, Generation
from prejudge.testing import raises_code


class Labels(ModelAdapter):
    identity = Identity(adapter="labels", version="1", model="m")

    async def classify(self, request):
        if not request.text:
            raise PermanentError("empty")
        return Classification(probabilities={"positive": 1.0})


def test_single_form_makes_the_batch_form():
    answers = asyncio.run(Labels().classify_batch([Classify(text="a"), Classify(text=""), Classify(text="b")]))
    assert isinstance(answers[1], PermanentError)
    assert answers[0] == answers[2] == Classification(probabilities={"positive": 1.0})


def test_batch_form_makes_the_single_form():
    assert asyncio.run(FakeModel(FakeOptions()).generate(ask("a"))) == Generation(text="A")


def test_error_of_one_request_is_raised_by_the_single_form():
    with raises_code(PermanentError, "permanent", "empty"):
        asyncio.run(Labels().classify(Classify(text="")))


def test_capabilities_follow_from_overrides():
    assert Labels.capabilities() == {Classify}
    assert FakeModel.capabilities() == {Generate}


def test_missing_operation_says_what_there_is():
    with raises_code(UnsupportedOperationError, "model.operation", "'embed'", "classify"):
        asyncio.run(Labels().embed(Embed(text="a")))
    with raises_code(UnsupportedOperationError, "model.operation", "'embed'"):
        asyncio.run(Labels().answer([Embed(text="a")]))


def test_answer_of_nothing_is_nothing():
    assert asyncio.run(Labels().answer([])) == []


def test_worker_runs_one_call_after_another():
    async def overlap():
        worker, busy, seen = Worker("w"), [], []

        def call(i):
            busy.append(i)
            seen.append(len(busy))
            busy.remove(i)
            return i

        results = await asyncio.gather(*(worker.run(call, i) for i in range(20)))
        worker.close()
        return results, seen

    results, seen = asyncio.run(overlap())
    assert results == list(range(20)) and set(seen) == {1}


class Drawer(ModelAdapter):
    """Written as the contract was before services came in one call: it reads attributes."""

    identity = Identity(adapter="drawer", version="1", model="m")

    async def draw(self, request):
        return Drawing(image=self.keep(b"drawn", "image/png"))


def test_services_come_in_one_call():
    adapter, kept = Drawer(), []
    assert adapter.blobs is adapter.keep is adapter.hear is None
    adapter.bind(Services(keep=lambda data, kind: kept.append((data, kind)) or "name"))
    assert asyncio.run(adapter.draw(Draw(prompt="a"))).image == "name" and kept == [(b"drawn", "image/png")]
    assert adapter.blobs is None


def test_what_a_model_lacks_is_refused_before_it_is_asked():
    adapter = Labels()
    adapter.lacks = {Classify: "Set labels."}
    with raises_code(UnsupportedOperationError, "model.operation", "Set labels"):
        asyncio.run(adapter.answer([Classify(text="a")]))


def test_model_of_any_settings_can_do_what_its_class_can():
    assert Labels.lacking(FakeOptions()) == {}
