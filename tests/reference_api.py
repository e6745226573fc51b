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
from typing import Any, NamedTuple

from .reference_tables import WRITTEN, line, table

STATISTICS = (
    ("`Resampling`", "how to resample: `resamples`, `seed`, `level`, `method`"),
    (
        "`bootstrap`, `crossed_bootstrap`",
        "intervals of many statistics at once, from clusters drawn one way or two (`scipy.stats.bootstrap` of one)",
    ),
    ("`jackknife`, `crossed_jackknife`", "variances and degrees of freedom, leaving out clusters"),
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
    ("`Margin`, `equivalence`, `Equivalence`", "two one-sided tests within a margin of neutral"),
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


PAGE: dict[str, list[Part | str]] = {
    "Run and score": [
        Part(
            "core.api",
            "run arun vary avary decide adecide multiverse score corrected draw_sample plan smallest_effects compare "
            "converge aconverge variance import_scores Settings Compared Converged Decided Multiverse Variance",
        ),
        Part("core.scoring.sensitivity", "Detectable"),
        Part("core.report.results", "load Run"),
        Part("core.compare", "CompareOptions"),
        Part("core.view.labels", "Sample"),
        Part("core.variance", "VarianceOptions"),
        Part("core.multiverse.choices", "MultiverseOptions"),
    ],
    "Contracts": [
        Part("core.contracts.adapter", "ModelAdapter Identity Limits Remark RemoteEndpoint Services Worker"),
        Part("core.contracts.abilities", "Abilities"),
        Part("core.contracts.canonical", "wire_seed"),
        Part(
            "core.contracts",
            "Probe Stage StageRules Counting LargeStage MatchedStage Trial Unreadable Imported Follows Metric "
            "Presentation Options",
        ),
        Part("core.contracts.effects", "OptionEffect harmless"),
        Part("core.contracts.metric", "REASONING"),
        Part("core.catalogue.plugins", "Plugged Hooks"),
    ],
    "Estimates": [
        Part(
            "core.contracts.estimates",
            "Estimate Measure Interval SignificanceTest Effect Missing Verdict Caveat Chart Example",
        )
    ],
    "Statistics": [
        "`from prejudge import statistics`. [Plugins](../plugins.md#a-metric-that-is-declared) explains "
        "`DeclaredMetric`, its measures and `Pivot`. The functions take the sums of clusters, as "
        "[Statistics](../statistics.md) describes."
        "\n\n" + "\n".join(table(("name", "what it does"), STATISTICS)),
        Part("core.statistics.declared", "DeclaredMetric"),
        Part("core.statistics.declared_rows", "Design"),
        Part("core.statistics.pivot", "Pivot"),
        "Names, words and rows of every measure are the fields of `DeclaredMeasure`; measures of sums over rows have "
        "those of `SummedMeasure` too. Declare the measures below, not these two.",
        Part(
            "core.statistics.measures", "DeclaredMeasure SummedMeasure Share Mean Ratio Correlation Statistic Derived"
        ),
        Part("core.statistics.measures_compared", "Difference Matched Groups KruskalWallis Ranks kruskal_test"),
    ],
    "Requests and responses": [Part("core.contracts.records")],
    "Errors": [Part("core.contracts.errors")],
    "Tests for plugins": [
        Part("testing.adapters", "AdapterContract"),
        Part("testing.dialect"),
        Part("testing.probes", "ProbeContract"),
        Part("testing.metrics", "MetricContract"),
        Part("testing.chaos", "ChaosServer"),
        Part("testing.observing", "observe guesses"),
    ],
}
_ITEM = re.compile(r"(\w+): (.*)")
LONG = 80
"""Characters of arguments that stand in one line."""


def api_page() -> str:
    """Return the page of the Python interface."""
    lines = ["# Python interface", "", WRITTEN, ""]
    lines += [
        "Import all names from `prejudge` and `prejudge.statistics`; other modules may change without notice. A name "
        "is loaded on first use, so importing the package is fast.",
    ]
    for title, parts in PAGE.items():
        lines += ["", f"## {title}"]
        for part in parts:
            lines += ["", part.strip()] if isinstance(part, str) else _module(part)
    return "\n".join(lines) + "\n"


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
        one.targets[0].id: _text(after)
        for one, after in pairwise(body)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }


def _fields(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield the annotated names of a class as they are written, without those of classes that the page describes."""
    found: dict[str, tuple[str, str, str, str]] = {}
    for part in reversed(kind.__mro__):
        told = part is not kind and part.__name__ in _classes()
        if not part.__module__.startswith("prejudge.") or told:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for one, after in pairwise([*tree.body, ast.Pass()]):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id[0] != "_":
                default = "needed" if one.value is None else f"`{ast.unparse(one.value)}`"
                name, note = f"`{one.target.id}`", f"`{ast.unparse(one.annotation)}`"
                found[name] = name, line(note), line(default), line(_text(after))
    yield from found.values()


@cache
def _classes() -> frozenset[str]:
    """Return the names of the classes that the page describes."""
    parts = [part for one in PAGE.values() for part in one if isinstance(part, Part)]
    every = [(importlib.import_module(f"prejudge.{part.module}"), part.names.split()) for part in parts]
    return frozenset(
        name for module, names in every for name in names or vars(module) if inspect.isclass(vars(module).get(name))
    )


def _text(node: ast.stmt) -> str:
    """Return the text that a statement is; nothing for another one."""
    value = node.value if isinstance(node, ast.Expr) else None
    return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _callable(name: str, found: Any) -> Iterator[str]:
    kind = "async def" if inspect.iscoroutinefunction(found) else "def"
    yield f"```py\n{kind} {name}{_signature(found)}\n```"
    yield from ("", *_told(found))


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
    """Yield a docstring; its lists of arguments and errors become lists of Markdown."""
    listing = False
    for row in (inspect.getdoc(found) or "").splitlines():
        if row in ("Args:", "Returns:", "Raises:", "Yields:", "Attributes:"):
            listing = True
            yield from (f"**{row.removesuffix(':')}**", "")
        elif listing and row.startswith("    ") and not row.startswith("        "):
            item = _ITEM.fullmatch(row.strip())
            yield f"- `{item[1]}`: {item[2]}" if item else f"- {row.strip()}"
        else:
            listing = listing and (not row or row.startswith(" "))
            yield f"  {row.strip()}".rstrip() if listing else row
