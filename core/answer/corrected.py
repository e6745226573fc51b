"""What the first screen says of numbers that were corrected for the errors of a reader or judge."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts.corrected import Correction, correction_of, shown
from ..contracts.estimates import Estimate
from ..contracts.words import UNDEFINED, percent
from .records import Number

HEAD = "Corrected"


def number_of(e: Estimate, found: Correction) -> Number:
    """Return the corrected number, as the raw one is shown."""
    return Number.of(e.replace(value=found.value, low=found.low, high=found.high, level=found.level))


def corrected_cell(e: Estimate) -> str:
    """Return the corrected value with its interval; a dash where there is none."""
    found = correction_of(e)
    if found is None or found.value is None:
        return UNDEFINED
    number = number_of(e, found)
    return f"{number.bare} ({number.spread})"


def corrected_words(estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """Return what a correction says of the estimates that answer a question, the first of them in full."""
    known = [(e, found) for e in estimates if (found := correction_of(e)) is not None]
    done = [(e, found) for e, found in known if found.value is not None]
    if not done:
        return tuple(dict.fromkeys(f"Not corrected: {found.why}." for _, found in known))[:1]
    e, first = done[0]
    number = number_of(e, first)
    other = shown(first, e.neutral)
    against = "" if other is None else f", which {'leaves out' if other else 'includes'} {number.expected}"
    told = (
        f"Corrected by {first.method}: {number.short} ({percent(first.level)} interval {number.spread}{against}); by "
        f"the verdict alone {Number.of(e).short}."
    )
    if len(known) > 1:
        changed = sum(shown(found, own.neutral) is not own.shown for own, found in done if own.verdict is not None)
        told += f" {len(done)} of {len(known)} groups are corrected, and {changed} would be judged otherwise."
    return (told,)


def is_corrected(estimates: Sequence[Estimate]) -> bool:
    """Return whether any of these is corrected."""
    return any(found.value is not None for e in estimates if (found := correction_of(e)) is not None)
