"""What is said of a multiverse."""

from __future__ import annotations

from collections.abc import Sequence

from ...contracts.words import counted, interval, number, percent
from .multiverse import Found, Missing


def agreement(found: Found) -> str:
    """Return how many universes agree with the study's own choices, without a full stop."""
    sign, verdict = (percent(round(share, 2)) for share in (found.same_sign, found.same_verdict))
    return (
        f"Of {counted(len(found.results), 'universe')}, {sign} are on the same side of neutral and {verdict} have the "
        "same verdict"
    )


def conclusion(found: Found) -> str:
    """State the result of the study's own choices, how many agree, what moves it most, and what was not asked."""
    own = found.own.estimate
    unit = f" {own.unit}".rstrip()
    values = [one.estimate.value for one in found.results if one.estimate.value is not None]
    ends = f", values from {number(min(values))} to {number(max(values))}" if values else ""
    said = [
        f"{own.label or own.metric} is {number(own.value)}{unit} ({interval(own.low, own.high)}) with the choices of "
        f"the study: {found.own.verdict}.",
        f"{agreement(found)}{ends}.",
    ]
    most = next(iter(found.moved), None)
    if most is not None and most.pairs and (most.verdicts or most.change):
        change = "" if most.change is None else f", and the value changes by {number(most.change)}{unit} on average"
        said.append(
            f"{most.choice} moves the result most: the verdict changes in {most.verdicts} of "
            f"{counted(most.pairs, 'pair')} of universes that differ in it alone{change}."
        )
    if found.missing:
        asked = sum(one.universes for one in found.missing)
        said.append(f"{asked:,} of {found.every:,} universes are not asked yet: {priced(found.missing)}.")
    if found.unable:
        said.append(f"{unable(found)}.")
    return " ".join(said)


def unable(found: Found) -> str:
    """Return which universes the model cannot answer, without a full stop."""
    needs = ", ".join(dict.fromkeys(one.needs for one in found.unable))
    lacking = counted(sum(one.universes for one in found.unable), "universe")
    return f"The model cannot answer {lacking} (needed: {needs})"


def priced(missing: Sequence[Missing]) -> str:
    """Return how many requests several studies lack, what they cost, and whether more follow from their answers."""
    costs = [one.cost for one in missing]
    cost = "no price is known" if None in costs else f"USD {sum(one or 0.0 for one in costs):,.4f}"
    later = dict.fromkeys(name for one in missing for name in one.later)
    more = f", and those of {', '.join(later)}, which follow from the answers" if later else ""
    return f"{counted(sum(one.requests for one in missing), 'request')}, {cost}{more}"
