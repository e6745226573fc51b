"""Check that runs can be compared: the same questions, measured in the same way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..catalogue.origins import changes
from ..catalogue.refusal_stage import last_measured
from ..catalogue.study import Catalogue
from ..contracts import Options
from ..contracts.canonical import identity_digest
from ..contracts.errors import UsageError
from ..engine.manifest import Manifest
from ..scoring.score import Scores
from ..scoring.warnings import warnings_of

PATHS = ("data",)
"""Options of probes that name a file; what is compared is its sha256."""
MEND = "Run it again with the same, or compare what they share with --allow-different."


class Different(msgspec.Struct, frozen=True):
    """One thing that differs between two runs of one study."""

    what: str
    first: Any
    second: Any

    def __str__(self) -> str:
        return f"{self.what} is {self.first!r} in one and {self.second!r} in the other"


def ensure_comparable(
    catalogue: Catalogue, runs: Mapping[str, Scores], *, allow_different: bool, fewest: int = 2
) -> list[str]:
    """Refuse runs that cannot be paired, and return warnings about the others.

    Raises:
        UsageError: fewer than two runs, one named twice, different studies, or different options or data.
    """
    every = list(runs.values())
    if len(every) < fewest:
        raise UsageError(
            "compare needs at least two runs, or one and --published. List them: prejudge list runs",
            code="compare.too-few",
        )
    first = every[0]
    notes = [f"{label}: {warning}" for label, scores in runs.items() for warning in warnings_of(scores)]
    for scores in every[1:]:
        names = f"{first.run.name} and {scores.run.name}"
        if scores.manifest.study.name != first.manifest.study.name:
            studies = f"{first.manifest.study.name!r} and {scores.manifest.study.name!r}"
            raise UsageError(
                f"{names} are runs of different studies, {studies}: they share no trials.", code="compare.studies"
            )
        found = [str(one) for one in differences_between(catalogue, first, scores)]
        if found and not allow_different:
            raise UsageError(f"{names} differ: {'; '.join(found)}. {MEND}", code="compare.design")
        notes += [f"{names} differ: {one}." for one in found]
        notes += [f"{names}: {one}." for one in _beside(first, scores)]
    return notes


def by_study(runs: Mapping[str, Scores]) -> dict[str, dict[str, Scores]]:
    """Return the runs of each study, by label."""
    found: dict[str, dict[str, Scores]] = {}
    for label, scores in runs.items():
        found.setdefault(scores.manifest.study.name, {})[label] = scores
    return found


def differences_between(catalogue: Catalogue, first: Scores, second: Scores) -> list[Different]:
    """Return the options, defaults included, and the data in which two runs of one study differ."""
    one, two = (catalogue.instrument(scores.made, scores.manifest.design) for scores in (first, second))
    found = list(_options("", one.options, two.options))
    parts = [scores.made.limit for scores in (first, second)]
    if parts[0] != parts[1] and any(part is not None and part.unit for part in parts):
        found.append(
            Different("the part that is asked", *("the whole" if part is None else part.words for part in parts))
        )
    for name in {**one.metrics, **two.metrics}:
        if name not in one.metrics or name not in two.metrics:
            found.append(Different(f"metric {name}", name in one.metrics, name in two.metrics))
        else:
            metric, options = one.metrics[name]
            found += _options(f"{name}.", options, two.metrics[name][1], metric.files)
    digests = [sorted(scores.manifest.data.values()) for scores in (first, second)]
    if not first.manifest.identities and not second.manifest.identities:
        # The files of published scores have the answers, which differ between models.
        items = [_items(scores) for scores in (first, second)]
        if not (items[0] <= items[1] or items[1] <= items[0]):
            found.append(Different("the items", *(f"{len(rows):,} rows" for rows in items)))
    elif digests[0] != digests[1]:
        found.append(Different("the sha256 of the data", _short(digests[0]), _short(digests[1])))
    return found


def _items(scores: Scores) -> set[tuple[object, ...]]:
    return set(scores.last.select(last_measured(scores.stages).factors).iter_rows())


def _options(prefix: str, one: Options, two: Options, paths: Collection[str] = PATHS) -> Iterator[Different]:
    first, second = msgspec.structs.asdict(one), msgspec.structs.asdict(two)
    for name in first:
        if name not in paths and first[name] != second.get(name):
            yield Different(f"option {prefix}{name}", first[name], second.get(name))


def _short(digests: Sequence[str]) -> str:
    return ", ".join(digest[:12] for digest in digests) or "none"


def _model(manifest: Manifest, role: str) -> bytes | None:
    return None if (identity := manifest.identities.get(role)) is None else identity_digest(identity)


def _beside(first: Scores, second: Scores) -> Iterator[str]:
    """Describe other differences: the models of other roles, and the version of the program."""
    one, two = first.manifest, second.manifest
    for role in {**one.identities, **two.identities}:
        if role != "subject" and _model(one, role) != _model(two, role):
            yield f"the role {role!r} is not filled by the same model"
    if one.prejudge != two.prejudge:
        yield f"asked by prejudge {one.prejudge} and {two.prejudge}"
    yield from changes(one.origins, two.origins)
    changed = [name for name in one.packages if one.packages[name] != two.packages.get(name, one.packages[name])]
    if changed:
        yield f"asked with other versions of {', '.join(changed)}"
