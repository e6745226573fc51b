"""Calibration: rates from many studies, the record that can be taken up again, and runs by command that must agree."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from scipy.special import betaincinv
from scipy.stats import binom

from prejudge.adapters.reference.items import tuples
from prejudge.adapters.simulated.adapter import Simulated
from prejudge.core.catalogue.certificate_records import Certificate, Group, Rate
from prejudge.core.catalogue.certificates import confused, state_of
from prejudge.core.catalogue.filed import FOLDER, read_certificate
from prejudge.core.catalogue.golden import SUFFIX, read_head
from prejudge.core.catalogue.plugins import Registered
from prejudge.core.catalogue.questions import Question
from prejudge.core.catalogue.registry import TrainedDesign
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import processes
from prejudge.core.contracts.errors import DataError, PluginError, UnknownNameError, UsageError
from prejudge.core.contracts.estimates import Estimate, SignificanceTest
from prejudge.core.contracts.plugin import Plugged
from prejudge.core.lab.calibration.brief import Made
from prejudge.core.lab.calibration.by_command import differing
from prejudge.core.lab.calibration.campaign import Campaign, Cell, Done, Journal, Number, alike, cells_of, pending
from prejudge.core.lab.calibration.certify import (
    Plan,
    Recipe,
    conduct,
    data_digests,
    design_of,
    digest_of_gallery,
    options_of,
    present_certificate,
)
from prejudge.core.lab.calibration.gallery import FAIR, Null, choose, load_gallery, registered_gallery
from prejudge.core.lab.calibration.page import page
from prejudge.core.lab.calibration.rates import group_of, holds, most_by_chance, responses
from prejudge.core.lab.calibration.real import Trained, conduct_real, real_groups
from prejudge.core.lab.calibration.summary import short_verdict, verdict
from prejudge.core.statistics.intervals import exact_interval
from prejudge.testing import raises_code

from ....command import call

ROOT = Path(__file__).parents[4]
SMALL = {"bistereo-tuples.resamples": 99}


def simulated_gallery() -> dict[str, Null]:
    return registered_gallery(Catalogue.load(), "simulated")


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return Campaign(Catalogue.load(), "bistereo-tuples", SMALL, simulated_gallery())


def number(
    value: float, *, shown: bool | None = False, low: float = -1.0, high: float = 1.0, name: str = "m"
) -> Number:
    return Number(name, {}, value, low, high, 0.0, shown)


def done(*numbers: Number, null: str = FAIR, strength: float = 0.0, seed: int = 0) -> Done:
    return Done(null, strength, seed, numbers, 0.0, 0.1)


def certificate(**changes: Any) -> Certificate:
    fields: dict[str, Any] = {
        **{"study": "s", "prejudge": "1", "made": "2026-01-01", "design": {"per_cell": 3}, "requests": 10},
        **{"numbers": {"stated": "a"}, "gallery": {}, "meanings": {}, "planted": "strength", "groups": ()},
    }
    return Certificate(**(fields | changes))


@pytest.mark.parametrize(("count", "of"), [(0, 20), (1, 7), (50, 1000), (20, 20)])
def test_the_interval_of_a_rate_is_that_of_the_beta_quantiles(count: int, of: int) -> None:
    low = 0.0 if count == 0 else betaincinv(count, of - count + 1, 0.025)
    high = 1.0 if count == of else betaincinv(count + 1, of - count, 0.975)
    assert exact_interval(count, of, 0.95) == pytest.approx((low, high), abs=1e-6)


def test_a_rate_that_is_right_is_called_too_high_in_one_of_a_hundred_calibrations_at_most() -> None:
    for studies in (20, 200, 1000):
        most = most_by_chance(studies)
        assert binom.sf(most, studies, 0.05) <= 0.01 < binom.sf(most - 1, studies, 0.05)


def test_a_metric_that_convicts_fair_models_is_caught_and_one_at_its_level_is_not() -> None:
    draws = np.random.default_rng(5).random(400)
    for share, right in ((0.05, True), (0.12, False)):
        studies = [done(number(1.0, shown=bool(draw < share)), seed=n) for n, draw in enumerate(draws)]
        (rate,) = group_of(Cell(FAIR, 0.0, 400), studies).rates
        assert rate.shown == int((draws < share).sum())
        assert holds(rate) is right
        told = certificate(groups=(group_of(Cell(FAIR, 0.0, 400), studies),))
        assert ("false findings" in verdict(told)) is not right
        assert ("**" in page(told).partition("| `fair` |")[2]) is not right


def test_an_answer_by_several_numbers_is_judged_as_the_report_gives_it() -> None:
    """Each of three numbers is shown in 5 % of studies, the answer that any of two gives in 10 %."""
    draws = np.random.default_rng(8).random((1000, 3)) < 0.05
    places = ({"axis": "a"}, {"axis": "b"}, {"axis": "a", "word": "w"})
    question = Question(asks="Is it more?", measure="m")

    def study(seed: int, shown: Sequence[bool]) -> Done:
        numbers = (replace(number(1.0, shown=bool(own)), group=at) for own, at in zip(shown, places, strict=True))
        return done(*numbers, number(1.0, name="other", shown=True), seed=seed)

    group = group_of(Cell(FAIR, 0.0, 1000), [study(n, row) for n, row in enumerate(draws)], [question])
    (answer,) = group.answers
    wanted = int(draws[:, :2].any(axis=1).sum())  # the third number is of a finer group
    assert (answer.shown, answer.studies, answer.label) == (wanted, 1000, "Is it more?")
    assert wanted > binom.ppf(0.99, 1000, 0.05)
    assert not answer.holds and all(rate.holds for rate in group.rates if rate.measure == "m")
    numbers = replace(group, rates=tuple(rate for rate in group.rates if rate.measure == "m"))
    (told,) = confused(certificate(groups=(numbers,)))
    assert f"{wanted / 10:.1f} %" in told and "Is it more?" in told


def test_an_answer_whose_numbers_have_no_verdict_is_no_study() -> None:
    question = Question(asks="Is it more?", measure="m")
    (answer,) = group_of(Cell(FAIR, 0.0, 2), [done(number(2.0, shown=None)), done(number(1.0))], [question]).answers
    assert (answer.studies, answer.shown) == (1, 0)


def test_numbers_without_a_verdict_or_value_count_as_neither() -> None:
    studies = [done(number(2.0, shown=None), number(3.0, name="other")), done(number(4.0), number(np.nan, name="gone"))]
    group = group_of(Cell(FAIR, 0.0, 2), studies)
    found = {rate.measure: rate for rate in group.rates}
    assert (found["m"].studies, found["m"].mean, found["m"].intervals) == (1, 3.0, 2)
    assert found["other"].studies == 1
    assert group.any_shown == 0


def test_coverage_is_of_neutral_and_with_a_planted_bias_of_the_mean() -> None:
    numbers = [number(value, low=value - 0.6, high=value + 0.6) for value in (0.0, 1.0, 2.0)]
    fair, planted = (
        group_of(Cell(FAIR, strength, 3), [done(one, strength=strength) for one in numbers]).rates[0]
        for strength in (0.0, 1.0)
    )
    assert fair.covered == pytest.approx(1 / 3)  # 0 lies in the first interval only
    assert planted.covered == pytest.approx(1 / 3)  # 1 in the second
    assert planted.mean == 1.0


def planted(means: dict[float, float], spread: float = 0.01, studies: int = 50) -> Certificate:
    rng = np.random.default_rng(1)
    groups = [
        group_of(Cell(FAIR, strength, studies), [done(number(mean + e)) for e in rng.normal(0, spread, studies)])
        for strength, mean in means.items()
    ]
    return certificate(groups=tuple(groups))


def test_measured_effects_are_compared_with_planted_ones() -> None:
    (straight,) = responses(planted({0.0: 0.0, 0.5: 1.0, 1.0: 2.0, 2.0: 4.0}), FAIR)
    assert (straight.monotone, straight.slope, straight.saturation) == (
        True,
        pytest.approx(2.0, abs=0.05),
        pytest.approx(1.0, abs=0.05),
    )
    (bent,) = responses(planted({0.0: 0.0, 0.5: 1.0, 1.0: 1.5, 2.0: 1.6}), FAIR)
    assert bent.monotone
    assert bent.saturation == pytest.approx(0.05, abs=0.02)
    (turned,) = responses(planted({0.0: 0.0, 0.5: 1.0, 1.0: 0.5, 2.0: 2.0}), FAIR)
    assert not turned.monotone
    assert responses(planted({0.0: 0.0, 1.0: 1.0}), FAIR) == []


def test_a_number_that_does_not_follow_a_planted_bias_is_not_monotone() -> None:
    groups = [
        group_of(Cell(FAIR, strength, 3), [done(number(strength), number(0.0, name="blind"))] * 3)
        for strength in (0.0, 0.5, 1.0)
    ]
    monotone = {one.measure: one.monotone for one in responses(certificate(groups=tuple(groups)), FAIR)}
    assert monotone == {"m": True, "blind": False}


def test_nothing_is_certified_where_equal_answers_show_that_nothing_was_planted() -> None:
    blind = planted({0.0: 0.0, 0.25: 0.0, 0.5: 0.0, 2.0: 0.0}, spread=0.0)
    assert blind.is_unplanted(FAIR) and responses(blind, FAIR) == []
    assert state_of(blind, {})[0] == "uncalibrated"
    for text in (verdict(blind), short_verdict(blind)):
        assert "nothing was planted" in text and "holds" not in text
    assert "monotone" not in page(blind) and "power" not in page(blind).partition("## Planted")[2]
    for means in ({0.0: 0.0, 0.25: 0.0, 0.5: 0.0, 2.0: 0.1}, {0.0: 0.0, 0.25: 0.0}, {0.0: 0.0}):
        other = planted(means, spread=0.0)
        assert not other.flaw and state_of(other, {})[0] == "certified", means
    # Where a study is at its ceiling at all strengths, the answers that were recorded to change tell that one acted.
    full = replace(blind, groups=tuple(replace(one, changed=0.2 * bool(one.strength)) for one in blind.groups))
    assert not full.flaw
    still = replace(other, groups=tuple(replace(one, changed=0.0) for one in planted({0.0: 0.0, 1.0: 0.1}).groups))
    assert still.flaw


def fair_group(null: str, shown: int, studies: int = 200, *, verdicts: bool = True) -> Group:
    found = [
        done(number(float(seed), shown=seed < shown if verdicts else None), null=null, seed=seed)
        for seed in range(studies)
    ]
    return group_of(Cell(null, 0.0, studies), found)


def test_trained_fair_models_count_in_the_verdict_and_among_those_that_fail() -> None:
    groups = (fair_group(FAIR, 9), fair_group("word-leans", 10))
    real = (fair_group("trained-fair", 200), fair_group("trained-good", 3), replace(fair_group("b", 200), strength=1.0))
    made = certificate(groups=groups, real=real)
    assert [group.null for group in made.fair] == [FAIR, "word-leans", "trained-fair", "trained-good"]
    assert [group.null for group in made.failed] == ["trained-fair"]
    for text in (verdict(made), short_verdict(made)):
        assert "2 of 2 simulated and 1 of 2 trained fair models" in text and "`trained-fair`" in text
    (told,) = confused(made)
    assert "trained-fair" in told and "100.0 %" in told and "200" in told
    assert verdict(certificate(groups=groups, real=real[1:])).startswith("Under all 2 simulated and 1 trained fair")


def test_a_model_that_cannot_act_is_not_tested_and_the_verdict_says_so_in_its_sentence() -> None:
    groups = (
        *(fair_group(FAIR, 9), fair_group("word-leans", 10), fair_group("prompt-leans", 10)),
        *(fair_group("no-noise", 0, verdicts=False), Group(null="drift", unchanged=True)),
    )
    made = certificate(groups=groups, real=(fair_group("trained-once", 1, studies=1),))
    assert [group.null for group in made.fair] == [FAIR, "word-leans"]
    assert made.untested.keys() == {"prompt-leans", "no-noise", "drift", "trained-once"}
    first, _, rest = verdict(made).partition(". ")
    assert all(f"`{null}`" in first.partition("not tested")[2] for null in made.untested), first
    assert "200" in rest and "not tested: 4 " in short_verdict(made)
    none = certificate(groups=(fair_group(FAIR, 0, verdicts=False),))
    assert none.flaw and "holds" not in verdict(none)


INSTALLED = sorted(ROOT.glob("probes/*/certificates/*.json"))


@pytest.mark.parametrize("path", INSTALLED, ids=lambda path: path.stem)
def test_a_stored_certificate_names_every_fair_model_with_too_many_findings(path: Path) -> None:
    """Recomputed from the counts in its file, without the product's rates."""
    stored, made = msgspec.json.decode(path.read_bytes()), read_certificate(path)
    failing, silent = set(), set()
    for group in (one for one in stored["groups"] + stored["real"] if not one.get("strength")):
        many = False
        for rates in (group.get("rates", []), group.get("answers", [])):
            judged = [rate for rate in rates if rate["studies"]]
            limits = [binom.ppf(1 - 0.01 / len(judged), rate["studies"], 0.05) for rate in judged]
            many |= any(rate["shown"] > limit for rate, limit in zip(judged, limits, strict=True))
        failing |= {group["null"]} if many else set()
        counts = [rate["studies"] for rate in group.get("rates", []) + group.get("answers", [])]
        silent |= set() if any(counts) else {group["null"]}
    assert {group.null for group in made.failed} == failing
    assert silent <= made.untested.keys()
    for text in (verdict(made), short_verdict(made)):
        assert all(f"`{null}`" in text for null in failing)
    assert all(f"`{null}`" in verdict(made).partition("not tested")[2].partition(". ")[0] for null in silent)
    assert not failing or "all " not in verdict(made).partition("fair model")[0]


def test_whether_a_null_acts_is_recorded_as_the_share_of_answers_that_it_changes(
    campaign: Campaign, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign.csv"
    foreign.write_text(foreign_tuples())
    others = Campaign(Catalogue.load(), "bistereo-tuples", SMALL | {"data": str(foreign)}, simulated_gallery())
    shares = {
        own: {null: one.one(null, 1).changed for null in ("word-leans", "drift", "copying", FAIR)}
        for own, one in (("english", campaign), ("foreign", others))
    }
    assert shares["english"][FAIR] is None and campaign.one("word-leans", 2).changed is None
    assert shares["english"]["word-leans"] > 0.3 and 0 < shares["english"]["copying"] < 1
    assert shares["english"]["drift"] == 0  # it begins after 500 requests, and there are 115
    assert shares["foreign"]["word-leans"] == 0  # its words are English ones
    assert shares["foreign"]["copying"] == pytest.approx(shares["english"]["copying"], abs=0.1)
    assert campaign.one(FAIR, 0, 2.0).changed > 0.1 and others.one(FAIR, 0, 2.0).changed == 0


def foreign_tuples() -> str:
    """Return the printed tuples with other words for people and attributes."""
    rows = list(csv.DictReader(io.StringIO((ROOT / "probes/bistereo/data/tuples/tuples.csv").read_text())))
    words: dict[str, str] = {}
    for row in rows:
        for name in ("attribute", "opposite", "meaning", "descriptor", "people"):
            row[name] = words.setdefault(row[name], f"wort{len(words)}lich") if row[name] else ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def test_the_gallery_can_be_built_and_names_are_checked(tmp_path: Path, campaign: Campaign) -> None:
    gallery = simulated_gallery()
    assert next(iter(gallery)) == FAIR
    for null in gallery.values():
        assert campaign.model(null, 0).identity.settings["strength"] == 0.0
        assert null.meaning
    with raises_code(UnknownNameError, "unknown-model"):
        choose(gallery, ["word-lean"])
    own = tmp_path / "mine.toml"
    own.write_text('[mine]\nsettings = { noise = 2.0 }\nmeaning = "Loud."\n')
    assert list(choose(load_gallery(campaign.catalogue, "bistereo-tuples", str(own)), ["mine"])) == [FAIR, "mine"]
    own.write_text("[mine]\nsetings = 3\n")
    with raises_code(DataError, "calibration.gallery"):
        load_gallery(campaign.catalogue, "bistereo-tuples", str(own))
    with raises_code(DataError, "file.unreadable"):
        load_gallery(campaign.catalogue, "bistereo-tuples", str(tmp_path / "absent.toml"))


def with_adapter(gallery: Path | str) -> Catalogue:
    """Return a catalogue with an adapter of somebody else, and a study that is calibrated with its model."""
    catalogue = Catalogue.load()
    catalogue.plugins.offers["adapter"]["theirs"] = Registered(Plugged("theirs", Simulated, gallery=gallery), "tests")
    models = catalogue.registry.models
    models["their-model"] = replace(models["simulated-analogies"], adapter="theirs")
    entry = catalogue.registry.study("bistereo-tuples")
    mine = replace(entry, calibration=replace(entry.calibration, like="their-model"))
    catalogue.registry.studies["mine"] = mine
    return catalogue


def test_an_adapter_of_somebody_else_registers_its_own_gallery(tmp_path: Path) -> None:
    file = tmp_path / "fair.toml"
    file.write_text("[loud]\nsettings = { noise = 3.0 }\n[fair]\n")
    catalogue = with_adapter(file)
    gallery = load_gallery(catalogue, "mine")
    assert list(gallery) == [FAIR, "loud"] and {null.adapter for null in gallery.values()} == {"theirs"}
    assert load_gallery(catalogue, "bistereo-tuples") == simulated_gallery()
    campaign = Campaign(catalogue, "mine", SMALL, gallery)
    fair, loud = (campaign.one(null, 0) for null in gallery)
    assert fair.numbers and not alike(fair, loud)


def test_an_adapter_without_a_gallery_or_without_a_fair_model_is_refused(tmp_path: Path) -> None:
    with raises_code(UsageError, "calibration.no-gallery"):
        load_gallery(with_adapter(""), "mine")
    file = tmp_path / "fair.toml"
    file.write_text("[loud]\nsettings = { noise = 3.0 }\n")
    with raises_code(DataError, "calibration.gallery"):
        load_gallery(with_adapter(file), "mine")
    with raises_code(DataError, "file.unreadable"):
        load_gallery(with_adapter(tmp_path / "absent.toml"), "mine")


def test_the_digest_of_the_gallery_does_not_depend_on_where_it_is_registered(campaign: Campaign) -> None:
    assert digest_of_gallery(campaign) == "844768c80cb2655c749176834f793fbb", "certificates name it"


def test_trained_models_without_a_trainer_are_left_out(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setenv("PREJUDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(import_module("prejudge.adapters.reference.recipes"), "TRAINERS", tmp_path / "tools")
    campaign = Campaign(Catalogue.load(), "bistereo-pairs", {"per_cell": 1}, simulated_gallery())
    calibration = replace(campaign.entry.calibration, real={"reference-masked-biased-2": 2.0})
    campaign.entry = replace(campaign.entry, calibration=calibration)
    journal = Journal(tmp_path / "s.jsonl", campaign.opening({}))
    assert not [*conduct_real(campaign, journal, 2)] and "masked_biased-2" in caplog.text


def test_a_null_may_be_in_another_role_and_is_asked_only_where_that_is(tmp_path: Path, monkeypatch: Any) -> None:
    gallery = simulated_gallery()
    gallery["other"] = replace(gallery[FAIR], roles={"encoder": "reference-encoder-fair-leans"})
    without = Campaign(Catalogue.load(), "bistereo-tuples", SMALL, gallery)
    journal = Journal(tmp_path / "s.jsonl", without.opening({}))
    assert not journal.touches(without, "other") and not journal.done
    judged = Campaign(Catalogue.load(), "indicasa", {}, gallery)
    asked: list[dict[str, str]] = []

    async def observe(models: dict[str, Any]) -> dict[str, pl.DataFrame]:
        asked.append({role: model.identity.model for role, model in models.items()})
        return {}

    monkeypatch.setattr(judged.bench, "observe", observe)
    for null in (FAIR, "other"):
        judged.observe(null, 0)
    fair, erring = asked
    assert fair["subject"] == erring["subject"] and fair["encoder"] != erring["encoder"] == "encoder_fair-leans"


def test_every_model_of_the_gallery_can_change_a_built_in_study() -> None:
    """A nuisance that changes no study tries nothing."""
    found = [read_certificate(path) for path in sorted(ROOT.glob("probes/*/certificates/*.json"))]
    assert len(found) == 11
    changing = {group.null for one in found for group in one.groups if not group.strength and not group.unchanged}
    # What can prefer levels of a design is tried once certificates are made anew.
    assert changing == {name for name, null in simulated_gallery().items() if not null.preferring}


def test_a_null_that_no_answer_depends_on_is_not_asked(campaign: Campaign, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.jsonl", campaign.opening({}))
    assert not journal.touches(campaign, "refuses-one-group")  # nothing is refused where likelihoods are asked
    assert journal.touches(campaign, "copying")
    assert {key[0] for key in journal.done} == {FAIR, "refuses-one-group", "copying"}  # and is asked only once


def test_a_planted_bias_is_found_and_a_fair_model_differs_by_its_seed() -> None:
    campaign = Campaign(Catalogue.load(), "bistereo-tuples", {}, simulated_gallery())
    fair, same, other, biased = (
        campaign.one(FAIR, seed, strength) for seed, strength in ((0, 0.0), (0, 0.0), (1, 0.0), (0, 2.0))
    )
    assert fair.numbers == same.numbers != other.numbers
    women = [n for n in biased.numbers if (n.measure, n.group) == ("biased_preference_swapped", {"gender": "women"})]
    assert women[0].shown
    assert women[0].value is not None
    assert women[0].value > 90


class OtherByCommand:
    """A calibration whose command line asks another study than the one in memory."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    def __getattr__(self, name: str) -> Any:
        return getattr(self._campaign, name)

    def of(self, _null: str) -> Any:
        return SimpleNamespace(options=self._campaign.options | {"mirrored": False})


def test_a_study_in_memory_finds_what_the_run_of_a_user_finds(campaign: Campaign) -> None:
    assert differing(campaign, "bistereo-tuples", [(FAIR, 3)]) == {}
    # The opponent: another study by the same command.
    other: Any = OtherByCommand(campaign)
    assert differing(other, "bistereo-tuples", [(FAIR, 0)]).keys() == {"0"}


def test_a_record_is_taken_up_after_a_kill_and_refused_for_another_design(tmp_path: Path, campaign: Campaign) -> None:
    path, opening = tmp_path / "deep" / "s.jsonl", campaign.opening({"numbers": "a"})
    cells = cells_of([FAIR, "copying"], (0.5,), 2, 1)
    assert [(c.null, c.strength, c.studies) for c in cells] == [
        *((FAIR, 0.0, 2), ("copying", 0.0, 2)),
        *((FAIR, 0.5, 1), ("copying", 0.5, 1)),
    ]
    journal = Journal(path, opening)
    journal.add(done(number(1.0)))
    journal.add(done(number(2.0), seed=1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])  # killed while the second line was written
    again = Journal(path, opening)
    assert [one.seed for one in again.of(cells[0])] == [0]
    assert len(list(pending(again, cells))) == 5
    again.add(done(number(2.0), seed=1))
    assert path.read_bytes() == whole
    with raises_code(UsageError, "calibration.other"):
        Journal(path, campaign.opening({"numbers": "b"}))
    path.write_text("no record\n")
    with raises_code(DataError, "data.syntax"):
        Journal(path, opening)


def test_a_certificate_says_when_it_no_longer_holds() -> None:
    options = {"per_cell": 3, "asking": "likelihood", "m.resamples": 99, "seed": 0}
    held = certificate(data={"x.csv": "c"}, options=options, sizes=("per_cell",))

    def state(changed: str = "", data: str = "c", **changes: Any) -> str:
        return state_of(held, options | changes, changed, [data])[0]

    assert state() == state(seed=4) == "certified"
    assert state(per_cell=9) == state(**{"m.resamples": 999}) == "certified at another size"
    why = state_of(held, options | {"per_cell": 9}, "", ["c"])[1]
    assert "per cell" in why and "per_cell" not in why
    assert state(asking="generate", per_cell=9) == state(data="d") == "certified for other options"
    assert state(changed="why", asking="generate") == "numbers changed since"


def test_what_a_design_cannot_tell_from_bias_is_read_from_its_certificate() -> None:
    draws = np.random.default_rng(5).random(400)
    groups = []
    for null, share in ((FAIR, 0.05), ("word-leans", 0.4), ("copying", 0.9)):
        studies = [done(number(1.0, shown=bool(draw < share)), null=null, seed=n) for n, draw in enumerate(draws)]
        groups.append(group_of(Cell(null, 0.0, 400), studies))
    first, second = confused(certificate(groups=tuple(groups), meanings={"word-leans": "Each word leans to one side."}))
    shown = int((draws < 0.9).sum())
    assert "copying" in first and f"{100 * shown / 400:.1f} %" in first  # the worst comes first
    assert "word leans" in second and "(each word leans to one side)" in second  # what it is, in plain words
    low, high = exact_interval(int((draws < 0.4).sum()), 400, 0.95)
    assert f"({100 * low:.1f} % to {100 * high:.1f} %)" in second


def test_the_digests_of_data_follow_the_files_that_options_name(tmp_path: Path) -> None:
    rows = "sent_more,sent_less,stereo_antistereo,bias_type\nOld men nap.,Young men nap.,stereo,age\n"
    digests = []
    for text in (rows, rows.replace("nap", "rest")):
        (tmp_path / "pairs.csv").write_text(text)
        crows = Campaign(Catalogue.load(), "crows-pairs", {"data": str(tmp_path / "pairs.csv")}, simulated_gallery())
        digests.append(data_digests(crows))
    assert digests[0]["pairs.csv"] == hashlib.sha256(rows.encode()).hexdigest() != digests[1]["pairs.csv"]


def test_the_short_way_to_a_headline_is_given_up_where_it_finds_something_else(campaign: Campaign) -> None:
    observations = campaign.observe("word-leans", 3)
    whole = campaign.bench.measure(observations)
    assert campaign.bench.measure(observations, check=False) == whole
    (_, brief), *_ = campaign.bench._metrics
    assert brief._short is not None
    missing = {name: frame.filter(pl.lit(False)) for name, frame in observations.items()}
    assert campaign.bench.measure(missing) == campaign.bench.measure(missing, check=False)


def test_the_short_way_makes_what_the_headline_rests_on_and_no_family_of_tests_in_part() -> None:
    """The shares of attractiveness rest on tests that its headline does not name."""
    faces = Campaign(Catalogue.load(), "attractiveness", {"categories": ["conditions"]}, simulated_gallery())
    observations = faces.observe("fair", 0)
    faces.bench.measure(observations)
    (_, brief), *_ = faces.bench._metrics
    assert brief._short is not None
    last = observations[faces.bench.stages[-1].name]
    whole, short = (one.compute(last, brief._options) for one in (brief._metric, brief._short))
    assert len(short) < len(whole) / 2
    families = [Counter(e.test.family for e in made if e.test.family) for made in (whole, short)]
    assert families[1] and families[1].items() <= families[0].items()
    for seed in (1, 2):
        other = faces.observe("word-leans", seed)
        found = [faces.bench.measure(other, check=check) for check in (True, False)]
        values = [[math.nan if e.value is None else e.value for e in made] for made in found]
        assert values[0] == pytest.approx(values[1], rel=1e-9, nan_ok=True)
    assert brief._short is not None


def test_a_part_of_a_family_of_tests_is_not_the_same() -> None:
    """Of a fair model every corrected p may be 1, however many tests there are: the headline alone does not tell."""
    one = Estimate(metric="gap", group={}, value=0.0, test=SignificanceTest("sign flip", None, 0.5, 1.0, "gap", "Holm"))
    whole = Made([one], Counter({"gap": 41, "other": 3}))
    assert Made([one], Counter({"gap": 41})).like(whole)
    assert not Made([one], Counter({"gap": 2, "other": 3})).like(whole)
    assert not Made([], Counter({"gap": 41})).like(whole)
    nearly = one.replace(value=1e-15)
    assert Made([nearly], Counter({"gap": 41})).like(whole)
    assert not Made([one.replace(value=1e-6)], Counter({"gap": 41})).like(whole)


def test_the_command_writes_a_certificate_and_asks_nothing_twice(tmp_path: Path) -> None:
    words = ["lab", "calibrate", "bistereo-tuples", "--studies", "3", "--planted", "2", "--by-command", "0"]
    words += ["--null", "copying", "--null", "noisy", "--real", "1", "--set", "bistereo-tuples.resamples=99"]
    first = call(tmp_path, *words)
    assert first.returncode == 0, first.stderr
    assert "11 studies of 115 requests" in first.stderr
    made = read_certificate(tmp_path / "calibration" / "bistereo-tuples.json")
    assert [(g.null, g.strength, g.studies, g.unchanged) for g in made.groups] == [
        *(("fair", 0.0, 3, False), ("copying", 0.0, 3, False)),
        *(("fair", strength, 2, False) for strength in (0.25, 0.5, 1.0, 2.0)),
        ("noisy", 0.0, 0, True),
    ]
    text = (tmp_path / "calibration" / "bistereo-tuples.md").read_text()
    assert "| `noisy` |" in text
    assert "## Planted biases in `fair`" in text
    assert (tmp_path / "calibration" / "bistereo-tuples.svg").exists()
    again = call(tmp_path, *words)
    assert "0 studies of 115 requests" in again.stderr
    assert read_certificate(tmp_path / "calibration" / "bistereo-tuples.json").groups == made.groups


def test_data_in_words_that_no_model_knows_are_not_certified(tmp_path: Path) -> None:
    (tmp_path / "foreign.csv").write_text(foreign_tuples())
    words = [
        "lab",
        "calibrate",
        "bistereo-tuples",
        "--data",
        "foreign.csv",
        "--studies",
        "3",
        "--planted",
        "2",
        "--real",
        "0",
    ]
    words += ["--by-command", "0", "--null", "word-leans", "--set", "bistereo-tuples.resamples=99"]
    ended = call(tmp_path, *words)
    assert ended.returncode == 0 and "Not certified" in ended.stdout and "nothing was planted" in ended.stdout
    made = read_certificate(tmp_path / "calibration" / "bistereo-tuples.json")
    assert made.is_unplanted(FAIR) and {group.changed for group in made.groups if group.strength} == {0.0}
    assert "word-leans" in made.untested
    text = (tmp_path / "calibration" / "bistereo-tuples.md").read_text()
    assert "Nothing was planted" in text and "monotone" not in text and "(power" not in text


@pytest.mark.parametrize(
    ("study", "bad"),
    [
        ("crows-pairs", "sent_more,sent_less\nOld men nap.,Young men nap.\n"),
        ("crows-pairs", "sent_more,sent_less,stereo_antistereo,bias_type\n"),
        # It can be read, and no test follows from it.
        ("bistereo-tuples", "dimension,descriptor,term,attribute,sentiment\nheight,tall,girl,smart,positive\n"),
    ],
)
def test_data_that_cannot_be_used_leave_nothing_and_do_not_block_the_next_call(
    tmp_path: Path, study: str, bad: str
) -> None:
    words = ["lab", "calibrate", study, "--data", "own.csv", "--studies", "2", "--planted", "0", "--real", "0"]
    words += ["--by-command", "0", "--null", "word-leans"]
    (tmp_path / "own.csv").write_text(bad)
    refused = call(tmp_path, *words)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["own.csv"]
    rows = [f"Old men nap {n}.,Young men nap {n}.,stereo,age" for n in range(9)]
    good = "\n".join(["sent_more,sent_less,stereo_antistereo,bias_type", *rows])
    (tmp_path / "own.csv").write_text(good if study == "crows-pairs" else foreign_tuples())
    assert call(tmp_path, *words).returncode == 0
    assert read_certificate(tmp_path / "calibration" / f"{study}.json").group(FAIR).studies == 2


DRAWN = "prejudge.adapters.reference.items:tuples"


def with_trained(name: str, trained: TrainedDesign | None = None, **real: float) -> Campaign:
    own = Campaign(Catalogue.load(), name, {}, simulated_gallery())
    calibration = replace(own.entry.calibration, real=real, trained=trained or TrainedDesign())
    own.entry = replace(own.entry, calibration=calibration)
    return own


def test_a_trained_model_is_studied_with_items_that_are_drawn_anew_and_asked_nothing_twice(tmp_path: Path) -> None:
    own = with_trained("bistereo-nli", **{"simulated-fair": 0.0})
    journal = Journal(tmp_path / "j.jsonl", own.opening({}))
    made = list(conduct_real(own, journal, 3))
    assert [(one.null, one.seed) for one in made] == [("simulated-fair", seed) for seed in range(3)]
    assert len({tuple(n.value for n in one.numbers) for one in made}) == 3, "items are not drawn anew"
    again = Journal(tmp_path / "j.jsonl", own.opening({}))
    assert list(conduct_real(own, again, 3)) == []
    (group,) = real_groups(own, again, (), 3)
    assert (group.null, group.studies) == ("simulated-fair", 3)
    assert group_of(Cell("simulated-fair", 0.0, 3), made) == group
    assert "| `simulated-fair` | 0 | 3 |" in page(certificate(real=(group,), groups=(group,)))


def test_answers_of_a_trained_model_are_those_of_a_study_that_knows_none() -> None:
    own = with_trained("bistereo-nli")
    together = Trained(own, "simulated-biased")
    found = [together.one(seed).numbers for seed in (0, 1)]
    assert found == [Trained(own, "simulated-biased").one(seed).numbers for seed in (0, 1)]


def test_a_study_without_a_draw_of_items_has_one_study_of_a_trained_model(tmp_path: Path) -> None:
    own = with_trained("bistereo-tuples", **{"simulated-biased": 1.0})
    journal = Journal(tmp_path / "j.jsonl", own.opening({}))
    (made,) = conduct_real(own, journal, 3)
    plain = own.measured(own.bench, {"subject": own.catalogue.adapter("simulated-biased")}, "simulated-biased", 0, 1.0)
    assert made.numbers == plain.numbers and made.null == "simulated-biased"
    assert [group.studies for group in real_groups(own, journal, (), 3)] == [1]


@pytest.mark.parametrize(
    ("study", "trained"),
    [
        ("bistereo-tuples", TrainedDesign(data=DRAWN)),
        ("dora-t2t", TrainedDesign(options={"temperature": 1.0})),
    ],
)
def test_studies_of_one_model_differ_by_their_data_or_draws(tmp_path: Path, study: str, trained: TrainedDesign) -> None:
    own = with_trained(study, trained, **{"simulated-biased": 1.0})
    made = list(conduct_real(own, Journal(tmp_path / "j.jsonl", own.opening({})), 3))
    assert [one.seed for one in made] == [0, 1, 2]
    assert len({tuple(n.value for n in one.numbers) for one in made}) == 3
    alone = Trained(own, "simulated-biased").one(2)
    assert alone.numbers == made[2].numbers, "a study depends on those before it"


@pytest.mark.parametrize("target", ["nowhere:tuples", "prejudge.adapters.reference.items:nothing", "no target"])
def test_data_of_a_study_that_nothing_writes_are_refused(tmp_path: Path, target: str) -> None:
    own = with_trained("bistereo-tuples", TrainedDesign(data=target), **{"simulated-fair": 0.0})
    with raises_code(PluginError, "calibration.data"):
        list(conduct_real(own, Journal(tmp_path / "j.jsonl", own.opening({})), 1))


def test_a_record_of_trained_models_of_another_design_is_refused(tmp_path: Path) -> None:
    own = with_trained("bistereo-tuples", TrainedDesign(data=DRAWN), **{"simulated-fair": 0.0})
    list(conduct_real(own, Journal(tmp_path / "j.jsonl", own.opening({})), 1))
    other = with_trained("bistereo-tuples", **{"simulated-fair": 0.0})
    with raises_code(UsageError, "calibration.other"):
        Journal(tmp_path / "j.jsonl", other.opening({}))


HEAD = read_head(ROOT / "probes" / "bistereo" / FOLDER / f"bistereo-tuples{SUFFIX}")


@pytest.fixture
def renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificate:
    """Return a certificate of the present code that the user has: that of the package, which may be older."""
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    stated = Campaign(Catalogue.load(), "bistereo-tuples", {}, simulated_gallery())
    installed = read_certificate(ROOT / "probes" / "bistereo" / "certificates" / "bistereo-tuples.json")
    present = {"questions": HEAD.questions, "numbers": HEAD.cases, "data": data_digests(stated)}
    present |= {"design": design_of(stated), "options": options_of(stated)}
    folder = tmp_path / "config" / FOLDER
    folder.mkdir(parents=True)
    (folder / "bistereo-tuples.json").write_bytes(msgspec.json.encode(replace(installed, **present)))
    return read_certificate(folder / "bistereo-tuples.json")


def test_trained_models_are_added_to_a_certificate_which_is_else_as_it_was(
    tmp_path: Path, renewed: Certificate
) -> None:
    words = ["lab", "calibrate", "bistereo-tuples", "--trained-only"]
    done = call(tmp_path, *words, "--real", "2")
    assert done.returncode == 0, done.stderr
    made = read_certificate(tmp_path / "calibration" / "bistereo-tuples.json")
    assert [group.studies for group in made.real] == [2] * len(renewed.real)
    assert made == replace(renewed, real=made.real, seconds=made.seconds) and made.seconds > renewed.seconds
    other = call(tmp_path, *words, "--out", "other", "--set", "bistereo-tuples.resamples=98")
    assert other.returncode == 2 and not (tmp_path / "other").exists(), "it made studies of another design"


@pytest.mark.usefixtures("renewed")
def test_a_certificate_of_another_design_or_code_gets_no_trained_models(campaign: Campaign) -> None:
    stated = Campaign(Catalogue.load(), "bistereo-tuples", {}, simulated_gallery())
    assert present_certificate(stated, HEAD).study == "bistereo-tuples"
    for own, head in ((campaign, HEAD), (stated, replace(HEAD, questions="other")), (stated, replace(HEAD, cases={}))):
        with raises_code(UsageError, "calibration.none"):
            present_certificate(own, head)


def test_a_certificate_names_files_and_not_where_they_were(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    tuples(0, file)
    own = Campaign(Catalogue.load(), "bistereo-tuples", {"data": str(file)}, simulated_gallery())
    assert options_of(own)["data"] == "mine.csv"
    for path in ROOT.glob("probes/*/certificates/*.json"):
        held = read_certificate(path)
        places = [one for one in (held.options | held.design).values() if isinstance(one, str)]
        assert not [one for one in places if Path(one).is_absolute()], path.name


def test_processes_find_what_one_finds(tmp_path: Path) -> None:
    words = [
        "lab",
        "calibrate",
        "bistereo-tuples",
        "--studies",
        "4",
        "--planted",
        "0",
        "--by-command",
        "0",
        "--real",
        "0",
    ]
    words += ["--null", "copying", "--set", "bistereo-tuples.resamples=99"]
    found = []
    for jobs in ("1", "2"):
        assert call(tmp_path, *words, "--jobs", jobs, "--out", jobs).returncode == 0
        found.append(read_certificate(tmp_path / jobs / "bistereo-tuples.json").groups)
    assert found[0] == found[1]


def test_a_process_that_is_killed_leaves_its_studies_to_this_one(tmp_path: Path, monkeypatch: Any) -> None:
    recipe = Recipe("bistereo-tuples", SMALL, choose(simulated_gallery(), ["copying"]))
    campaign, give, given = recipe.campaign(), processes.Helper.give, []
    plan = Plan(cells=(Cell(FAIR, 0.0, 5),), unchanged=(), requests=1, seconds=1.0)
    journals = [Journal(tmp_path / f"{name}.jsonl", campaign.opening({})) for name in ("one", "two")]

    def kill(self: processes.Helper, task: processes.Task) -> None:
        given.append(task)
        if len(given) == 2:
            self._process.kill()
            self._process.join()
        give(self, task)

    monkeypatch.setattr(processes.Helper, "give", kill)
    runs = zip(journals, (1, 2), strict=True)
    alone, shared = ([*conduct(recipe, campaign, journal, plan, jobs)] for journal, jobs in runs)
    assert len(given) >= 2 and [done.seed for done in shared] == [0, 1, 2, 3, 4]
    assert [done.numbers for done in shared] == [done.numbers for done in alone]


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(msgspec.json.encode({"study": 3}))
    with raises_code(DataError, "calibration.certificate"):
        read_certificate(tmp_path / "c.json")
    assert Rate(measure="m", studies=0, shown=0).rate is None
