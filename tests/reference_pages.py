"""Write the pages of docs/reference that say what stands in the code: `make reference`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from prejudge.core.catalogue.plugins import Plugins, built_in_plugins
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.validation import field_docs
from prejudge.core.contracts import Options
from prejudge.core.contracts.estimates import COMMON, Measure
from prejudge.core.statistics import MarginOptions

from .reference_api import api_page
from .reference_commands import commands_page, exits_page
from .reference_designs import designs_page
from .reference_formats import formats_page
from .reference_parts import write_parts
from .reference_tables import WRITTEN, line, table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
FAMILIES = {
    "Models of Hugging Face and vLLM": ("hf-masked", "hf-causal", "hf-classifier", "hf-encoder", "hf-vlm", "vllm"),
    "Endpoints": ("openai", "openai-responses", "anthropic", "gemini", "bedrock", "any-llm"),
}
"""Adapters whose settings are mostly the same, by heading."""
PROBES = {"dora": ("dora-t2t", "dora-t2i", "dora-i2t")}
"""Probes whose options are mostly the same, by heading."""
TOLD = {
    "alpha": "Largest adjusted p-value that is significant.",
    "asking": "`generate`: the model answers in words; `likelihood`: the likeliest answer is taken.",
    "correction": "Correction of p-values for several tests.",
    "greatest": "The largest possible value of the outcome.",
    "max_tokens": "Maximum number of tokens of an answer.",
    "power": "Power of the tests at the smallest effect.",
    "salience_level": "Level of p adjusted (exact, fisher, log-odds), or of p (tf-idf).",
    "seed": "Seed of what is drawn.",
    "temperature": "Temperature of answers in words.",
    "top_p": "Nucleus of sampling.",
}
"""What options mean whose class does not say it."""

Row = tuple[str, str, str]
"""Name, default and meaning of a setting or an option."""


def rows_of(kind: str, name: str, plugins: Plugins) -> list[Row]:
    """Return what an adapter, a probe or a metric can be told."""
    return _fields(plugins.load(kind, name).options)


def _fields(options: type[Options]) -> list[Row]:
    meanings = TOLD | field_docs(options)
    return [(field.name, _default(field), line(meanings[field.name])) for field in msgspec.structs.fields(options)]


def _default(field: Any) -> str:
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT:
        return "needed"
    if value is None or value in ((), "", {}, frozenset()):
        return "none"
    return f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(value)
    if isinstance(value, (tuple, list, frozenset)):
        shown = [str(one) for one in value]
        return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "..."])
    return str(value) if len(str(value)) <= 40 else f"{str(value)[:37]}..."


def merged(kind: str, names: Sequence[str], plugins: Plugins) -> Iterator[tuple[str, str, str, str]]:
    """Yield each row that several of a family have once, with those that have it."""
    having: dict[Row, list[str]] = {}
    for name in names:
        for row in rows_of(kind, name, plugins):
            having.setdefault(row, []).append(name)
    order = {name: place for place, name in enumerate(dict.fromkeys(row[0] for row in having))}
    for (name, default, meaning), those in sorted(having.items(), key=lambda item: order[item[0][0]]):
        yield f"`{name}`", default, _those(those, names), meaning


def _those(those: Sequence[str], names: Sequence[str]) -> str:
    others = [name for name in names if name not in those]
    if not others:
        return "all"
    return f"all but {', '.join(others)}" if len(others) < len(those) else ", ".join(those)


def family(title: str, kind: str, names: Sequence[str], plugins: Plugins, word: str) -> Iterator[str]:
    """Yield the part of a page about things with much in common."""
    yield from ("", title, "", ", ".join(f"`{name}`" for name in names) + ".", "")
    yield from table((word, "default", "of", "meaning"), merged(kind, names, plugins))


def settings_page(plugins: Plugins) -> str:
    """Return the page of the adapters' settings."""
    lines = [
        "# Settings of models",
        "",
        WRITTEN,
        "",
        "What an entry of `registry.toml` may set, by adapter (`settings = { ... }`). [Start here](../start.md) shows "
        "such an entry; the page of each adapter says what answers depend on. A setting that stands twice has another "
        "default or meaning in another adapter.",
    ]
    told = {name for names in FAMILIES.values() for name in names}
    for title, names in FAMILIES.items():
        lines += family(f"## {title}", "adapter", names, plugins, "setting")
    for name in sorted(set(plugins.offers["adapter"]) - told):
        rows = [(f"`{n}`", default, meaning) for n, default, meaning in rows_of("adapter", name, plugins)]
        if rows:
            lines += ["", f"## `{name}`", "", *table(("setting", "default", "meaning"), rows)]
    return "\n".join(lines) + "\n"


def options_page(plugins: Plugins) -> str:
    """Return the page of the options of probes and metrics."""
    lines = [
        "# Options of studies",
        "",
        WRITTEN,
        "",
        "Given with `--set NAME=VALUE` (`--data FILE` sets `data`). An option of a metric may be written with the name "
        "of the metric, `--set subtle.alpha=0.01`, and `prejudge score` can change it later; one of a probe belongs to "
        "the run. A study file sets both, and may set other defaults: `prejudge plan STUDY` shows those in force.",
        "",
        "## Probes",
    ]
    told = {name for names in PROBES.values() for name in names}
    probes: dict[str, Sequence[str]] = {**PROBES, **{n: (n,) for n in plugins.offers["probe"] if n not in told}}
    for title, names in sorted(probes.items()):
        if len(names) == 1:
            lines += _single(f"### `{title}`", "probe", title, plugins, ())
        else:
            lines += family(f"### {title}", "probe", names, plugins, "option")
    metrics = sorted(plugins.offers["metric"])
    common = _fields(MarginOptions)
    lines += ["", "## Metrics", "", "### All metrics that test", ""]
    lines += table(("option", "default", "meaning"), [(f"`{n}`", d, m) for n, d, m in common])
    for name in metrics:
        lines += _single(f"### Metric `{name}`", "metric", name, plugins, common)
    return "\n".join(lines) + "\n"


def _single(title: str, kind: str, name: str, plugins: Plugins, common: Sequence[Row]) -> list[str]:
    rows = [(f"`{n}`", d, m) for n, d, m in rows_of(kind, name, plugins) if (n, d, m) not in common]
    return ["", title, "", *table(("option", "default", "meaning"), rows)] if rows else []


def measures_page(plugins: Plugins) -> str:
    """Return the page of the measures."""
    lines = [
        "# Measures",
        "",
        WRITTEN,
        "",
        "What each metric measures. Reports and tables show the label; `estimates.csv`, policies of `gate` and "
        "`--metric` use the name.",
    ]
    found: dict[str, Mapping[str, Measure]] = {"Every metric": COMMON}
    for name in sorted(plugins.offers["metric"]):
        found[f"`{name}`"] = plugins.load("metric", name)().measures
    for title, measures in found.items():
        rows = [(f"`{n}`", m.label, m.unit or "1", line(m.meaning)) for n, m in measures.items()]
        if rows:
            lines += ["", f"## {title}", "", *table(("name", "label", "unit", "meaning"), rows)]
    return "\n".join(lines) + "\n"


PAGES = {
    "settings.md": settings_page,
    "options.md": options_page,
    "measures.md": measures_page,
    "designs.md": designs_page,
    "formats.md": formats_page,
    "commands.md": lambda plugins: commands_page(),
    "exit-codes.md": lambda plugins: exits_page(),
    "api.md": lambda plugins: api_page(),
}


@cache
def built_in() -> Plugins:
    """Return what the package itself offers."""
    return Plugins(Catalogue.load(None).registry, found=built_in_plugins())


if __name__ == "__main__":
    for page, write in PAGES.items():
        (FOLDER / page).write_text(write(built_in()), "utf-8")
    write_parts()
