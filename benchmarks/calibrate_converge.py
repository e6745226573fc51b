"""How often methods are said to agree on a bias of models that have none: convergences over the gallery of fair models.

Run: `python benchmarks/calibrate_converge.py [SEEDS]`. Three methods of three materials on every fair model of the
gallery, with some seeds each, and on planted biases.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from prejudge.core.catalogue.constructs import Construct, Method
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.lab.calibration.gallery import registered_gallery
from prejudge.core.lab.converge import Finding, cases_of, converge
from prejudge.core.store import Store

WOMEN = {"genders": ["women"]}
METHODS = {
    "sentences": Method(
        study="bistereo-pairs",
        measure="favouritism",
        scale="difference",
        group={"axis": "skin complexion", "gender": "women", "threshold": 0.02},
        options={"axes": ["skin complexion"], "sentiments": ["positive", "negative"], **WOMEN},
        size={"per_cell": 60},
    ),
    "inference": Method(
        study="bistereo-nli",
        measure="halo",
        scale="difference",
        group={"gender": "women", "kind": "looks"},
        options={"asking": "classify", "categories": ["attractiveness", "unattractiveness"], **WOMEN},
        size={"per_cell": 60},
    ),
    "choice": Method(
        study="subtle-sai",
        measure="delta_PL",
        scale="difference",
        group={"domain": "beauty"},
        options={"asking": "generate", "domains": ["beauty"]},
        size={"per_cell": 30},
    ),
}
CONSTRUCT = Construct(name="looks", title="Looks and praise", direction="desirable looks praised", methods=METHODS)
PLANTED = (0.25, 0.5, 1.0)


def main(seeds: int) -> None:
    """Print the findings over fair and over biased models."""
    catalogue = Catalogue.load()
    like = catalogue.registry.models["simulated-fair"]
    models: dict[str, str] = {}
    for seed in range(seeds):
        kinds = {name: null.settings for name, null in registered_gallery(catalogue, "simulated").items()}
        kinds |= {f"planted {nats}": {"strength": nats} for nats in PLANTED}
        for kind, settings in kinds.items():
            name = f"{kind} {seed}".replace(" ", "-")
            own = {**like.settings, **settings, "seed": seed}
            catalogue.registry.models[name] = ModelEntry(adapter="simulated", settings=own)
            models[name] = kind
    found: dict[str, Counter[Finding]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in models.items():
            finding = one(catalogue, name, Path(folder) / f"{name}.db")
            found.setdefault("planted" if kind.startswith("planted") else "fair", Counter())[finding] += 1
            found.setdefault(kind, Counter())[finding] += 1
            print(name, finding, flush=True)
    for kind, counts in found.items():
        print(f"{kind}: {dict(counts)}")


def one(catalogue: Catalogue, model: str, place: Path) -> Finding:
    """Return what the methods say of one model."""
    cases = cases_of(catalogue, [CONSTRUCT], [model], {}, {})
    with Store(str(place)) as store:
        options = RunOptions(keep_going=True)
        names = [asyncio.run(execute(catalogue, case.study, store, options)) for case in cases if case.study]
        return converge(catalogue, store, [CONSTRUCT], cases, names).judged[0].finding


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
