"""What a convergence says in sentences: made from its fields, and read by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from ...contracts.sizes import SURE, WORDS
from ...contracts.words import counted, number, p_value, percent
from .across import Kind, Matrix
from .convergence import Convergence
from .evidence import Evidence, Finding, Judged

FINDINGS = {
    Finding.AGREE_ABOVE: "the methods agree: at least {above} of {sources} sources show {direction}, and none shows "
    "the opposite",
    Finding.AGREE_BELOW: "the methods agree on the opposite: at least {below} of {sources} sources show less of "
    "{direction} than of its opposite, and none shows it",
    Finding.CONFLICT: "the methods contradict each other: of {sources} sources, at least {above} shows {direction}, "
    "and at least {below} the opposite",
    Finding.ONE_SOURCE: "one source alone of {sources} shows {which}: no other corroborates it, which is no agreement",
    Finding.NOT_SHOWN: "no agreement on a bias: none of {sources} sources shows {direction}, or the opposite. "
    f"{SURE.rstrip('.')}",
    Finding.TOO_FEW: "nothing can agree: {tested} with a test, and agreement needs two sources or more",
}
METHODS = (
    "Every method speaks by one row of its study, which the construct file names before anything is asked. Rows are "
    "brought to dominance (Cliff's delta): the share of units that go with the construct less the share that go "
    "against it, from -1 to 1. A difference of two shares or probabilities is its dominance, and a share p is 2p - 1. "
    "Standardised differences are converted under normal distributions, and marked as approximate. Where all clusters "
    "agree, the interval is the exact one of so many clusters that count once each. The values are not averaged.",
    "Sources are materials: methods that ask the same questions are one source, whose p is the smallest of theirs "
    "times their number. How many sources show an effect at least, in either direction, is the partial conjunction of "
    "Benjamini and Heller (2008) by Bonferroni, at 2.5 % per direction. It holds however the tests depend, and it is "
    "as valid as the tests of the studies.",
    "Cochran's Q, I² (Higgins and Thompson 2002) and τ² (Paule and Mandel) with its Q-profile interval (Viechtbauer "
    "2007) are of Cohen's h, the arcsine of dominance, with the standard error that the wider side of each interval "
    "has. They take errors as independent. What is independent: the trials of different studies. What is not: the "
    "model, and words or templates that methods share, whose errors are usually positively correlated; Q and τ² are "
    "then too small, and intervals of differences too wide. Differences of two methods have intervals by the method of "
    "variance estimates recovery (Zou and Donner 2008), not corrected.",
)
ACROSS = (
    "Over models: Kendall's τ-b between the values of two methods, its p by scipy (exact without ties), and Fieller's "
    "interval (1957). The models are those that were asked, not a sample: strengths of one reference model differ in "
    "nothing but their bias, and order more clearly than models of different makers."
)


def title_of(found: Convergence) -> str:
    """Return the title of the page."""
    return f"{'; '.join(one.title for one in found.constructs)}: convergent evidence"


def conclusion(found: Convergence, judged: Judged) -> str:
    """State what the methods say together of one model."""
    construct = found.named(judged.construct)
    shown = construct.direction if judged.above else f"the opposite of {construct.direction}"
    tested = sum(one.p is not None for one in judged.evidence)
    text = FINDINGS[judged.finding].format(
        above=judged.above,
        below=judged.below,
        sources=judged.sources,
        direction=construct.direction,
        which=shown,
        tested=counted(judged.sources, "source"),
    )
    signs = [one.above for one in judged.evidence if one.above is not None]
    asked = f"{tested} of {counted(len(judged.evidence), 'method')} could be tested"
    same = f"{sum(signs)} of {len(signs)} values lie in that direction" if signs else ""
    return ". ".join([_first(text), "; ".join(filter(None, [asked, same])), *_spread(judged)]) + "."


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _spread(judged: Judged) -> Iterator[str]:
    one = judged.heterogeneity
    if one is None:
        return
    share = f"{percent(one.i2, 0)} (95 % interval {percent(one.i2_low, 0)} to {percent(one.i2_high, 0)})"
    said = "differ by more than their errors" if one.p <= 0.05 else "do not differ by more than their errors"
    yield (f"The sizes of {counted(one.n, 'value')} {said} (Q = {number(one.q)}, p {p_value(one.p)}; I² {share})")


def lacking(found: Convergence) -> list[str]:
    """Say which methods found nothing in which model, and why."""
    return [f"{e.model}, {e.method}: {e.lacking.rstrip('.')}." for _, e in found.evidence if e.lacking]


def certificates(found: Convergence) -> str:
    """Say of every study that was asked whether a certificate holds for it as it was asked."""
    states = dict.fromkeys(f"{e.method} ({e.study}): {e.certificate}" for _, e in found.evidence if e.certificate)
    return f"Certificates: {'; '.join(states)}." if states else ""


def verdict_words(e: Evidence) -> str:
    """Return the study's own verdict, in the words of its report, in the direction of the construct."""
    return WORDS[e.state]


def dependence(found: Convergence) -> list[str]:
    """Say which methods share what."""
    said: dict[str, None] = {}
    for judged in found.judged:
        for pair in judged.pairs:
            both = f"{pair.first} and {pair.second}"
            if pair.one_material:
                said[f"{both} ask the same questions: they are one source."] = None
            elif pair.shared:
                said[f"{both} share {' and '.join(pair.shared)}."] = None
    return list(said)


def across_words(found: Matrix) -> str:
    """State how far methods order the models alike."""
    own = [one for one in found.correlations if one.kind is Kind.CONVERGENT and one.found.tau is not None]
    if not own:
        return "No two methods order the models: too few models have values of both, or all values are equal."
    least, most = (pick(one.found.tau for one in own if one.found.tau is not None) for pick in (min, max))
    shown = sum(one.found.low is not None and one.found.low > 0 for one in own)
    text = (
        f"Of {counted(len(own), 'pair')} of methods, {shown} order the models alike, by an interval of τ above 0 "
        f"(τ from {number(least)} to {number(most)})."
    )
    if found.comparisons:
        text += (
            f" Convergent correlations exceed those with the other construct in {found.exceeding} of "
            f"{found.comparisons} comparisons."
        )
    return text
