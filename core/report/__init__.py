"""The report of a run: one self-contained HTML page, and its figures as files.

Interface: fill a `ReportContent`, then `render` it to a string or `write` it to a folder.
"""

from __future__ import annotations

from .content import Nested, Published, ReportContent, ShownExample, StudyInfo, Table
from .pictures import Picture, picture, within
from .render import MOST_EXAMPLES, render, write

__all__ = [
    "MOST_EXAMPLES",
    "Nested",
    "Picture",
    "Published",
    "ReportContent",
    "ShownExample",
    "StudyInfo",
    "Table",
    "picture",
    "render",
    "within",
    "write",
]
