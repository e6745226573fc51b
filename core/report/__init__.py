"""The report of a run: one self-contained HTML page, and its figures as files.

The door: fill a `ReportContent`, then `render` it to a string or `write` it to a folder.
"""

from __future__ import annotations

from .content import Nested, Published, ReportContent, ShownExample, StudyInfo, Table
from .render import render, write

__all__ = ["Nested", "Published", "ReportContent", "ShownExample", "StudyInfo", "Table", "render", "write"]
