"""Plugin of BiasDora: probes, metrics, studies and commands."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import Plugged, StudyFile, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probes."""
    return [
        Plugged(
            "dora-t2t",
            "prejudge.probes.dora.t2t:DoraT2T",
            "Words that complete a sentence about a person, letter by letter; no associations are listed beforehand.",
            "text",
        ),
        Plugged(
            "dora-t2i",
            "prejudge.probes.dora.t2i:DoraT2I",
            "Images of people by descriptor, and objective descriptions of what was drawn.",
            "text",
        ),
        Plugged(
            "dora-i2t",
            "prejudge.probes.dora.i2t:DoraI2T",
            "Four questions about images of people that ask for more than the images show.",
            "text",
        ),
    ]


@hookimpl
def prejudge_metrics() -> list[Plugged]:
    """Return the metrics."""
    return [
        Plugged(
            "dora-associations",
            "prejudge.metrics.dora.metric:DoraAssociations",
            "Words that occur with a descriptor more often than by chance, and how negative and toxic they are.",
            "text",
        ),
    ]


@hookimpl
def prejudge_studies() -> list[StudyFile]:
    """Return the studies."""
    names = ("dora-t2t", "dora-t2i", "dora-i2t")
    return [files(__package__) / f"{name}.toml" for name in names]


@hookimpl
def prejudge_commands() -> list[Plugged]:
    """Return the commands."""
    return [
        Plugged(
            "associations",
            "prejudge.probes.dora.command:associations",
            "Show the associations that a dora-* run found.",
        ),
        Plugged(
            "levels",
            "prejudge.probes.dora.command:levels",
            "Write annotation sheets for judged associations of dora-*, and read the completed sheets.",
        ),
    ]
