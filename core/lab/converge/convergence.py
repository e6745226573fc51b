"""`Convergence`: what the methods of constructs found in models, from runs in the store. No model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from ...catalogue.constructs import Construct
from ...catalogue.study import SUBJECT, Catalogue
from ...contracts.canonical import identity_digest
from ...engine.manifest import Manifest
from ...scoring.score import Scores, score
from ...scoring.warnings import warnings_of
from ...store import Store, get_run
from .across import FEWEST, Matrix, matrix
from .cases import Case, ensure_once, ensure_spoken, speaks_for
from .evidence import Evidence, Judged, absent, evidence_of, judge, row_of

NOT_ASKED = "no run of it was given"


class Convergence(msgspec.Struct, frozen=True, kw_only=True):
    """What the methods of constructs say of models, each alone and together."""

    constructs: tuple[Construct, ...]
    judged: tuple[Judged, ...]
    """One per construct and model."""
    matrix: Matrix | None = None
    """Over three models or more."""
    manifests: dict[str, Manifest] = {}
    """Of the runs, by name."""
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> list[str]:
        """Return the models, in the order in which they were named."""
        return list(dict.fromkeys(one.model for one in self.judged))

    @property
    def evidence(self) -> list[tuple[Judged, Evidence]]:
        """Return what each method found, with the judgement that it is part of."""
        return [(one, evidence) for one in self.judged for evidence in one.evidence]

    @property
    def answered(self) -> bool:
        """Return whether any method has a value."""
        return any(evidence.value is not None for _, evidence in self.evidence)

    def named(self, name: str) -> Construct:
        """Return a construct."""
        return next(one for one in self.constructs if one.name == name)


def converge(
    catalogue: Catalogue,
    store: Store,
    constructs: Sequence[Construct],
    cases: Sequence[Case],
    asked: Sequence[str | None],
    runs: Sequence[str] = (),
) -> Convergence:
    """Score the runs of every method and model from the store, and judge them together.

    Args:
        catalogue: studies and metrics.
        store: has the runs.
        constructs: what is measured.
        cases: what was to be asked.
        asked: per case the name of its run; None where `Case.reason` has the reason.
        runs: further runs; each counts for the methods and the model that it is of, instead of one that was asked.

    Raises:
        DataError: a run is of none of the methods, or a row is not what the construct says.
        UsageError: there is no such run, it cannot be scored, or two runs are of one method and model.
    """
    found: dict[tuple[str, str, str], Evidence] = {}
    notes: dict[str, None] = {}
    manifests: dict[str, Manifest] = {}
    scored: dict[str, Scores] = {}

    def seen(run: str) -> Scores:
        name = get_run(store, run).name
        if name not in scored:
            scored[name] = score(catalogue, store, name)
            manifests[name] = scored[name].manifest
            notes.update(dict.fromkeys(f"{name}: {warning}" for warning in warnings_of(scored[name])))
        return scored[name]

    for case, run in zip(cases, asked, strict=True):
        key = (case.construct.name, case.model, case.name)
        if run is None:
            found[key] = _unasked(catalogue, case.construct, case.name, case.model, case.reason)
        else:
            found[key] = _evidence(catalogue, case.construct, case.name, seen(run))
    given: dict[tuple[str, str, str], str] = {}
    for run in runs:
        scores = seen(run)
        speaks = [(one, name) for one in constructs for name in speaks_for(catalogue, one, scores)]
        ensure_spoken(scores.run.name, [name for _, name in speaks], constructs)
        for one, name in speaks:
            evidence = _evidence(catalogue, one, name, scores)
            key = (one.name, evidence.model, name)
            ensure_once(given.setdefault(key, ""), scores.run.name, name, evidence.model)
            given[key], found[key] = scores.run.name, evidence
    models = dict.fromkeys(model for _, model, _ in found)
    judged = tuple(
        judge(
            one,
            model,
            [
                found.get((one.name, model, name)) or _unasked(catalogue, one, name, model, NOT_ASKED)
                for name in one.methods
            ],
        )
        for one in constructs
        for model in models
        if any((one.name, model, name) in found for name in one.methods)
    )
    return Convergence(
        constructs=tuple(constructs),
        judged=judged,
        matrix=matrix(judged) if len(models) >= FEWEST else None,
        manifests=manifests,
        notes=(*_changed(manifests.values()), *notes),
    )


def _changed(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each model of which the runs asked different versions: their agreement is of no one model."""
    asked: dict[str, dict[bytes, list[str]]] = {}
    for manifest in manifests:
        if SUBJECT in manifest.identities:
            name = manifest.study.roles.get(SUBJECT, manifest.run)
            version = identity_digest(manifest.identities[SUBJECT])
            asked.setdefault(name, {}).setdefault(version, []).append(manifest.run)
    for name, versions in asked.items():
        if len(versions) > 1:
            runs = "; ".join(", ".join(of_one) for of_one in versions.values())
            yield (
                f"the methods asked {len(versions)} different models by the name {name!r}: its files, settings or "
                f"adapter changed between them ({runs}). What they say together is of no one model: ask all again."
            )


def _known(catalogue: Catalogue, construct: Construct, name: str, model: str) -> dict[str, Any]:
    method = construct.methods[name]
    material = method.material or catalogue.registry.study(method.study).probe
    return {"method": name, "model": model, "material": material}


def _unasked(catalogue: Catalogue, construct: Construct, name: str, model: str, why: str) -> Evidence:
    method = construct.methods[name]
    known = _known(catalogue, construct, name, model)
    return Evidence(title=method.title, study=method.study, population=method.population, lacking=why, **known)


def _evidence(catalogue: Catalogue, construct: Construct, name: str, scores: Scores) -> Evidence:
    method = construct.methods[name]
    known = _known(catalogue, construct, name, scores.manifest.study.roles.get(SUBJECT, scores.run.name))
    calibration = scores.manifest.calibration
    known |= {"run": scores.run.name, "certificate": "uncalibrated" if calibration is None else calibration.told}
    if own := scores.manifest.study.own_data:
        about = scores.manifest.study.population
        known["population"] = f"{', '.join(own)}; {about or 'it is not recorded which people they represent'}"
    return evidence_of(row_of(scores.estimates, method), method, known, absent(scores.estimates, method))


def evidence_frame(found: Convergence) -> pl.DataFrame:
    """Return a row per construct, model and method: the row's own value, the common scale, and the verdicts."""
    rows = [
        {
            "construct": judged.construct,
            "model": e.model,
            "method": e.method,
            "study": e.study,
            "measure": e.measure,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "unit": e.unit,
            "dominance": e.placed.value if e.placed else None,
            "dominance_low": e.placed.low if e.placed else None,
            "dominance_high": e.placed.high if e.placed else None,
            "n": e.n,
            "clusters": e.clusters,
            "missing": e.missing,
            "p": e.p,
            "verdict": e.verdict.value if e.verdict else None,
            "lacking": e.lacking,
            "source": e.material,
            "certificate": e.certificate,
            "run": e.run,
        }
        for judged, e in found.evidence
    ]
    text, number = pl.String, pl.Float64
    schema: Mapping[str, Any] = {
        **dict.fromkeys(("construct", "model", "method", "study", "measure"), text),
        **dict.fromkeys(("value", "low", "high"), number),
        "unit": text,
        **dict.fromkeys(("dominance", "dominance_low", "dominance_high"), number),
        **dict.fromkeys(("n", "clusters", "missing"), pl.Int64),
        "p": number,
        **dict.fromkeys(("verdict", "lacking", "source", "certificate", "run"), text),
    }
    return pl.DataFrame(rows, schema=schema)
