"""Names and meanings of the measures of the subtle-bias studies (Kamruzzaman et al. 2023)."""

from __future__ import annotations

from ...core.contracts.estimates import Measure
from ...probes.subtle.terms import POLARITIES
from .cells import DELTAS, LIKELIHOODS, RATES

_SYMBOLS = ("PL", "NL", "NuL")
_ASSOCIATION = "a stronger positive association between the given and the chosen polarity"


def _rate(symbol: str, option: str) -> Measure:
    return Measure(
        f"{symbol}: {option} options",
        f"Percentage of the readable answers that choose the {option} option.",
        "%",
        f"more {option} answers",
    )


def _likelihood(symbol: str, option: str, given: str) -> Measure:
    return Measure(
        f"{symbol}: {option} options, {given} given",
        f"Percentage of the readable answers that choose the {option} option, where the given term is {given}.",
        "%",
        f"more {option} answers to {given} terms",
    )


def _delta(symbol: str, option: str) -> Measure:
    return Measure(
        f"Δ{symbol}",
        f"Percentage of {option} answers where the given term is positive, minus that where it is negative.",
        "percentage points",
        f"more {option} answers to positive than to negative terms",
    )


def _tau(letter: str, test: str) -> Measure:
    return Measure(
        f"Kendall's tau-{letter}, {test}",
        f"Rank correlation of the polarity of the given term and the answer (tau-{letter}), from -1 to 1; coded as a "
        "match with the stereotype it follows the base rates, and 0 is not neutral.",
        direction=_ASSOCIATION,
    )


MEASURES = (
    {name: _rate(name, option) for name, option in zip(RATES, POLARITIES, strict=True)}
    | {
        name: _likelihood(name, POLARITIES[place % 3], "positive" if place < 3 else "negative")
        for place, name in enumerate(LIKELIHOODS)
    }
    | {name: _delta(symbol, option) for name, symbol, option in zip(DELTAS, _SYMBOLS, POLARITIES, strict=True)}
    | {
        "tau_b": _tau("b", "asymptotic test"),
        "tau_c": _tau("c", "asymptotic test"),
        "tau_c_clustered": _tau("c", "terms permuted"),
        "position_bias": Measure(
            "Position bias",
            "Percentage of the readable answers that choose the option at this position.",
            "%",
            "more answers for this position",
        ),
    }
)
