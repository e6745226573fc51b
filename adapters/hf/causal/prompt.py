"""Messages as the text that a causal language model continues: by its chat template, or joined."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ....core.contracts.errors import ModelLoadError, PermanentError
from ....core.contracts.records import Message, Prompt, Scalar, Text
from ..files import Source, find_file
from ..hub import one_line

Chat = Literal["auto", "template", "plain"]
TODAY = datetime.datetime(2024, 7, 26, tzinfo=datetime.UTC)
"""The date given to templates: an answer must not depend on the day of the request."""
_CLOCK = "strftime_now"
JOINT = "\n\n"


class Rendered(NamedTuple):
    """A prompt as the one text that is continued."""

    text: str
    special: bool
    """Whether the tokenizer adds its own tokens in front; a template has written them itself."""


class Style(NamedTuple):
    """How messages become text."""

    template: str | None
    """A chat template (Jinja); None joins the texts."""
    system: str | None
    arguments: Mapping[str, Any] = {}
    """Further arguments of the template."""

    def settings(self) -> dict[str, Scalar]:
        """Return the part of these settings that belongs to a model's identity."""
        if self.template is None:
            return {"chat": "plain", "system_prompt": self.system}
        digest = hashlib.sha256(self.template.encode()).hexdigest()
        return {"chat": "template", "chat_template": f"sha256:{digest}", "system_prompt": self.system}

    def render(self, prompt: Prompt, tokenizer: Any) -> Rendered:
        """Return the text to be continued.

        Raises:
            PermanentError: an image, no message, or a conversation that the template refuses.
        """
        if isinstance(prompt, str):
            return Rendered(prompt if self.system is None else self.system + JOINT + prompt, special=True)
        turns = [{"role": message.role, "content": _text(message)} for message in prompt]
        if not turns:
            raise PermanentError("the request has no message to answer.", code="request.empty")
        turns = self._with_system(turns)
        if self.template is None:
            return Rendered(JOINT.join(turn["content"] for turn in turns), special=True)
        return Rendered(fill_template(self.template, turns, tokenizer, self.arguments), special=False)

    def _with_system(self, turns: list[dict[str, str]]) -> list[dict[str, str]]:
        if self.system is None:
            return turns
        # Templates know one system message at most.
        own = [turns[0]["content"]] if turns[0]["role"] == "system" else []
        return [{"role": "system", "content": JOINT.join([self.system, *own])}, *turns[len(own) :]]


def choose_style(chat: Chat, system: str | None, source: Source, arguments: Mapping[str, Any]) -> Style:
    """Choose how messages become text, from the model's files alone.

    Raises:
        ModelLoadError: a template is asked for and there is none, or its file cannot be read.
    """
    if chat == "plain":
        return Style(None, system)
    template = _find_template(source)
    if template is None and chat == "template":
        raise ModelLoadError(
            f"model {source.name!r} has no chat template. Set chat = 'plain' to join the texts.", code="model.template"
        )
    return Style(template, system, arguments)


def _find_template(source: Source) -> str | None:
    if path := find_file(source, "chat_template.jinja"):
        return path.read_text(encoding="utf-8")
    path = find_file(source, "tokenizer_config.json")
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
    except (ValueError, AttributeError) as error:
        raise ModelLoadError(
            f"cannot read tokenizer_config.json of {source.name!r}: {one_line(error)}", code="model.template"
        ) from error
    if isinstance(found, list):
        # Several by name: the one called default is for conversations.
        found = {entry["name"]: entry["template"] for entry in found}.get("default")
    return found if isinstance(found, str) else None


def _text(message: Message) -> str:
    if not all(isinstance(part, Text) for part in message.parts):
        raise PermanentError(
            "this model reads text only, but a message has an image. Use a vision-language model.",
            code="request.image-unsupported",
        )
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def fill_template(
    template: str, turns: Sequence[Mapping[str, Any]], tokenizer: Any, arguments: Mapping[str, Any]
) -> str:
    """Return a conversation as the text to be continued, its clock stopped.

    Raises:
        PermanentError: the template refuses it.
    """
    open_turn = turns[-1]["role"] == "assistant"
    try:
        filled = tokenizer.apply_chat_template(
            list(turns),
            chat_template=_stop_clock(template),
            tokenize=False,
            add_generation_prompt=not open_turn,
            continue_final_message=open_turn,
            **arguments,
        )
    # A template is a program: it raises what it likes.
    except Exception as error:
        raise PermanentError(
            f"the model's chat template refuses the messages: {one_line(error)}", code="request.template"
        ) from error
    return str(filled)


def _stop_clock(template: str) -> str:
    """Give a fixed clock to a template that uses the date."""
    if _CLOCK not in template:
        return template
    told = "".join(f" | replace('%{sign}', '{TODAY.strftime('%' + sign)}')" for sign in "aAbBdHIjmMpSyY")
    # Transformers takes no function as an argument, but a macro of that name goes before its own.
    return f"{{%- macro {_CLOCK}(pattern) -%}}{{{{ pattern{told} }}}}{{%- endmacro %}}{template}"
