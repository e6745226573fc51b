"""`Certificate`: what a study finds in models whose bias is known, and whether that holds for a run of it.

A certificate stands beside its study, in `certificates/NAME.json` of the package of the study's probe, or in the same
folder of the user's configuration. It is made by `prejudge lab calibrate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from ..contracts.words import counted
from .certificate_records import Certificate, Group, Rate
from .filed import Filed, find_filed
from .golden import STATED, Head, battery
from .instrument import EveryOption
from .study import Catalogue, Study

WANTED = 1000
"""Studies of each fair model that the project asks for."""
State = Literal[
    "certified",
    "certified at another size",
    "certified for other options",
    "numbers changed since",
    "uncalibrated",
]
DESIGNS: Mapping[State, str] = {
    "certified": "This design",
    "certified at another size": "At the size that it was calibrated at, this design",
    "certified for other options": "With the options that it was calibrated with, this study",
    "numbers changed since": "An earlier version of this study",
}
"""What a finding of a certificate is said of, in a run of each state."""
NAMED = 3
"""Cases and statistics that a reason names; the others are counted."""
WORST = 3
"""Nuisances that are named one by one; the others are counted."""
NO_SIZE = frozenset({"seed", "examples"})
"""Options that change neither what is asked and measured nor how much of it."""
SIZES = frozenset({"resamples", "effect_resamples", "splits", "limit"})
"""Options of metrics that are sizes, whatever was stated, and the limit of a study whose units are drawn."""


class Calibrated(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of how a study finds bias in models without any, for one run."""

    state: State
    why: str = ""
    """Reason where it is not `certified`."""
    made: str = ""
    studies: int = 0
    """Studies of each fair model of the gallery, at the least."""
    confused: tuple[str, ...] = ()
    """What the design cannot tell from bias, as sentences."""

    @property
    def told(self) -> str:
        """Return the state in one line."""
        few = f" ({self.studies:,} studies of each simulated fair model, below the {WANTED:,} that are wanted)"
        why = f": {self.why}" if self.why else ""
        return f"{self.state}{why}{few if 0 < self.studies < WANTED else ''}"


def calibrated(catalogue: Catalogue, study: Study, options: EveryOption, data: Mapping[str, str]) -> Calibrated:
    """Return whether a study is certified as it is made, and what its design cannot tell from bias.

    Args:
        catalogue: where its probe and metrics are.
        study: the study.
        options: every option that it is made with.
        data: sha256 of its files, by path.
    """
    entry = catalogue.registry.studies.get(study.name)
    if entry is not None and entry.calibration.none:
        return Calibrated("uncalibrated", entry.calibration.none.rstrip("."))
    part = {"limit": study.limit.asked or "quick"} if study.limit is not None and study.limit.unit else {}
    asked = flat(options) | part if entry is None or entry.probe == study.probe else None
    states = [
        _calibrated(filed, asked, sorted(data.values()))
        for filed in find_filed(catalogue, study.name, study.probe)
        if asked is not None
    ]
    order, none = get_args(State), Calibrated("uncalibrated", "it has no certificate")
    return min(states, key=lambda state: order.index(state.state), default=none)


def _calibrated(filed: Filed, asked: Mapping[str, Any], data: Sequence[str]) -> Calibrated:
    certificate = filed.certificate
    state, why = state_of(certificate, asked, changed_since(filed), data)
    if state == "uncalibrated":
        return Calibrated(state, why, certificate.made)
    return Calibrated(state, why, certificate.made, certificate.least, tuple(confused(certificate, DESIGNS[state])))


def changed_since(filed: Filed) -> str:
    """Return how numbers differ from those that a certificate names, as a clause; empty if they do not."""
    certificate, head = filed.certificate, filed.head
    if not certificate.numbers:
        return "it was made before certificates named numbers"
    if head is None:
        return "it has no golden file, which says what the numbers are now"
    if why := changed_numbers(certificate, head):
        return why
    installed = battery()
    again = f"compute them again by `prejudge lab calibrate {certificate.study} --verify`"
    if other := [name for name, digest in head.battery.items() if installed.get(name) != digest]:
        return f"the statistics give other numbers ({', '.join(other[:NAMED])}): {again}"
    if not filed.is_verified:
        return f"its numbers were last computed with prejudge {head.prejudge}: {again}"
    return ""


def changed_numbers(certificate: Certificate, head: Head) -> str:
    """Return how the numbers of a golden file differ from those that a certificate names; empty if they do not.

    A case that one of them lacks is of an option that came or went, and changes no number.
    """
    if certificate.questions != head.questions:
        return "the study asks other questions"
    before, now = certificate.numbers, head.cases
    changed = [name for name in before if name in now and before[name] != now[name]]
    if not changed and STATED in now:
        return ""
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    shown = ", ".join(changed[:NAMED]) or STATED
    return f"the same responses give other numbers (options: {shown}{more})"


def flat(options: EveryOption) -> dict[str, Any]:
    """Return every option of a study by one name: `name` of the probe, `METRIC.name`."""
    of_metrics = {
        f"{metric}.{name}": value for metric, values in options.metrics.items() for name, value in values.items()
    }
    return options.probe | of_metrics


def state_of(
    certificate: Certificate, asked: Mapping[str, Any], changed: str = "", data: Sequence[str] = ()
) -> tuple[State, str]:
    """Return whether a certificate holds for a study, with the reason where it does not.

    Args:
        certificate: that of the study.
        asked: every option of the probe and `METRIC.option`.
        changed: how numbers differ from those that it names, as `changed_numbers` says.
        data: sha256 of the files that the options name.
    """
    if flaw := certificate.flaw:
        return "uncalibrated", flaw
    if changed:
        return "numbers changed since", changed
    certified_data = sorted(certificate.data.values())
    files = {name for name, value in {**certificate.options, **asked}.items() if name.rpartition(".")[2] == "data"}
    other = [
        name
        for name in sorted({*certificate.options, *asked} - files)
        if _last(name) not in NO_SIZE and _differ(certificate.options, asked, name)
    ]
    size = [name for name in other if _last(name) in SIZES or name in certificate.sizes]
    if len(size) < len(other):
        return "certified for other options", f"not for these values of {', '.join(n for n in other if n not in size)}"
    if certified_data != list(data):
        return "certified for other options", "not for these data"
    if size:
        requests = counted(certificate.requests, "request")
        sizes = ", ".join(dict.fromkeys(_last(name).replace("_", " ") for name in size))
        return "certified at another size", (
            f"how often fair models are found to be biased is known for studies of {requests}, "
            f"which differ in how much was asked ({sizes})"
        )
    return "certified", ""


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    return msgspec.json.encode(one.get(name)) != msgspec.json.encode(other.get(name))


def confused(certificate: Certificate, design: str = DESIGNS["certified"]) -> Iterator[str]:
    """Yield a sentence for each fair model in which a `design`, in words, finds a bias; the worst ones first."""
    failed = certificate.failed
    yield from (_confusion(certificate, design, group) for group in failed[:WORST])
    if others := [group for group in failed[WORST:] if group not in certificate.real]:
        yield f"Nor can it tell from bias: {', '.join(group.null.replace('-', ' ') for group in others)}."
    if trained := [group.null for group in failed[WORST:] if group in certificate.real]:
        yield f"It also finds a bias in the trained fair models {', '.join(trained)}."


def _confusion(certificate: Certificate, design: str, group: Group) -> str:
    rate = group.failing
    assert rate is not None
    studies = f"{rate.told} of {rate.studies:,} calibrated studies, {_by(rate, answers=group.answers)}"
    if group in certificate.real:
        return f"{design} finds a bias in {group.null}, a trained model without one, in {studies}."
    name = group.null.replace("-", " ")
    return (
        f"{design} cannot tell {name} from bias{_meaning(certificate, group.null)}. Fair models with {name} are found "
        f"to be biased in {studies}."
    )


def _by(rate: Rate, answers: Sequence[Rate]) -> str:
    if rate in answers:
        return f"in answer to \N{LEFT DOUBLE QUOTATION MARK}{rate.label}\N{RIGHT DOUBLE QUOTATION MARK}"
    return f"by {named(rate.label or rate.measure, rate.group)}"


def _meaning(certificate: Certificate, null: str) -> str:
    """Return in brackets what a nuisance is; a stronger one is told as the one it strengthens."""
    meaning = certificate.meanings.get(null, "")
    if meaning.startswith("The same"):
        meaning = certificate.meanings.get(null.removeprefix("strong-"), "")
    meaning = meaning.rstrip(".")
    return f" ({meaning[:1].lower()}{meaning[1:]})" if meaning else ""


def named(measure: str, group: Mapping[str, object]) -> str:
    """Return a measure with its group, in one line."""
    levels = ", ".join(str(value) for value in group.values())
    return f"{measure} ({levels})" if levels else measure
