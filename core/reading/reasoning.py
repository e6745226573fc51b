"""Reasoning apart from the answer, in the marks of any model.

A model that reasons writes its thoughts between marks, or its prompt has written the opening one already, so that only
the closing one stands in the text. An endpoint may take the thoughts out of the text, some of them, or only the marks.

Sources of the marks: the reasoning parsers of vLLM and SGLang (`<think>`, `[THINK]` of Magistral, `<seed:think>` of
Seed-OSS, Granite 3.2's sentences, `<|START_THINKING|>` of Command A Reasoning, Gemma 4's `<|channel>thought`, Kimi-VL's
triangles, Kimi K3's `<|open|>think<|sep|>`), llama.cpp (`<|inner_prefix|>` of Apertus), OpenThoughts
(`<|begin_of_thought|>`), and OpenAI's harmony format, with its channels or with what is left of them where a server
drops special tokens: `analysis...assistantfinal...`. Of Gemma 4's channel a server that drops them leaves `thought` on
a line of its own, and nothing where the answer begins (vLLM's issue 38855): such a text has no answer, but for a short
line behind a thought that was empty.
"""

from __future__ import annotations

import re

from ..contracts.records import Span

REASONING_READER_VERSION = 2
"""Raised whenever other parts of a text are read as reasoning; recorded with a reading, in no identity."""

MARK_TOKENS: tuple[str, ...] = (
    *("<think>", "</think>", "[THINK]", "[/THINK]", "<seed:think>", "</seed:think>", "<|think|>", "<|/think|>"),
    *("\u25c1think\u25b7", "\u25c1/think\u25b7", "<|channel|>", "<|message|>", "<|channel>", "<channel|>"),
    *("<|START_THINKING|>", "<|END_THINKING|>", "<|inner_prefix|>", "<|inner_suffix|>"),
    *("<|begin_of_thought|>", "<|end_of_thought|>", "<|open|>", "<|sep|>", "<|close|>"),
)
"""Special tokens that a model's text must keep when it is decoded, since they say where its reasoning ends."""

_NAMES = "think|thinking|thoughts?|reasoning|analysis|reflection|scratchpad"
_OPENING = (
    rf"<(?:[\w.-]+[:_])?(?:{_NAMES})>|\[THINK\]|\u25c1think\u25b7|<\|think\|>|<\|channel>\s*(?:thought|analysis)"
    r"|<\|START_THINKING\|>|<\|inner_prefix\|>|<\|begin_of_thought\|>|<\|open\|>think<\|sep\|>"
)
_CLOSING = (
    rf"</(?:[\w.-]+[:_])?(?:{_NAMES})>|\[/THINK\]|\u25c1/think\u25b7|<\|/think\|>|<channel\|>"
    r"|<\|END_THINKING\|>|<\|inner_suffix\|>|<\|end_of_thought\|>|<\|close\|>think<\|sep\|>"
)
_MARK = re.compile(rf"(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})", re.IGNORECASE)
_OPENED = re.compile(rf"(?:{_OPENING})\s*\Z", re.IGNORECASE)
_PERHAPS = re.compile(r"[<\[\u25c1]|assistantfinal|\A\s*(?:analysis[A-Z]|thought\n|Here(?:'s| is) my thought)")
"""Most answers need no further look."""
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>|\Z")
_STRIPPED_FINAL = "assistantfinal"
_STRIPPED_OPENING = re.compile(r"\A\s*analysis(?=[A-Z])")
"""A channel's name that stands at the beginning of a text without its marks, and the first word glued to it."""
_STRIPPED_THOUGHT = re.compile(r"\A\s*thought\n\s*")
"""The name of Gemma's channel without its marks."""
_FEW = 8
"""Most words of a line that is taken as the answer behind an empty thought."""
_GRANITE = re.compile(r"\A\s*Here(?:'s| is) my thought process:(.*?)(?:Here(?:'s| is) my response:|\Z)", re.DOTALL)

_END_OF_TURN = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|eos|end_of_turn|END_OF_TURN_TOKEN|END_RESPONSE"
    r"|END_TEXT|end_of_solution|assistant_end)\|>|<\|close\|>\w+<\|sep\|>|</s>|<end_of_turn>|<turn\|>|<eos>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>"
)
_HEADER = re.compile(
    r"\A\s*(?:<\|(?:im_start|start|start_header_id|assistant|assistant_start)\|>\s*(?:assistant)?\s*"
    r"(?:<\|end_header_id\|>)?|<\|(?:START_RESPONSE|START_TEXT|begin_of_solution)\|>|<\|open\|>response<\|sep\|>)\s*"
)
_WRAPPED = re.compile(
    r"\A\s*<(response|answer|output|final|final_answer)>(.*?)(?:</\1>)?\s*\Z", re.DOTALL | re.IGNORECASE
)
_MARK_LIKE = re.compile(
    r"<\|[A-Za-z_/][\w/:.-]{0,40}\|?>|<[A-Za-z_]{2,20}\|>|</s>|<end_of_turn>|<\uff5c[^<>\s]{1,40}\uff5c>"
)


def is_opened(prompt: str) -> bool:
    """Return whether a prompt, as the model reads it, ends with an opening mark: what follows is reasoning."""
    return _OPENED.search(prompt[-80:]) is not None


def split_reasoning(text: str, reasoning: str = "", *, opened: bool = False) -> tuple[str, str]:
    """Return reasoning and answer, both without marks.

    What stands before a closing mark is reasoning, also where no opening one precedes it; what stands after an opening
    mark that is never closed is, if nothing of an answer came before it. A text without marks is an answer.

    Args:
        text: as it was received.
        reasoning: what the provider gave beside the text.
        opened: whether the prompt had written the opening mark; a provider that gave reasoning has closed it.

    Returns:
        The reasoning of both, each part once, and the answer.
    """
    spans = find_reasoning(text, opened=opened and not reasoning)
    answer = _answer(text, spans)
    if not spans and not reasoning:
        return "", answer
    written = "\n\n".join(filter(None, (_bare(text[start:end]) for start, end in spans)))
    beside = _bare(reasoning)
    return (written if beside in written else "\n\n".join(filter(None, (beside, written)))), answer


def find_reasoning(text: str, *, opened: bool = False) -> list[Span]:
    """Return where a text is reasoning, marks included, in order."""
    if not opened and _PERHAPS.search(text) is None:
        return []
    if (channels := _outside_final(text)) is not None:
        return channels
    if (granite := _GRANITE.match(text)) is not None:
        return [(0, granite.end())]
    spans: list[Span] = []
    begun = 0 if opened else None
    for mark in _MARK.finditer(text):
        if mark["opening"] is not None:
            begun = mark.start() if begun is None else begun
        else:
            spans = [(0, mark.end())] if begun is None else [*spans, (begun, mark.end())]
            begun = None
    if begun is not None and begun < len(text) and (opened or not _outside(text[:begun], spans).strip()):
        spans.append((begun, len(text)))
    return spans


def find_stop(text: str, stops: tuple[str, ...], *, opened: bool = False) -> int | None:
    """Return where the first stop text begins in the answer; None if there is none. Reasoning is never cut."""
    if not stops:
        return None
    spans = find_reasoning(text, opened=opened)
    for start, end in _gaps(len(text), spans):
        places = [place for stop in stops if stop and (place := text.find(stop, start, end)) >= 0]
        if places:
            return min(places)
    return None


def remaining_marks(text: str) -> tuple[str, ...]:
    """Return the special tokens that stand in a received text apart from its reasoning, each once."""
    if "<" not in text:
        return ()
    outside = _outside(text, find_reasoning(text))
    return tuple(dict.fromkeys(mark[0] for mark in _MARK_LIKE.finditer(outside)))


def _outside_final(text: str) -> list[Span] | None:
    """Return where a text in harmony's channels is not the final channel; None for a text without channels."""
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = next((channel for channel in reversed(channels) if channel[1] == "final"), None)
        if final is None:
            return [(0, len(text))]
        ended = _CHANNEL_END.search(text, final.end())
        end = len(text) if ended is None else ended.start()
        return [(0, final.end()), *([(end, len(text))] if end < len(text) else [])]
    if (place := text.rfind(_STRIPPED_FINAL)) >= 0:
        return [(0, place + len(_STRIPPED_FINAL))]
    if (thought := _STRIPPED_THOUGHT.match(text)) is not None:
        following = text[thought.end() :].strip()
        return [(0, thought.end() if "\n" not in following and len(following.split()) <= _FEW else len(text))]
    return [(0, len(text))] if _STRIPPED_OPENING.match(text) else None


def _answer(text: str, spans: list[Span]) -> str:
    answer = _outside(text, spans)
    if spans:
        answer = answer.strip()
    if "<" not in answer:
        return answer
    if header := _HEADER.match(answer):
        answer = answer[header.end() :]
    while (end := _END_OF_TURN.search(answer)) is not None:
        answer = answer[: end.start()] if answer[: end.start()].strip() else answer[end.end() :].lstrip()
    if spans and (wrapped := _WRAPPED.match(answer)):
        answer = wrapped[2].strip()
    return answer


def _gaps(size: int, spans: list[Span]) -> list[Span]:
    """Return what the spans leave of a text of this size."""
    edges = [0, *(edge for span in spans for edge in span), size]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def _outside(text: str, spans: list[Span]) -> str:
    return "".join(text[start:end] for start, end in _gaps(len(text), spans)) if spans else text


_HARMONY_MARK = re.compile(
    r"(?:assistant)?<\|channel\|>\s*\w*(?:\s*<\|constrain\|>\s*\w+)?|<\|(?:start|end|return|message)\|>(?:assistant)?"
)


def _bare(thoughts: str) -> str:
    """Return reasoning without marks and blanks around it."""
    if granite := _GRANITE.match(thoughts):
        return granite[1].strip()
    thoughts = _STRIPPED_THOUGHT.sub("", _HARMONY_MARK.sub("\n", _MARK.sub("", thoughts)))
    return _STRIPPED_OPENING.sub("", thoughts).removesuffix(_STRIPPED_FINAL).strip()
