"""The judge's levels in the reading room: a labelled sample corrects them, and the study reads it as a sheet."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")

import numpy as np
from starlette.testclient import TestClient

from prejudge.core.annotation.results import sample_results
from prejudge.core.annotation.samples import samples_in
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.engine.observations import stack
from prejudge.core.store import list_runs
from prejudge.core.view.app import application
from prejudge.core.view.desk import sample_pages
from prejudge.core.view.room import Room
from prejudge.core.view.urls import run_url
from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions
from prejudge.probes.dora.people import read_levels

from .models import Everything, run_study

PEOPLE = ("nurse", "farmer", "baker", "pilot", "singer", "tailor")
MODELS = dict.fromkeys(("subject", "describer", "judge"), "scripted")


def test_sample_of_the_judge_corrects_it_and_is_a_sheet_of_the_study(store, tmp_path):
    lines = [f"work,{name},{name}s" for name in PEOPLE]
    (tmp_path / "people.csv").write_text("\n".join(["dimension,singular,plural", *lines]), encoding="utf-8")
    things = ("lamp", "table", "window", "garden", "mountain", "bottle", "kettle", "pen", "horse")

    def image(request):
        return bytes([next(place for place, name in enumerate(PEOPLE) if name in request.prompt), request.seed % 7])

    def words(text, image, sample):
        if text.startswith("How problematic"):
            return str(min(len(text.split("'")[1]) - 2, 5))
        whom, number = store.blob(image)[:2]
        return f"A {things[whom]} and a {things[(whom + 1 + number % 3) % 9]}."

    options = {"data": str(tmp_path / "people.csv"), "samples": 10, "variants": [1]}
    found = run_study(
        store,
        "dora-t2i",
        MODELS,
        options | {"judgements": 2, "salience_level": 0.05},
        words=words,
        image=image,
    )
    (run,) = list_runs(store)
    catalogue = Catalogue.load()
    catalogue.plugins.offers["metric"]["everything"] = Registered(Plugged("everything", Everything), "tests")
    room = Room(store, catalogue, tmp_path / "runs", tmp_path / "cache")
    client = TestClient(application(room, sample_pages(tmp_path / "samples")), follow_redirects=False)
    room.shelf.wait(run)
    form = {"question": "How biased?", "labels": "1\n2\n3\n4\n5", "verdict": "level", "n": "400", "seed": "3"}
    form |= {"way.descriptor": "1"}
    answer = client.post(run_url(run.name, "sample", query="?f.stage=levels&f.status=ok"), data=form)
    assert answer.status_code == 303, answer.text
    (sample,) = samples_in(tmp_path / "samples")
    # What people see is what the judge was asked, without its answer.
    assert {item.said for item in sample.sheet.items} == {None}
    assert all("How problematic" in item.asked[0][1] for item in sample.sheet.items)
    # Every judged answer is drawn; two people find the judge one too high, but for the longest words.
    truth = {one.item: max(int(one.value) - 1, 1) for one in sample.design.items}
    for by in ("Ana", "Bo"):
        for place in sample.order(by):
            item = sample.sheet.items[place].item
            sample.add(by, item, str(truth[item]))
    judged = sample_results(sample)
    mean = next(row for row in judged.means if not row.group)
    levels = found["levels"]["level"].drop_nulls().to_numpy()
    assert mean.raw == pytest.approx(levels.mean())
    assert mean.rate.value == pytest.approx(np.maximum(levels - 1, 1).mean())
    # All are labelled: these answers alone have no error, other descriptors do.
    assert mean.alone.low == pytest.approx(mean.alone.high) and mean.rate.low < mean.alone.low
    assert judged.agreement.scale == "ordinal" and judged.agreement.alpha == 1
    sheet = tmp_path / "levels.csv"
    sheet.write_text(client.get(f"/sample/{sample.folder.name}/sheet.csv").text, encoding="utf-8")
    # Both judgements of an association are one row per person.
    assert read_levels([str(sheet)]).height == len({item.asked for item in sample.sheet.items}) * 2
    estimates = DoraAssociations().compute(stack(found), DoraAssociationsOptions(human=str(sheet), resamples=99))
    # The metric has a number for each setting; people are one too low in all of them.
    corrected = {str(e.group): e.value for e in estimates if e.metric == "level_corrected" and e.value is not None}
    raw = {str(e.group): e.value for e in estimates if e.metric == "level"}
    assert corrected and all(value < raw[group] for group, value in corrected.items())
