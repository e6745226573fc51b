"""The model contract: one form of an operation is made from the other; abilities follow from methods and settings."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from fakes import FakeModel, FakeOptions, ask

from prejudge.core.contracts.abilities import CHAT, IMAGES, NO_TEMPLATE, Abilities, Need, need_of
from prejudge.core.contracts.adapter import Identity, ModelAdapter, Services, Worker, abilities_of, answer_one
from prejudge.core.contracts.errors import PermanentError, UnsupportedOperationError
from prejudge.core.contracts.records import Classification, Classify, Draw, Drawing, Embed, Generation, Sampling
from prejudge.testing import raises_code


class Labels(ModelAdapter):
    identity = Identity(adapter="labels", version="1", model="m")

    async def classify(self, request):
        if not request.text:
            raise PermanentError("empty")
        return Classification(probabilities={"positive": 1.0})


def test_single_form_makes_the_batch_form():
    answers = asyncio.run(Labels().answer([Classify(text="a"), Classify(text=""), Classify(text="b")]))
    assert isinstance(answers[1], PermanentError)
    assert answers[0] == answers[2] == Classification(probabilities={"positive": 1.0})


def test_batch_form_makes_the_single_form():
    assert asyncio.run(answer_one(FakeModel(FakeOptions()), ask("a"))) == Generation(text="A")


def test_error_of_one_request_is_raised_by_the_single_form():
    with raises_code(PermanentError, "permanent", "empty"):
        asyncio.run(answer_one(Labels(), Classify(text="")))


def test_operations_follow_from_methods():
    assert Labels.abilities(None) == Abilities(operations=frozenset({"classify"}))
    assert FakeModel.abilities(FakeOptions()).operations == {"generate"}


def test_missing_operation_says_what_there_is():
    with raises_code(UnsupportedOperationError, "model.operation", "'embed'", "classify"):
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
    identity = Identity(adapter="drawer", version="1", model="m")

    async def draw(self, request):
        return Drawing(image=self.services.keep(b"drawn", "image/png"))


def test_services_come_before_the_first_request():
    adapter, kept = Drawer(), []
    assert adapter.services == Services()
    adapter.services = Services(keep=lambda data, kind: kept.append((data, kind)) or "name")
    assert asyncio.run(adapter.draw(Draw(prompt="a"))).image == "name" and kept == [(b"drawn", "image/png")]
    assert Drawer().services == Services()


class Chosen(FakeModel):
    """A model whose settings decide what it can do."""

    @classmethod
    def abilities(cls, options) -> Abilities:
        able = msgspec.structs.replace(super().abilities(options), fields=frozenset({"top_k"}))
        return able.without({"generate": "Set a template."}) if options.model == "mute" else able


def test_what_settings_take_away_is_refused_before_the_model_is_asked():
    mute = Chosen(FakeOptions(model="mute"))
    with raises_code(UnsupportedOperationError, "model.operation", "Set a template"):
        asyncio.run(mute.answer([ask("a")]))
    assert not mute.asked


def test_request_with_a_field_that_a_model_does_not_honour_has_its_error_and_the_others_their_answers():
    model = Chosen(FakeOptions())
    wishes = [ask("a"), ask("b", choices=("yes", "no")), ask("c", sampling=Sampling(top_k=3))]
    first, refused, last = asyncio.run(model.answer(wishes))
    assert (first.text, last.text, model.asked) == ("A", "C", ["a", "c"])
    assert (refused.code, refused.fields["names"]) == ("request.unsupported", ("choices",))


def test_abilities_of_an_instance_are_those_of_its_options():
    assert abilities_of(Chosen(FakeOptions())) == Chosen.abilities(FakeOptions())
    assert abilities_of(Chosen(FakeOptions(model="mute"))).operations == frozenset()


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (Need(operation="generate"), ""),
        (Need(operation="generate", fields=frozenset({"top_k"})), ""),
        (Need(operation="generate", images=True), "text only"),
        (Need(operation="likelihood", images=True), "Set it."),
        (Need(operation="draw"), "it can do: generate"),
        (Need(operation="generate", fields=frozenset({"top_k", "min_p", "choices"})), "choices, min_p"),
    ],
)
def test_one_question_has_one_answer(need, reason):
    able = Abilities(operations=frozenset({"generate", "likelihood"}), fields=frozenset({"top_k"}))
    why = able.without({"likelihood": "Set it.", IMAGES: "It is text only."}).missing(need)
    assert reason in why and bool(why) == bool(reason)


def test_need_of_a_request_names_its_operation_and_rare_fields():
    assert need_of(Embed(text="a")) == Need(operation="embed")
    wish = ask("a", json_schema='{"type": "object"}', sampling=Sampling(min_p=0.1))
    assert need_of(wish) == Need(operation="generate", fields=frozenset({"json_schema", "min_p"}))


def test_model_without_a_chat_template_says_so():
    class Base(ModelAdapter):
        identity = Identity(adapter="b", version="1", model="b")

        async def generate(self, request): ...

    model = Base()
    assert abilities_of(model).chat
    model = Base()
    model._lacks = {CHAT: NO_TEMPLATE}
    able = abilities_of(model)
    assert not able.chat and able.reasons[CHAT] == NO_TEMPLATE and able.operations == {"generate"}
