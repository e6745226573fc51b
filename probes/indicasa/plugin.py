"""Plugin of IndiCASA: probes, metrics, studies and commands."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import Plugged, StudyFile, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probes."""
    return [
        Plugged(
            "indicasa",
            "prejudge.probes.indicasa.probe:IndiCASA",
            "Masked sentences about caste, religion, gender, disability and status in India, to complete (IndiCASA).",
        ),
    ]


@hookimpl
def prejudge_metrics() -> list[Plugged]:
    """Return the metrics."""
    return [
        Plugged(
            "indicasa",
            "prejudge.metrics.indicasa.metric:IndiCASA",
            "How often a completion is closer to the stereotype than to its opposite: probability, Bias Score, KL.",
        ),
    ]


@hookimpl
def prejudge_studies() -> list[StudyFile]:
    """Return the study."""
    return [files(__package__) / "indicasa.toml"]
