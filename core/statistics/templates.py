"""Conclusions and methods paragraphs: Jinja2 templates beside the metric, filled from the fields of its estimates."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ..contracts.estimates import Estimate
from ..contracts.words import p_value
from .estimates import NAMES

if TYPE_CHECKING:
    import jinja2


def rendered(package: str, name: str, **fields: Any) -> str:
    """Return the text of a template as one paragraph; a name that the template uses and nobody gives is an error.

    Filters: `fixed(1)` and `signed(1)` for numbers, `percent` for shares, `counted` for counts, `p` for p-values,
    `spread` for the interval of an estimate.

    Args:
        package: the package the template lies in: `__package__` of the caller.
        name: its file name, such as `trisentbias.conclusion.md.j2`.
        fields: what the template may use.
    """
    return " ".join(_environment(package).get_template(name).render(corrections=NAMES, **fields).split())


def spread(estimate: Estimate, decimals: int = 1) -> str:
    """Write the interval of an estimate after a comma; nothing where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    ends = f"{estimate.low:.{decimals}f} to {estimate.high:.{decimals}f}"
    return f", {estimate.interval.level:.0%} interval {ends}"


@lru_cache(16)
def _environment(package: str) -> jinja2.Environment:
    # A verdict without words of a template, as `prejudge list` shows none, needs no Jinja2.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: resources.files(package).joinpath(name).read_text(encoding="utf-8")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.filters |= {
        "fixed": lambda value, decimals: f"{value:.{decimals}f}",
        "signed": lambda value, decimals: f"{value:+.{decimals}f}",
        "percent": lambda value: f"{value:.0%}",
        "counted": lambda value: f"{value:,}",
        "general": lambda value: f"{value:g}",
        "p": p_value,
        "spread": spread,
    }
    return environment
