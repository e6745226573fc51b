"""What is said of components, errors and designs."""

from __future__ import annotations

from collections.abc import Iterator

from ...contracts.words import number
from .components import ANOVA, HENDERSON, RESIDUAL
from .errors import DRAWS, ROWS, Planned, Value
from .restricted import METHOD as REML
from .variance import Variance

NEGATIVE = "below 0, which counts as 0 in all that follows"


def title_of(found: Variance) -> str:
    """Return the title of the page."""
    names = ", ".join(found.runs)
    return f"Where the variance of {found.outcome.words.label} comes from: {names}"


def unit(found: Variance) -> str:
    """Return the unit of the headline, with a space before it."""
    return f" {found.outcome.words.unit}".rstrip()


def levels_words(design: Planned) -> str:
    """Return a design in words, such as `30 levels of template and 2 draws of each prompt`."""
    special = {DRAWS: "{} draws of each prompt", ROWS: "{:,} rows"}
    named = [special.get(name, f"{{:,}} levels of {name}").format(n) for name, n in design.levels.items()]
    return " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def coefficients(found: Variance) -> Iterator[tuple[str, Value, str]]:
    """Yield the reliabilities that there are: what each is called, its value, and what it says."""
    headline = found.headline
    if headline.object:
        name = headline.object
        yield (
            "generalizability coefficient",
            headline.relative,
            f"share of the variance between the headlines of each {name} that would come back with other levels",
        )
        yield "index of dependability", headline.dependable, "the same for the values themselves, not only their order"
    elif headline.dependable.value is not None:
        yield (
            "index of dependability",
            headline.dependable,
            "share of the headline's squared distance from neutral that is no error",
        )


def conclusion(found: Variance) -> str:
    """State what varies most, the error and its source, the reliability, and what a smaller error needs."""
    outcome, headline = found.outcome, found.headline
    every = found.found.components
    said = []
    if found.found.total > 0:
        most = max(every, key=lambda one: one.bounded)
        share = 100 * most.bounded / found.found.total
        name = "what no named facet explains" if most.term.name == RESIDUAL else most.term.name
        said.append(f"Most of the variance of an answer comes from {name} ({share:.0f} %).")
    error, over = headline.error, [name for name in outcome.facets if name in headline.random - {headline.object}]
    about = f"for other levels of {' and '.join(over)}" if over else "for other rows"
    each = f", for an average {headline.object}," if headline.object else ""
    value = (
        f"{outcome.words.label} is {number(outcome.value)}{unit(found)}{each} with" if outcome.value is not None else ""
    )
    said.append(
        f"{value or outcome.words.label + ' has'} a standard error of {number(error.value)} {about} "
        f"({100 * found.found.level:.0f} % interval {number(error.low)} to {number(error.high)})."
    )
    if outcome.naive and error.value and over:
        ratio = error.value / outcome.naive
        said.append(
            f"If all {outcome.rows.height:,} answers were independent it would be {number(outcome.naive)}: "
            + (f"too small by a factor of {ratio:.1f}." if ratio > 1.05 else "the facets add nothing to that.")
        )
    for name, value_, told in coefficients(found):
        if value_.value is not None:
            said.append(
                f"The {name} is {number(value_.value)} ({number(value_.low)} to {number(value_.high)}): {told}."
            )
    if headline.added.sum() > 0:
        place = int(headline.added.argmax())
        share = 100 * headline.added[place] / headline.added.sum()
        said.append(f"{share:.0f} % of the squared error comes from {every[place].term.name}.")
    if found.cheapest is not None:
        cost = found.cost(found.cheapest)
        price = "no price is known" if cost is None else f"USD {cost:,.2f}"
        said.append(
            f"A standard error of {number(found.wanted)} needs {levels_words(found.cheapest)} at least: "
            f"{found.requests(found.cheapest):,} requests, {price}."
        )
    return " ".join(said)


def methods(found: Variance) -> list[str]:
    """Describe how the numbers were made."""
    own = found.found
    below = "An estimate below 0 is given as it is, and counts as 0 in shares, errors and designs."
    how = {
        ANOVA: "the design is balanced, and each mean square of the analysis of variance is set to what is expected of "
        f"it. {below}",
        HENDERSON: "the design is not balanced, and each uncorrected sum of squares is set to what is expected of it "
        f"(Henderson 1953; Searle, Casella and McCulloch 1992). {below}",
        REML: "restricted maximum likelihood with normal effects (Searle, Casella and McCulloch 1992, chapter 6). An "
        "estimate is at least 0.",
    }
    intervals = (
        "of a component by profile likelihood, of the standard error by Satterthwaite's approximation with the "
        "expected information, of a coefficient by a normal approximation. All take effects as normal."
        if own.method == REML
        else f"by the {own.limits.named[1]} method (Ting and others 1990), which takes mean squares as independent and "
        "chi-squared: this holds for normal effects in balanced designs, and is an approximation elsewhere. An "
        "interval over few levels is wide for that reason."
    )
    fixed = ", ".join(name for name in found.outcome.facets if name not in found.headline.random)
    still = f"Fixed are {fixed}: all levels that the claim is about are there, so alone they add no error. "
    return [
        f"Variance components by {own.method}: {how[own.method]}",
        f"Intervals of {100 * own.level:.0f} % {intervals}",
        "The standard error adds each component's variance times the squared weights of its levels in the headline. "
        f"{still if fixed else ''}A design divides a component by how many times more levels it has (Brennan 2001). "
        "The smallest detectable effect is 2.8 standard errors: power 80 %, level 5 %, two-sided.",
        f"Requests and cost grow in proportion to answers, from what `prejudge plan` says of the study as it was run: "
        f"{found.asked.trials:,} requests of stage {found.asked.stage}, tokens {found.asked.basis}.",
    ]
