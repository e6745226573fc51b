"""Spot studies: two of each fair model, which a certificate names with what they found, and which are made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...catalogue.certificate_records import Certificate, Spot, SpotNumber
from ...catalogue.golden import is_close, rounded
from .campaign import COMPARED, Campaign, Done, Journal, Number


def spots_of(campaign: Campaign, journal: Journal) -> tuple[Spot, ...]:
    """Return the spot studies of the models of the gallery that were asked."""
    studies = [journal.done.get((null, 0.0, seed)) for null in campaign.gallery for seed in COMPARED]
    return tuple(_spot(done) for done in studies if done is not None)


def differing_spots(campaign: Campaign, certificate: Certificate, nulls: Sequence[str]) -> Iterator[tuple[Spot, str]]:
    """Make the spot studies of a certificate again, and yield each with how it differs; empty: it does not."""
    for spot in certificate.spots:
        if nulls and spot.null not in nulls:
            continue
        if spot.null not in campaign.gallery:
            yield spot, "the gallery has no such model"
            continue
        yield spot, _difference(spot, _spot(campaign.one(spot.null, spot.seed)))


def _spot(done: Done) -> Spot:
    return Spot(done.null, done.seed, tuple(map(_number, done.numbers)))


def _number(number: Number) -> SpotNumber:
    value, low, high = rounded((number.value, number.low, number.high))
    return SpotNumber(number.measure, number.group, value, low, high)


def _difference(before: Spot, after: Spot) -> str:
    if [(n.measure, n.group) for n in before.numbers] != [(n.measure, n.group) for n in after.numbers]:
        return "it has other numbers in its headline"
    for old, new in zip(before.numbers, after.numbers, strict=True):
        for field in ("value", "low", "high"):
            was, now = getattr(old, field), getattr(new, field)
            if not is_close(was, now):
                return f"{old.measure} {old.group}: {field} was {was}, and is {now}"
    return ""
