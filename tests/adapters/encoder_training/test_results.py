import io

import msgspec
import numpy as np
import pytest
from rich.console import Console
from scipy import stats

pytest.importorskip("sentence_transformers", reason="needs the extra encoder")
from prejudge.adapters.encoder_training.delta_sim import Delta
from prejudge.adapters.encoder_training.results import Results, overview, pool, report, summarise
from prejudge.adapters.encoder_training.settings import LossSettings, Result, TrainSettings


def signed(value):
    return Delta(abs(value), abs(value) - 0.1, abs(value) + 0.1, value, 0.0, 2, 3, 4)


def results(after=lambda loss, seed: 0.9, tuning=lambda loss: 1.0, seeds=(0, 1, 2)):
    """Return a result of each seed, for nt-xent with two temperatures and triplet with one margin."""
    losses = [LossSettings(name="nt-xent", temperature=t) for t in (0.1, 1.0)] + [LossSettings(name="triplet")]
    return [
        Result(
            name=f"{loss.name}-{seed}",
            split="sentence",
            settings=TrainSettings(loss=loss, seed=seed),
            history=[],
            best=seed,
            tuning=tuning(loss),
            before={"overall": signed(0.01), "caste": signed(0.02), "gender": signed(0.04)},
            after={"overall": signed(after(loss, seed)), "caste": signed(0.2), "gender": signed(0.4)},
            sizes={},
            repeated=0,
        )
        for loss in losses
        for seed in seeds
    ]


def whole(found):
    """Return all results as one record."""
    return Results(
        model="m", digest="sha256:0", data={}, select="inner", summaries=summarise(found), best={}, classifiers=[],
        trainings=found,
    )  # fmt: skip


def test_tuning_part_chooses_and_validation_does_not():
    found = summarise(
        results(after=lambda loss, _: 0.9 if loss.temperature == 0.1 else 0.3, tuning=lambda loss: loss.temperature)
    )
    assert [(one.loss, one.value, one.chosen) for one in found] == [
        ("nt-xent", 0.1, False), ("nt-xent", 1.0, True), ("triplet", 0.5, True)
    ]  # fmt: skip
    assert found[1].after["overall"].value == pytest.approx(0.3)


def test_missing_tuning_value_is_never_preferred():
    values = {0.1: None, 1.0: -1.5}
    first, other, _ = summarise(results(tuning=lambda loss: values[loss.temperature]))
    assert (first.tuning, first.chosen, other.tuning, other.chosen) == (None, False, -1.5, True)


@pytest.mark.parametrize("values", [(0.5, 0.6, 0.7), (-0.055, -0.038, 0.089), (-0.3, -0.31, -0.32)])
def test_interval_over_seeds_is_student_s_folded_last(values):
    found = pool([signed(value) for value in values])
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    near, far = sorted((abs(low), abs(high)))
    assert (found.signed, found.value) == pytest.approx((np.mean(values), abs(np.mean(values))))
    assert (found.low, found.high) == pytest.approx((0.0 if low < 0 < high else near, far))
    assert found.reversed == (np.mean(values) < 0)


def test_one_seed_keeps_its_interval():
    assert (pool([signed(-0.3)]).low, pool([signed(-0.3)]).high) == pytest.approx((0.2, 0.4))


def test_mean_is_that_of_the_categories():
    last = summarise(results())[0]
    assert (last.before["mean"].value, last.after["mean"].value) == (pytest.approx(0.03), pytest.approx(0.3))


def test_reversed_difference_is_reported(corpus):
    found = [msgspec.structs.replace(one, after=one.after | {"caste": signed(-0.2)}) for one in results()]
    assert "| 0.2000 [0.200, 0.200] reversed |" in report(whole(found), corpus)


def test_every_loss_reports_its_seeds(corpus):
    found = [one for one in results() if one.settings.loss.name == "nt-xent" or not one.settings.seed]
    rows = {line.split(" | ")[0]: line.split(" | ")[1:3] for line in report(whole(found), corpus).splitlines()}
    assert rows["| nt-xent, temperature 0.1"] == ["0, 1, 2", "seeds"]
    assert rows["| triplet, margin 0.5"] == ["0", "contexts"]


def test_terminal_shows_each_loss_with_its_interval():
    screen = io.StringIO()
    Console(file=screen, width=100).print(*overview(whole(results())))
    assert "temperature 0.1" in screen.getvalue() and "0.9000 [0.900, 0.900]" in screen.getvalue()
