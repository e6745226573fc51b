"""The discovery studies in words: conclusion, headline, methods; and the associations themselves, as examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ...core.contracts.estimates import Estimate, Example
from ...core.statistics.families import NAMES
from ...probes.dora.associations import ranked
from ...probes.dora.documented import mark_documented
from ...probes.dora.salience import METHODS
from ...probes.dora.terms import CELL
from .counts import DISTINCT, SALIENT, Associations
from .known import JUDGED, OTHERS, UNDOCUMENTED
from .options import DoraAssociationsOptions
from .valence import EACH, LEVEL, VALENCES

LISTED = 20
"""Associations in a ranked list."""


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Pick the counts of two methods, and valence and novelty of each setting, over associations and descriptors."""
    wanted = {name + end for name in (*VALENCES, LEVEL) for end in ("", EACH)}
    wanted.add(UNDOCUMENTED)
    counts = [e for e in estimates if e.metric == SALIENT and e.group["method"] in ("tf-idf", "fisher")]
    return counts + [e for e in estimates if e.metric in wanted and "dimension" not in e.group]


def conclude(estimates: Sequence[Estimate]) -> str:
    """Say how many associations there are, how many stand a test, and how negative they are."""
    total = sum(int(e.value or 0) for e in estimates if e.metric == DISTINCT)
    if not total:
        return "Nothing can be concluded: no association was found."
    kept = {
        method: sum(int(e.value or 0) for e in estimates if e.metric == SALIENT and e.group["method"] == method)
        for method in METHODS
    }
    counts = (
        f"Of {total:,} associations {kept['fisher']:,} stand Fisher's exact test after correction and "
        f"{kept['tf-idf']:,} are p-value significant by the paper's tf-idf"
    )
    others = [OTHERS] if any(e.metric == JUDGED and e.facts.get(OTHERS) for e in estimates) else []
    return "; ".join([counts, *_valences(estimates), *others]) + "."


def _valences(estimates: Sequence[Estimate]) -> Iterator[str]:
    for name in VALENCES:
        own = [e for e in estimates if e.metric == name and "dimension" not in e.group and e.value is not None]
        if not own:
            continue
        least, most = min(own, key=lambda e: e.value or 0), max(own, key=lambda e: e.value or 0)
        spread = "" if most.low is None else f" ({most.interval.level:.0%} interval {most.low:.1f} to {most.high:.1f})"
        where = f"{most.value:.1f} % in setting {most.group['setting']}{spread}"
        low = "" if least.value == most.value else f", {least.value:.1f} % in setting {least.group['setting']}"
        yield f"{name} are {where}{low}"


def methods(options: DoraAssociationsOptions) -> str:
    """Describe how the estimates were made."""
    kept = {
        "all": "every association",
        "tf-idf": f"the associations that tf-idf keeps ({options.salience_keep} the standard-deviation range)",
    }.get(options.method, f"the associations that {options.method} keeps")
    return (
        "An association is a descriptor and a word that was said of it: a completion's lemma, or the lemma of a "
        "content word of a text. Each modality and setting is measured for itself. tf-idf is tf(d, w) ln(N / df(w)), "
        "df by descriptors; in_range counts the scores within one standard deviation of the mean, and salient by "
        f"tf-idf those of them with an upper-tail normal p below {options.salience_level:g} (the paper's Table 4; it "
        "has no formula). Fisher's exact test and the log-odds ratio with an informative Dirichlet prior are "
        "one-sided, corrected by Benjamini-Hochberg over all pairs of a descriptor and a word; PMI keeps 3 bits and "
        f"more of pairs that occur more than 5 times. Valence, levels, novelty and overlap are about {kept}. Intervals "
        f"are {options.interval_in_words('descriptor')}. Differences between settings permute the settings within "
        f"descriptors, corrected by {NAMES[options.correction]}. A mean per descriptor counts each descriptor once, "
        "so that runs can be compared descriptor by descriptor. Overlap is Jaccard's index over the descriptors of "
        "both; its neutral value and its p come from pairing descriptors at random. Agreement is Krippendorff's alpha "
        "of the repeated judgements of one judge: it is no validity. An association that counts and that the judge was "
        "not asked about, since the study chose others, is missing from the levels. Sentiment and toxicity are a "
        "classifier's."
    )


def examples_of(found: Associations, observations: pl.DataFrame, options: DoraAssociationsOptions) -> list[Example]:
    """Return ranked associations with their valence, by setting and dimension, and a gallery of described images.

    The words stand in captions, which a report covers until a reader asks for them.
    """
    return [*_ranked(found, options), *_gallery(observations, options)]


def _ranked(found: Associations, options: DoraAssociationsOptions) -> Iterator[Example]:
    known = None if options.documented is None else mark_documented(found.kept, options.documented)
    rows = ranked(found.kept if known is None else known, options.method)
    for (modality, setting, dimension), part in rows.group_by(*CELL, "dimension", maintain_order=True):
        top = part.head(LISTED)
        keys = [key for own in top.head(options.examples)["keys"].to_list() for key in own[:1]]
        lines = [f"{place}. {_line(row)}" for place, row in enumerate(top.iter_rows(named=True), 1)]
        yield Example(
            title=f"{part.height} associations, the strongest first",
            group={"modality": modality, "setting": setting, "dimension": dimension},
            keys=tuple(keys),
            caption="; ".join(lines) + (f". First said in the {len(keys)} answers below." if keys else ""),
        )


def _line(row: dict[str, object]) -> str:
    toxic = "toxic" if row["toxicity"] == "toxic" else None
    level = None if row["level"] is None else f"level {row['level']:.1f}"
    known = {True: "documented", False: "undocumented"}.get(row.get("documented"))  # type: ignore[call-overload]
    times = "once" if row["count"] == 1 else f"{row['count']} times"
    facts = [times, row["sentiment"], toxic, level, known]
    return f"{row['descriptor']} ↔ {row['word']} ({', '.join(str(fact) for fact in facts if fact)})"


def _gallery(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Iterator[Example]:
    if "image" not in observations.columns:
        return
    origin = "Drawn for" if (observations["stage"] == "drawings").any() else "Shows, by its folder"
    rows = observations.filter(pl.col("stage").is_in(["descriptions", "impressions"]) & (pl.col("status") == "ok"))
    for (modality, dimension), part in rows.group_by("modality", "dimension", maintain_order=True):
        images = part["image"].drop_nulls().unique(maintain_order=True).head(options.gallery)
        for image in images:
            texts = part.filter(pl.col("image") == image)
            yield Example(
                title="An image and what was said of it",
                group={"modality": modality, "dimension": dimension},
                keys=tuple(texts["key"].unique(maintain_order=True).head(4)),
                caption=f"{origin}: {texts['form'][0] if 'form' in texts.columns else texts['descriptor'][0]}.",
            )
