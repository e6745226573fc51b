"""The golden file of a study beside its certificate: written anew, and computed again with the spot studies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...catalogue.filed import Filed, find_filed, find_golden
from ...catalogue.golden import is_close, used_of_battery
from ...contracts.errors import UsageError
from ...contracts.version import VERSION
from .certify import Recipe, design_of, digest_of_gallery
from .golden import compute, stated_campaign
from .golden_file import Difference, Golden, differences, digests_of, read, settle, write
from .spots import differing_spots

AUTOMATIC = "CI"
"""Environment variable that is set where nobody reads which numbers change."""


def present_golden(recipe: Recipe) -> Golden:
    """Return the golden file of a study as its code is now, with the stored responses that there are."""
    catalogue = recipe.catalogue()
    name = catalogue.adopt(recipe.study)
    path = find_golden(catalogue, name, catalogue.registry.study(name).probe)
    before = None if path is None else read(path)
    with stated_campaign(recipe) as stated:
        return settle(before, compute(stated, before))


def golden_path(recipe: Recipe) -> Path:
    """Return the path of the golden file of a study.

    Raises:
        UsageError: it has none.
    """
    catalogue = recipe.catalogue()
    name = catalogue.adopt(recipe.study)
    if (path := find_golden(catalogue, name, catalogue.registry.study(name).probe)) is None:
        raise UsageError(
            f"{name!r} has no golden file. `prejudge lab calibrate {name}` writes it with the certificate.",
            code="calibration.none",
        )
    return path


def rewrite(recipe: Recipe, path: Path, reason: str = "") -> list[Difference]:
    """Write a golden file anew where numbers, readings or questions differ, and return what does.

    Raises:
        UsageError: the environment variable CI is set.
    """
    if os.environ.get(AUTOMATIC):
        raise UsageError(
            f"{path.name} is not written where the environment variable {AUTOMATIC} is set: somebody must read which "
            "numbers change. Write it on your own machine, and commit it.",
            code="calibration.numbers",
        )
    before = read(path) if path.is_file() else None
    with stated_campaign(recipe) as stated:
        after = settle(before, compute(stated, before))
    if before is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(after, path)
        return []
    changes = list(differences(before, after))
    after.head = msgspec.structs.replace(after.head, reason=reason if changes and reason else before.head.reason)
    if changes or after.head != before.head:
        write(after, path)
    return changes


def filed_certificate(recipe: Recipe) -> Filed:
    """Return the certificate of a study that is verified, which must be of the same design.

    Raises:
        UsageError: the study has none, or it has another design or no golden file.
    """
    campaign = recipe.campaign()
    study = campaign.study
    for filed in find_filed(campaign.catalogue, study.name, study.probe):
        if not is_close(filed.certificate.design, msgspec.to_builtins(design_of(campaign))):
            continue
        if filed.head is None:
            raise UsageError(
                f"the certificate of {study.name!r} has no golden file beside it ({filed.golden.name}). Make both: "
                f"prejudge lab calibrate {study.name}",
                code="calibration.none",
            )
        return filed
    raise UsageError(
        f"{study.name!r} has no certificate of this design. Make it: prejudge lab calibrate {study.name}",
        code="calibration.none",
    )


def differing_numbers(recipe: Recipe, path: Path) -> list[Difference]:
    """Compute a golden file again from its responses, and return what differs; no model is asked."""
    before = read(path)
    with stated_campaign(recipe) as stated:
        after = settle(before, compute(stated, before, ask=False))
    return [*_unbound(before), *differences(before, after)]


def note_version(path: Path) -> None:
    """Note in a golden file that its numbers are those of this version of the package, after they were computed.

    Raises:
        UsageError: the file cannot be written.
    """
    golden = read(path)
    statistics = used_of_battery(golden.head.battery)
    if (golden.head.prejudge, golden.head.battery) != (VERSION, statistics):
        golden.head = msgspec.structs.replace(golden.head, prejudge=VERSION, battery=statistics)
        write(golden, path)


def _unbound(golden: Golden) -> Iterator[Difference]:
    """Yield the cases whose digest in the head is not that of the numbers in the file."""
    for name, digest in digests_of(golden.cases).items():
        if (named := golden.head.cases.get(name)) != digest:
            yield Difference(name, "head", "digest", named, digest)


def differing_studies(recipe: Recipe, filed: Filed, nulls: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Make the spot studies of a certificate again, and yield the name of each with how it differs, if it does.

    Args:
        recipe: with the whole gallery, of which those models count that the certificate has.
        filed: the certificate.
        nulls: the models of the gallery whose studies are made; all of them if none is named.
    """
    gallery = {name: null for name, null in recipe.gallery.items() if name in filed.certificate.gallery}
    campaign = msgspec.structs.replace(recipe, gallery=gallery).campaign()
    if filed.certificate.gallery_digest != digest_of_gallery(campaign):
        yield "gallery", "its models are others than those of the certificate"
    for spot, why in differing_spots(campaign, filed.certificate, nulls):
        yield f"{spot.null}, model {spot.seed}", why
