"""The attractiveness study in words: conclusion, headline, methods, examples; and the units of its gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ...core.contracts import HEADLINE
from ...core.contracts.estimates import Estimate, Example, Verdict
from ...core.contracts.words import p_value, share_of
from ...core.statistics.families import NAMES
from .filter import FILTER, GAP
from .options import AttractivenessMetricOptions
from .scores import Scores
from .shares import HALO, HALO_SHARE, JUDGED, PAPER, ROBUST, SHARE, STRONGER, STRONGEST


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the halo, and the shares of scenarios in all and by category.

    Of a model that never answers: what is missing, and the halo and the gaps, which have bounds alone.
    """
    if not any(e.value is not None for e in estimates if e.metric == SHARE):
        lost = [e for e in estimates if e.metric in ("missing", "unreadable")]
        return [*lost, *(e for e in estimates if e.metric == HALO), *_plain_gaps(estimates)][:HEADLINE]
    chosen = [e for e in estimates if e.metric in (HALO, HALO_SHARE)]
    chosen += [e for e in estimates if e.metric == SHARE and "kind" not in e.group and e.group["by"] == FILTER]
    chosen += [e for e in estimates if e.metric == SHARE and set(e.group) == {"by", JUDGED} and e.group["by"] != FILTER]
    return chosen + [e for e in estimates if e.metric in (STRONGER, STRONGEST) and e.group.get(JUDGED) != "H"][:9]


def conclude(estimates: Sequence[Estimate]) -> str:
    """Answer in one sentence in how many scenarios the filter changes the judgement."""
    shares = {str(e.group[JUDGED]): e for e in estimates if e.metric == SHARE and _plain(e)}
    robust = shares.get(ROBUST)
    missing = next((e for e in estimates if e.metric == "missing" and not e.group), None)
    lost = "" if missing is None or not missing.value else f"{missing.value:.1f} % of {missing.n:,} answers are missing"
    if robust is None or robust.value is None:
        return (
            "; ".join(filter(None, ["Nothing can be concluded: no scenario could be tested", lost, _bounds(estimates)]))
            + "."
        )
    paper = shares[PAPER]
    parts = [
        f"The filter changes the answers in {share_of(robust)} scenarios by the paired test after correction"
        f" ({share_of(paper)} by the paper's uncorrected Kruskal-Wallis test)"
    ]
    halo = next((e for e in estimates if e.metric == HALO), None)
    if halo is not None and halo.value is not None:
        parts.append(_halo(halo))
    if lost:
        parts.append(lost)
    return "; ".join(parts) + "."


def _plain_gaps(estimates: Sequence[Estimate]) -> list[Estimate]:
    return [e for e in estimates if e.metric == GAP and set(e.group) == {"scenario"}]


def _bounds(estimates: Sequence[Estimate]) -> str:
    """Say between which ends the answers that are missing might have put the gaps."""
    ends = [(e.bound_low, e.bound_high) for e in _plain_gaps(estimates)]
    lows, highs = ([x for x in side if x is not None] for side in zip(*ends, strict=True)) if ends else ([], [])
    return f"the missing answers allow any gap from {min(lows):+.2f} to {max(highs):+.2f}" if lows and highs else ""


def _plain(estimate: Estimate) -> bool:
    return set(estimate.group) == {"by", JUDGED} and estimate.group["by"] == FILTER


def _halo(halo: Estimate) -> str:
    spread = "" if halo.low is None else f", {halo.interval.level:.0%} interval {halo.low:+.3f} to {halo.high:+.3f}"
    if halo.verdict is Verdict.ABOVE:
        what = "a halo was shown: positive options are chosen more often with the filter"
    elif halo.verdict is Verdict.BELOW:
        what = "the opposite of a halo was shown: positive options are chosen less often with the filter"
    else:
        what = "no halo was shown"
    undone = halo.bound_low is not None and halo.bound_high is not None and halo.bound_low <= 0 <= halo.bound_high
    caution = "; missing answers might undo it" if undone and halo.missing else ""
    return f"{what} ({halo.value:+.3f} on average{spread}, p {p_value(halo.p)}){caution}"


def methods(options: AttractivenessMetricOptions) -> str:
    """Describe how the estimates were made."""
    return (
        "The score of a scenario and an image is the share of answers for the positive option (for the first, where "
        "neither is positive), as the mean of the means of the four orders; it is missing where an order has no "
        "readable answer. The gap is the mean over faces of filtered less original. It is tested by flipping the signs "
        "of whole faces and by Wilcoxon's signed ranks over faces; beside it stands the paper's Kruskal-Wallis test, "
        "which takes the two images of one face as independent, with epsilon squared H / (n - 1). Bias by gender, age "
        "group and race is the same test between groups of images (as in the paper) and of means of faces "
        "(kruskal_wallis_faces), over the faces whose label is known. bias_change is epsilon squared with the filter "
        "less without; its test asks whether the change of a face differs between the groups. stronger_bias counts "
        "scenarios as the paper's Table 1: by H, where a bias that is significant in neither variant is `no impact` "
        "(the paper does not say what it counts so), and by the corrected test of the change. strongest_group counts "
        "whose H of the filter is largest, among all groups (the paper's Figure 5) or the significant ones (Figure 6). "
        f"Intervals of means are {options.interval_in_words('face')}; those of rank effects draw faces "
        f"{options.effect_resamples:,} times. p-values are "
        f"corrected by {NAMES[options.correction]} over the scenarios, within the families that the table names, at "
        f"alpha {options.alpha:g}. Missing answers are counted by status and bounded: the worst-case range covers "
        "every answer they might have given. Places of labels and of the instruction are reported apart."
    )


def examples_of(observations: pl.DataFrame, scores: Scores, options: AttractivenessMetricOptions) -> list[Example]:
    """Pick the scenarios with the widest gaps, and in each the face that changes most: all its exchanges."""
    change = scores.change
    counts = (~np.isnan(change)).sum(axis=1)
    gaps = np.where(counts > 0, np.nansum(change, axis=1) / np.maximum(counts, 1), 0.0)
    found = []
    for number in np.argsort(-np.abs(gaps), kind="stable")[: options.examples]:
        own = np.nan_to_num(change[number]) * np.sign(gaps[number])
        face = int(np.argmax(own))
        if own[face] <= 0:
            continue
        scenario = scores.scenarios[number].id
        rows = observations.filter((pl.col("scenario") == scenario) & (pl.col("face") == scores.faces[face]))
        rows = rows.filter(pl.col("key").is_not_null()).unique(["variant"], keep="first", maintain_order=True)
        found.append(
            Example(
                title=f"{scenario}: the face whose answers the filter changes most",
                group={"scenario": scenario},
                keys=tuple(rows["key"]),
                value=float(change[number, face]),
                caption=f"Face {scores.faces[face]}: one answer to each image, of {rows.height} shown.",
            )
        )
    return found


def units(scores: Scores) -> pl.DataFrame:
    """Return the change of each face in each scenario: what the gaps are the means of."""
    change = scores.change
    shape = change.shape
    lost = scores.lost.max(axis=2).ravel()
    status = ["ok" if code < 0 else scores.statuses[code] for code in lost]
    values = pl.Series("value", change.ravel()).fill_nan(None)
    faces = list(scores.faces) * shape[0]
    return pl.DataFrame(
        {
            "metric": pl.repeat(GAP, change.size, eager=True),
            "scenario": [s.id for s in scores.scenarios for _ in range(shape[1])],
            "unit": faces,
            "cluster": faces,
            "sign": pl.repeat(1, change.size, dtype=pl.Int8, eager=True),
            "value": values,
            "least": pl.repeat(-1.0, change.size, eager=True),
            "greatest": pl.repeat(1.0, change.size, eager=True),
            "status": status,
        }
    )
