"""The discovery studies in words: conclusion, headline, methods; and the associations themselves, as examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from ...core.contracts import Presentation
from ...core.contracts.estimates import Caveat, Chart, Estimate, Example, Listing
from ...core.statistics.templates import rendered
from ...probes.dora.associations import ranked
from ...probes.dora.documented import mark_documented
from ...probes.dora.salience import METHODS
from ...probes.dora.terms import CELL, STAGES
from .across import listings
from .charts import draw
from .counts import LONGEST, OTHERS, Associations, gather
from .measures import DISTINCT, EACH, JUDGED, LEVEL, SALIENT, UNDOCUMENTED, VALENCES
from .options import DoraAssociationsOptions

LISTED = 20
"""Associations in a ranked list."""


class Words(Presentation):
    """What a report says of the associations."""

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the counts of three methods, and valence and novelty by setting, over associations and descriptors."""
        wanted = {name + end for name in (*VALENCES, LEVEL) for end in ("", EACH)} | {UNDOCUMENTED}
        counts = [e for e in estimates if e.metric == SALIENT and e.group["method"] in ("exact", "fisher", "tf-idf")]
        return counts + [e for e in estimates if e.metric in wanted and "dimension" not in e.group]

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State how many associations there are, how many are significant, and how negative they are."""
        salient = [e for e in estimates if e.metric == SALIENT]
        kept = {method: sum(int(e.value or 0) for e in salient if e.group["method"] == method) for method in METHODS}
        return rendered(
            str(__package__),
            "conclusion.md.j2",
            unread=list(_unread(estimates)),
            total=sum(int(e.value or 0) for e in estimates if e.metric == DISTINCT),
            exact=kept["exact"],
            fisher=kept["fisher"],
            only=any(e.facts["wordings"] == 1 for e in salient if e.group["method"] == "exact"),
            equal=any(Caveat.EQUAL_REPEATS in e.caveats for e in salient),
            tf_idf=kept["tf-idf"],
            valences=list(_valences(estimates)),
            longest=max(
                (float(str(e.facts.get(LONGEST, 0))) for e in salient if e.group["method"] == "exact"), default=0
            ),
            others=any(e.metric == JUDGED and e.facts[OTHERS] for e in estimates),
        )

    def methods(self, options: DoraAssociationsOptions) -> str:
        """Describe how the estimates were computed."""
        return rendered(str(__package__), "methods.md.j2", options=options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw levels and valence as heat maps, and the overlap of settings."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> list[Example]:
        """Rank the associations with their valence, by setting and dimension, and show images with their descriptions.

        The words are in captions, which a report hides until a reader opens them.
        """
        found = gather(observations, options)
        return [
            *_ranked(found, options),
            *_gallery(observations, options),
            *_unreadable(found, observations, options),
        ]

    def across(self, runs: Mapping[str, tuple[pl.DataFrame, DoraAssociationsOptions]]) -> list[Listing]:
        """List the associations of all runs as an atlas, those that two runs share, and those that differ."""
        return listings(runs)


def _unread(estimates: Sequence[Estimate]) -> Iterator[tuple[str, int, int, list[str]]]:
    """Yield each stage of which answers are missing: how many, of how many, and the kinds that are unreadable."""
    for e in estimates:
        if e.metric == "missing" and set(e.group) == {"stage"} and (missing := e.missing.total):
            stage = str(e.group["stage"])
            kinds = [k for k in estimates if k.metric == "unreadable" and k.group["stage"] == stage]
            yield stage, missing, e.n, [f"{k.group['kind']}: {(k.value or 0) * k.n / 100:.0f}" for k in kinds]


def _valences(estimates: Sequence[Estimate]) -> Iterator[tuple[str, Estimate, Estimate | None]]:
    """Yield each valence with its largest and its smallest value; None where they are equal."""
    for name in VALENCES:
        own = [e for e in estimates if e.metric == name and "dimension" not in e.group and e.value is not None]
        if own:
            least, most = min(own, key=lambda e: e.value or 0), max(own, key=lambda e: e.value or 0)
            yield name, most, None if least.value == most.value else least


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
    known = None
    if "documented" in row:
        known = f"documented, {row['documented_by']}" if row["documented"] else "undocumented"
    times = "once" if row["count"] == 1 else f"{row['count']} times"
    settings = f"in {row['found_in']} of {row['asked_in']} settings"
    facts = [times, settings, row["sentiment"], toxic, level, known]
    return f"{row['descriptor']} ↔ {row['said']} ({', '.join(str(fact) for fact in facts if fact)})"


def _unreadable(found: Associations, observations: pl.DataFrame, options: DoraAssociationsOptions) -> Iterator[Example]:
    """Yield the first answers of each kind that could not be read, where none could."""
    if found.every.height:
        return
    rows = observations.filter((pl.col("status") == "unreadable") & pl.col("stage").is_in(STAGES))
    for (stage, reason), part in rows.group_by("stage", "reason", maintain_order=True):
        keys = tuple(part["key"].unique(maintain_order=True).head(options.examples))
        caption = f"{part.height} answers: {reason}."
        yield Example(title="Answers that could not be read", group={"stage": stage}, keys=keys, caption=caption)


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
