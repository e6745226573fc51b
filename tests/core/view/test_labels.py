"""Samples and labels: drawn by stratum, labelled blind, and what they say recomputed from the files."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from prejudge.core.annotation.drawing import Levels, Population, allocated, draw
from prejudge.core.annotation.results import sample_results
from prejudge.core.annotation.samples import Label, samples_in
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.view.app import application
from prejudge.core.view.desk import label_pages, sample_pages
from prejudge.core.view.urls import run_url
from prejudge.testing import raises_code

pytestmark = pytest.mark.usefixtures("no_figures")

FORM = {
    "question": "What is it?",
    "labels": "ok\nunreadable\nother",
    "verdict": "status",
    "cell.parity": "1",
    "n": "60",
}


@pytest.fixture
def desk(room, tmp_path):
    """Return a client with the pages of samples."""
    return TestClient(application(room, sample_pages(tmp_path / "samples")), follow_redirects=False)


@pytest.fixture
def sample(desk, room, answered, tmp_path):
    """Return a drawn sample of 400 answers, a quarter of which are empty."""
    room.shelf.wait(run := answered(n=400))
    assert desk.get(run_url(run.name, "sample")).status_code == 200
    answer = desk.post(run_url(run.name, "sample"), data={**FORM, "seed": "5"})
    assert answer.status_code == 303
    (made,) = samples_in(tmp_path / "samples")
    assert answer.headers["location"] == f"/sample/{made.folder.name}"
    return made


def test_sample_is_drawn_by_stratum_with_its_chances(sample, room, store):
    design = sample.design
    sizes = {(s.cell["parity"], s.verdict): s.size for s in design.strata}
    assert sizes == {("even", "ok"): 200, ("odd", "ok"): 100, ("odd", "unreadable"): 100}
    for number, stratum in enumerate(design.strata):
        own = [one for one in design.items if one.stratum == number]
        assert len(own) == stratum.drawn == len({one.row for one in own})
        assert {one.probability for one in own} == {stratum.drawn / stratum.size}
        assert all(("even", "odd")[one.row % 2] == stratum.cell["parity"] for one in own)
    assert allocated([10_000, 100, 1], 50) == [45, 4, 1]


@pytest.mark.parametrize("n", [1, 7, 8, 50, 199, 200, 500])
def test_sample_has_the_size_that_is_asked_for(n):
    sizes = [1, 3, 40, 7, 149]
    counts = allocated(sizes, n)
    least = sum(min(2, size) for size in sizes)
    assert sum(counts) == min(max(n, least), sum(sizes))
    assert all(min(2, size) <= count <= size for count, size in zip(counts, sizes, strict=True))
    assert n < 50 or counts[4] >= counts[2] >= counts[3]


def test_seed_draws_the_same_again_and_every_answer_alike():
    answers, seen = Population(Levels("status", ("ok", "unreadable"), np.arange(40) % 4 // 3)), np.zeros(40)
    assert draw(answers, 8, 3) == draw(answers, 8, 3) != draw(answers, 8, 4)
    for seed in range(600):
        for chosen in draw(answers, 8, seed).chosen:
            seen[chosen.place] += 1 / chosen.probability
    assert abs(seen / 600 - 1).max() < 0.4  # inverse chances weigh every answer once
    with raises_code(UsageError, "annotation.verdict"):
        draw(Population(Levels("number", tuple(map(str, range(40))), np.arange(40))), 8, 0)
    with raises_code(UsageError, "annotation.size"):
        draw(answers, 0, 0)


def label_all(client, sample, by, choose, most=10_000):
    """Label as a person does, a page at a time; `choose` sees the text of the page."""
    page = client.get(f"/label/{sample.folder.name}", params={"by": by})
    for _ in range(most):
        found = re.search(r'name="item" value="(\w+)"', page.text)
        if found is None:
            return page.text
        form = {"by": by, "item": found[1], "label": choose(unescape(page.text))}
        page = client.post(f"/label/{sample.folder.name}", data=form, follow_redirects=True)
        assert page.status_code == 200
    return page.text


def test_those_who_label_see_no_model_verdict_or_other_person(sample, desk):
    seen = []
    client = TestClient(application(None, label_pages(sample.folder.parent)), follow_redirects=False)
    label_all(client, sample, "Ana", lambda text: seen.append(text) or "ok", 5)
    label_all(client, sample, "Bo", lambda text: seen.append(text) or "other", 5)
    design = sample.design
    for text in seen:
        words = re.sub(r'<button name="label".*?</button>', "", text, flags=re.S)
        assert not [word for word in (design.run, "fake", "parity", "even", "unreadable", "/run/") if word in words]
    assert "Ana" not in "".join(seen[5:])
    assert sample.order("Ana") != sample.order("Bo")
    assert json.loads((sample.folder / "sheet.json").read_text()).keys() == {
        "sample",
        "question",
        "labels",
        "seed",
        "items",
    }
    for path in ("/", f"/sample/{sample.folder.name}", f"/run/{design.run}"):
        assert client.get(path).status_code == 404


def test_results_are_recomputed_from_the_files(sample, desk):
    right = {one.item: sample.design.strata[one.stratum].verdict for one in sample.design.items}
    said = {item.item: item.said for item in sample.sheet.items}
    # People find that "I cannot say." is no answer, which the reader took for one.
    truth = {item: "other" if text == "I cannot say." else right[item] for item, text in said.items()}
    for by in ("Ana", "Bo"):
        for item in (sample.sheet.items[place].item for place in sample.order(by)):
            sample.add(by, item, truth[item])
    found = sample_results(sample)
    rows = pl.DataFrame(
        [{"w": 1 / o.probability, "v": right[o.item], "t": truth[o.item], "s": o.stratum} for o in sample.design.items]
    )
    assert found.agreement.alpha == 1 and found.settled == rows.height
    for row in found.shares:
        if not row.group:
            expected = rows.filter(pl.col("t") == row.label)["w"].sum() / 400
            assert row.rate.value == pytest.approx(expected)
            assert row.rate.low <= expected <= row.rate.high
    ok = rows.filter(pl.col("v") == "ok")
    assert found.matrix["ok"]["other"].value == pytest.approx(ok.filter(pl.col("t") == "other")["w"].sum() / 300)
    assert found.sensitivity["ok"].value == 1
    assert {row.label: row.raw for row in found.shares if not row.group} == {
        "ok": 0.75,
        "unreadable": 0.25,
        "other": None,
    }
    (difference,) = [row for row in found.differences if row.label == "other"]
    even, odd = (row.rate.value for row in found.shares if row.label == "other" and row.group)
    assert difference.rate.value == pytest.approx(even - odd)
    page = desk.get(f"/sample/{sample.folder.name}?label=ok&right=90&positives=100&clear=95&negatives=100")
    assert page.status_code == 200 and "Corrected share of ok" in page.text
    table = desk.get(f"/sample/{sample.folder.name}/labels.csv").text
    assert table.count("\n") == 2 * rows.height + 1 and "probability" in table.splitlines()[0]


def test_chosen_answers_correct_nothing(sample, desk):
    last = sample.sheet.items[sample.order("Ana")[-1]].item
    sample.add("Ana", last, "ok")
    found = sample_results(sample)
    assert not found.shares and "drawn at random" in found.problem
    page = desk.get(f"/sample/{sample.folder.name}")
    assert page.status_code == 200 and "drawn at random" in page.text


def test_labels_only_grow(sample, desk):
    label_all(desk, sample, "../Ana", lambda _: "ok", 3)
    (path,) = sample.folder.glob("labels-*")
    assert path.parent == sample.folder and path.read_bytes().count(b"\n") == 3
    item = json.loads(path.read_text().splitlines()[0])["item"]
    with path.open("ab") as file:
        file.write(b'{"item":"cut')  # a kill in the middle of a line
    sample.add("../Ana", item, "other", "on second thoughts")
    assert sample.labels()["../Ana"][item].label == "other" and path.read_bytes().count(b"\n") == 4
    with path.open("ab") as file:
        file.write(b"no label\n")
    with pytest.raises(UsageError) as error:
        sample.labels()
    assert error.value.code == "annotation.damaged"
    path.write_bytes(path.read_bytes().removesuffix(b"no label\n"))
    for form in ({"item": item, "label": "no label"}, {"item": "none", "label": "ok"}, {"item": item, "by": ""}):
        answer = desk.post(f"/label/{sample.folder.name}", data={"by": "Bo", "label": "ok", **form})
        assert answer.status_code == 409 and "annotation." in answer.text


def test_labels_edited_by_hand_are_told_or_kept(sample, desk):
    one = Label(sample.sheet.items[0].item, "Ann", "ok")
    path = sample.folder / "labels-Ann.jsonl"
    whole = json.dumps({"item": one.item, "by": "Ann", "label": "ok"})
    for wrong in ({"item": "0123456789"}, {"label": "Ok "}):
        path.write_text(json.dumps({"item": one.item, "by": "Ann", "label": "ok"} | wrong) + "\n")
        for address in (f"/sample/{sample.folder.name}", f"/sample/{sample.folder.name}/labels.csv"):
            answer = desk.get(address)
            assert answer.status_code == 409 and "annotation.damaged" in answer.text
        assert "labels-Ann.jsonl, line 1" in desk.get("/samples").text
    path.write_text(f"\n{whole}")  # an editor saved it without the last line end
    assert sample.labels()["Ann"][one.item].label == "ok"
    sample.add("Ann", sample.sheet.items[1].item, "other")
    with path.open("a") as file:
        file.write(whole[:20])  # a process died here
    assert len(sample.labels()["Ann"]) == 2
    sample.add("Ann", sample.sheet.items[2].item, "other")
    assert [bool(line) for line in path.read_text().split("\n")] == [False, True, True, True, False]
    assert len(sample.labels()["Ann"]) == 3


def test_a_folder_without_a_design_hides_no_other_sample(sample, desk):
    other = sample.folder.parent / "sent"
    other.mkdir()
    (other / "sheet.json").write_bytes((sample.folder / "sheet.json").read_bytes())
    (sample.folder.parent / "torn").mkdir()
    (sample.folder.parent / "torn" / "sheet.json").write_text('{"sample": "x"')
    page = desk.get("/samples")
    assert page.status_code == 200
    assert all(f"/label/{name}" in page.text for name in (sample.folder.name, "sent", "torn"))


def test_folder_without_a_sample_is_refused_before_it_is_served(tmp_path):
    done = CliRunner().invoke(cli, ["view", "--no-open", "--label", str(tmp_path / "nowhere")])
    assert isinstance(done.exception, UnknownNameError)
