import io

import msgspec
import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from prejudge.adapters.encoder_training.delta_sim import Delta
from prejudge.adapters.encoder_training.report import overview, report
from prejudge.adapters.encoder_training.settings import Grid, LossSettings, Result, TrainSettings, cells
from prejudge.adapters.encoder_training.summary import Results, summarise

GRID = Grid(
    splits=("sentence",),
    seeds=(0, 1, 2),
    losses=("nt-xent", "triplet"),
    temperatures=(0.1, 1.0),
    margins=(0.5,),
    shared=TrainSettings(loss=LossSettings(name="nt-bxent", positive_weight=2.0)),
)


def flat(value):
    return Delta(value, value - 0.1, value + 0.1, value, 0.0, 2, 3, 4)


def results(after, tuning):
    """Return a result per cell of the grid: `after` by seed, `tuning` by temperature or margin."""
    return [
        Result(
            name=cell.name,
            split=cell.split,
            settings=cell.settings,
            history=[],
            best=1,
            tuning=tuning(cell.settings.loss),
            before={"overall": flat(0.01), "caste": flat(0.02), "gender": flat(0.04)},
            after={"overall": flat(after(cell)), "caste": flat(0.2), "gender": flat(0.4)},
            sizes={},
            repeated=0,
        )
        for cell in cells(GRID)
    ]


def test_grid_crosses_each_loss_with_its_own_parameter():
    names = [cell.name for cell in cells(GRID)]
    assert len(names) == 9 and names[:3] == [
        "sentence-nt-xent-t0.1-s0",
        "sentence-nt-xent-t1-s0",
        "sentence-triplet-m0.5-s0",
    ]


def test_weights_are_those_of_nt_bxent_only():
    losses = [cell.settings.loss for cell in cells(msgspec.structs.replace(GRID, losses=("nt-bxent", "triplet")))]
    assert {loss.name: loss.positive_weight for loss in losses} == {"nt-bxent": 2.0, "triplet": 1.0}


def test_tuning_part_chooses_and_validation_has_no_say():
    found = results(
        after=lambda cell: 0.9 if cell.settings.loss.temperature == 0.1 else 0.3,
        tuning=lambda loss: loss.temperature,
    )
    first = summarise("m", found)[0]
    assert (first.loss, first.parameter, first.chosen.value) == ("nt-xent", "temperature", 1.0)
    assert first.rows[0].after.value == pytest.approx(0.3)


def test_interval_over_seeds_is_student_s():
    found = results(after=lambda cell: (0.5, 0.6, 0.7)[cell.settings.seed], tuning=lambda loss: 1.0)
    row = summarise("m", found)[1].rows[0]
    low, high = stats.t.interval(0.95, 2, 0.6, stats.sem([0.5, 0.6, 0.7]))
    assert (row.after.value, row.after.low, row.after.high) == pytest.approx((0.6, low, high))


def signed(value):
    return Delta(abs(value), 0.0, 1.0, value, 0.0, 2, 3, 4)


def test_seeds_of_opposite_signs_cancel():
    by_seed = -0.055, -0.038, 0.089
    found = [
        msgspec.structs.replace(result, before={"overall": signed(turn)}, after={"overall": signed(-turn)})
        for result, turn in zip(results(lambda _: 0.5, lambda _: 1.0)[2::3], by_seed, strict=True)
    ]
    row = summarise("m", found)[0].rows[0]
    end = stats.t.interval(0.95, 2, np.mean(by_seed), stats.sem(by_seed))[0]
    assert (row.before.value, row.before.signed) == pytest.approx((0.004 / 3, -0.004 / 3))
    assert (row.after.value, row.after.signed) == pytest.approx((0.004 / 3, 0.004 / 3))
    assert [(one.low, one.high) for one in (row.before, row.after)] == [pytest.approx((0.0, -end))] * 2
    assert row.after.high == pytest.approx(0.196, abs=0.003)


def test_interval_of_reversed_seeds_is_folded_whole():
    by_seed = -0.3, -0.31, -0.32
    found = [
        msgspec.structs.replace(result, after={"overall": signed(turn)}, before={"overall": signed(turn)})
        for result, turn in zip(results(lambda _: 0.5, lambda _: 1.0)[2::3], by_seed, strict=True)
    ]
    row = summarise("m", found)[0].rows[0]
    assert row.after.value == pytest.approx(0.31) and row.after.reversed
    assert row.after.signed < 0 < row.after.low < row.after.value < row.after.high


def test_missing_tuning_value_is_never_preferred():
    values = {0.1: None, 1.0: -1.5}
    found = results(after=lambda cell: 0.9, tuning=lambda loss: values[loss.temperature])
    first = summarise("m", found)[0]
    assert first.chosen.value == 1.0
    assert [(one.value, one.tuning, one.seeds) for one in first.tried] == [
        (0.1, None, (0, 1, 2)),
        (1.0, -1.5, (0, 1, 2)),
    ]


def test_mean_is_that_of_the_categories():
    last = summarise("m", results(after=lambda cell: 0.9, tuning=lambda loss: 1.0))[0].rows[-1]
    assert (last.category, last.before.value, last.after.value) == ("mean", pytest.approx(0.03), pytest.approx(0.3))


def in_markdown(found, corpus):
    whole = Results(
        model="m", digest="sha256:0", data={}, summaries=summarise("m", found), best={}, classifiers=[], trainings=found
    )
    return report(whole, corpus), whole


def rows_of(text, loss):
    return [line for line in text.splitlines() if line.startswith(f"| {loss}")]


def test_reversed_difference_is_told(corpus):
    found = results(after=lambda cell: 0.9, tuning=lambda loss: 1.0)
    turned = Delta(0.2, 0.1, 0.3, 0.1, 0.3, 2, 3, 4)
    found = [msgspec.structs.replace(result, after=result.after | {"caste": turned}) for result in found]
    text, whole = in_markdown(found, corpus)
    row = next(row for row in whole.summaries[0].rows if row.category == "caste")
    assert (row.after.value, row.after.signed, row.after.reversed) == (pytest.approx(0.2), pytest.approx(-0.2), True)
    assert "| 0.2000 [0.200, 0.200] reversed |" in text


def test_encoder_that_stayed_as_given_is_told(corpus):
    found = results(after=lambda cell: 0.9, tuning=lambda loss: 1.0)
    some = [msgspec.structs.replace(r, best=0) if r.settings.seed == 2 else r for r in found]
    text, whole = in_markdown(some, corpus)
    assert [one.chosen.as_given for one in whole.summaries] == [[2], [2]]
    (row,) = [line for line in rows_of(text, "triplet") if "[" in line]
    assert "as given: seed 2" in row
    assert "as given: seed" not in in_markdown(found, corpus)[0]


def test_every_loss_says_its_seeds(corpus):
    found = [
        r for r in results(lambda _: 0.9, lambda _: 1.0) if r.settings.loss.name == "nt-xent" or not r.settings.seed
    ]
    text, _ = in_markdown(found, corpus)
    cells = {
        line.split(" | ")[0]: line.split(" | ")[1:3]
        for line in text.splitlines()
        if "| seeds |" in line or "| contexts |" in line
    }
    assert cells["| nt-xent, temperature 0.1"] == ["0, 1, 2", "seeds"]
    assert cells["| triplet, margin 0.5"] == ["0", "contexts"]


def test_terminal_tells_each_loss_with_its_interval(corpus):
    _, whole = in_markdown(results(after=lambda cell: 0.9, tuning=lambda loss: 1.0), corpus)
    screen = io.StringIO()
    Console(file=screen, width=100).print(*overview(whole))
    assert "temperature 0.1" in screen.getvalue() and "0.9000 [0.900, 0.900]" in screen.getvalue()
