"""The demonstration: of three models whose bias is known, bias is found in the biased one alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.contracts.sizes import State
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, list_runs
from prejudge.probes.demo import command


def test_bias_is_found_in_the_biased_model_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["study", "demo", "--quiet"], standalone_mode=False)
    assert done.exception is None and done.return_value == 0
    with Store("prejudge.db", writable=False) as store:
        scores = [score(Catalogue.load(), store, run.name) for run in list_runs(store)]
    page = command.together(dict(zip(command.MODELS, scores, strict=True)))
    assert [card.reply.state for card in page.cards] == [State.YES, State.OPEN, State.OPEN]
    assert all(card.notes[0].startswith("Right.") for card in page.cards)
    # A certificate of other numbers is shown as that.
    assert all(one.manifest.calibration.state.startswith(("certified", "numbers changed since")) for one in scores)
    assert "certified for other options" not in page.facts["Certificate"]
    (path,) = (tmp_path / "runs").glob("together-*/report.html")
    text = path.read_text("utf-8")
    assert text.count('<div class="card ') == 3 and text.count('class="section"') == 3
    assert all(text.count(card.size) == 1 and card.size in done.output.replace("\n", " ") for card in page.cards)


def test_pairs_that_count_as_independent_narrow_the_intervals(leaning):
    """Recomputed from the units by numpy: the widths of Welch's normal intervals, group by group."""
    (metric, options), *_ = leaning.metrics.values()
    units = metric.units(leaning.seen_by(metric), options).filter(metric="favouritism").drop_nulls("value")
    ratios = []
    for e in (e for e in leaning.headline if e.metric == "favouritism"):
        own = units.filter(**e.group)
        sides = [own.filter(sign=sign)["value"].to_numpy() for sign in (1, -1)]
        error = math.sqrt(sum(np.var(side, ddof=1) / len(side) for side in sides))
        ratios.append((e.high - e.low) / (2 * stats.norm.ppf(0.975) * error))
    assert command.narrower(leaning) == pytest.approx(np.mean(ratios), rel=1e-5) and np.mean(ratios) > 1


def test_model_that_is_judged_otherwise_than_it_was_made_is_called_wrong(leaning):
    page = command.together({command.BIASED: leaning, command.FAIR: leaning, command.LEANING: leaning})
    assert [card.notes[0].partition(".")[0] for card in page.cards] == ["Wrong", "Right", "Right"]


@pytest.fixture(scope="module")
def leaning(tmp_path_factory):
    settings = prejudge.Settings(store=str(tmp_path_factory.mktemp("demo") / "store.db"))
    return prejudge.run(command.STUDY, command.MODELS[command.LEANING], settings=settings, **command.DESIGN).scores
