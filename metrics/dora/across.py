"""What several runs found, of one modality or of several: the atlas of associations, what they share, what differs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import polars as pl

from ...core.contracts.estimates import Listing
from ...probes.dora.associations import count, measure_cells, with_answers
from ...probes.dora.compared import atlas, differing, shared_by
from ...probes.dora.discovered import Discovered
from ...probes.dora.overlap import adjusted
from .options import DoraAssociationsOptions


def listings(runs: Mapping[str, tuple[pl.DataFrame, DoraAssociationsOptions]]) -> list[Listing]:
    """List the associations of runs, by label: by descriptor and word, shared by two runs, and different in two."""
    found = [one for label, run in runs.items() if (one := _discovered(label, *run)).pairs.height]
    if len(found) < 2:
        return []
    options = next(iter(runs.values()))[1]
    whole = atlas(found, options.method)
    shared, differences = _shared(found, options), _differences(found)
    several = int((differences["q"] <= options.alpha).sum()) if differences.height else 0
    return [
        Listing(
            "atlas",
            "Atlas of the associations: descriptors and words by run, modality and setting",
            f"Associations that {options.method} keeps in any run or setting. answers: with the word; kept: whether it "
            "is kept there; kept_in: in how many runs and settings.",
            whole,
        ),
        Listing(
            "shared",
            "Associations that two runs share",
            "Jaccard's index over the descriptors that both were asked about; expected, p: descriptors permuted.",
            shared,
        ),
        Listing(
            "differing",
            f"Associations that differ between two runs ({several:,} after correction)",
            "Runs of one modality: the share of answers with the word (first of of_first ...). Runs of "
            "two modalities: the odds ratio of the word for this descriptor against all others. Exact tests, for the "
            "wordings that were asked; q: corrected over all rows of two runs.",
            differences,
        ),
    ]


def _discovered(label: str, observations: pl.DataFrame, options: DoraAssociationsOptions) -> Discovered:
    counts = count(observations)
    pairs = with_answers(measure_cells(counts, options.salience_level, options.reading), observations)
    return Discovered(label, label, pairs, counts)


def _shared(found: list[Discovered], options: DoraAssociationsOptions) -> pl.DataFrame:
    rows = [
        {
            "run": first.run,
            "against": second.run,
            "modality": modality,
            "setting": setting,
            "first": shared.first,
            "second": shared.second,
            "shared": shared.shared,
            "jaccard": shared.jaccard,
            "expected": shared.expected,
            "p": shared.p,
        }
        for first, second in combinations(found, 2)
        for (modality, setting), shared in shared_by(first, second, options.method)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.with_columns(p_adjusted=pl.Series(adjusted(frame["p"].to_list()), dtype=pl.Float64))


def _differences(found: list[Discovered]) -> pl.DataFrame:
    rows = [
        differing(first, second).select(pl.lit(first.run).alias("run"), pl.lit(second.run).alias("against"), pl.all())
        for first, second in combinations(found, 2)
    ]
    return pl.concat(rows).sort("p", "run", "against", maintain_order=True)
