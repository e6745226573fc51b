"""Text for Markdown: words stay words."""

from __future__ import annotations

import re

import pytest
from hostile import HOSTILE
from markdown_it import MarkdownIt

from prejudge.core.report.markdown import escape, marked_table, table


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("*bold* _it_ `code`", r"\*bold\* \_it\_ \`code\`"),
        ("[a](http://x.y)", "\\[a\\](http://\u200bx.y)"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("a | b", r"a \| b"),
        ("# no heading", r"\# no heading"),
        ("- no item", r"\- no item"),
        ("1. no item", r"1\. no item"),
        ("===", r"\==="),
        ("- - -", r"\- - -"),
        ("-1.5 and 2. three", "-1.5 and 2. three"),
        ("two\n\nlines\x00", "two lines\ufffd"),
        ("@team #12 :smile: www.x.y", "@\u200bteam \\#\u200b12 :\u200bsmile: www\u200b.x.y"),
        ("2026-11-20T03:20:05+00:00", "2026-11-20T03:20:05+00:00"),
        ("\\", r"\\"),
        ("\u202etfel", r"\[U+202E\]tfel"),
        (1.5, "1.5"),
    ],
)
def test_text_is_escaped(text, escaped):
    assert escape(text) == escaped


def test_table_keeps_its_columns():
    lines = table(("a|b", "n"), [("x | y\nz", 3)], numeric=(1,))
    assert lines == [r"| a\|b | n |", "| --- | ---: |", r"| x \| y z | 3 |", ""]


LEFT_ALONE = {"h1", "h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "hr"}


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_answer_stays_words_where_it_is_rendered(said):
    lines = [f"# {escape(said)}", "", f"- {escape(said)}", "", *table((said, "b"), [(said, said)]), escape(said)]
    page = MarkdownIt("commonmark").enable("table").render("\n".join(lines))
    tags = re.findall(r"<(/?[a-zA-Z!?][^>]*)>", page)
    assert {tag.strip("/") for tag in tags} <= LEFT_ALONE
    assert page.count("<td>") == 2 and page.count("<h1>") == page.count("<li>") == page.count("<p>") == 1


def test_marked_table_keeps_markup_and_escapes_only_bars():
    lines = marked_table(["model", "share"], [["`a|b`", "**8.8 %**"], [escape("a|b*"), "1"]], numeric=[1])
    assert lines[1:] == ["| --- | ---: |", r"| `a\|b` | **8.8 %** |", r"| a\|b\* | 1 |"]
    body = MarkdownIt("commonmark").enable("table").render("\n".join(lines))
    assert body.count("<td") == 4 and "<strong>8.8 %</strong>" in body
