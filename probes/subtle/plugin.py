"""Plugin of the study of subtler biases: probes, metrics, studies."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import Plugged, StudyFile, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probes."""
    return [
        Plugged(
            "subtle",
            "prejudge.probes.subtle.probe:Subtle",
            "Which of a positive, a negative and a neutral option completes a sentence about a person (subtle biases).",
        ),
    ]


@hookimpl
def prejudge_metrics() -> list[Plugged]:
    """Return the metrics."""
    return [
        Plugged(
            "subtle",
            "prejudge.metrics.subtle.metric:Subtle",
            "Base rates, conditional likelihoods and their differences by polarity of the given term; Kendall's tau.",
        ),
    ]


@hookimpl
def prejudge_studies() -> list[StudyFile]:
    """Return the studies."""
    names = ("subtle-sai", "subtle-asa")
    return [files(__package__) / f"{name}.toml" for name in names]
