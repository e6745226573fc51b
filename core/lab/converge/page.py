"""The files of a convergence: one page, `convergence.json`, tables, a forest plot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ...catalogue.study import SUBJECT
from ...charts.forest import Panel, Point, forest
from ...contracts.estimates import Caveat, Chart, Estimate, Listing
from ...engine.manifest import new_name
from ...report import ReportContent, StudyInfo
from ...report.folder import write_folder
from .convergence import Convergence, evidence_frame
from .evidence import Evidence, Judged
from .words import ACROSS, METHODS, across_words, certificates, conclusion, dependence, lacking, title_of

LISTED = {
    "methods": "Every method on its own scale, and what could not be measured",
    "conclusions": "What is said of each model",
    "pairs": "Every two methods",
}
"""Tables of the page, by the name of their files."""
CORRELATED = ("first construct", "first method", "second construct", "second method")


def write_convergence(found: Convergence, folder: Path) -> Path:
    """Write all files to a new folder, and return the path of the page.

    Raises:
        UsageError: the folder cannot be written.
    """
    names = "-".join(one.name for one in found.constructs)
    place = folder / f"converge-{new_name(names, f'{len(found.models)}-models')}"
    return write_folder(place, _content(found), frames(found), {"convergence": _plain(found)})


def frames(found: Convergence) -> dict[str, pl.DataFrame]:
    """Return the tables: the methods, what is said of each model, pairs of methods, and correlations over models."""
    judged = [
        {
            "construct": one.construct,
            "model": one.model,
            "finding": one.finding.value,
            "sources": one.sources,
            "above": one.above,
            "below": one.below,
            **({} if one.heterogeneity is None else msgspec.structs.asdict(one.heterogeneity)),
            "conclusion": conclusion(found, one),
        }
        for one in found.judged
    ]
    pairs = [
        {
            "construct": one.construct,
            "model": one.model,
            **msgspec.structs.asdict(pair),
            "shared": "; ".join(pair.shared),
        }
        for one in found.judged
        for pair in one.pairs
    ]
    correlations = [
        {
            **dict(zip(CORRELATED, (*one.first, *one.second), strict=True)),
            "kind": one.kind.value,
            **msgspec.structs.asdict(one.found),
        }
        for one in (found.matrix.correlations if found.matrix else ())
    ]
    tables = {"conclusions": judged, "pairs": pairs, "correlations": correlations}
    made = {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in tables.items() if rows}
    return {"methods": evidence_frame(found), **made}


def _plain(found: Convergence) -> dict[str, Any]:
    return {
        "constructs": found.constructs,
        "judged": found.judged,
        "conclusions": [conclusion(found, one) for one in found.judged],
        "matrix": found.matrix,
        "runs": {name: manifest.head for name, manifest in found.manifests.items()},
        "notes": found.notes,
    }


def estimates(found: Convergence) -> list[Estimate]:
    """Return the values on the common scale, their differences, and the correlations, as estimates."""
    several = len(found.constructs) > 1
    made = [_dominance(found, judged, e, several) for judged, e in found.evidence if e.placed is not None]
    made += [e for judged in found.judged for e in _differences(judged, several)]
    return made + list(_correlations(found))


def _dominance(found: Convergence, judged: Judged, e: Evidence, several: bool) -> Estimate:
    placed = e.placed
    assert placed is not None
    caveats = tuple(one for one in e.caveats if one is not Caveat.NO_VARIATION or placed.low is None)
    return Estimate.from_flat(
        metric="dominance",
        group={**({"construct": judged.construct} if several else {}), "model": e.model, "method": e.method},
        value=placed.value,
        neutral=0.0,
        low=placed.low,
        high=placed.high,
        level=placed.level,
        interval=placed.interval,
        n=e.n,
        clusters=e.clusters,
        test="the study's, of this row" if e.p is not None else "",
        p=e.p,
        verdict=e.verdict,
        caveats=caveats,
        label="Dominance",
        meaning="Share of units that go with the construct, less the share that go against it.",
        direction=found.named(judged.construct).direction,
        note="; ".join(filter(None, ["approximate: by normal distributions" if placed.approximate else "", e.lacking])),
    )


def _differences(judged: Judged, several: bool) -> Iterator[Estimate]:
    for pair in judged.pairs:
        if pair.difference is not None:
            group = {"model": judged.model, "first": pair.first, "second": pair.second}
            yield Estimate.from_flat(
                metric="difference",
                group={**({"construct": judged.construct} if several else {}), **group},
                value=pair.difference,
                neutral=0.0,
                low=pair.low,
                high=pair.high,
                interval="" if pair.low is None else "difference of two intervals (MOVER)",
                caveats=(Caveat.UNTESTED,),
                label="Difference of two methods",
                meaning="Dominance by the first method less that by the second.",
                direction="more by the first method",
                note="one source: the same questions" if pair.one_material else "; ".join(pair.shared),
            )


def _correlations(found: Convergence) -> Iterator[Estimate]:
    for one in found.matrix.correlations if found.matrix else ():
        yield Estimate.from_flat(
            metric="rank_correlation",
            group={"kind": one.kind.value, **dict(zip(CORRELATED, (*one.first, *one.second), strict=True))},
            value=one.found.tau,
            neutral=0.0,
            low=one.found.low,
            high=one.found.high,
            interval="Fieller, over models" if one.found.low is not None else "",
            n=one.found.n,
            test="Kendall's tau" if one.found.p is not None else "",
            p=one.found.p,
            caveats=(Caveat.NOT_CORRECTED,) if one.found.p is not None else (),
            label="Rank correlation over models",
            meaning="Kendall's tau-b between the values that two methods give the models.",
            direction="the same order of the models",
        )


def _content(found: Convergence) -> ReportContent:
    every = estimates(found)
    dominance = [e for e in every if e.metric == "dominance"]
    conclusions = {_label(found, one): conclusion(found, one) for one in found.judged}
    if found.matrix is not None:
        conclusions["over the models"] = across_words(found.matrix)
    models, names = {}, {}
    for manifest in found.manifests.values():
        label = manifest.study.roles.get(SUBJECT, manifest.run)
        if SUBJECT in manifest.identities:
            models[label], names[label] = manifest.identities[SUBJECT], label
    sources = dict.fromkeys(manifest.study.source for manifest in found.manifests.values())
    populations = dict.fromkeys(
        f"{evidence.method} ({evidence.study}) speaks of {evidence.population}."
        for _, evidence in found.evidence
        if evidence.population
    )
    tables = frames(found)
    return ReportContent(
        title=title_of(found),
        study=StudyInfo(
            name=", ".join(one.name for one in found.constructs),
            summary=" ".join(one.summary for one in found.constructs),
            citation="; ".join(filter(None, sources)),
        ),
        models=models,
        names=names,
        estimates=every,
        headline=dominance,
        conclusions=conclusions,
        warnings=[*filter(None, [certificates(found)]), *lacking(found), *found.notes],
        charts=(charts := _charts(found, dominance)),
        leading=len(charts[:1]),
        listings=[Listing(name, title, "", tables[name]) for name, title in LISTED.items() if name in tables],
        methods=[*METHODS, *([ACROSS] if found.matrix else [])],
        limits=[*populations, *dependence(found), *(limit for one in found.constructs for limit in one.limits)],
        provenance={
            "runs": {
                name: {"study": manifest.study.name, "model": manifest.study.roles, "head": manifest.head}
                for name, manifest in found.manifests.items()
            },
            "methods": {
                f"{one.name}, {name}": msgspec.to_builtins(method)
                for one in found.constructs
                for name, method in one.methods.items()
            },
        },
    )


def _label(found: Convergence, one: Judged) -> str:
    return f"{one.construct}, {one.model}" if len(found.constructs) > 1 else one.model


def _charts(found: Convergence, dominance: list[Estimate]) -> list[Chart]:
    charts = []
    for construct in found.constructs:
        own = [e for e in dominance if e.group.get("construct", construct.name) == construct.name]
        if own:
            panels = [
                Panel(model, "dominance", [Point.of(e, "construct", "model") for e in own if e.group["model"] == model])
                for model in found.models
                if any(e.group["model"] == model for e in own)
            ]
            charts.append(
                Chart(
                    f"methods-{construct.name}",
                    construct.title,
                    f"Dominance by method, with intervals. Above 0: {construct.direction}.",
                    forest(panels[:4]),
                )
            )
    return charts
