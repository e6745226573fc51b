"""Every choice of a study from the runs of the store: what is scored anew, what is planned, what moves it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.answer import answer_of
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import DataError, UnsupportedOperationError, UsageError
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.report.place import with_said
from prejudge.core.store import Store, list_runs
from prejudge.testing import raises_code

pytestmark = pytest.mark.usefixtures("no_figures")

PLANTED = """
[models.leaning]
adapter = "simulated"
settings = { strength = 0.6, spread = 1.0, word_spread = 1.0, noise = 0.8 }
"""
SMALL = {"per_cell": 20, "axes": ["height"], "sentiments": ["positive", "negative"]}
GROUP = {"axis": "height", "gender": "women"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    place = tmp_path_factory.mktemp("multiverse")
    (place / "registry.toml").write_text(PLANTED)
    made = prejudge.Settings(store=str(place / "p.db"), runs=str(place / "runs"), registry=str(place / "registry.toml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prejudge.core.api.running.write_output", lambda *_: None)
        prejudge.run("bistereo-pairs", "leaning", made, **SMALL)
    return made


@pytest.fixture(scope="module")
def found(settings):
    values = {"seed": [0, 7], "trisentbias.over": [["template"], ["attribute"]]}
    return prejudge.multiverse("bistereo-pairs", "leaning", settings, group=GROUP, choices=values, **SMALL)


def test_what_is_stored_is_scored_anew_and_the_rest_planned(found):
    """Two seeds of the design, one of which was asked; thresholds and clusters need no answer."""
    assert found.multiverse.every == 2 * 3 * 2
    assert found.estimates.height == 6
    (missing,) = found.multiverse.missing
    assert missing.universes == 6
    assert missing.requests > 0
    assert missing.study.options["seed"] == 7
    assert "not asked" in found.conclusion


@pytest.mark.models
def test_a_choice_that_the_model_cannot_answer_leaves_the_others(tmp_path):
    """A masked model has no likelihood of a sentence; the study's own choices it must be able to answer."""
    made = prejudge.Settings(store=str(tmp_path / "p.db"), runs=str(tmp_path / "runs"))
    small = {"per_cell": 2, "axes": ["height"], "genders": ["women"]}
    prejudge.run("bistereo-pairs", "reference-masked-biased", made, **small)
    both = {"scoring": ["pll", "sentence"]}
    found = prejudge.multiverse("bistereo-pairs", "reference-masked-biased", made, group=GROUP, choices=both, **small)
    (unable,) = found.multiverse.unable
    assert (unable.universes, unable.needs) == (found.multiverse.every / 2, "likelihood")
    assert found.estimates["scoring"].unique().to_list() == ["pll"]
    assert not found.multiverse.missing
    assert "likelihood" in found.conclusion
    other = {"scoring": ["sentence", "pll"]}
    with raises_code(UnsupportedOperationError, "study.operation"):
        prejudge.multiverse("bistereo-pairs", "reference-masked-biased", made, group=GROUP, choices=other, **small)


@pytest.mark.models
def test_a_setting_of_the_model_is_a_choice(tmp_path):
    """What stands before a text is declared for models that have the setting; the run of the model is its own value."""
    made = prejudge.Settings(store=str(tmp_path / "p.db"), runs=str(tmp_path / "runs"))
    small = {"per_cell": 2, "axes": ["height"], "genders": ["women"], "scoring": "sentence"}
    model, other = "reference-causal-biased", 'reference-causal-biased[start="\\n"]'
    prejudge.run("bistereo-pairs", model, made, **small)
    (missing,) = prejudge.multiverse("bistereo-pairs", model, made, group=GROUP, **small).multiverse.missing
    assert (missing.universes, missing.study.roles) == (9, {"subject": other})
    alone = prejudge.run("bistereo-pairs", other, made, **small)
    found = prejudge.multiverse("bistereo-pairs", model, made, group=GROUP, **small)
    assert not found.multiverse.missing
    by_hand = alone.estimates.filter((pl.col("metric") == "favouritism") & (pl.col("gender") == "women"))
    for threshold, value in by_hand.select("threshold", "value").iter_rows():
        rows = found.estimates.filter((pl.col("group.threshold") == str(threshold)) & (pl.col("model.start") == "\n"))
        assert rows.height == 3 and set(rows["value"]) == {value} and set(rows["run"]) == {alone.name}
    three = {"model.start": ["auto", "none", "bos"]}
    found = prejudge.multiverse("bistereo-pairs", model, made, group=GROUP, choices=three, **small)
    assert found.multiverse.every == 27


def test_values_are_those_of_score(found, settings):
    """Each universe has the estimate that `score --set` gives by hand."""
    run = found.estimates["run"][0]
    for cluster in ("template", "attribute"):
        by_hand = prejudge.score(run, settings, {"trisentbias.over": [cluster]}).estimates
        own = by_hand.filter((pl.col("metric") == "favouritism") & (pl.col("gender") == "women"))
        for threshold, value, low in own.select("threshold", "value", "low").iter_rows():
            row = found.estimates.filter(
                (pl.col("group.threshold") == str(threshold)) & pl.col("trisentbias.over").str.contains(cluster)
            ).row(0, named=True)
            assert (row["value"], row["low"]) == (value, low)


def test_shares_and_moves_from_the_table_alone(found):
    """What agrees and what each choice changes, counted again from the rows."""
    rows = found.estimates.to_dicts()
    own = next(row for row in rows if row["own"])
    assert (own["group.threshold"], own["seed"]) == ("0.02", "0")
    assert found.multiverse.same_verdict == sum(row["verdict"] == own["verdict"] for row in rows) / len(rows)
    sides = [(row["value"] > 0) - (row["value"] < 0) for row in rows]
    assert found.multiverse.same_sign == sides.count((own["value"] > 0) - (own["value"] < 0)) / len(rows)
    moved = {one.choice: one for one in found.multiverse.moved}
    for choice in ("group.threshold", "trisentbias.over"):
        others = [name for name in ("group.threshold", "trisentbias.over") if name != choice]
        pairs = [
            (one, other)
            for place, one in enumerate(rows)
            for other in rows[:place]
            if all(one[name] == other[name] for name in others)
        ]
        assert moved[choice].pairs == len(pairs)
        assert moved[choice].verdicts == sum(one["verdict"] != other["verdict"] for one, other in pairs)
        mean = sum(abs(one["value"] - other["value"]) for one, other in pairs) / len(pairs)
        assert moved[choice].change == pytest.approx(mean)
    # A choice of inference alone moves no value.
    assert moved["trisentbias.over"].change == pytest.approx(0.0)
    assert moved["seed"].pairs == 0


def test_page_and_tables(found):
    assert {path.name for path in found.report.parent.iterdir()} >= {"report.html", "universes.csv", "choices.parquet"}
    assert set(found.plot()) == {"specification-curve"}


@pytest.mark.parametrize(
    ("study", "choices", "code"),
    [
        ("subtle-asa", dict(), "multiverse.choices"),
        ("bistereo-pairs", dict(choices={"colour": [1, 2]}), "multiverse.choices"),
        ("bistereo-pairs", dict(choices={"model.start": ["auto", "bos"]}), "multiverse.choices"),
        ("bistereo-pairs", dict(choices={"seed": [1]}), "multiverse.choices"),
        ("bistereo-pairs", dict(choices={"seed": [1, 1]}), "multiverse.choices"),
        ("bistereo-pairs", dict(choices={"seed": list(range(500))}), "multiverse.many"),
        ("bistereo-pairs", dict(measure="halo"), "multiverse.measure"),
        ("bistereo-pairs", dict(group={"axis": "weight"}), "multiverse.group"),
    ],
)
def test_refused(settings, study, choices, code):
    with raises_code(UsageError, code):
        prejudge.multiverse(
            study,
            "leaning" if study != "subtle-asa" else "simulated-fair",
            settings,
            **choices,
            **(SMALL if study == "bistereo-pairs" else {}),
        )


def test_nothing_in_the_store_says_what_to_ask(settings):
    with raises_code(DataError, "multiverse.nothing"):
        prejudge.multiverse("bistereo-pairs", "leaning", settings, **SMALL | {"per_cell": 10})


def test_command(settings):
    given = ["--store", settings.store, "--registry", settings.registry, "--runs", settings.runs]
    given += ["--set", "per_cell=20", "--set", "axes=height", "--set", "sentiments=positive,negative"]
    given += ["--group", "axis=height", "--group", "gender=women", "--choice", "seed=0,7"]
    done = CliRunner().invoke(
        cli, ["lab", "multiverse", "bistereo-pairs", "--model", "leaning", *given], standalone_mode=False
    )
    assert done.exception is None, done.exception
    assert "--set seed=7" in done.output
    assert "--set per_cell=20" in done.output


def test_first_screen_of_the_run_names_its_multiverse(found, settings):
    """Only while the run is the same."""
    run = prejudge.load(found.estimates["run"][0], settings)
    said = answer_of(with_said(run.scores, Path(settings.runs))).notes
    assert any(note.startswith("Every defensible choice: Of ") for note in said)
    other = msgspec.structs.replace(run.scores.manifest, head="0" * 64)
    grown = msgspec.structs.replace(run.scores, manifest=other)
    assert not with_said(grown, Path(settings.runs)).beside


def test_asks_within_a_budget_names_the_rest_and_goes_on(settings, tmp_path):
    """Two seeds, neither asked: the first budget ends within one, the second within the other."""
    given = ["--store", str(tmp_path / "p.db"), "--registry", settings.registry, "--runs", str(tmp_path / "runs")]
    given += ["--set", "per_cell=6", "--set", "axes=height", "--set", "sentiments=positive,negative"]
    given += ["--group", "axis=height", "--group", "gender=women", "--choice", "seed=0,7", "--quiet"]

    def asked(*more):
        command = ["lab", "multiverse", "bistereo-pairs", "--model", "leaning", *given, *more]
        return CliRunner().invoke(cli, command, standalone_mode=False, catch_exceptions=False)

    def spent():
        with Store(str(tmp_path / "p.db"), writable=False) as store:
            runs = list_runs(store)
            sent = [sum(one.counts.get("asked", 0) for one in manifest_of(row).stages.values()) for row in runs]
            whole = sum(one.planned for one in manifest_of(runs[0]).stages.values())
            return sent, [row.state for row in runs], whole

    done = asked("--ask", "--max-requests", "40")
    assert done.return_value == 3
    assert "seed=7" in done.output.replace("seed = 7", "seed=7")
    sent, states, whole = spent()
    assert (sent, states) == ([40], ["interrupted"])
    done = asked("--ask", "--max-requests", str(whole - 30))
    assert done.return_value == 3
    sent, states, _ = spent()
    assert sent == [whole, 10]
    assert states == ["finished", "interrupted"]
    assert "To ask (" in done.output
    assert "--set seed=7" in done.output
    assert asked("--ask").return_value == 0
    sent, states, _ = spent()
    assert (sent, states) == ([whole] * 2, ["finished"] * 2)
    again = asked("--ask", "--max-requests", "1")
    assert again.return_value == 0
    assert spent() == (sent, states, whole)
    assert "To ask" not in again.output


def test_budget_without_ask_is_refused(settings):
    with raises_code(UsageError, "options.conflict"):
        CliRunner().invoke(
            cli,
            ["lab", "multiverse", "bistereo-pairs", "--model", "leaning", "--registry", settings.registry]
            + ["--max-requests", "3"],
            standalone_mode=False,
            catch_exceptions=False,
        )
