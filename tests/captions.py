"""How long the caption of a figure may be."""

from collections.abc import Iterable

from prejudge.core.contracts.estimates import Chart

MOST = 45
"""Words of a caption: what to see, its unit, and what its marks mean. Numbers are in the table below a figure."""


def too_long(captions: Iterable[str]) -> list[str]:
    """Return the captions that are too long, each after its number of words."""
    return [f"{len(caption.split())} words: {caption}" for caption in captions if len(caption.split()) > MOST]


def long_captions(charts: Iterable[Chart]) -> list[str]:
    """Return the captions that are too long of the figures of a metric."""
    return too_long(chart.caption for chart in charts)
