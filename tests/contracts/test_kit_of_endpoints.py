"""The contract kit sees what an adapter of an endpoint does wrong: each planted bug fails the rule that names it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from unittest import SkipTest

import msgspec
import pytest

from prejudge.core.contracts.adapter import RemoteEndpoint, answer_each

pytest.importorskip("aiohttp", reason="the adapter of these tests is built on aiohttp")

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.errors import ModelError, PermanentError, RateLimitError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Image, Sampling
from prejudge.testing import OPENAI, AdapterContract, Dialect

from .endpoint_adapter import KEY_ENV, Remote

RULES = sorted(name for name in dir(AdapterContract) if name.startswith("test_"))
OTHER_WAYS = {"identity_changes_with_the_answers", "identity_keeps_through_the_rest"}


def kit(adapter: type[Remote], **fields: Any) -> AdapterContract:
    given = {"at": staticmethod(adapter), "key_env": KEY_ENV, **fields}
    return type("Kit", (AdapterContract,), given)()


class Retries(Remote):
    async def send(self, body: dict[str, Any]) -> bytes:
        try:
            return await super().send(body)
        except TransientError:
            return await super().send(body)


class RetriesRateLimits(Remote):
    async def send(self, body: dict[str, Any]) -> bytes:
        try:
            return await super().send(body)
        except RateLimitError as error:
            await asyncio.sleep(error.retry_after or 0)
            return await super().send(body)


class KeyInMessage(Remote):
    def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
        error = super().explain(status, headers, data)
        return type(error)(f"status {status}: {data.decode('utf-8', 'replace')}")


class KeyInCause(Remote):
    async def send(self, body: dict[str, Any]) -> bytes:
        try:
            return await super().send(body)
        except ModelError as error:
            raise error from RuntimeError(f"Authorization: Bearer {self.key}")


class KeyInField(Remote):
    def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
        error = super().explain(status, headers, data)
        error.fields = {"headers": dict(headers)}
        return error


class KeyInEndpoint(Remote):
    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.endpoint = RemoteEndpoint(name=f"{url}?key={self.key}")


class SendsNoKey(Remote):
    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.key = ""


def without(name: str) -> type[Remote]:
    """Return an adapter that ignores a setting."""

    class Ignores(Remote):
        def body(self, request: Generate) -> dict[str, Any]:
            return {key: value for key, value in super().body(request).items() if key != name}

    return Ignores


class FixedTemperature(Remote):
    def body(self, request: Generate) -> dict[str, Any]:
        return super().body(request) | {"temperature": 1.0}


class FirstStopOnly(Remote):
    def body(self, request: Generate) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "stop": body["stop"][:1]} if "stop" in body else body


class SamplesAreCopies(Remote):
    def seed(self, request: Generate) -> int | None:
        return request.sampling.seed


class KeepsSampling(Remote):
    kept: Sampling = Sampling()

    def body(self, request: Generate) -> dict[str, Any]:
        given = {name: value for name, value in msgspec.structs.asdict(request.sampling).items() if value}
        self.kept = msgspec.structs.replace(self.kept, **given)
        return super().body(msgspec.structs.replace(request, sampling=self.kept))


class KeepsStop(Remote):
    stop: list[str] | None = None

    def body(self, request: Generate) -> dict[str, Any]:
        body = super().body(request)
        self.stop = body.get("stop", self.stop)
        return {**body, "stop": self.stop} if self.stop else body


class Converses(Remote):
    """Sends all that was said before, too."""

    said: tuple[Any, ...] = ()

    def body(self, request: Generate) -> dict[str, Any]:
        self.said = (*self.said, *request.messages)
        return super().body(msgspec.structs.replace(request, messages=self.said))


class DropsSystem(Remote):
    def body(self, request: Generate) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "messages": [each for each in body["messages"] if each["role"] != "system"]}


class LastTurnOnly(Remote):
    def body(self, request: Generate) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "messages": body["messages"][-1:]}


class RefusalIsOk(Remote):
    def read(self, data: bytes) -> Generation:
        return msgspec.structs.replace(super().read(data), status="ok")


class RefusalIsAnError(Remote):
    def read(self, data: bytes) -> Generation:
        answer = super().read(data)
        if answer.status != "ok":
            raise PermanentError("refused")
        return answer


class AllRefused(Remote):
    def read(self, data: bytes) -> Generation:
        return msgspec.structs.replace(super().read(data), status="refused")


class Nameless(Remote):
    def identify(self) -> Identity:
        return Identity(adapter="remote", version="1", model="chat")


class NoEndpoint(Remote):
    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.endpoint = None


class ForeignException(Remote):
    def translate(self, error: Exception) -> Exception:
        return error


class ForeignReading(Remote):
    def read(self, data: bytes) -> Generation:
        super().read(data)
        return Generation(text=msgspec.json.decode(data)["choices"][0]["message"]["content"].strip())


class ForeignWait(Remote):
    def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
        if status == 429:
            return RateLimitError("busy", float(headers.get("Retry-After") or 0))
        return super().explain(status, headers, data)


class ErrorIsAnAnswer(Remote):
    def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
        return super().explain(status, headers, data)

    async def send(self, body: dict[str, Any]) -> bytes:
        status, headers, data = await self.post(body)
        if status == 429:
            raise self.explain(status, headers, data)
        return data

    def read(self, data: bytes) -> Generation:
        try:
            return super().read(data)
        except ModelError:
            return Generation(text="")


def always(kind: type[ModelError]) -> type[Remote]:
    """Return an adapter that knows one kind of error."""

    class Always(Remote):
        def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
            return kind(f"status {status}")

    return Always


class NoWait(Remote):
    def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
        return super().explain(status, {}, data)


class CutIsPermanent(Remote):
    def translate(self, error: Exception) -> Exception:
        return PermanentError("cut")


class DropsImages(Remote):
    def content(self, parts: Any) -> str:
        return super().content([part for part in parts if not isinstance(part, Image)])


class AsTheyCome(Remote):
    """Returns the results of a batch in the order in which they arrive."""

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        calls = [asyncio.ensure_future(answer_each(self.generate, [each])) for each in requests]
        return [(await call)[0] for call in asyncio.as_completed(calls)]


class SharesBody(Remote):
    async def generate(self, request: Generate) -> Generation:
        self.current = self.body(request)
        await asyncio.sleep(0)
        return self.read(await self.send(self.current))


class SharesReply(Remote):
    async def generate(self, request: Generate) -> Generation:
        self.reply = await self.send(self.body(request))
        await asyncio.sleep(0.02)
        return self.read(self.reply)


class SeesImages(Remote):
    """Sends images, by their bytes."""

    def content(self, parts: Any) -> Any:
        return [
            {"image": list(self.services.blobs(part.sha256))} if isinstance(part, Image) else {"text": part.text}
            for part in parts
        ]


@pytest.mark.parametrize("rule", RULES)
def test_sound_adapter_passes(rule):
    recipe = "from tests.contracts.endpoint_adapter import Remote\nadapter = Remote(url, model)"
    recipe = f"import sys\nsys.path.insert(0, {__file__.rpartition('/tests/')[0]!r})\n{recipe}"
    sound = kit(Remote, recipe=recipe, others=[lambda url, model: Remote(url, "other")], same=[Remote])
    getattr(sound, rule)()


BUGS: list[tuple[type[Remote], str]] = [
    (Retries, "failures_are_not_retried"),
    (RetriesRateLimits, "failures_are_not_retried"),
    (KeyInMessage, "errors_hold_no_key"),
    (KeyInCause, "errors_hold_no_key"),
    (KeyInField, "errors_hold_no_key"),
    (KeyInEndpoint, "errors_hold_no_key"),
    (SendsNoKey, "errors_hold_no_key"),
    *((without(name), "sampling_reaches_the_model") for name in ("temperature", "top_p", "max_tokens", "stop", "seed")),
    (FixedTemperature, "sampling_reaches_the_model"),
    (FirstStopOnly, "sampling_reaches_the_model"),
    (SamplesAreCopies, "sampling_reaches_the_model"),
    (KeepsSampling, "nothing_is_kept_from_another_request"),
    (KeepsStop, "nothing_is_kept_from_another_request"),
    (Converses, "nothing_is_kept_from_another_request"),
    (DropsSystem, "system_message_reaches_the_model"),
    (LastTurnOnly, "system_message_reaches_the_model"),
    (RefusalIsOk, "refusals_are_told"),
    (RefusalIsAnError, "refusals_are_told"),
    (AllRefused, "refusals_are_told"),
    (Nameless, "identity_names_the_model"),
    (NoEndpoint, "identity_names_the_model"),
    (ErrorIsAnAnswer, "odd_replies_are_model_errors"),
    (always(PermanentError), "errors_say_what_to_do"),
    (always(TransientError), "errors_say_what_to_do"),
    (NoWait, "errors_say_what_to_do"),
    (CutIsPermanent, "errors_say_what_to_do"),
    (DropsImages, "images_are_seen_or_refused"),
    (AsTheyCome, "order_is_kept_if_replies_overtake"),
    (SharesBody, "concurrent_requests_share_nothing"),
    (SharesReply, "concurrent_requests_share_nothing"),
]


@pytest.mark.parametrize(("broken", "rule"), BUGS, ids=lambda value: getattr(value, "__name__", value))
def test_planted_bug_fails(broken, rule):
    with pytest.raises(AssertionError) as caught:
        getattr(kit(broken), f"test_{rule}")()
    assert "kit-key" not in str(caught.value)


@pytest.mark.parametrize("broken", [ForeignException, ForeignReading, ForeignWait])
def test_foreign_exception_fails(broken):
    """The exception itself is shown: its traceback says where it comes from."""
    foreign = {"ForeignException": Exception, "ForeignReading": KeyError, "ForeignWait": ValueError}
    rule = "errors_say_what_to_do" if broken is ForeignException else "odd_replies_are_model_errors"
    with pytest.raises(foreign[broken.__name__]) as caught:
        getattr(kit(broken), f"test_{rule}")()
    assert not isinstance(caught.value, (AssertionError, ModelError))
    assert broken is ForeignException or any("The endpoint had replied" in note for note in caught.value.__notes__)


def test_images_may_be_sent():
    kit(SeesImages).test_images_are_seen_or_refused()


def test_setting_that_the_model_lacks_is_named():
    kit(without("seed"), ignores=("seed",)).test_sampling_reaches_the_model()
    kit(DropsSystem, ignores=("system",)).test_system_message_reaches_the_model()


def test_dialect_without_marks_is_skipped():
    with pytest.raises(SkipTest, match="refusal"):
        kit(Remote, speaks=Dialect(answer=OPENAI.answer)).test_refusals_are_told()


def test_wrong_dialect_is_said():
    with pytest.raises(AssertionError, match="speaks"):
        kit(Remote, speaks=Dialect(answer=lambda text: {"text": text})).test_refusals_are_told()


def test_endpoint_without_at_is_not_judged_as_a_local_model():
    class Kit(AdapterContract):
        make = staticmethod(lambda: Remote("http://127.0.0.1:9", "m"))

    with pytest.raises(AssertionError, match="set `at`"):
        Kit().test_sampling_reaches_the_model()
    Kit.no_stand_in = "it speaks gRPC"
    with pytest.raises(SkipTest, match="gRPC"):
        Kit().test_sampling_reaches_the_model()


def test_environment_is_as_before(monkeypatch):
    import os

    monkeypatch.setenv(KEY_ENV, "the user's own")
    kit(Remote).test_errors_hold_no_key()
    assert os.environ[KEY_ENV] == "the user's own"
