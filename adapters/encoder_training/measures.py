"""Delta-sim and confusion of sentences whose type is known.

Delta-sim is the mean cosine of sentences of one type less that of both types (Santhosh et al. 2025, equations 1, 2).
Only pairs of different sentences of one context count: a sentence that a context has twice forms no pair with itself.
The paper reports the absolute value; here it keeps its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.statistics.intervals import Array, ratio, stats
from ...core.statistics.resampling import Resampling, bootstrap
from .data import ANTI, STEREOTYPE, Bools, Corpus, Floats, Ints

OVERALL, RESAMPLES = "overall", 1999
Table = dict[str, dict[str, dict[str, int]]]
Several = Literal["mean", "nearest"]
Comparison = Literal["pair", "mean", "nearest"]
WAYS: tuple[Several, ...] = get_args(Several)
PAIR: Literal["pair"] = "pair"
COMPLETIONS = 5
"""The comparison that study `indicasa` makes: with one text of each type, by the majority of five completions."""
SLACK = 1e-12
"""Cosines that differ by less are a tie: rounding makes the difference."""


class Delta(msgspec.Struct, frozen=True):
    """Delta-sim of one category, or overall, with its sign: below 0, sentences of both types are the more similar."""

    value: float | None
    """None where there is no pair of a kind."""
    low: float | None
    """Lower end of the 95 % percentile interval, contexts resampled."""
    high: float | None
    pairs: tuple[int, int]
    """Pairs of one type, and of both types."""


class Nested(msgspec.Struct, frozen=True):
    """Delta-sim of one half of the contexts, of the epoch chosen by the other half, over random halves."""

    chosen: float
    """Mean over halves of the largest absolute value, on the half that chose."""
    reported: float
    """Mean over halves of the value of that epoch on the other half, signed as on the half that chose."""
    deviation: float
    """Standard deviation of the reported values over halves; the halves overlap, so it is no standard error."""


def unit(vectors: npt.ArrayLike) -> Floats:
    """Scale rows to length 1, in float64."""
    rows = np.asarray(vectors, dtype=np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def pair_sums(vectors: npt.ArrayLike, corpus: Corpus, rows: Ints) -> Floats:
    """Sum the cosines of all pairs of some sentences, by context.

    With vectors of length 1 the cosines of a group sum to half of the squared length of the group's sum less its size,
    so nothing runs over pairs.

    Returns:
        Summed cosines of pairs of one type, their number, the same of both types: [contexts, 4].
    """
    scaled, groups, count = unit(vectors), corpus.labels[rows], 2 * corpus.contexts
    whole = np.zeros((count, scaled.shape[1]))
    np.add.at(whole, groups, scaled)
    # Within a group, sentences that are word for word the same have a cosine of 1 to each other and to themselves.
    same, times = np.unique(np.stack([groups, corpus.wording[rows]]), axis=1, return_counts=True)
    equal = np.bincount(same[0], weights=times**2, minlength=count)
    size = np.bincount(groups, minlength=count).astype(np.float64)
    within, pairs = ((whole**2).sum(1) - equal) / 2, (size**2 - equal) / 2
    intra, intra_pairs = (values.reshape(-1, 2).sum(1) for values in (within, pairs))
    inter, inter_pairs = (whole[0::2] * whole[1::2]).sum(1), size[0::2] * size[1::2]
    return np.stack([np.where(intra_pairs > 0, intra, 0.0), intra_pairs, inter, inter_pairs], axis=1)


def difference(totals: Array) -> Array:
    """Return delta-sim of summed pairs (..., 4); NaN without a pair of a kind."""
    return ratio(totals[..., 0], totals[..., 1]) - ratio(totals[..., 2], totals[..., 3])


def deltas(vectors: npt.ArrayLike, corpus: Corpus, rows: Ints) -> dict[str, Delta]:
    """Return delta-sim `overall`, which pools the pairs of all categories as the equations do, and by category."""
    sums = pair_sums(vectors, corpus, rows)
    parts = {name: sums[corpus.owner == index] for index, name in enumerate(corpus.categories)}
    return {name: _delta(part) for name, part in {OVERALL: sums, **parts}.items()}


def nested(history: Floats, owner: Ints, halves: int = 200) -> Nested | None:
    """Choose the epoch by a random half of the contexts of each category, and report it on the other half.

    Args:
        history: Pair sums of every epoch, of one training or of all trainings of a sweep: [epochs, contexts, 4].
        owner: The category of each context: [contexts].
        halves: How many random halves.

    Returns:
        None where a half has no pairs of a kind.
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(halves):
        order = rng.permutation(len(owner))
        # Sorted by category, every other context: each half has its share of each category.
        order = order[np.argsort(owner[order], kind="stable")]
        start = int(rng.integers(2))
        choosing, other = (difference(history[:, order[at::2]].sum(1)) for at in (start, 1 - start))
        if np.isnan(choosing).any() or np.isnan(other).any():
            return None
        best = int(np.abs(choosing).argmax())
        found.append((abs(choosing[best]), other[best] * np.sign(choosing[best])))
    chosen, reported = np.array(found).T
    return Nested(float(chosen.mean()), float(reported.mean()), float(reported.std(ddof=1)))


def classify(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints, several: Several) -> tuple[Bools, Bools]:
    """Predict the type of each of `rows` by the rule of study `indicasa`, from its context and never from itself.

    A sentence is predicted as a stereotype if its cosine to the stereotypes of its context exceeds that to the
    anti-stereotypes (equation 6); a tie is an anti-stereotype.

    Args:
        vectors: Of the whole corpus: [sentences, width].
        corpus: All sentences.
        rows: The held-out ones.
        references: Those whose type is known. A context without any of a type uses its other held-out ones.
        several: Which cosine counts where a context has several references of a type: the mean, or the greatest.

    Returns:
        Whether each is predicted as a stereotype, and whether it has references of both types: [rows] each.
    """
    scaled, context, found = unit(vectors), corpus.context, []
    for kind in (True, False):
        of_type, others = (part[corpus.stereotype[part] == kind] for part in (references, rows))
        pool = np.concatenate([of_type, others[~np.isin(context[others], context[of_type])]])
        usable = (context[rows][:, None] == context[pool]) & (rows[:, None] != pool)
        cosines = np.where(usable, scaled[rows] @ scaled[pool].T, 0.0 if several == "mean" else -np.inf)
        counts = usable.sum(1)
        one = cosines.sum(1) / np.maximum(counts, 1) if several == "mean" else cosines.max(1, initial=-np.inf)
        found.append(np.where(counts > 0, one, np.nan))
    stereotype, anti = found
    return stereotype > anti + SLACK, ~np.isnan(stereotype + anti)


def confusion(
    vectors: Floats,
    corpus: Corpus,
    rows: Ints,
    references: Ints,
    several: Comparison = "mean",
    completions: int = 1,
) -> Table:
    """Count held-out sentences by category, true type, and the type that the study's comparison gives them.

    A prompt is compared with one text of each type (`pair`), or with several. Its class is that of the majority of
    its completions: of independent draws from the held-out sentences of one type and context. The shares are exact
    means over all pairs of references and all draws; they are counted as whole sentences, rounded.
    """
    rights, scaled = dict[tuple[int, bool], list[tuple[float, int]]](), unit(vectors)
    predicted, known = classify(vectors, corpus, rows, references, "mean" if several == PAIR else several)
    right = np.where(known, predicted == corpus.stereotype[rows], np.nan)[:, None, None]
    for label in np.unique(corpus.labels[rows]):
        own = corpus.labels[rows] == label
        found = _by_pair(scaled, corpus, rows, references, rows[own]) if several == PAIR else right[own]
        usable = ~np.isnan(found)
        shares = ratio(np.where(usable, found, 0.0).sum(0), usable.sum(0).astype(np.float64))
        if count := int(usable.any((1, 2)).sum()):
            majority = stats.binom.sf(completions // 2, completions, shares[~np.isnan(shares)])
            group = int(corpus.owner[label // 2]), bool(label % 2)
            rights.setdefault(group, []).append((float(majority.mean()), count))
    return {
        name: {
            true: dict(zip((true, other), _counted(rights.get((index, kind), [])), strict=True))
            for true, other, kind in ((STEREOTYPE, ANTI, True), (ANTI, STEREOTYPE, False))
        }
        for index, name in enumerate(corpus.categories)
    }


def _by_pair(scaled: Floats, corpus: Corpus, rows: Ints, references: Ints, own: Ints) -> Floats:
    """Return 1 where a sentence of `own`, all of one type and context, gets its type from a pair of references.

    Returns:
        [own, stereotypes, anti-stereotypes]; NaN where the sentence itself is one of the pair.
    """
    context, cosines, same = corpus.context[own[0]], [], []
    for kind in (True, False):
        of_type = [
            part[(corpus.context[part] == context) & (corpus.stereotype[part] == kind)] for part in (references, rows)
        ]
        pool = of_type[0] if len(of_type[0]) else of_type[1]
        cosines.append(scaled[own] @ scaled[pool].T)
        same.append(own[:, None] == pool)
    told = cosines[0][:, :, None] > cosines[1][:, None] + SLACK
    right = told if corpus.stereotype[own[0]] else ~told
    return np.where(same[0][:, :, None] | same[1][:, None], np.nan, right.astype(np.float64))


def _counted(found: Sequence[tuple[float, int]]) -> tuple[int, int]:
    """Return how many sentences are right and wrong, from shares and numbers by context."""
    count = sum(n for _, n in found)
    right = round(sum(share * n for share, n in found))
    return right, count - right


def _delta(sums: Floats) -> Delta:
    used, totals = sums[sums[:, 1] + sums[:, 3] > 0], sums.sum(0)
    found = [float(difference(totals)), float("nan"), float("nan")]
    if len(used) > 1 and not np.isnan(found[0]):
        # The first column counts: a context without pairs of a type is drawn too.
        counted = np.column_stack([used[:, 1] + used[:, 3], used])[:, None, None]
        ends = bootstrap(counted, lambda drawn: difference(drawn[..., 1:]), Resampling(resamples=RESAMPLES))
        found[1:] = [float(end[0, 0]) for end in ends]
    value, low, high = (None if np.isnan(one) else one for one in found)
    return Delta(value, low, high, (int(totals[1]), int(totals[3])))
