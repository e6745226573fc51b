"""Variance components of planted data: bias, coverage of the intervals and of the error, time and memory of a million.

Run: `python benchmarks/variance.py [REPEATS]`. Designs are balanced, with 10 and 50 % of their answers missing, with
yes-no answers, and nested; then the simulated model with leans, and 1,009,008 answers.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prejudge.core.lab.variance.components import Cells, Components, estimate
from prejudge.core.lab.variance.errors import Headline, shares_of
from prejudge.core.lab.variance.restricted import restricted

Array = npt.NDArray[Any]
REPEATS = 1000
MANY = 1_009_008
SHAPE = (12, 84, 1001)
"""Templates, words and groups of as many answers as the largest study asks."""


class Drawn(NamedTuple):
    """Answers, and the mean that other levels would have."""

    facets: Mapping[str, Array]
    values: Array
    truth: float


def crossed(rng: np.random.Generator, lost: float, levels: tuple[int, int] = (8, 15), yes_no: bool = False) -> Drawn:
    """Draw templates crossed with words, two draws of each cell; variances 1, 0.25, 0.5 and 1."""
    a, b = levels
    one, two, _ = (grid.ravel() for grid in np.meshgrid(range(a), range(b), range(2), indexing="ij"))
    effect = rng.normal(0, 1, a)[one] + rng.normal(0, 0.5, b)[two] + rng.normal(0, 0.5**0.5, (a, b))[one, two]
    noise = rng.normal(0, 1, len(one))
    values = (0.3 * effect + 0.5 > rng.random(len(one))).astype(float) if yes_no else effect + noise
    kept = rng.random(len(one)) >= lost
    return Drawn({"template": one[kept], "word": two[kept]}, values[kept], 0.0)


def nested(rng: np.random.Generator) -> Drawn:
    """Draw words in groups of words, three draws each; variances 1, 0.25 and 1."""
    one, two, _ = (grid.ravel() for grid in np.meshgrid(range(12), range(6), range(3), indexing="ij"))
    values = rng.normal(0, 1, 12)[one] + rng.normal(0, 0.5, (12, 6))[one, two] + rng.normal(0, 1, len(one))
    return Drawn({"template": one, "word": one * 6 + two}, values, 0.0)


def headline_of(drawn: Drawn, reml: bool = False) -> tuple[Components, Headline]:
    """Return the components of answers, and their mean over all facets."""
    cells = Cells(drawn.facets, drawn.values)
    found = restricted(estimate(cells)) if reml else estimate(cells)
    names = frozenset(drawn.facets)
    return found, Headline(components=found, shares=shares_of(found, cells), random=names, repeated=cells.replicated)


def check(
    name: str,
    draw: Callable[[np.random.Generator], Drawn],
    planted: tuple[float, ...],
    repeats: int,
    reml: bool = False,
) -> None:
    """Print the bias of every component, how often its interval has the planted value, and the error's honesty."""
    rng = np.random.default_rng(1)
    values, covered, means, errors = [], [], [], []
    for _ in range(repeats):
        drawn = draw(rng)
        found, headline = headline_of(drawn, reml)
        values.append([one.variance for one in found.components])
        if planted:
            covered.append([one.low <= own <= one.high for one, own in zip(found.components, planted, strict=True)])
        means.append(float(drawn.values.mean()) - drawn.truth)
        errors.append(headline.error.value or 0.0)
    names = [one.term.name for one in found.components]
    for place, own in enumerate(names):
        mean = np.mean(values, axis=0)[place]
        told = f"planted {planted[place]:.2f}, covered {100 * np.mean(covered, axis=0)[place]:.1f} %" if planted else ""
        print(f"| {name} | {own} | {mean:.4f} | {told} |")
    true, said = np.std(means), np.sqrt(np.mean(np.square(errors)))
    print(f"| {name} | standard error | {said:.4f} | of the means {true:.4f} |")


def simulated(repeats: int) -> None:
    """Print what comes back of the leans of the simulated adapter, over models that differ in their seed."""
    import tempfile
    from pathlib import Path

    import prejudge

    asked = {"per_cell": 60, "axes": ["height"], "sentiments": ["positive", "negative"]}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f'[models.m{seed}]\nadapter = "simulated"\n'
            f"settings = {{ spread = 1.0, word_spread = 0.5, noise = 0.8, seed = {seed} }}\n"
            for seed in range(repeats)
        ]
        Path(folder, "registry.toml").write_text("\n".join(lines))
        settings = prejudge.Settings(
            store=f"{folder}/p.db", runs=f"{folder}/runs", registry=f"{folder}/registry.toml", leave_out=("examples",)
        )
        facets = {"facets": ("template", "attribute"), "interactions": 1}
        for seed in range(repeats):
            run = prejudge.run("bistereo-pairs", f"m{seed}", settings, **asked)
            rows = prejudge.variance(run.name, settings=settings, **facets).estimates
            found.append(
                {name.split(" ")[0]: value for name, value in rows.select("component", "variance").iter_rows()}
            )
    for name, planted in (("template", 1.0), ("attribute", 0.25), ("residual", 0.64)):
        own = [one[name] for one in found]
        print(f"| simulated | {name} | {np.mean(own):.3f} ± {np.std(own) / repeats**0.5:.3f} | planted {planted} |")


def many() -> None:
    """Print the processor time and the memory of as many answers as the largest study asks."""
    rng = np.random.default_rng(1)
    a, b, c = (grid.ravel() for grid in np.meshgrid(*map(range, SHAPE), indexing="ij"))
    values = rng.normal(0, 1, SHAPE[0])[a] + rng.normal(0, 0.5, SHAPE[1])[b] + rng.normal(0, 1, MANY)
    values += 0.3 * rng.normal(0, 1, SHAPE[2])[c]
    for name, kept in (("balanced", np.ones(MANY, dtype=bool)), ("10 % missing", rng.random(MANY) > 0.1)):
        start = time.process_time()
        facets = {"template": a[kept], "word": b[kept], "group": c[kept]}
        found, headline = headline_of(Drawn(facets, values[kept], 0.0))
        headline.cheapest((headline.error.value or 0.0) / 2)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"| {MANY:,}, {name} | {found.method} | {time.process_time() - start:.1f} s | {memory:.2f} GiB |")
        print("|  | " + ", ".join(f"{one.term.name} {one.variance:.4f}" for one in found.components) + " | | |")


def main(repeats: int) -> None:
    """Print every table."""
    both = (1.0, 0.25, 0.5, 1.0)
    print("| design | component | mean of the estimates | |\n| --- | --- | --- | --- |")
    check("balanced", lambda rng: crossed(rng, 0.0), both, repeats)
    check("10 % missing", lambda rng: crossed(rng, 0.1), both, repeats)
    check("50 % missing", lambda rng: crossed(rng, 0.5), both, repeats)
    check("5 templates", lambda rng: crossed(rng, 0.0, (5, 15)), both, repeats)
    check("nested", nested, (1.0, 0.25, 1.0), repeats)
    check("yes-no", lambda rng: crossed(rng, 0.0, yes_no=True)._replace(truth=0.5), (), repeats)
    for name, lost in (("balanced", 0.0), ("50 % missing", 0.5)):
        check(f"{name}, REML", lambda rng, lost=lost: crossed(rng, lost), both, repeats, reml=True)  # type: ignore[misc]
    check("nested, REML", nested, (1.0, 0.25, 1.0), repeats, reml=True)
    simulated(max(4, repeats // 50))
    many()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
