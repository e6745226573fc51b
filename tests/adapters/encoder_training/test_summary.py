import io

import msgspec
import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from prejudge.adapters.encoder_training.cells import Grid, Result, cells
from prejudge.adapters.encoder_training.progress import Lines, OnTerminal, Progress, choose_progress
from prejudge.adapters.encoder_training.similarity import Delta
from prejudge.adapters.encoder_training.state import Epoch
from prejudge.adapters.encoder_training.summary import summarise
from prejudge.adapters.encoder_training.tables import markdown, show

GRID = Grid(
    splits=("sentence",), seeds=(0, 1, 2), losses=("nt-xent", "triplet"), temperatures=(0.1, 1.0), margins=(0.5,)
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


def test_tuning_part_chooses_and_validation_has_no_say():
    found = results(
        after=lambda cell: 0.9 if cell.settings.loss.temperature == 0.1 else 0.3,
        tuning=lambda loss: loss.temperature,
    )
    first = summarise("m", found)[0]
    assert (first.loss, first.parameter, first.chosen) == ("nt-xent", "temperature", 1.0)
    assert first.rows[0].after == pytest.approx(0.3)


def test_interval_over_seeds_is_student_s():
    found = results(after=lambda cell: (0.5, 0.6, 0.7)[cell.settings.seed], tuning=lambda loss: 1.0)
    row = summarise("m", found)[1].rows[0]
    low, high = stats.t.interval(0.95, 2, 0.6, stats.sem([0.5, 0.6, 0.7]))
    assert (row.after, row.low, row.high) == pytest.approx((0.6, low, high))


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
    assert (row.before, row.before_signed) == pytest.approx((0.004 / 3, -0.004 / 3))
    assert (row.after, row.after_signed) == pytest.approx((0.004 / 3, 0.004 / 3))
    assert (row.before_low, row.before_high, row.low, row.high) == pytest.approx((0.0, -end, 0.0, -end))
    assert row.high == pytest.approx(0.196, abs=0.003)


def test_interval_of_reversed_seeds_is_folded_whole():
    by_seed = -0.3, -0.31, -0.32
    found = [
        msgspec.structs.replace(result, after={"overall": signed(turn)}, before={"overall": signed(turn)})
        for result, turn in zip(results(lambda _: 0.5, lambda _: 1.0)[2::3], by_seed, strict=True)
    ]
    row = summarise("m", found)[0].rows[0]
    assert row.after == pytest.approx(0.31)
    assert row.after_signed < 0 < row.low < row.after < row.high


def test_missing_tuning_value_is_never_preferred():
    values = {0.1: None, 1.0: -1.5}
    found = results(after=lambda cell: 0.9, tuning=lambda loss: values[loss.temperature])
    first = summarise("m", found)[0]
    assert first.chosen == 1.0
    assert [(one.value, one.tuning, one.seeds) for one in first.tried] == [
        (0.1, None, (0, 1, 2)),
        (1.0, -1.5, (0, 1, 2)),
    ]


def test_mean_is_that_of_the_categories():
    last = summarise("m", results(after=lambda cell: 0.9, tuning=lambda loss: 1.0))[0].rows[-1]
    assert (last.category, last.before, last.after) == ("mean", pytest.approx(0.03), pytest.approx(0.3))


def test_reversed_difference_is_told():
    found = results(after=lambda cell: 0.9, tuning=lambda loss: 1.0)
    turned = Delta(0.2, 0.1, 0.3, 0.1, 0.3, 2, 3, 4)
    found = [msgspec.structs.replace(result, after=result.after | {"caste": turned}) for result in found]
    summaries = summarise("m", found)
    row = next(row for row in summaries[0].rows if row.category == "caste")
    assert (row.after, row.after_signed) == (pytest.approx(0.2), pytest.approx(-0.2))
    assert "| 0.2000 [0.200, 0.200] reversed |" in markdown(summaries, [])


def test_lines_tell_each_epoch(capsys):
    progress = Lines()
    progress.cells(0, 2, "a")
    progress.epoch(Epoch(1, 0.5, None, 4, 2.0), 30)
    assert capsys.readouterr().err == "[1/2] a\n  epoch 1/30: loss 0.5000, tuning delta-sim -, 2.00 steps/s\n"


def test_lines_tell_the_encoder_as_given(capsys):
    Lines().epoch(Epoch(0, None, 0.25), 30)
    assert capsys.readouterr().err == "  as given: tuning delta-sim 0.2500\n"


def test_encoder_that_stayed_as_given_is_told():
    found = results(after=lambda cell: 0.9, tuning=lambda loss: 1.0)
    stayed = [msgspec.structs.replace(r, best=0) if r.settings.loss.name == "nt-xent" else r for r in found]
    some = [msgspec.structs.replace(r, best=0) if r.settings.seed == 2 else r for r in found]
    assert "| nt-xent, temperature 0.1, as given |" in markdown(summarise("m", stayed), [])
    assert "| triplet, margin 0.5, as given: seed 2 |" in markdown(summarise("m", some), [])
    assert "as given" not in markdown(summarise("m", found), [])


def test_losses_of_different_seeds_say_which():
    found = [
        r for r in results(lambda _: 0.9, lambda _: 1.0) if r.settings.loss.name == "nt-xent" or not r.settings.seed
    ]
    text = markdown(summarise("m", found), [])
    assert (
        "| before, seeds 0, 1, 2 (over seeds) |" in text and "| triplet, margin 0.5, seed 0 (over contexts) |" in text
    )


def test_terminal_keeps_words_whole():
    found = results(after=lambda cell: 0.9, tuning=lambda loss: 1.0)
    found = [msgspec.structs.replace(r, after=r.after | {"socioeconomic": flat(0.1)}) for r in found]
    found = [msgspec.structs.replace(r, before=r.before | {"socioeconomic": flat(0.1)}) for r in found]
    screen = io.StringIO()
    show(Console(file=screen, width=80), summarise("m", found), [])
    text = screen.getvalue()
    assert "socioeconomic" in text and "temperature 0.1" in text and "[0.100, 0.100]" in text


def test_bars_tell_each_epoch_above_them():
    screen = io.StringIO()
    with OnTerminal(Console(file=screen, force_terminal=True, width=100)) as progress:
        progress.cells(0, 2, "first training")
        progress.step(1, 8)
        progress.epoch(Epoch(1, 0.5, 0.25, 4, 2.0), 30)
    assert "epoch 1/30: loss 0.5000, tuning delta-sim 0.2500" in screen.getvalue() and "1/8" in screen.getvalue()
    assert "[1/2] first training" in screen.getvalue()


def test_quiet_says_nothing_and_a_pipe_gets_lines():
    assert type(choose_progress(True)) is Progress and type(choose_progress(False)) is Lines
