"""Plugin of CrowS-Pairs: probe, metric and study."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import Plugged, StudyFile, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probes."""
    return [
        Plugged(
            "crows-pairs",
            "prejudge.probes.crows_pairs.probe:CrowsPairs",
            "Pairs of a more and a less stereotypical sentence (CrowS-Pairs).",
        ),
    ]


@hookimpl
def prejudge_metrics() -> list[Plugged]:
    """Return the metrics."""
    return [
        Plugged(
            "crows-pairs",
            "prejudge.metrics.crows_pairs.metric:CrowsPairs",
            "Share of pairs whose more stereotypical sentence is likelier, overall and by type of bias.",
        ),
    ]


@hookimpl
def prejudge_studies() -> list[StudyFile]:
    """Return the study."""
    return [files(__package__) / "crows-pairs.toml"]
