"""Twins by the declared design: which pairs there are, recomputed from the observations, and the ways to them."""

from __future__ import annotations

import polars as pl
import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.store import Store, get_run
from prejudge.core.view.app import application
from prejudge.core.view.pairs import twins_of_run
from prejudge.core.view.room import Room
from prejudge.core.view.urls import View, run_url

KEYS = {
    "bistereo-nli": ("gender", "template", "noun", "attribute", "direction"),
    "attractiveness": ("face", "scenario", "first_is", "asked", "seed"),
}
GROUP = {"bistereo-nli": "skin", "attractiveness": "variant"}
UP = {"bistereo-nli": pl.col("label") == "entailment", "attractiveness": pl.col("score") == 1}
FEW = {"bistereo-nli": {"per_cell": 2}, "attractiveness": {"per_cell": 1}}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    settings = prejudge.Settings(store=str(folder / "store.db"), runs=str(folder / "runs"))
    runs = {study: prejudge.run(study, "simulated-biased", settings, **FEW[study]) for study in KEYS}
    with Store(folder / "store.db", writable=False) as store:
        yield Room(store, Catalogue.load(), folder / "runs", folder / "cache"), runs


@pytest.mark.parametrize("study", KEYS)
def test_pairs_are_those_of_the_observations(world, study):
    room, runs = world
    run = get_run(room.store, runs[study].name)
    twins = twins_of_run(room, run, index := room.shelf.wait(run))
    assert twins is not None and twins.factor == GROUP[study]
    frame = next(iter(runs[study].observations.values())) if isinstance(runs[study].observations, dict) else None
    frame = runs[study].observations if frame is None else frame
    frame = frame.filter(pl.col("status") == "ok").with_columns(up=UP[study].cast(pl.Float64))
    sides = [side for _, side in sorted(frame.group_by(GROUP[study]), key=lambda group: group[0])]
    assert len(sides) == 2
    pairs = sides[0].join(sides[1], on=list(KEYS[study]), suffix="_other", nulls_equal=True)
    assert twins.frame.height == pairs.height > 0
    differing = pairs.filter(pl.col("up") != pl.col("up_other")).height
    assert twins.of(index, View()).height == differing > 0


def test_number_leads_to_its_twins_in_one_click(world):
    room, runs = world
    run = get_run(room.store, runs["bistereo-nli"].name)
    index = room.shelf.wait(run)
    twins = twins_of_run(room, run, index)
    view = View(filters={"gender": ("men",)})
    client = TestClient(application(room))
    landed = client.get(run_url(run.name, "answers", query=view.query))
    assert landed.url.path == run_url(run.name, "twins") and landed.status_code == 200
    assert f"<strong>{twins.of(index, view).height}</strong>" in landed.text and "<mark>" in landed.text
    assert 0 < twins.of(index, view).height < twins.of(index, View()).height
    for trial in twins.of(index, view)[0].select("row", "row_other").row(0):
        assert f'href="{run_url(run.name, "trial", trial)}"' in landed.text
    listed = client.get(run_url(run.name, "numbers")).text
    assert f'href="{run_url(run.name, "answers")}' in listed


def test_list_of_runs_has_the_results_of_the_record(world):
    room, runs = world
    page = TestClient(application(room)).get("/").text
    for run in runs.values():
        row = get_run(room.store, run.name)
        replies = room.replies(row)
        assert replies and all(reply["verdict"] in page for reply in replies)
    (room.runs / run.name / "answers.json").write_text("[")
    assert room.replies(row) == [] and TestClient(application(room)).get("/").status_code == 200
