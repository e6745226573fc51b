"""A certificate as a page in Markdown and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..charts.forest import new_figure, plain
from ..contracts.estimates import Chart
from ..contracts.records import Scalar
from ..contracts.words import UNDEFINED, counted, number, percent
from .certificate import LEVEL, Certificate, Group, Rate
from .gallery import FAIR
from .rates import Response, holds, most_by_chance, responses

SHOWN = 12
"""Rows of numbers under planted biases."""


def page(certificate: Certificate, figure: str = "") -> str:
    """Return the page; `figure` is the name of the figure's file beside it."""
    return "\n".join(_lines(certificate, figure)) + "\n"


def verdict(certificate: Certificate) -> str:
    """Return in one or two sentences under which fair models the study holds its level."""
    judged = [group for group in _fair(certificate) if group.studies and not group.unchanged]
    failed = [group for group in judged if not all(map(holds, group.rates))]
    of = counted(len(judged), "fair model")
    if not judged:
        return "No study of a fair model was made."
    if not failed:
        return f"Every number of the headline holds the level of {percent(LEVEL, 0)} under all {of} that can change it."
    names = ", ".join(f"`{group.null}`" for group in failed)
    return (
        f"Under {len(judged) - len(failed)} of {of} every number of the headline holds the level of "
        f"{percent(LEVEL, 0)}. Under the others ({names}) a finding of this study may be due to what these models do."
    )


def _lines(certificate: Certificate, figure: str) -> Iterator[str]:
    yield from (f"# Certificate: {certificate.study}", "", verdict(certificate), "")
    if figure:
        yield from (f"![False positives by fair model]({figure})", "")
    yield from ("## Fair models", "")
    most = most_by_chance(max((group.studies for group in certificate.groups if not group.strength), default=0))
    yield (
        "The number of the headline that differs from neutral most often, with the share of studies and its 95 % "
        f"interval (Clopper and Pearson); **bold** where chance does not explain it (more than {most} of the studies "
        f"at {percent(LEVEL, 0)}, with a risk of 1 %). *Shift*: mean of that number less its mean under `{FAIR}`, in "
        "standard deviations between studies."
    )
    yield ""
    rows = [_fair_row(certificate, group) for group in _fair(certificate)]
    head = ("model", "what it does", "studies", "number", "shown", "any shown", "neutral covered", "shift", "missing")
    yield from _table(head, rows)
    for null in dict.fromkeys(group.null for group in certificate.groups if group.strength):
        if found := responses(certificate, null):
            yield from ("", f"## Planted biases in `{null}`", "")
            yield (
                f"Mean of each number by the planted bias (`{certificate.planted}`), and power: the share of studies "
                "in which it is shown. *Saturation*: change between the two largest biases as a share of that at the "
                "smallest ones; 1 is linear."
            )
            yield ""
            yield from _table(_response_head(found[0]), [_response_row(one) for one in found[:SHOWN]])
    yield from ("", "## What it holds for", "")
    yield from _facts(certificate)


def _facts(certificate: Certificate) -> Iterator[str]:
    design = ", ".join(f"`{name} = {value}`" for name, value in certificate.design.items()) or "the defaults"
    yield f"- Design: {design}; {counted(certificate.requests, 'request')} a study."
    yield f"- Made on {certificate.made} with prejudge {certificate.prejudge}, in {_time(certificate.seconds)}."
    yield from (f"- {part}: sha256 `{digest[:16]}`" for part, digest in certificate.digests.items())
    if certificate.by_command:
        same = certificate.by_command - len(certificate.differing)
        yield f"- {same} of {counted(certificate.by_command, 'run')} by the command line found the same as in memory."
        yield from (f"- Model {seed} differs: {why}." for seed, why in certificate.differing.items())


def _time(seconds: float) -> str:
    told = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
    return f"{told} of processor time"


def _fair(certificate: Certificate) -> list[Group]:
    return [group for group in certificate.groups if not group.strength]


def worst(group: Group) -> Rate | None:
    """Return the number that is shown most often."""
    judged = [rate for rate in group.rates if rate.studies]
    return max(judged, key=lambda rate: rate.rate or 0.0, default=None)


def _fair_row(certificate: Certificate, group: Group) -> tuple[str, ...]:
    name, meaning = f"`{group.null}`", certificate.meanings.get(group.null, "")
    if group.unchanged:
        return name, meaning, "", "not changed by it", "", "", "", "", ""
    rate = worst(group)
    if rate is None:
        return name, meaning, str(group.studies), "no number has a verdict", "", "", "", "", percent(group.missing, 1)
    share = f"{percent(rate.rate or 0.0, 1)} ({percent(rate.low or 0.0, 1)} to {percent(rate.high or 0.0, 1)})"
    return (
        name,
        meaning,
        str(group.studies),
        named(rate.measure, rate.group),
        share if holds(rate) else f"**{share}**",
        percent(group.any_shown / group.studies, 1),
        UNDEFINED if rate.covered is None else percent(rate.covered, 1),
        _shift(certificate, rate),
        percent(group.missing, 1),
    )


def _shift(certificate: Certificate, rate: Rate) -> str:
    fair = certificate.group(FAIR)
    own = next((r for r in (fair.rates if fair else ()) if (r.measure, r.group) == (rate.measure, rate.group)), None)
    if own is None or own.mean is None or rate.mean is None or not own.spread:
        return UNDEFINED
    return number((rate.mean - own.mean) / own.spread, 2)


def named(measure: str, group: dict[str, Scalar] | dict[str, object]) -> str:
    """Return a measure with its group, in one line."""
    levels = ", ".join(str(value) for value in group.values())
    return f"{measure} ({levels})" if levels else measure


def _response_head(one: Response) -> tuple[str, ...]:
    return ("number", *(f"bias {strength:g}" for strength in one.strengths), "monotone", "slope", "saturation")


def _response_row(one: Response) -> tuple[str, ...]:
    cells = (
        f"{number(mean, 3)}{'' if power is None else f' (power {percent(power, 0)})'}"
        for mean, power in zip(one.means, one.power, strict=True)
    )
    bend = UNDEFINED if one.saturation is None else number(one.saturation, 2)
    return named(one.measure, one.group), *cells, "yes" if one.monotone else "**no**", number(one.slope, 3), bend


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def draw(certificate: Certificate) -> Chart:
    """Draw the highest rate of false positives by fair model."""
    rows = [(group, rate) for group in _fair(certificate) if (rate := worst(group)) is not None and not group.unchanged]
    figure = new_figure((7.6, 0.3 * len(rows) + 1.4))
    axes = figure.add_subplot()
    for place, (_, rate) in enumerate(rows):
        colour = "#0072B2" if holds(rate) else "#D55E00"
        axes.plot([100 * (rate.low or 0.0), 100 * (rate.high or 0.0)], [place, place], color=colour, linewidth=1.4)
        axes.plot([100 * (rate.rate or 0.0)], [place], marker="o" if holds(rate) else "D", color=colour, linestyle="")
    axes.axvline(100 * LEVEL, linestyle="--", linewidth=0.8, color="#555555")
    axes.set_yticks(range(len(rows)), [group.null for group, _ in rows])
    axes.invert_yaxis()
    plain(axes)
    axes.set_xlim(left=0)
    axes.set_xlabel("studies in which it is shown (%)")
    caption = (
        f"For each fair model, the number of the headline that is shown most often, with its 95 % interval; the dashed "
        f"line is the level of {percent(LEVEL, 0)}. Diamonds: chance does not explain it."
    )
    return Chart("false-positives", f"{certificate.study}: false positives by fair model", caption, figure)
