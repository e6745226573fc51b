"""Score measurements that others published, which replace the answers of a model."""

from __future__ import annotations

import time

import msgspec

from ..catalogue.origins import origins
from ..catalogue.refusal_stage import last_measured
from ..catalogue.study import SUBJECT, Catalogue, Study
from ..contracts import Probe
from ..contracts.errors import UsageError
from ..design import Roles
from ..engine.manifest import Manifest, describe_machine, digest_files, new_name
from ..engine.observations import with_parts
from ..store import RunRow
from ..store.names import run_name
from .score import Scores, measure_scores


def score_published(catalogue: Catalogue, study: Study, path: str, model: str = "") -> Scores:
    """Score published measurements from a file.

    Args:
        catalogue: where the study's probe and metrics are.
        study: the study.
        path: the file or folder of the measurements.
        model: name of the model that they are of; empty: not stated.

    Raises:
        UsageError: the study's probe reads no published scores, or cannot read these.
    """
    if catalogue.plugins.load("probe", study.probe).import_scores is Probe.import_scores:
        raise UsageError(
            f"study {study.name!r} cannot read published scores; run it on a model.", code="published.no-reader"
        )
    roles = {SUBJECT: model} if model else {}
    study = catalogue.described(msgspec.structs.replace(study, options=study.options | {"data": path}, roles=roles))
    # A file of scores is no file of the study's texts, whose design it therefore has not.
    instrument = catalogue.instrument(study, design := Roles((), {}))
    imported = instrument.probe.import_scores(path, instrument.options)
    name = new_name(study.name, f"{model}-published" if model else "published")
    manifest = Manifest(
        run=name,
        study=study,
        identities={},
        data=digest_files([path]),
        notes=imported.notes,
        options=instrument.every_option,
        origins=origins(catalogue, study, models=False),
        design=design,
        **describe_machine(),
    )
    stages = tuple(instrument.stages())
    run = RunRow(0, run_name(name), study.name, "imported", "", time.time(), None)
    last = last_measured(stages)
    observations = {last.name: with_parts(imported.observations, instrument.design)}
    return measure_scores(catalogue, Scores(run, manifest, (last,), observations, {}, (), {}, ()), instrument)
