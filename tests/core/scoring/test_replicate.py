"""Published values are judged: reproduced, not reproduced, or not to be judged."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from prejudge.core.catalogue.instrument import EveryOption
from prejudge.core.catalogue.published import Published
from prejudge.core.catalogue.registry import ModelEntry, Registry, StudyEntry
from prejudge.core.catalogue.study import Study
from prejudge.core.cli.replicating import show
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.contracts.estimates import Estimate
from prejudge.core.engine.manifest import IMPORTED, Manifest
from prejudge.core.scoring.replicate import NOT, REPRODUCED, UNJUDGED, Judged, family, judge, latest_runs, published_of
from prejudge.core.store import RunRow
from prejudge.testing import raises_code

VALUE = Published(measure="score", value=60.48, tolerance=0.01)


def judged(value, *estimates):
    (found,) = judge([value], "s", SimpleNamespace(estimates={"m": list(estimates)}))
    return found


def estimate(value, metric="score", **group):
    return Estimate.from_flat(metric=metric, group=group, value=value)


@pytest.mark.parametrize(("measured", "verdict"), [(60.47, REPRODUCED), (60.49, REPRODUCED), (60.4699, NOT)])
def test_tolerance_decides(measured, verdict):
    assert judged(VALUE, estimate(measured)).verdict == verdict


@pytest.mark.parametrize(
    ("value", "estimates", "why"),
    [
        (VALUE, (), "no such measure"),
        (VALUE, (estimate(60.48, domain="age"),), "other groups, such as domain = 'age'"),
        (VALUE, (estimate(60.48), estimate(60.48)), "several such measures"),
        (VALUE, (estimate(None),), "undefined"),
        (Published(measure="score", value=60.48), (estimate(60.48),), "no tolerance"),
        (Published(measure="score", value=60.48, reading="other items"), (estimate(60.48),), "other items"),
        (Published(measure="score", value=0.01, of="p", tolerance=0.01), (estimate(60.48),), "undefined"),
    ],
)
def test_what_cannot_be_judged_says_why(value, estimates, why):
    found = judged(value, *estimates)
    assert found.verdict == UNJUDGED and why in found.why


@pytest.mark.parametrize("measured", [60.47, 50.0, None])
def test_no_verdict_reads_a_note(measured):
    notes = ("", "undefined; within tolerance; significant above neutral")
    found = [judged(VALUE, estimate(measured).replace(note=note)) for note in notes]
    assert found[0].verdict == found[1].verdict and found[0].measured == found[1].measured


def test_p_is_compared_where_p_was_published():
    value = Published(measure="score", value=2.89e-230, of="p", relative=0.005)
    for p, verdict in ((2.896e-230, REPRODUCED), (2.8e-230, NOT)):
        found = judged(value, Estimate.from_flat(metric="score", group={}, value=0.46, p=p))
        assert found.verdict == verdict and found.measured == p


def entry(*published):
    return StudyEntry(probe="p", metrics={}, published=published)


def test_family_is_the_studies_that_begin_so():
    registry = Registry(studies={"a-x": entry(VALUE), "a-y": entry(VALUE), "ab": entry(VALUE), "a-z": entry()})
    assert family(registry, "a") == ("a-x", "a-y")
    assert family(registry, "ab") == ("ab",)


def test_study_without_published_values_is_refused():
    with raises_code(UsageError, "published.none"):
        family(Registry(studies={"s": entry()}), "s")


def test_unknown_study_is_named():
    with raises_code(UnknownNameError, "unknown-study", "'subtel'"):
        family(Registry(studies={"subtle": entry(VALUE)}), "subtel")


def run_of(study, model, number, mode="use"):
    manifest = Manifest(
        run=f"r{number}",
        study=Study(name=study, probe="p", options={}, metrics={}, roles={"subject": model}),
        identities={},
        mode=mode,
        options=EveryOption({}, {}),
    )
    return RunRow(number, f"r{number}", study, "finished", msgspec.json.encode(manifest).decode(), 0.0, 0.0)


def test_latest_run_of_each_model_with_published_values_is_taken():
    value, other = (msgspec.structs.replace(VALUE, model=name) for name in ("m-1", "n-1"))
    registry = Registry(studies={"a-x": entry(value, other), "a-y": entry(value)})
    runs = [run_of("a-x", "M 1", 1), run_of("a-x", "m-1", 2), run_of("a-x", "n_1", 3), run_of("a-x", "else", 4)]
    runs.append(run_of("a-y", "else", 5))
    assert [run.name for run in latest_runs(registry, ("a-x", "a-y"), runs, None)] == ["r2", "r3"]
    assert [run.name for run in latest_runs(registry, ("a-x", "a-y"), runs[3:], None)] == ["r4", "r5"]
    assert [run.name for run in latest_runs(registry, ("a-x", "a-y"), runs, "m-1")] == ["r2"]
    assert [run.name for run in latest_runs(registry, ("a-x", "a-y"), runs[2:], "m-1")] == ["r4", "r5"]


def said_of(value, verdict, measured=None, why="", beside="run r1 of 'm'"):
    return Judged(study="s", value=value, measured=measured, verdict=verdict, why=why, beside=beside)


def test_output_names_runs_readings_and_what_nobody_can_judge(capsys):
    read = msgspec.structs.replace(VALUE, model="m", source="Table 1", reading="in the coding of the text")
    other = msgspec.structs.replace(VALUE, model="n")
    why = "there is no run of s by this model"
    found = [
        said_of(read, REPRODUCED, 60.48),
        said_of(read, NOT, 71.25),
        said_of(read, UNJUDGED, why="others " * 40),
        *(said_of(other, UNJUDGED, why=why, beside="") for _ in range(3)),
    ]
    assert show(found, False) == 1
    shown = capsys.readouterr().out
    assert "s: run r1 of 'm', compared with the published values of m\n" in shown
    assert "  Table 1: 1 of 3 reproduced, 1 not reproduced, 1 cannot be judged\n" in shown
    assert "2 with this reading: in the coding of the text" in shown and "71.25" in shown and "60.480" not in shown
    assert ("others " * 40).strip() in shown and f"s: 3 of the published values of n cannot be judged: {why}\n" in shown
    assert "6 published values: 1 reproduced, 1 not reproduced, 4 cannot be judged." in shown
    assert show(found[:1], True) == 0 and "60.48" in capsys.readouterr().out


def share(hits, n, unit="%"):
    return estimate(100 * hits / n).replace(n=n, unit=unit)


@pytest.mark.parametrize(
    ("value", "own", "n", "resolved"),
    [
        (43.2, None, 4, False),  # 25 and 50 are further away than the tolerance
        (50.0, None, 4, True),
        (50.0, 44, 4, False),  # 22 of 44 were published: that 2 of 4 give 50 shows nothing
        (43.2, 44, 44, True),
        (43.2, 44, 24, True),  # steps of 4.2
        (43.2, 44, 10, True),  # steps of 10: one of two lies within 5
        (43.2, 44, 9, False),
    ],
)
def test_too_few_units_neither_reproduce_a_share_nor_miss_it(value, own, n, resolved):
    published = Published(measure="score", value=value, tolerance=5, n=own)
    verdicts = {judged(published, share(hits, n)).verdict for hits in range(n + 1)}
    assert verdicts == ({REPRODUCED, NOT} if resolved else {UNJUDGED})
    if resolved:
        assert any(judged(published, share(hits, n)).verdict == REPRODUCED for hits in range(n + 1))


def test_what_few_units_can_give_is_named():
    found = judged(Published(measure="score", value=43.2, tolerance=5), share(2, 4))
    assert "4 units give only 0, 25, 50, 75 and 100: none within 5 of 43.2" in found.why and found.measured == 50
    assert (
        "2 units give only steps of 50:"
        in judged(Published(measure="score", value=3, tolerance=1), share(1, 2, "percentage points")).why
    )


@pytest.mark.parametrize("other", [{"unit": "nats"}, {"n": 0}, {"value": 43.0}])
def test_what_is_no_share_of_units_is_judged(other):
    value = Published(measure="score", value=40, tolerance=5)
    assert judged(value, share(2, 4).replace(**other)).verdict in (REPRODUCED, NOT)


def manifest_of(name, weights, mode="use"):
    study = Study(name="s", probe="p", options={}, metrics={}, roles={"subject": name})
    identities = {"subject": Identity(adapter="a", version="1", model=weights)}
    return Manifest(run="r", study=study, identities=identities, mode=mode, options=EveryOption({}, {}))


@pytest.mark.parametrize(
    ("name", "weights", "own"),
    [
        ("M 1", "x", ["m-1"]),
        ("mine", "org/M-1", ["m-1"]),
        ("mine", "org/weights-one", ["m-1"]),
        ("mine", "org/else", []),
    ],
)
def test_a_model_goes_by_its_name_or_by_its_weights(name, weights, own):
    published = [msgspec.structs.replace(VALUE, model=model) for model in ("m-1", "n-1")]
    models = {"m-1": ModelEntry(adapter="a", settings={"model": "org/weights-one"})}
    assert published_of(Registry(models=models), manifest_of(name, weights), published) == own
    assert published_of(Registry(), manifest_of("else", "m-1", mode=IMPORTED), published) == []
