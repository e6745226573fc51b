"""Rules about what must reach the model: the settings of a request, all its messages, and its images."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from unittest import SkipTest

import msgspec

from ..core.contracts.adapter import ModelAdapter
from ..core.contracts.errors import PermanentError
from ..core.contracts.records import Generate, Generation, Image, Message, Text
from ._behaviour import check_images, check_sampling, check_system
from ._kit import IMAGES, AdapterKit, ask, run, settle
from ._standin import asked, holds
from .chaos.http import Call

NUMBERS = {"temperature": 0.4375, "top_p": 0.8125, "max_tokens": 1237}
"""Values that nothing else in a request has."""
STOP = ("kit-stop-1", "kit-stop-2")


class ReachingRules(AdapterKit):
    """Rules about what an adapter must not leave out. At an endpoint the kit looks at what is sent."""

    def test_sampling_reaches_the_model(self) -> None:
        """Temperature, top_p, max_tokens, stop and seed reach the model, or the request is refused."""
        if type(self).at is not None:
            self._check_sent()
        else:
            self._by_answers(lambda adapter: check_sampling(adapter, self._questions(), self.ignores))

    def test_system_message_reaches_the_model(self) -> None:
        """The system message and every turn of a conversation reach the model, or the request is refused."""
        if type(self).at is None:
            if "system" not in self.ignores:
                self._by_answers(lambda adapter: check_system(adapter, self._questions()))
            return
        self._generates()
        turns = (("user", "kit-first"), ("assistant", "kit-second"), ("user", "kit-third"))
        if "system" not in self.ignores:
            turns = (("system", "kit-system"), *turns)  # type: ignore[assignment]
        sent = self._sent_for(Generate(messages=tuple(Message(role, (Text(text),)) for role, text in turns)))  # type: ignore[arg-type]
        lost = [text for _, text in turns if not any(holds(one, text) for one in sent)]
        assert not sent or not lost, f"the messages {lost} do not reach the endpoint"

    def test_images_are_seen_or_refused(self) -> None:
        """An image of a message reaches the model, or the request is refused."""
        if type(self).at is None:
            self._by_answers(lambda adapter: check_images(adapter, self._generates()))
            return
        self._generates()
        contents = []
        for name, data in IMAGES.items():
            sent = self._sent_for(Generate(messages=(Message("user", (Text("kit-picture"), Image(name))),)))
            if not sent:
                return
            coded = base64.b64encode(data).decode()
            if any(holds(one, coded) or data in one.raw for one in sent):
                return
            contents.append([asked(one) for one in sent])
        # An adapter may send it in another size or format.
        assert contents[0] != contents[1], "an image does not reach the endpoint: raise PermanentError if it takes none"

    def _by_answers(self, check: Callable[[ModelAdapter], Awaitable[None]]) -> None:
        """Run a check of the answers of a model in this process."""

        async def rule(adapter: ModelAdapter) -> None:
            if adapter.endpoint is not None:
                assert self.no_stand_in, "set `at`, so that the kit can stand in for the endpoint, or `no_stand_in`"
                raise SkipTest(self.no_stand_in)
            await check(adapter)

        self._with(rule)

    def _sent_for(self, request: Generate) -> list[Call]:
        """Return what is sent for a request; nothing if it is refused with a `PermanentError`."""
        with self._endpoint(self.speaks.echo) as (server, make):
            answer = run(make, lambda adapter: settle(adapter, request))
            if isinstance(answer, PermanentError):
                return []
            assert isinstance(answer, Generation), f"{request!r} is answered by {answer!r}"
            return server.calls

    def _questions(self) -> list[Generate]:
        """Return the first few that differ in more than their settings."""
        return list({request.messages: request for request in reversed(self._generates())}.values())[-3:]

    def _check_sent(self) -> None:
        self._generates()
        assert self._sent_for(ask("kit-plain")), "a plain question is refused"
        for name, value in NUMBERS.items():
            if name not in self.ignores:
                sent = self._sent_for(ask("kit-setting", **{name: value}))  # type: ignore[arg-type]
                reached = not sent or any(holds(one, value) for one in sent)
                assert reached, f"{name} = {value} does not reach the endpoint"
        if "stop" not in self.ignores:
            sent = self._sent_for(ask("kit-setting", stop=STOP))
            reached = not sent or all(any(holds(one, text) for one in sent) for text in STOP)
            assert reached, f"the stop texts {STOP} do not reach the endpoint"
        if "seed" not in self.ignores:
            self._check_seeds()

    def _check_seeds(self) -> None:
        """Check that other seeds, and other samples with and without a seed, are sent as other draws."""
        first, plain = ask("kit-setting", temperature=1.0, seed=420691), ask("kit-setting", temperature=1.0)
        others = {
            "another seed": (first, ask("kit-setting", temperature=1.0, seed=420692)),
            "another sample with the same seed": (first, msgspec.structs.replace(first, sample=1)),
            "another attempt with the same seed": (first, msgspec.structs.replace(first, attempt=1)),
            "another sample without a seed": (plain, msgspec.structs.replace(plain, sample=1)),
            "another attempt without a seed": (plain, msgspec.structs.replace(plain, attempt=1)),
        }
        for what, (one, other) in others.items():
            sent = [asked(each) for each in self._sent_for(one)]
            drawn = not sent or [asked(each) for each in self._sent_for(other)] != sent
            assert drawn, f"{what} is sent as the same request, so that its answer is a copy: see `wire_seed`"
