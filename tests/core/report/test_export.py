"""Export: every format read back; formulas and LaTeX defused."""

from __future__ import annotations

import io
import json
import math
import shutil
import subprocess

import polars as pl
import pytest
from pylatexenc.latex2text import LatexNodes2Text
from pylatexenc.latexwalker import LatexEnvironmentNode, LatexMacroNode, LatexSpecialsNode, LatexWalker

from prejudge.core.contracts import Estimate
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.report.export import encode, escape_latex, latex_table, safe_for_spreadsheets, write_bytes
from prejudge.testing import raises_code

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]
FRAME = pl.DataFrame(
    {"text": ["plain", "=cmd|' /C calc'!A0", None], "number": [-1.5, math.nan, None], "key": [b"\x01\xff", None, b""]}
)
ESTIMATE = Estimate.from_flat(
    metric="z_2",
    group={"axis": "50% & more"},
    value=-1.25,
    unit="%",
    low=-2.0,
    high=-0.5,
    n=1234,
    p=0.01,
    p_adjusted=0.0004,
)


def test_parquet_is_the_frame():
    assert pl.read_parquet(io.BytesIO(encode(FRAME, "parquet"))).equals(FRAME)


def test_json_is_plain_and_has_no_nan():
    rows = json.loads(encode(FRAME, "json"))
    assert rows[0] == {"text": "plain", "number": -1.5, "key": "01ff"}
    assert rows[1]["number"] is None and rows[1]["text"].startswith("=cmd")


def test_csv_runs_no_formula_and_keeps_numbers():
    back = pl.read_csv(io.BytesIO(encode(FRAME, "csv")))
    assert back["text"].to_list() == ["plain", "'=cmd|' /C calc'!A0", None]
    assert back["number"][0] == -1.5 and back["key"][0] == "01ff"


@pytest.mark.parametrize("text", FORMULAS)
def test_formula_gets_an_apostrophe_in_cell_and_heading(text):
    safe = safe_for_spreadsheets(pl.DataFrame({text: [text, f"a{text}", ""]}))
    assert safe.columns == [f"'{text}"] and safe.to_series().to_list() == [f"'{text}", f"a{text}", ""]


def test_unknown_format_is_named():
    with raises_code(UnknownNameError, "unknown-format", "'parquet'"):
        encode(FRAME, "parqet")  # type: ignore[arg-type]
    with raises_code(UsageError, "export.latex"):
        encode(FRAME, "latex")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50%_a&b#c$d{e}", r"50\%\_a\&b\#c\$d\{e\}"),
        ("\\input{x}", r"\textbackslash{}input\{x\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("two\nlines", "two lines"),
        ("a--b ''c'' ?`", "a-{}-b '{}'c'{}' ?\\textasciigrave{}"),
        ('"<>|', r"\textquotedbl{}\textless{}\textgreater{}\textbar{}"),
        ("≤ α \x00", r"$\leq$ $\alpha$ ?"),
    ],
)
def test_latex_is_escaped(text, latex):
    assert escape_latex(text) == latex


HOSTILE = [
    "\\input{/etc/passwd} \\end{tabular} \\\\ &",
    "% no comment",
    "$x_1^2$ {[]} ~ # --- ''",
    r"\def\a{\a}\a",
    "\\",
    "^^5cinput",
    "".join(chr(c) for c in range(33, 127) if chr(c) not in '"<>|'),  # the parser does not know their commands
]


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_says_what_was_said(text):
    said = LatexNodes2Text(keep_comments=True).latex_to_text(escape_latex(text))
    assert said.replace("\N{MODIFIER LETTER CIRCUMFLEX ACCENT}", "^") == text


NAMES = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "quotedbl", "asciigrave")
SYMBOLS = {*"%_&#${}", *(f"text{name}" for name in NAMES)}


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_table_stays_one_table(text):
    hostile = Estimate.from_flat(metric=text, group={text: text}, unit=text, value=1.0, low=0.5, high=2.0)
    nodes, _, _ = LatexWalker(latex_table([hostile, ESTIMATE]), tolerant_parsing=False).get_latex_nodes()
    (table,) = (node for node in nodes if node.isNodeType(LatexEnvironmentNode))
    assert table.environmentname == "tabular"
    macros = {node.macroname for node in table.nodelist if node.isNodeType(LatexMacroNode)}
    assert macros <= {"toprule", "midrule", "bottomrule", "\\", *SYMBOLS}
    assert sum(node.isNodeType(LatexSpecialsNode) and node.specials_chars == "&" for node in table.nodelist) == 3 * 6


def test_latex_table_has_value_interval_n_and_p():
    text = latex_table([ESTIMATE])
    assert r"\toprule" in text and r"\bottomrule" in text
    row = next(line for line in text.splitlines() if line.startswith(r"z\_2"))
    assert row == r"z\_2 (\%) & 50\% \& more & $-$1.250 & {[$-$2.000, $-$0.500]} & 1234 & \textless{} 0.001 \\"


def test_undefined_is_a_dash_in_latex():
    row = latex_table([Estimate.from_flat(metric="m", group={}, value=None)]).splitlines()[5]
    assert row == r"m & --- & {---} & 0 & --- \\"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_table_can_be_set(tmp_path):
    hostile = Estimate.from_flat(metric="\\input{/etc/passwd} <>|\"'", group={"%": "$#_^~&{}"}, value=1.0)
    body = latex_table([ESTIMATE, hostile])
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    (tmp_path / "t.tex").write_text(f"{head}\n{body}\\end{{document}}\n")
    done = subprocess.run(
        ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with raises_code(UsageError, "file.unwritable"):
        write_bytes(b"", tmp_path / "file" / "inside.csv")


def labelled(metric, label, **group):
    return Estimate.from_flat(metric=metric, label=label, group=group, value=1.0)


def test_latex_table_has_the_labels_of_measures():
    rows = latex_table([labelled("z_2", "Stereotype score", body_shape="x"), labelled("z_3", "Other score")])
    assert "Stereotype score &" in rows and "z\\_2" not in rows and "Measure & Body shape &" in rows


def test_measures_with_one_label_are_told_apart():
    rows = latex_table([labelled("z_2", "Score"), labelled("z_3", "Score"), labelled("z_4", "Own")])
    assert all(name in rows for name in ("Score, z\\_2", "Score, z\\_3", "Own &"))
