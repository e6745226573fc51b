"""What goes wrong with an engine: at the start, in the middle, and at the end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from prejudge.adapters.vllm.adapter import VLLM
from prejudge.adapters.vllm.engine import INVARIANT, Asked, Engine
from prejudge.adapters.vllm.options import VLLMOptions, engine_arguments
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError, PermanentError, TransientError
from prejudge.core.contracts.records import Likelihood, Likelihoods, Message, Text
from prejudge.testing import raises_code

from .. import llava_files
from .conftest import engines, make
from .test_adapter import tiny_llava  # noqa: F401

REQUEST = Likelihood(prompt="The tall boys are", continuations=(" lazy", " not"))
PARAMS = {"temperature": 0.0, "max_tokens": 2}


def start(folder, **options):
    arguments = engine_arguments(VLLMOptions(model=str(folder), **options), "float32", sees=False)
    return Engine(folder, arguments, invariant=True)


def test_missing_package_names_the_extra(tiny_llama, monkeypatch):
    monkeypatch.setattr("prejudge.adapters.vllm.adapter.find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", "vllm"):
        make(tiny_llama)


def test_identity_is_known_without_vllm_or_torch_being_imported(tiny_llama):
    before = "torch" in sys.modules
    identity = make(tiny_llama).identity
    assert identity.adapter == "vllm" and identity.digest.startswith("sha256:") and identity.settings["dtype"]
    assert "vllm" not in sys.modules and ("torch" in sys.modules) == before


def test_arguments_with_a_setting_of_their_own_are_refused(tiny_llama):
    with raises_code(ModelLoadError, "model.option", "enable_prefix_caching"):
        make(tiny_llama, engine={"enable_prefix_caching": True})


def test_thinking_is_an_argument_of_the_chat_template(tiny_llama, make_causal):
    folder = make_causal("llama", template="{% for m in messages %}{{ m.content }}{% endfor %}{{ enable_thinking }}")
    assert VLLM.options.think("off", {"model": str(folder)})["chat_template_kwargs"] == {"enable_thinking": False}
    with raises_code(ModelLoadError, "model.template"):
        make(tiny_llama, chat_template_kwargs={"enable_thinking": True})


def test_folder_of_another_kind_is_told_before_the_study(tiny_bert, tiny_llama):
    assert not VLLM.abilities(VLLMOptions(model=str(tiny_bert))).operations
    assert VLLM.abilities(VLLMOptions(model=str(tiny_llama))).operations == {"generate", "likelihood"}


def test_masked_model_is_refused(tiny_bert):
    with raises_code(ModelLoadError, "model.kind", "hf-masked"):
        make(tiny_bert)


def test_older_vllm_is_refused(tiny_llama, ask, monkeypatch):
    import vllm

    class Old:
        __struct_fields__ = ("temperature",)

    monkeypatch.setattr(vllm, "SamplingParams", Old)
    monkeypatch.setenv(INVARIANT, "1")
    with raises_code(ModelLoadError, "model.library", "0.33"):
        ask(tiny_llama, [REQUEST])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"gpu_memory": 0.01}, "model.memory"),
        ({"engine": {"enforce_eager": "break"}}, "model.unloadable"),
        ({"engine": {"no_such_argument": 1}}, "model.unloadable"),
    ],
)
def test_engine_that_does_not_start_is_a_typed_error_of_one_line(options, code, tiny_llama, ask):
    with pytest.raises(ModelLoadError) as caught:
        ask(tiny_llama, [REQUEST], **options)
    assert caught.value.code == code and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cause", "kind", "code"),
    [
        (RuntimeError("illegal memory access"), TransientError, "engine.dead"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), PermanentError, "request.memory"),
    ],
)
def test_dead_engine_is_closed_and_the_next_call_has_a_new_one(cause, kind, code, tiny_llama):
    async def run():
        adapter = make(tiny_llama)
        (first,) = await adapter.likelihood_batch([REQUEST])
        engines()[0].llm_engine.dies = cause
        with raises_code(kind, code):
            await adapter.likelihood_batch([REQUEST])
        assert engines()[0].llm_engine.engine_core.closed
        assert (await adapter.likelihood_batch([REQUEST]))[0] == first and len(engines()) == 2
        await adapter.aclose()
        assert engines()[1].llm_engine.engine_core.closed

    asyncio.run(run())


def test_cancelled_call_aborts_what_is_left_and_the_engine_serves_on(tiny_llama):
    async def run():
        adapter = make(tiny_llama)
        (expected,) = await adapter.likelihood_batch([REQUEST])
        core = engines()[0].llm_engine
        began, step = threading.Event(), core.step

        def slow_step():
            began.set()
            return step()

        core.step = slow_step
        many = [Likelihood(prompt=f"{number} boys", continuations=(" are lazy",)) for number in range(200)]
        task = asyncio.create_task(adapter.likelihood_batch(many))
        await asyncio.to_thread(began.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await adapter.likelihood_batch([REQUEST]))[0] == expected
        assert core.aborted and not core.has_unfinished_requests()
        await adapter.aclose()

    asyncio.run(run())


def test_outputs_find_their_requests_although_some_were_refused(tiny_llama):
    engine = start(tiny_llama, max_context=40)
    lengths = [3, 50, 5, 4, 60, 7]
    found = engine.run([Asked([9] * length, PARAMS) for length in lengths], threading.Event())
    told = [one.code if isinstance(one, PermanentError) else len(one.prompt_token_ids) for one in found]
    assert told == [3, "request.too-long", 5, 4, "request.too-long", 7]
    refused = engine.run([Asked([9], {**PARAMS, "logprob_token_ids": [10**6]})], threading.Event())
    assert refused[0].code == "request.refused"
    engine.close()
    engine.close()


def test_more_options_than_one_request_takes_are_divided(tiny_llama, ask):
    letters = [chr(number) for number in range(0x4E00, 0x4E00 + 300)]
    request = Likelihood(prompt="The tall boys", continuations=tuple(f" {letter}" for letter in letters))
    (answer,) = ask(tiny_llama, [request], chat="plain")
    assert isinstance(answer, Likelihoods) and len(answer.scores) == 300


def test_value_that_was_left_out_is_an_error(tiny_llama, ask, monkeypatch):
    import vllm.engine

    told = vllm.engine.Numbers._told
    monkeypatch.setattr(vllm.engine.Numbers, "_told", lambda *arguments: dict(list(told(*arguments).items())[:1]))
    monkeypatch.setenv(INVARIANT, "1")
    (answer,) = ask(tiny_llama, [REQUEST])
    assert answer.code == "request.value-missing"


def test_prompt_with_its_image_beyond_the_context_is_too_long(tiny_llava, ask):  # noqa: F811
    short = llava_files.greedy(llava_files.QUESTIONS[:1])[0]
    found = ask(tiny_llava, [short], blobs=llava_files.look_up, max_context=16)
    assert found[0].code == "request.too-long"


def test_system_prompt_goes_before_a_conversation_with_images(tiny_llava):  # noqa: F811
    async def run():
        adapter = make(tiny_llava, system_prompt="Be kind.")
        adapter.services = Services(blobs=llava_files.look_up)
        model = await adapter._worker.run(adapter._ready)
        plain = model.prompts.render((Message("user", (Text("Hello"),)),), model.tokenizer)
        own = (Message("system", (Text("Be short."),)), Message("user", (Text("Hello"),)))
        joined = model.prompts.render(own, model.tokenizer)
        await adapter.aclose()
        return plain.text, joined.text

    plain, joined = asyncio.run(run())
    assert plain.startswith("<s>SYSTEM: Be kind. USER: Hello")
    assert joined.startswith("<s>SYSTEM: Be kind.Be short. USER: Hello")


def test_mode_is_left_as_it_was_chosen(tiny_llama, ask):
    ask(tiny_llama, [REQUEST])
    assert os.environ[INVARIANT] == "1"
