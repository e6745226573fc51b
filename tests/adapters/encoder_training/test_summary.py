import io

import msgspec
import pytest
from rich.console import Console
from scipy import stats

from prejudge.adapters.encoder_training._cells import Grid, Result, cells
from prejudge.adapters.encoder_training._progress import Lines, OnTerminal, Progress, choose_progress
from prejudge.adapters.encoder_training._similarity import Delta
from prejudge.adapters.encoder_training._state import Epoch
from prejudge.adapters.encoder_training._summary import summarise
from prejudge.adapters.encoder_training._tables import markdown

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
    found = results(after=lambda cell: (0.3, 0.4, 0.8)[cell.settings.seed], tuning=lambda loss: 1.0)
    row = summarise("m", found)[1].rows[0]
    low, high = stats.t.interval(0.95, 2, 0.5, stats.sem([0.3, 0.4, 0.8]))
    assert (row.after, row.low, row.high) == pytest.approx((0.5, low, high))


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


def test_bars_tell_each_epoch_above_them():
    screen = io.StringIO()
    with OnTerminal(Console(file=screen, force_terminal=True, width=100)) as progress:
        progress.cells(0, 2, "first training")
        progress.step(1, 8)
        progress.epoch(Epoch(1, 0.5, 0.25, 4, 2.0), 30)
    assert "epoch 1/30: loss 0.5000, tuning delta-sim 0.2500" in screen.getvalue() and "1/8" in screen.getvalue()


def test_quiet_says_nothing_and_a_pipe_gets_lines():
    assert type(choose_progress(True)) is Progress and type(choose_progress(False)) is Lines
