"""Estimates and observations as files for other programs: Parquet, CSV, JSON, and LaTeX tables.

Spreadsheets run a CSV cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula, and answers of
models may begin so. Such texts get a leading apostrophe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.estimates import Estimate
from ..contracts.words import UNDEFINED, decimals_for, defined, p_value
from ..contracts.words import number as with_minus
from .text import clean, label

Format = Literal["parquet", "csv", "json", "latex"]
ENDINGS: dict[str, str] = {"parquet": "parquet", "csv": "csv", "json": "json", "latex": "tex"}
FORMULA = r"^[=+\-@\t\r\n]"
LATEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "%_&#${}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EM DASH}": "---",
    "\N{INFINITY}": r"$\infty$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{ALMOST EQUAL TO}": r"$\approx$",
    "\N{NOT EQUAL TO}": r"$\neq$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{GREEK CAPITAL LETTER DELTA}": r"$\Delta$",
    **{chr(0x3B1 + i): f"$\\{name}$" for i, name in enumerate(["alpha", "beta", "gamma", "delta", "epsilon"])},
    "\N{GREEK SMALL LETTER CHI}": r"$\chi$",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$",
    "\N{GREEK SMALL LETTER TAU}": r"$\tau$",
    "\N{REPLACEMENT CHARACTER}": "?",
}


LIGATURES = "-',"
"""Characters of which two in a row become another in LaTeX."""


def encode(frame: pl.DataFrame, kind: Format) -> bytes:
    """Return a frame as a file of this kind.

    Raises:
        UnknownNameError: the kind is unknown.
        UsageError: the kind is LaTeX, which is for estimates only: use `latex_table`.
    """
    if kind not in get_args(Format):
        raise UnknownNameError("format", kind, get_args(Format))
    if kind == "latex":
        raise UsageError("observations cannot be written as LaTeX. Choose parquet, csv or json.", code="export.latex")
    if kind == "parquet":
        return _bytes(frame, "parquet")
    plain = frame.with_columns(pl.col(pl.Binary).bin.encode("hex"))
    return _bytes(safe_for_spreadsheets(plain), "csv") if kind == "csv" else _bytes(_finite(plain), "json")


def write_bytes(data: bytes, path: Path) -> Path:
    """Write a file, and create its folder.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror or error}. Name another file.", code="file.unwritable"
        ) from None
    return path


def safe_for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Add an apostrophe to every text and heading that a spreadsheet would run as a formula."""
    text = pl.col(pl.String)
    harmless = frame.with_columns(pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep())
    return harmless.rename({name: f"'{name}" for name in frame.columns if name[:1] in tuple("=+-@\t\r\n")})


def latex_table(estimates: Sequence[Estimate]) -> str:
    """Return estimates as a LaTeX table (booktabs): value with its interval, n, and p adjusted within its family.

    Measures have their labels; where two have the same, also their names.
    """
    factors = list(dict.fromkeys(name for e in estimates for name in e.group))
    named = Counter(label for label, _ in {(e.label, e.metric) for e in estimates})
    alike = {label for label, count in named.items() if count > 1}
    heads = ["Measure", *factors, "Value", "Interval", "$n$", r"$p_\mathrm{adj}$"]
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}; other scripts than Latin: LuaLaTeX or XeLaTeX",
        rf"\begin{{tabular}}{{l{'l' * len(factors)}rrrr}}",
        r"\toprule",
        " & ".join([heads[0], *(escape_latex(_titled(name)) for name in factors), *heads[-4:]]) + r" \\",
        r"\midrule",
        *(" & ".join(_latex_row(estimate, factors, alike)) + r" \\" for estimate in estimates),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Return text escaped for LaTeX: no command, comment, line break or ligature such as `--`."""
    words = " ".join(str(clean(text)).split())
    return "".join(
        ("{}" if c in LIGATURES and c == before else "") + LATEX.get(c, c)
        for before, c in zip(f" {words}", words, strict=False)
    )


def _titled(factor: str) -> str:
    """Return the name of a factor as the head of a column: `Body shape` for `body_shape`."""
    words = factor.replace("_", " ")
    return words[:1].upper() + words[1:]


def _measure(estimate: Estimate, alike: Container[str]) -> str:
    e = estimate
    if not e.label:
        return e.metric
    return f"{e.label}, {e.metric}" if e.label in alike else e.label


def _latex_row(estimate: Estimate, factors: Iterable[str], alike: Container[str]) -> list[str]:
    e, decimals = estimate, decimals_for([estimate.value, estimate.low, estimate.high])
    interval = f"[{with_minus(e.low, decimals)}, {with_minus(e.high, decimals)}]" if defined(e.low) else UNDEFINED
    group = [label(e.group[name]) if name in e.group else "" for name in factors]
    name = _measure(e, alike)
    name = f"{name} ({e.unit})" if e.unit else name
    p = e.p_adjusted if e.p_adjusted is not None else e.p
    # Braces, because booktabs would read a leading bracket as the option of the line before.
    cells = [escape_latex(text) for text in (name, *group, with_minus(e.value, decimals))]
    return [*cells, f"{{{escape_latex(interval)}}}", f"{e.n}", escape_latex(p_value(p))]


def _bytes(frame: pl.DataFrame, kind: str) -> bytes:
    buffer = BytesIO()
    if kind == "parquet":
        frame.write_parquet(buffer)
    elif kind == "csv":
        frame.write_csv(buffer)
    else:
        frame.write_json(buffer)
    return buffer.getvalue()


def _finite(frame: pl.DataFrame) -> pl.DataFrame:
    """JSON has no infinity and no NaN: both become null."""
    numbers = pl.col(pl.Float64, pl.Float32)
    return frame.with_columns(pl.when(numbers.is_finite()).then(numbers).name.keep())
