"""Does a model with preferences by wording pass for one with associations, and are planted associations found?

`python benchmarks/dora_wordings.py --models 200` draws answers to the trials of `dora-t2t`, `dora-t2i` and `dora-i2t`
without a store. A model prefers words by wording, and by descriptor and wording: the preferences of one wording are
those of all settings that have it, and independent of those of others. Where nothing is planted all finds are false.
The table stands in `docs/studies/dora.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from prejudge.core.contracts import Stage
from prejudge.probes.dora.associations import count, measure_cells
from prejudge.probes.dora.i2t import DoraI2T, DoraI2TOptions
from prejudge.probes.dora.t2i import DoraT2I, DoraT2IOptions
from prejudge.probes.dora.t2t import DoraT2T, DoraT2TOptions

Pairs = set[tuple[str, str]]
WORDS, MENTIONS = 12, 3
"""Words of each letter, and those that a text about an image has."""
COMMON = 0.3
"""Standard deviation, in nats, of how common words are, in all and in a wording."""
PLANTED = 0.3
"""Share of the descriptors with a letter that have a word of their own."""
SHARED = {"dimensions": ("age", "gender", "nationality")}
OPTIONS: dict[str, dict[str, Any]] = {
    "dora-t2t": SHARED | {"per_dimension": 10, "letters": "ab"},
    "dora-t2i": SHARED | {"per_dimension": 15},
    "dora-i2t": SHARED | {"per_dimension": 15},
}
FACETS = {
    "dora-t2t": [("wording",)],
    "dora-t2i": [("wording",)],
    "dora-i2t": [("wording",), ("question",), ("wording", "question")],
}
"""What the preferences are by: one facet, or several at once."""


def stages(study: str, **options: Any) -> Sequence[Stage]:
    """Return the stages of a study."""
    if study == "dora-t2t":
        return DoraT2T().stages(DoraT2TOptions(**OPTIONS[study], **options))
    if study == "dora-t2i":
        return DoraT2I().stages(DoraT2IOptions(**OPTIONS[study], **options))
    return DoraI2T().stages(DoraI2TOptions(**OPTIONS[study], **options))


@cache
def asked(study: str, **options: Any) -> pl.DataFrame:
    """Return the trials whose answers are words, with a column `number`."""
    first, second, *_ = stages(study, **options)
    trials = list(first.trials({}))
    if study != "dora-t2t":
        drawings = pl.DataFrame([{**trial.factors, "image": trial.id, "status": "ok"} for trial in trials])
        trials, first = list(second.trials({first.name: drawings})), second
    rows = [{**trial.factors, "key": trial.id.encode(), "stage": first.name, "status": "ok"} for trial in trials]
    return pl.DataFrame(rows)


def levels(frame: pl.DataFrame, column: str) -> npt.NDArray[np.int64]:
    """Return the number of each row's level; all are one where there is no such column."""
    if column not in frame.columns:
        return np.zeros(frame.height, np.int64)
    return frame[column].rank("dense").to_numpy().astype(np.int64) - 1


def leaning(
    study: str,
    seed: int,
    spread: float,
    facets: Sequence[str] = ("wording",),
    strength: float = 0.0,
    longer: int = 0,
    **options: Any,
) -> tuple[Pairs, Pairs]:
    """Return the associations that `exact` finds in one model, and those planted in it.

    Args:
        study: One of the three.
        seed: Another seed is another model.
        spread: Standard deviation in nats of a descriptor's preferences by level of a facet.
        facets: The facets.
        strength: How much likelier, in nats, a descriptor's own word is; 0: it has none.
        longer: How many more words a text about every second descriptor has, drawn as the others are.
        options: Options of the study.
    """
    frame, rng = asked(study, **options), np.random.default_rng(seed)
    people, letter, wording = (levels(frame, name) for name in ("descriptor", "letter", "wording"))
    shape = int(people.max()) + 1, int(letter.max()) + 1
    scores = -0.15 * np.arange(WORDS) + rng.normal(0, COMMON, WORDS)
    scores = scores + rng.normal(0, COMMON, (int(wording.max()) + 1, WORDS))[wording]
    for facet in facets:
        level = levels(frame, facet)
        scores += rng.normal(0, spread, (shape[0], int(level.max()) + 1, shape[1], WORDS))[people, level, letter]
    own = np.where(rng.random(shape) < PLANTED, rng.integers(0, WORDS, shape), -1) if strength else np.full(shape, -1)
    scores += strength * (own[people, letter][:, None] == np.arange(WORDS))
    names = np.array([[f"{chr(97 + a)}o{c}{v}x" for c, v in product("bdfg", "aeu")] for a in range(shape[1])])
    chances = np.cumsum(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), axis=1)

    def said() -> list[str]:
        drawn = np.minimum((chances < rng.random((len(chances), 1))).sum(axis=1), WORDS - 1)
        return list(names[letter, drawn])

    if study == "dora-t2t":
        answered = frame.with_columns(word=pl.Series(said()))
    else:
        mentions = MENTIONS + longer * (people % 2)
        texts = zip(mentions, *(said() for _ in range(MENTIONS + longer)), strict=True)
        answered = frame.with_columns(text=pl.Series([" ".join(words[:most]) for most, *words in texts]))
    measured = measure_cells(count(answered))
    named = frame["descriptor"].unique().sort()
    planted = {(str(named[int(a)]), str(names[b, own[a, b]])) for a, b in np.argwhere(own >= 0)}
    return set(measured.filter("salient_exact").select("descriptor", "word").rows()), planted


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--studies", default=",".join(FACETS))
    options = parser.parse_args()
    for study in options.studies.split(","):
        for facets, spread in product(FACETS[study], (1.0, 1.5, 2.0)):
            finds = sum(bool(leaning(study, seed, spread, facets)[0]) for seed in range(options.models))
            print(f"{study} {' and '.join(facets)} {spread} nats: {finds} of {options.models} have any", flush=True)
        for longer in (1, 3) if study != "dora-t2t" else ():
            finds = [leaning(study, seed, 0.0, (), longer=longer)[0] for seed in range(options.models)]
            some, mean = sum(map(bool, finds)), sum(map(len, finds)) / options.models
            share = f"{longer} more words in texts about every second descriptor"
            print(f"{study} {share}: {some} of {options.models} have any, {mean:.1f} on average", flush=True)
        for strength in (1.0, 2.0, 3.0):
            cases = [leaning(study, seed, 1.0, strength=strength) for seed in range(options.models // 10)]
            kept, planted, both = (sum(map(len, own)) for own in zip(*((k, p, k & p) for k, p in cases), strict=True))
            precision = f"{both / kept:.2f}" if kept else "none found"
            print(f"{study} planted {strength}: precision {precision}, recall {both / planted:.2f}", flush=True)


if __name__ == "__main__":
    main()
