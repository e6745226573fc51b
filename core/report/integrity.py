"""What a run found out about the endpoints of its models, for the provenance of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.integrity.records import Canary, Draws, Integrity, Repeats, Sighting
from ..engine.manifest import Manifest
from .provenance import moment

CHECKED = "limits of tokens, stop texts, context, names in replies, log-probabilities"
_VERDICTS = {
    "varied": "draws differ",
    "narrow": "draws are alike at this temperature, and differ at 1",
    "alike": "draws are alike: the endpoint repeats itself",
    "unclear": "it could not tell",
}


def integrity_words(manifest: Manifest) -> dict[str, Any]:
    """Return the section by stage, as plain values; empty for a run without one."""
    stages = dict.fromkeys([*manifest.integrity, *manifest.repeats])
    return {name: _stage(manifest.integrity.get(name), manifest.repeats.get(name)) for name in stages}


def _stage(found: Integrity | None, repeats: Repeats | None) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if found is not None:
        told["checked"] = f"{found.checked:,} answers of this run: {CHECKED}"
        told["canary"] = _canary(found.canary)
        told["found"] = {one.name: f"{one.count:,}: {one.words}" for one in found.findings} or "nothing"
        if found.repeated:
            told["draws of a prompt"] = f"they count as one: {found.repeated}"
        told |= {name: _seen(seen) for name, seen in _named(found).items() if seen}
    if repeats is not None:
        told["repeated prompts"] = (
            f"{repeats.prompts:,} with {repeats.draws:,} answers; {repeats.alike:,} have one answer only; two draws "
            f"of a prompt are alike in {repeats.pairs:.1%}"
        )
    return told


def _named(found: Integrity) -> dict[str, Mapping[str, Sighting]]:
    return {
        "models named in replies": found.models,
        "system fingerprints": found.fingerprints,
        "providers behind the router": found.providers,
    }


def _canary(canary: Canary | None) -> str:
    if canary is None:
        return "not asked: nothing had to be drawn"
    return f"{_VERDICTS[canary.verdict]}: " + "; then ".join(_draws(d) for d in (canary.first, canary.second) if d)


def _draws(draws: Draws) -> str:
    heat = "the model's temperature" if draws.temperature is None else f"temperature {draws.temperature:g}"
    what = f"{draws.distinct} different texts of {draws.draws} at {heat}, {draws.most} begin alike"
    return f"{what} ({draws.reason})" if draws.reason else f"{what} ({moment(draws.asked)})"


def _seen(seen: Mapping[str, Sighting]) -> dict[str, str]:
    return {
        name: f"{one.count:,} replies, {moment(one.first)} to {moment(one.last)}" for name, one in sorted(seen.items())
    }
