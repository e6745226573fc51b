"""Turn messages into the text a GGUF model reads: by the template in its file, one of llama.cpp's own, or none."""

from __future__ import annotations

import ctypes
import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ...core.contracts.errors import ModelLoadError, PermanentError
from ...core.contracts.records import Image, Message

PLAIN = "plain"
FILE = "file"
JOINT = "\n\n"
TODAY = datetime.datetime(2024, 7, 26, tzinfo=datetime.UTC)
"""The date given to templates: an answer must not depend on the day of the request."""
Turn = dict[str, str]


class Rendered(NamedTuple):
    """A prompt as text."""

    text: str
    whole: bool
    """Whether the text contains its own begin-of-text token, if it needs one."""


def read_turns(messages: Sequence[Message], system_prompt: str | None) -> list[Turn]:
    """Flatten messages to roles and texts; the system prompt goes before all, joined with the messages' own.

    Raises:
        PermanentError: a message contains an image, or there is no message.
    """
    turns = [{"role": message.role, "content": _content(message)} for message in messages]
    if not turns:
        raise PermanentError("the request has no message to answer.", code="request.empty")
    if system_prompt is None:
        return turns
    # Templates know one system message at most.
    own = [turns[0]["content"]] if turns[0]["role"] == "system" else []
    return [{"role": "system", "content": JOINT.join([system_prompt, *own])}, *turns[len(own) :]]


def render_text(text: str, system_prompt: str | None) -> Rendered:
    """Put the system prompt before a text that is continued unchanged."""
    return Rendered(text if system_prompt is None else system_prompt + JOINT + text, whole=False)


def render_plain(turns: Sequence[Turn]) -> Rendered:
    """Join the texts with blank lines, for models without a chat format."""
    return Rendered(JOINT.join(turn["content"] for turn in turns), whole=False)


def render_jinja(template: str, turns: Sequence[Turn], given: Mapping[str, Any]) -> Rendered:
    """Fill a Jinja template as Transformers does, sandboxed; a last message of the assistant is left open.

    Raises:
        PermanentError: the template does not take these messages.
    """
    opened = turns[-1]["role"] == "assistant"
    try:
        text = _compile(template).render(
            messages=list(turns),
            add_generation_prompt=not opened,
            raise_exception=_refuse,
            strftime_now=TODAY.strftime,
            **given,
        )
    # A template is a program: it raises what it likes.
    except Exception as error:
        raise PermanentError(
            f"the model's chat template does not take these messages: {error}", code="request.template"
        ) from None
    return Rendered(_cut_after(text, turns[-1]["content"].strip()) if opened else text, whole=True)


def render_builtin(lib: Any, name: str, turns: Sequence[Turn]) -> Rendered:
    """Format with one of llama.cpp's own templates.

    Raises:
        PermanentError: llama.cpp cannot format these messages so.
    """
    if any("\0" in turn["content"] for turn in turns):
        raise PermanentError(
            "a message holds a NUL character, where llama.cpp's own chat formats would cut it.",
            code="request.placeholder",
        )
    pairs = [(turn["role"].encode(), turn["content"].encode()) for turn in turns]
    chat = (lib.llama_chat_message * len(pairs))(*(lib.llama_chat_message(*pair) for pair in pairs))
    size = lib.llama_chat_apply_template(name.encode(), chat, len(pairs), True, None, 0)
    if size < 0:
        raise PermanentError(f"llama.cpp's chat format {name!r} does not take these messages.", code="request.template")
    buffer = ctypes.create_string_buffer(size + 1)
    lib.llama_chat_apply_template(name.encode(), chat, len(pairs), True, buffer, size)
    return Rendered(buffer.raw[:size].decode(), whole=False)


def check_builtin(lib: Any, name: str) -> None:
    """Raise `ModelLoadError` unless llama.cpp has a chat format of this name."""
    count = lib.llama_chat_builtin_templates(None, 0)
    names = (ctypes.c_char_p * count)()
    lib.llama_chat_builtin_templates(names, count)
    known = sorted(item.decode() for item in names if item)
    if name not in known:
        raise ModelLoadError(
            f"chat_format {name!r} is not known: {FILE}, {PLAIN}, {', '.join(known)}.", code="model.template"
        )


def _content(message: Message) -> str:
    if any(isinstance(part, Image) for part in message.parts):
        raise PermanentError(
            "'llamacpp' reads no images; use a vision-language model (hf-vlm).", code="request.image-unsupported"
        )
    return "".join(part.text for part in message.parts if not isinstance(part, Image))


def _compile(template: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    # Transformers' filter leaves text readable, where Jinja's own escapes it for HTML.
    environment.filters["tojson"] = _to_json
    return environment.from_string(template)


def _cut_after(text: str, content: str) -> str:
    place = text.rfind(content)
    if place < 0:
        raise PermanentError(
            "the model's chat template changes the last message, so it cannot be continued.", code="request.template"
        )
    return text[: place + len(content)]


def _to_json(value: Any, **settings: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False, **settings})


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)
