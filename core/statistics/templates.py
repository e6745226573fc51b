"""Conclusions and methods paragraphs: Jinja2 templates beside the metric, filled from the fields of its estimates."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ..contracts.estimates import Estimate
from ..contracts.words import exact, fixed, number, p_value, percent, signed
from .estimates import NAMES
from .intervals import FEWEST

if TYPE_CHECKING:
    import jinja2

SHARED = "intervals.md.j2"
"""Macros that the templates of every metric may import: `intervals(options, units)` says how intervals are made."""


def rendered(package: str, name: str, **fields: Any) -> str:
    """Return the text of a template as one paragraph; a name that the template uses and nobody gives is an error.

    Filters: `number`, `fixed(1)` and `signed(1)` for numbers, `percent` for shares, `counted` for counts, `p` for
    p-values, `spread` for the interval of an estimate.

    Args:
        package: the package the template lies in: `__package__` of the caller.
        name: its file name, such as `trisentbias.conclusion.md.j2`.
        fields: what the template may use.
    """
    return " ".join(_environment(package).get_template(name).render(**fields).split())


def spread(estimate: Estimate, decimals: int = 1) -> str:
    """Write the interval of an estimate after a comma; nothing where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    ends = f"{fixed(estimate.low, decimals)} to {fixed(estimate.high, decimals)}"
    return f", {percent(estimate.interval.level)} interval {ends}"


@lru_cache(16)
def _environment(package: str) -> jinja2.Environment:
    # A verdict without words of a template, as `prejudge list` shows none, needs no Jinja2.
    import jinja2

    def read(name: str) -> str:
        own = resources.files(str(__package__) if name == SHARED else package)
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.globals |= {"corrections": NAMES, "fewest": FEWEST}
    environment.filters |= {
        "number": number,
        "fixed": fixed,
        "signed": signed,
        "percent": percent,
        "counted": lambda value: f"{value:,}",
        "general": exact,
        "p": p_value,
        "spread": spread,
    }
    return environment
