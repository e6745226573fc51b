"""Plugin of the study of attractiveness: probes, metrics, studies."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import Plugged, StudyFile, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probes."""
    return [
        Plugged(
            "attractiveness",
            "prejudge.probes.attractiveness.probe:Attractiveness",
            "Which of two options fits a face, with and without a beauty filter: 91 scenarios in four orders.",
        ),
    ]


@hookimpl
def prejudge_metrics() -> list[Plugged]:
    """Return the metrics."""
    return [
        Plugged(
            "attractiveness",
            "prejudge.metrics.attractiveness.metric:Attractiveness",
            "What a beauty filter changes: paired and unpaired tests, halo, bias by gender, age and race.",
        ),
    ]


@hookimpl
def prejudge_studies() -> list[StudyFile]:
    """Return the study."""
    return [files(__package__) / "attractiveness.toml"]
