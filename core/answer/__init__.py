"""The answer of a run: its questions, a verdict on each, and at most six numbers behind them.

One pure model of the first screen. Reports, the terminal and Markdown lay it out, and say nothing of their own.

Interface: `answer_of` fills an `Answer` from a scored run.
"""

from __future__ import annotations

from .answer import answer_of
from .records import DEFINITIONS, Answer, Number, Reply, Row

__all__ = ["DEFINITIONS", "Answer", "Number", "Reply", "Row", "answer_of"]
