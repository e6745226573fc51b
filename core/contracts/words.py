"""Format numbers, p-values and verdicts for reports, tables, terminals and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from .estimates import SIGNIFICANT, WITHIN, Caveat, Estimate, Verdict

UNDEFINED = "\N{EM DASH}"
SMALLEST_P, MARGIN, HITS, OF, BASIS = "smallest_p", "margin", "hits", "of", "basis"
TWICE, NEEDED, TIMES = "twice_", "needed_", "times_needed"
"""Of a planned effect, before the name of a facet: the effect with twice its levels, and the levels that one needs.
`TIMES`: how many times as many levels of every facet one needs."""
"""Facts with a text of their own; all others are shown as name and value."""
_CAVEATS = {
    Caveat.FEW_CLUSTERS: "few clusters ({clusters}): the interval may be too narrow",
    Caveat.ONE_CLUSTER: "no interval: fewer than two clusters",
    Caveat.FEW_LEVELS: "few levels of a factor that it generalises over: the interval may be too narrow",
    Caveat.ONE_LEVEL: "one level of a factor that it generalises over: it is valid for this level only",
    Caveat.EQUAL_REPEATS: "most repeated prompts had the same answer each time, which counts once",
    Caveat.ONE_DRAW: "the endpoint repeats itself where draws must differ: all samples of a prompt count as one draw",
    Caveat.NO_VARIATION: "no interval: no variation between clusters",
    Caveat.P_FLOOR: "too few clusters: p cannot be below {smallest_p:.3g}, whatever the answers",
    Caveat.UNDEFINED: "undefined",
    Caveat.UNSTABLE: "unstable: it depends on few answers",
    Caveat.UNTESTED: "no test",
    Caveat.UNEVEN_MISSING: "more often in some groups than in others: what is missing may have changed the differences",
    Caveat.SELECTED: "some answers were chosen by outcome: they were asked for because the ones before were not usable",
    Caveat.ENDED_EARLY: "the run ended at a look at its answers: interval and p do not account for that, the gate does",
    Caveat.BATCH_DIFFERS: "asked in batches, whose answers differ from those of single calls",
    Caveat.NOT_HEEDED: "a model did not heed a setting that tells the runs apart",
    Caveat.UNPROVED: "UNPROVED: the run is not as it was stored",
    Caveat.NOT_CORRECTED: "not corrected for other tests",
}
_EXPLAINED = (Caveat.UNDEFINED, Caveat.UNTESTED)
"""Caveats whose reason is the note."""


def defined(value: float | None) -> bool:
    """Return whether a number is neither None nor NaN."""
    return value is not None and not math.isnan(value)


def settled(value: float | None, scale: float = 1.0) -> float | None:
    """Return 0 for a value that is only the rounding error of a sum of terms as large as `scale`."""
    return 0.0 if value is not None and abs(value) < 1e-12 * max(1.0, abs(scale)) else value


def decimals_for(values: Iterable[float | None]) -> int:
    """Return the number of decimals of a column of such values: 3 below 10, 2 below 1000, else 1."""
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    return 3 if largest < 10 else 2 if largest < 1000 else 1


def number(value: float | None, decimals: int | None = None) -> str:
    """Format a number with so many decimals, by default as many as it needs.

    Whole numbers have no decimals, and a number other than 0 is never shown as 0.
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    decimals = decimals_for([value]) if decimals is None else decimals
    if isinstance(value, int):
        words = f"{value:,}"
    elif math.isinf(value):
        words = "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    elif value != 0 and abs(value) < 0.5 * 10**-decimals:
        words = f"{value:.1e}"
    else:
        return fixed(value, decimals)
    return words.replace("-", "\N{MINUS SIGN}")


def fixed(value: float, decimals: int) -> str:
    """Format a number with exactly so many decimals, for sentences; a rounded 0 has no sign."""
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def signed(value: float, decimals: int) -> str:
    """Format a difference with exactly so many decimals and its sign."""
    words = fixed(value, decimals)
    return words if words.startswith("\N{MINUS SIGN}") else f"+{words}"


def percent(share: float, decimals: int | None = None) -> str:
    """Format a share as a percentage, such as `95 %`, with so many decimals, by default as many as it needs."""
    return f"{exact(round(100 * share, 6)) if decimals is None else fixed(100 * share, decimals)} %"


def listed(words: Sequence[str], joint: str = "and") -> str:
    """Return words as a sentence lists them: `a`, `a and b`, `a, b and c`."""
    *others, last = words or ("",)
    return f"{', '.join(others)} {joint} {last}" if others else last


def counted(count: int, unit: str) -> str:
    """Format a count with its unit, given in the singular: `1 test`, `1,200 tests`."""
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


def level_word(level: object) -> str:
    """Return a level of a factor as a table of observations has it in words: true and false in small letters."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def p_value(value: float | None) -> str:
    """Format a p-value; very small and very large ones as bounds."""
    if value is None or math.isnan(value):
        return UNDEFINED
    return "< 0.001" if value < 0.001 else "> 0.999" if 0.999 < value < 1 else f"{value:.3f}"


def exact(value: float | None) -> str:
    """Format a value that is exact by definition, such as neutral, with only the decimals that it needs."""
    return UNDEFINED if not defined(value) else f"{value:g}".replace("-", "\N{MINUS SIGN}")


def interval(low: float | None, high: float | None, decimals: int | None = None) -> str:
    """Format the limits of an interval or range."""
    if not defined(low) and not defined(high):
        return UNDEFINED
    decimals = decimals_for([low, high]) if decimals is None else decimals
    return f"{number(low, decimals)} to {number(high, decimals)}"


def share_of(estimate: Estimate) -> str:
    """Format the counts of a share, as `3 of 4`."""
    return f"{estimate.facts.get(HITS, 0)} of {estimate.facts.get(OF, 0)}"


def explained(estimate: Estimate) -> str:
    """Describe an estimate's verdict, caveats, facts and note."""
    told = [*_verdict(estimate), *_caveats(estimate), *_facts(estimate)]
    if estimate.note and not any(caveat in estimate.caveats for caveat in _EXPLAINED):
        told.append(estimate.note)
    return "; ".join(told)


def _verdict(estimate: Estimate) -> Iterator[str]:
    margin = estimate.facts.get(MARGIN)
    limit = f"the limit of {exact(margin)} {estimate.unit}".rstrip() if isinstance(margin, int | float) else ""
    match estimate.verdict:
        case Verdict.ABOVE | Verdict.BELOW as side:
            yield f"significantly {side} neutral"
        case Verdict.NEAR:
            differs = "differs significantly from neutral, but " if estimate.significant else ""
            yield f"{differs}the whole interval lies within {limit or 'the limit'}"
        case Verdict.OPEN:
            yield "not significant" + (f", and a difference beyond {limit} is not excluded" if limit else "")


def _caveats(estimate: Estimate) -> Iterator[str]:
    values = {"clusters": estimate.clusters, SMALLEST_P: estimate.facts.get(SMALLEST_P, math.nan)}
    for caveat in estimate.caveats:
        why = f": {estimate.note}" if caveat in _EXPLAINED and estimate.note else ""
        yield _CAVEATS[caveat].format(**values) + why


def _facts(estimate: Estimate) -> Iterator[str]:
    for name, value in estimate.facts.items():
        if name == HITS:
            yield share_of(estimate)
        elif name == BASIS:
            yield str(value)
        elif value is True:
            yield name.replace("_", " ")
        elif name not in (SMALLEST_P, MARGIN, WITHIN, SIGNIFICANT, OF) and value is not False and value is not None:
            said = number(value) if isinstance(value, int | float) else value
            yield f"{name.replace('_', ' ')}: {said}"
