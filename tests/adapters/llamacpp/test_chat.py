"""`llamacpp`: how messages become a prompt."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.core.contracts.adapter import abilities_of
from prejudge.core.contracts.errors import ModelLoadError, PermanentError
from prejudge.core.contracts.records import Generate, Image, Likelihood, Message, Sampling, Text
from prejudge.testing import raises_code

from ..gguf_files import write_pair
from .asking import Pair, ask, say

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")


def test_chat_prompt_is_scored_in_its_template(pair: Pair) -> None:
    messages = say("one").messages
    text = "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n"
    chat, plain = ask(
        pair[0], [Likelihood(prompt=p, continuations=("two",)) for p in (messages, text)], chat_format="file"
    )
    # The template writes no begin-of-text; a plain prompt gets one.
    assert plain.usage.input_tokens == chat.usage.input_tokens + 1


def test_builtin_format_equals_file_template(pair: Pair) -> None:
    request = say("one two", temperature=0.0)
    (file,), (builtin,) = ask(pair[0], [request]), ask(pair[0], [request], chat_format="chatml")
    assert builtin.usage.input_tokens == file.usage.input_tokens + 1


def test_plain_join_without_template(plain_pair: Pair) -> None:
    chat, text = ask(
        plain_pair[0],
        [
            Likelihood(prompt=say("one", "two").messages, continuations=(" three",)),
            Likelihood(prompt="one\n\ntwo", continuations=(" three",)),
        ],
    )
    assert chat == text


def test_system_prompt_goes_first(pair: Pair) -> None:
    prompted = ask(pair[0], [say("one", temperature=0.0)], system_prompt="two")
    system = (Message("system", (Text("two"),)), *say("one").messages)
    spelled = ask(pair[0], [Generate(messages=system, sampling=Sampling(max_tokens=12, temperature=0.0))])
    assert prompted == spelled


def test_assistant_turn_is_continued(pair: Pair) -> None:
    text = "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo"
    (answer,) = ask(pair[0], [say("one", "two", temperature=0.0)])
    (spelled,) = ask(pair[0], [Likelihood(prompt=text, continuations=(" three",))])
    # The spelled-out text has a begin-of-text more.
    assert answer.usage.input_tokens == spelled.usage.input_tokens - spelled.scores[0].count - 1


def test_image_is_refused(pair: Pair) -> None:
    (error,) = ask(pair[0], [Generate(messages=(Message("user", (Image("ab" * 32), Text("one"))),))])
    assert isinstance(error, PermanentError)
    assert error.code == "request.image-unsupported"


def test_template_refusal_is_typed(tmp_path: Path) -> None:
    file, _ = write_pair(tmp_path, template="{{ raise_exception('roles must alternate') }}")
    (error,) = ask(file, [say("one")])
    assert isinstance(error, PermanentError)
    assert error.code == "request.template" and "roles must alternate" in str(error)


@pytest.mark.parametrize(
    "reach", ["''.__class__.__mro__[1].__subclasses__()", "messages.append(1)", "range(10 ** 9)|list"]
)
def test_template_is_kept_in_its_sandbox(tmp_path: Path, reach: str) -> None:
    file, _ = write_pair(tmp_path, template="{{ " + reach + " }}")
    (error,) = ask(file, [say("one")])
    assert isinstance(error, PermanentError)
    assert error.code == "request.template"


def test_unknown_chat_format_lists_the_known(pair: Pair) -> None:
    with raises_code(ModelLoadError, "model.template", "chatml"):
        ask(pair[0], [say("one")], chat_format="chatmI")


def test_file_format_needs_a_template(plain_pair: Pair) -> None:
    with raises_code(ModelLoadError, "model.template"):
        LlamaCpp(LlamaCppOptions(model=str(plain_pair[0]), chat_format="file"))


def test_file_without_a_template_is_a_base_model(pair: Pair, plain_pair: Pair) -> None:
    for (file, _), chat in ((pair, True), (plain_pair, False)):
        adapter = LlamaCpp(LlamaCppOptions(model=str(file)))
        assert abilities_of(adapter).chat is chat
        assert LlamaCpp.abilities(LlamaCppOptions(model=str(file))).chat is chat
        asyncio.run(adapter.aclose())
