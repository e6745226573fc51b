"""Write docs/reference/api.md, the page of the Python interface, from docstrings and signatures."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from prejudge.core.contracts.field_help import HEADING, docstring_in, fields_in

from .reference_tables import WRITTEN, line, table

STATISTICS = (
    ("`Resampling`", "how to resample: `resamples`, `seed`, `level`, `method`"),
    (
        "`bootstrap`",
        "intervals of many statistics at once, from clusters that are drawn (`scipy.stats.bootstrap` of one)",
    ),
    ("`jackknife`, `multiway_jackknife`", "variances and degrees of freedom, without each cluster or level"),
    ("`Cells`", "sums by the levels of several facets, for `multiway_jackknife`"),
    (
        "`flip_test`, `swap_test`, `label_test`",
        "permutation tests: signs, two sides, labels (as `scipy.stats.permutation_test`)",
    ),
    (
        "`share`, `worst_case`, `wilson_interval`",
        "exact interval and binomial test of a share; its worst case; Wilson's interval",
    ),
    (
        "`adjust`, `correct`, `judge`",
        "p corrected (as `scipy.stats.false_discovery_control`); estimates corrected in their families; the verdict",
    ),
    ("`risk_difference`, `cohens_h`, `odds_ratio`, `cliffs_delta`, `rank_biserial`", "effect sizes from sums"),
    ("`agreement`", "Krippendorff's alpha"),
    ("`pair_up`, `rendered`", "one row per pair; a paragraph from a template"),
    ("`TestingOptions`, `MarginOptions`, `FacetOptions`", "options to inherit from; the last name the clusters"),
    ("`Test`, `MCNEMAR`", "a test that a paper names, to declare with a measure; McNemar's exact one"),
)
"""What the functions of `prejudge.statistics` do, in a line each."""


class Part(NamedTuple):
    """A module, and those of its names that the page describes; none: all that are its own."""

    module: str
    names: str = ""


STUB = Path(__file__).resolve().parents[1] / "__init__.pyi"
MODULES = {"design", "reading", "statistics", "tables", "errors", "estimates", "records"}
"""Names of the door that are modules: each has a part of the page."""
FURTHER: dict[str, list[Part | str]] = {
    "`prejudge.estimates`": [
        "Parts of an `Estimate`: `from prejudge import estimates`.",
        Part("core.contracts.estimates", "Interval SignificanceTest Effect Measure Verdict Caveat Chart Example"),
    ],
    "`prejudge.statistics`": [
        "`from prejudge import statistics`. [Plugins](../plugins.md#a-metric-that-is-declared) explains "
        "`DeclaredMetric`, its measures and `Pivot`. The functions take the sums of clusters, as "
        "[Statistics](../statistics.md) describes."
        "\n\n" + "\n".join(table(("name", "what it does"), STATISTICS)),
        Part("core.statistics.declared", "DeclaredMetric"),
        Part("core.statistics.declaration", "Declaration"),
        Part("core.statistics.pivot", "Pivot"),
        "Names, words and rows of every measure are the fields of `DeclaredMeasure`; measures of sums over rows have "
        "those of `SummedMeasure` too. Declare the measures below, not these two.",
        Part(
            "core.statistics.measures", "DeclaredMeasure SummedMeasure Share Mean Ratio Correlation Statistic Derived"
        ),
        Part("core.statistics.measures_compared", "Difference Matched Groups KruskalWallis Ranks kruskal_test"),
    ],
    "`prejudge.design`": [
        "`from prejudge import design`. [Declare a design](../guides/design.md) explains these names.",
        Part("core.design.design", "Design"),
        Part("core.design.factors"),
        Part("core.design.levels", "Levels crossed stacked"),
        Part("core.design.cells", "Cell"),
        Part("core.design.stage"),
        Part("core.design.wording", "Wording Worded"),
        Part("core.design.record", "Roles Declared Facet Incidence"),
        Part("core.design.planting", "Planting Preference"),
    ],
    "`prejudge.reading`": [
        "`from prejudge import reading`. [Reading answers](../reading.md) explains the readers.",
        Part("core.reading.results", "Value Unread"),
        Part("core.reading.label", "read_label"),
        Part("core.reading.number", "read_number"),
        Part("core.reading.yes_no", "read_yes_no"),
        Part("core.reading.fields", "read_fields"),
        Part("core.reading.choice", "Choice read_choice"),
        Part("core.reading.stated", "Labels read_stated"),
        Part("core.reading.words", "Blank read_word"),
    ],
    "`prejudge.tables`": [
        "`from prejudge import tables`. [Your own data](../guides/own-data.md#forms) lists the forms of files.",
        Part("core.tables.rows", "Row"),
        Part("core.tables.reading", "Table Parsed parse_file read_rows read_table"),
        Part("core.tables.understanding", "Form Codes"),
        Part("core.tables.options", "TableOptions"),
        Part("core.tables.faults", "LeftOut RowError"),
        Part("core.tables.writing", "csv_text"),
    ],
    "`prejudge.records`": [
        "Requests and their responses: `from prejudge import records`.",
        Part("core.contracts.records"),
    ],
    "`prejudge.errors`": ["`from prejudge import errors`.", Part("core.contracts.errors")],
    "Tests for plugins": [
        "`prejudge.testing` is imported by itself.",
        Part("testing.adapters", "AdapterContract"),
        Part("testing.dialect"),
        Part("testing.probes", "ProbeContract"),
        Part("testing.metrics", "MetricContract"),
        Part("testing.chaos", "ChaosServer"),
        Part("testing.observing", "observe guesses"),
    ],
    "Classes that these name": [
        Part("core.engine.plan", "StagePlan"),
        Part("core.contracts.presentation", "Presentation"),
        Part("core.contracts.plugin", "Hooks"),
    ],
}
"""Parts of the page after those of the door."""


def door_groups() -> dict[str, list[str]]:
    """Return the names of the door by the group that the stub has them in."""
    groups: dict[str, list[str]] = {}
    names: list[str] = []
    for row in STUB.read_text("utf-8").split("\n\n", 1)[1].splitlines():
        if row.startswith("# "):
            names = groups.setdefault(row.removeprefix("# "), [])
        elif row:
            names.append(row.rpartition(" ")[2])
    return groups


def _page() -> dict[str, list[Part | str]]:
    homes = {
        row.rpartition(" ")[2]: row.split()[1].removeprefix(".")
        for row in STUB.read_text("utf-8").splitlines()
        if " import " in row
    }
    page: dict[str, list[Part | str]] = {}
    for title, names in door_groups().items():
        if described := [name for name in names if name not in MODULES and not name.startswith("_")]:
            page[title] = [Part(homes[name], name) for name in described]
    return page | FURTHER


PAGE = _page()
_ITEM = re.compile(r"(\w+): (.*)")
LONG = 80
"""Characters of arguments that stand in one line."""


def api_page() -> str:
    """Return the page of the Python interface."""
    lines = ["# Python interface", "", WRITTEN, ""]
    lines += [
        "Import all names from `prejudge` and from its modules `statistics`, `estimates`, `records`, `errors` and "
        "`testing`; other modules may change without notice. A name is loaded on first use, so importing the package "
        "is fast.",
        "",
        "A verb that asks models has a twin that is awaited: its name with an `a` in front, the same arguments and "
        "result. Analyses return a [`Result`](#result): `conclusion`, `estimates`, `report`, `charts` and `plot()`; "
        "a notebook shows it. In Python `help(prejudge.run)` shows what this page says.",
        "",
        *table(("group", "names"), ((title, ", ".join(map(_link, names))) for title, names in door_groups().items())),
    ]
    for title, parts in PAGE.items():
        lines += ["", f"## {title}"]
        for part in parts:
            lines += ["", part.strip()] if isinstance(part, str) else _module(part)
    return "\n".join(lines) + "\n"


def _link(name: str) -> str:
    if name.startswith("_"):
        return f"`{name}`"
    names = [name for group in door_groups().values() for name in group]
    # A heading whose anchor is taken gets a number: that of the class `Run`, after the verb.
    number = "_1" if name.lower() in names[: names.index(name)] else ""
    return f"[`{name}`](#{'prejudge' if name in MODULES else ''}{name.lower()}{number})"


def _module(part: Part) -> Iterator[str]:
    module = importlib.import_module(f"prejudge.{part.module}")
    names = part.names.split() or [
        name for name, one in vars(module).items() if not name.startswith("_") and _is_own(one, module.__name__)
    ]
    for name in names:
        yield from ("", f"### `{name}`", "")
        found = getattr(module, name)
        if inspect.isclass(found):
            yield from _class(name, found)
        elif callable(found):
            yield from _callable(name, found)
        else:
            yield f"`{name} = {found!r}`. {_below(inspect.getsource(module)).get(name, '')}".strip()


def _is_own(one: object, module: str) -> bool:
    return (inspect.isclass(one) or inspect.isfunction(one)) and one.__module__ == module


def _class(name: str, kind: type) -> Iterator[str]:
    bases = [
        base.__name__ for base in kind.__bases__ if base.__name__ not in ("object", "Struct", "NamedTuple", "tuple")
    ]
    yield f"```py\nclass {name}{'(' + ', '.join(bases) + ')' if bases else ''}\n```"
    yield from ("", *_told(kind))
    if rows := [*_fields(kind)]:
        yield from ("", *table(("field", "type", "default", "meaning"), rows))
    if above := [part.__name__ for part in kind.__mro__[1:] if part.__name__ in _classes() and [*_fields(part)]]:
        yield from ("", f"Its other fields are those of {', '.join(f'[`{one}`](#{one.lower()})' for one in above)}.")
    if issubclass(kind, enum.Enum):
        below = _below(inspect.getsource(kind), in_class=True)
        members = [(f"`{one.name}`", f"`{one.value}`", line(below.get(one.name, ""))) for one in kind]
        yield from ("", *table(("member", "value", "meaning"), members))
    own = {key: one for key, found in vars(kind).items() if key[0] != "_" and (one := _function(found))}
    told = {key: one for key, one in own.items() if inspect.getdoc(one)}
    read = [key for key in told if isinstance(vars(kind)[key], (property, cached_property))]
    if read:
        yield from (
            "",
            *table(("property", "what it is"), [(f"`{key}`", line(inspect.getdoc(told[key]) or "")) for key in read]),
        )
    for method, one in told.items():
        if method not in read:
            yield from ("", f"#### `{name}.{method}`", "", *_callable(method, one))


def _function(found: object) -> Any:
    """Return the function behind a member of a class; None for others."""
    if isinstance(found, property):
        return found.fget
    if isinstance(found, (staticmethod, classmethod)):
        return found.__func__
    own = getattr(found, "func", found)  # of a cached property
    return own if inspect.isfunction(own) else None


def _below(source: str, *, in_class: bool = False) -> dict[str, str]:
    """Return the texts below assignments, by name."""
    body = ast.parse(textwrap.dedent(source)).body
    if in_class:
        assert isinstance(body[0], ast.ClassDef)
        body = body[0].body
    return {
        one.targets[0].id: docstring_in(after)
        for one, after in pairwise(body)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }


def _fields(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield the annotated names of a class as they are written, without those of classes that the page describes."""
    rows: dict[str, tuple[str, str, str, str]] = {}
    for part in reversed(kind.__mro__):
        if part.__module__.startswith("prejudge.") and (part is kind or part.__name__ not in _classes()):
            for field in fields_in(part):
                default = "needed" if field.default is None else f"`{field.default}`"
                note = f"`{field.annotation}`"
                rows[field.name] = f"`{field.name}`", line(note), line(default), line(field.meaning)
    yield from rows.values()


@cache
def _classes() -> frozenset[str]:
    """Return the names of the classes that the page describes."""
    parts = [part for one in PAGE.values() for part in one if isinstance(part, Part)]
    every = [(importlib.import_module(f"prejudge.{part.module}"), part.names.split()) for part in parts]
    return frozenset(
        name for module, names in every for name in names or vars(module) if inspect.isclass(vars(module).get(name))
    )


def _callable(name: str, function: Any) -> Iterator[str]:
    awaited = inspect.iscoroutinefunction(function)
    yield f"```py\n{'async def' if awaited else 'def'} {name}{_signature(function)}\n```"
    twin = name.removeprefix("a")
    if awaited and twin in vars(importlib.import_module(function.__module__)):
        yield from ("", f"The same as [`{twin}`](#{twin}), to be awaited.")
    else:
        yield from ("", *_told(function))


def _signature(found: Any) -> str:
    """Return a signature as it is written, a parameter per line where it is long."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
    assert isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef))
    given = f"({ast.unparse(tree.args)})"
    if len(given) > LONG:
        rows = _parameters(given[1:-1])
        given = "\n".join(("(", *(f"    {row}," for row in rows), ")"))
    return given + (f" -> {ast.unparse(tree.returns)}" if tree.returns is not None else "")


def _parameters(given: str) -> list[str]:
    """Return the parameters of a signature: parts between commas that stand in no brackets."""
    rows, depth = [""], 0
    for letter in given:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            rows.append("")
        else:
            rows[-1] += letter
    return [row.strip() for row in rows]


def _told(found: Any) -> Iterator[str]:
    """Yield a docstring; its lists of arguments and errors become lists of Markdown, its example becomes code."""
    listing, text = False, (inspect.getdoc(found) or "").partition(f"\n\n{HEADING}")[0]
    text, example, code = text.partition("\n\nExample:\n")
    for row in text.splitlines():
        if row in ("Args:", "Returns:", "Raises:", "Yields:"):
            listing = True
            yield from (f"**{row.removesuffix(':')}**", "")
        elif listing and row.startswith("    ") and not row.startswith("        "):
            item = _ITEM.fullmatch(row.strip())
            yield f"- `{item[1]}`: {item[2]}" if item else f"- {row.strip()}"
        else:
            listing = listing and (not row or row.startswith(" "))
            yield f"  {row.strip()}".rstrip() if listing else row
    if example:
        yield from ("", "```pycon", textwrap.dedent(code), "```")
