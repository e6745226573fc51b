"""Prompts that ask what follows from a premise: the pair that is asked about, and the prompt around it."""

from __future__ import annotations

import re
from typing import NamedTuple

_PAIR = re.compile(r"^premise:[ \t]*(?P<premise>\S[^\n]*)\nhypothesis:[ \t]*(?P<hypothesis>\S[^\n]*)$", re.I | re.M)


class Inference(NamedTuple):
    """A question about a premise and a hypothesis."""

    item: str
    """Both."""
    prompt: str
    """The rest of the text."""


def inference_in(prompt: str) -> Inference | None:
    """Return the last pair that no label follows; None where a text asks for no inference.

    Other pairs are examples: the line after them gives their label.
    """
    asked = [pair for pair in _PAIR.finditer(prompt) if not _labelled(prompt[pair.end() :])]
    if not asked:
        return None
    start, end = asked[-1].span()
    return Inference(prompt[start:end], prompt[:start] + prompt[end:])


def _labelled(rest: str) -> bool:
    head, _, label = rest.lstrip("\n").partition("\n")[0].partition(":")
    return head.strip().lower() == "inference" and bool(label.strip())
