"""A certificate as a page in Markdown and as a figure."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalogue.certificate_records import LEVEL, Certificate, Group, Rate, Sensitivity
from ...catalogue.certificates import named
from ...catalogue.filed import FOLDER
from ...catalogue.golden import digest_of
from ...charts.forest import new_figure, plain
from ...contracts.estimates import Chart
from ...contracts.words import UNDEFINED, counted, number, percent
from ...report.markdown import marked_table
from .gallery import FAIR
from .rates import Response, responses, shift_of
from .summary import short_verdict, verdict

SHOWN, TOLD = 12, 6
"""Rows of numbers under planted biases, of the whole and of the details of a study."""
FAIR_HEAD = ("studies", "finding", "number", "shown", "any shown", "neutral covered", "shift", "missing")
REAL_HEAD = ("model", "planted", "studies", "finding", "number", "mean", "shown", "any shown")


def page(certificate: Certificate, figure: str = "") -> str:
    """Return the page; `figure` is the name of the figure's file beside it."""
    return "\n".join(_lines(certificate, figure)) + "\n"


def main_table(certificate: Certificate) -> list[str]:
    """Return the table of the fair models, as lines of Markdown."""
    head = ("model", "what it does", *FAIR_HEAD)
    return marked_table(head, [_fair_row(certificate, group) for group in _fair(certificate)])


def marks(study: str, part: str = "certificate") -> tuple[str, str]:
    """Return what stands around the part about a certificate in a page of a study."""
    end = study if part == "certificate" else f"{part} of {study}"
    return f"<!-- {part} of {study}: written by benchmarks/certificates.py -->", f"<!-- end of {end} -->"


def excerpt(certificate: Certificate) -> str:
    """Return what the details of a study show of its certificate, with its marks."""
    begin, end = marks(certificate.study)
    made = (
        f"`prejudge lab calibrate {certificate.study}`, {certificate.made}, {certificate.requests:,} requests a study."
    )
    words = f"{made} [What models and columns mean](../guides/calibrate.md#the-certificate)."
    head = ("model", *FAIR_HEAD)
    groups = _fair(certificate)
    rows = [(name, *rest) for name, _, *rest in (_fair_row(certificate, g) for g in groups if not g.unchanged)]
    figure = f"![False positives by fair model]({FOLDER}/{certificate.study}.svg)"
    table = marked_table(head, rows)
    shown = [words, "", verdict(certificate), "", *table, *_found(certificate)]
    return "\n".join([begin, "", *shown, "", figure, "", end])


def _found(certificate: Certificate) -> Iterator[str]:
    """Yield what a study finds of planted biases, of the numbers that are tested, and of trained models."""
    tested = [one for one in responses(certificate, FAIR) if any(power is not None for power in one.power)]
    if tested:
        yield from ("", f"Planted in `{FAIR}`: the mean of each tested number by the bias, and power.", "")
        yield from marked_table(_response_head(tested[0]), [_response_row(one) for one in tested[:TOLD]])
    elif certificate.is_unplanted(FAIR):
        yield from ("", _unplanted(certificate))
    if certificate.real:
        yield from ("", "Trained models, and the number that is shown most often:", "", *_real(certificate))


def brief(certificate: Certificate) -> str:
    """Return what the page of a study says of its certificate, with its marks."""
    begin, end = marks(certificate.study, "verdict")
    return "\n".join([begin, "", f"`{certificate.study}`: {short_verdict(certificate)}", "", end])


def _lines(certificate: Certificate, figure: str) -> Iterator[str]:
    yield from (f"# Certificate: {certificate.study}", "", verdict(certificate), "")
    if figure:
        yield from (f"![False positives by fair model]({figure})", "")
    yield from ("## Fair models", "")
    yield (
        "*Finding*: share of studies in which the answer to a question is a finding, for the question where that is "
        "most frequent. Then the number of the headline that is shown to differ from neutral most often, with "
        "the share of studies. Both with their 95 % interval (Clopper and Pearson); **bold** where chance does not "
        f"explain it at {percent(LEVEL, 0)}, with a risk of 1 % shared by all questions, or by all numbers of the "
        f"headline. *Shift*: mean of that number less its mean under `{FAIR}`, in standard deviations between studies."
    )
    yield ""
    yield from main_table(certificate)
    for null in dict.fromkeys(group.null for group in certificate.groups if group.strength):
        if certificate.is_unplanted(null):
            yield from ("", f"## Planted biases in `{null}`", "", _unplanted(certificate))
        elif found := responses(certificate, null):
            yield from ("", f"## Planted biases in `{null}`", "")
            yield (
                f"Mean of each number by the planted bias (`{certificate.planted}`), and power: the share of studies "
                "in which it is shown. *Saturation*: change between the two largest biases as a share of that at the "
                "smallest ones; 1 is linear."
            )
            yield ""
            yield from marked_table(_response_head(found[0]), [_response_row(one) for one in found[:SHOWN]])
    if certificate.sensitivity:
        yield from ("", "## Sensitivity", "")
        yield (
            "How far fair models that differ in one respect move a number of the headline, at the farthest: its mean "
            f"less that under `{FAIR}`, in standard deviations between studies of `{FAIR}`; and how much wider the "
            "numbers spread between studies, at the widest."
        )
        yield ""
        head = ("to", "models", "farthest", "number", "shift", "spread, times")
        yield from marked_table(head, [_sensitivity_row(one) for one in certificate.sensitivity])
    if certificate.real:
        yield from ("", "## Trained models", "")
        yield (
            "Studies of trained models. A model stays the same, with its leans to the words at hand; the items of each "
            "study are drawn anew, and a study that draws no items has one. The number that is shown most often, with "
            "the mean of its value."
        )
        yield ""
        yield from _real(certificate)
    yield from ("", "## What it holds for", "")
    yield from _facts(certificate)


def _unplanted(certificate: Certificate) -> str:
    planted = dict.fromkeys(group.strength for group in certificate.groups if group.strength and group.studies)
    strengths = ", ".join(f"{strength:g}" for strength in planted)
    return (
        f"Nothing was planted: the answers are the same at every value of `{certificate.planted}` ({strengths}). "
        "Nothing is known of what this study finds."
    )


def _sensitivity_row(one: Sensitivity) -> tuple[str, ...]:
    nulls = ", ".join(f"`{name}`" for name in one.nulls)
    if not one.largest:
        return one.to, nulls, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED
    wider = UNDEFINED if one.wider is None else number(one.wider, 2)
    return one.to, nulls, f"`{one.largest}`", named(one.measure, one.group), number(one.shift, 2), wider


def _facts(certificate: Certificate) -> Iterator[str]:
    design = ", ".join(f"`{name} = {value}`" for name, value in certificate.design.items()) or "the defaults"
    entire = (
        f", {certificate.entire:,} of the default size for a model that prefers levels" if certificate.entire else ""
    )
    yield f"- Design: {design}; {counted(certificate.requests, 'request')} a study{entire}."
    yield f"- Made on {certificate.made} with prejudge {certificate.prejudge}, in {_time(certificate.seconds)}."
    yield from (f"- Data {name}: sha256 `{digest[:16]}`" for name, digest in certificate.data.items())
    named = {
        "questions": certificate.questions,
        "numbers": digest_of(certificate.numbers) if certificate.numbers else "",
        "statistics": digest_of(certificate.battery) if certificate.battery else "",
        "gallery": certificate.gallery_digest,
    }
    yield from (f"- Digest of the {part}: `{digest[:16]}`" for part, digest in named.items() if digest)
    if certificate.by_command:
        same = certificate.by_command - len(certificate.differing)
        yield f"- {same} of {counted(certificate.by_command, 'run')} by the command line found the same as in memory."
        yield from (f"- Model {seed} differs: {why}." for seed, why in certificate.differing.items())


def _time(seconds: float) -> str:
    told = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
    return f"{told} of processor time"


def _fair(certificate: Certificate) -> list[Group]:
    return [group for group in certificate.groups if not group.strength]


def _fair_row(certificate: Certificate, group: Group) -> tuple[str, ...]:
    name, meaning = f"`{group.null}`", certificate.meanings.get(group.null, "")
    if group.unchanged:
        share = f" ({percent(group.changed, 1)} of its answers differ)" if group.changed else ""
        return name, meaning, "", f"not changed by it{share}", "", "", "", "", "", ""
    rate = group.worst
    if rate is None:
        said = "no number has a verdict"
        return name, meaning, str(group.studies), UNDEFINED, said, "", "", "", "", percent(group.missing, 1)
    return (
        name,
        meaning,
        str(group.studies),
        _share(group.worst_answer),
        named(rate.measure, rate.group),
        _share(rate),
        percent(group.any_shown / group.studies, 1),
        UNDEFINED if rate.covered is None else percent(rate.covered, 1),
        _shift(certificate, rate),
        percent(group.missing, 1),
    )


def _share(rate: Rate | None) -> str:
    if rate is None:
        return UNDEFINED
    return rate.told if rate.holds else f"**{rate.told}**"


def _real(certificate: Certificate) -> list[str]:
    return marked_table(REAL_HEAD, [_real_row(group) for group in certificate.real])


def _real_row(group: Group) -> tuple[str, ...]:
    rate, name = group.worst, f"`{group.null}`"
    if rate is None:
        return name, f"{group.strength:g}", str(group.studies), UNDEFINED, "no number has a verdict", "", "", ""
    return (
        name,
        f"{group.strength:g}",
        str(group.studies),
        _share(group.worst_answer),
        named(rate.measure, rate.group),
        number(rate.mean, 2),
        _share(rate),
        percent(group.any_shown / group.studies, 1),
    )


def _shift(certificate: Certificate, rate: Rate) -> str:
    fair = certificate.group(FAIR)
    own = next((r for r in (fair.rates if fair else ()) if (r.measure, r.group) == (rate.measure, rate.group)), None)
    return number(None if own is None else shift_of(own, rate), 2)


def _response_head(one: Response) -> tuple[str, ...]:
    return ("number", *(f"bias {strength:g}" for strength in one.strengths), "monotone", "slope", "saturation")


def _response_row(one: Response) -> tuple[str, ...]:
    cells = (
        f"{number(mean, 3)}{'' if power is None else f' (power {percent(power, 0)})'}"
        for mean, power in zip(one.means, one.power, strict=True)
    )
    bend = UNDEFINED if one.saturation is None else number(one.saturation, 2)
    return named(one.measure, one.group), *cells, "yes" if one.monotone else "**no**", number(one.slope, 3), bend


def draw(certificate: Certificate) -> Chart:
    """Draw the highest rate of false positives by fair model: of the answers, and of numbers where these fail alone."""
    rows = [
        (group, rate)
        for group in (*_fair(certificate), *certificate.trained)
        if (rate := group.failing or group.worst_answer or group.worst) is not None and not group.unchanged
    ]
    figure = new_figure((7.6, 0.3 * len(rows) + 1.4))
    axes = figure.add_subplot()
    for place, (_, rate) in enumerate(rows):
        colour = "#0072B2" if rate.holds else "#D55E00"
        axes.plot([100 * (rate.low or 0.0), 100 * (rate.high or 0.0)], [place, place], color=colour, linewidth=1.4)
        axes.plot([100 * (rate.rate or 0.0)], [place], marker="o" if rate.holds else "D", color=colour, linestyle="")
    axes.axvline(100 * LEVEL, linestyle="--", linewidth=0.8, color="#555555")
    axes.set_yticks(range(len(rows)), [group.null for group, _ in rows])
    axes.invert_yaxis()
    plain(axes)
    axes.set_xlim(left=0)
    axes.set_xlabel("studies with a finding (%)")
    caption = (
        "For each fair model, of the gallery or trained, the percentage of studies with a finding, for the question "
        "with the most, with its 95 % interval; the dashed line is the level. Diamonds: more findings, or more "
        "significant numbers, than chance explains."
    )
    return Chart("false-positives", f"{certificate.study}: false positives by fair model", caption, figure)
