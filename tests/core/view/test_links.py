"""No page leads to one that is not there: the links, images and frames of a small store are followed."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin, urlsplit

import pytest
from hostile import HOSTILE
from starlette.testclient import TestClient

from prejudge.core.annotation.samples import samples_in
from prejudge.core.annotation.sheets import sample_of_sheet
from prejudge.core.report.output import write_output
from prejudge.core.scoring.score import score
from prejudge.core.view.app import application
from prejudge.core.view.desk import label_pages, sample_pages
from prejudge.core.view.urls import run_url

LEADS = re.compile(r"\s(?:href|src)=\"([^\"]*)\"|\sdata-answers=\"([^\"]*)\"|\ssrcset=\"([^\" ]+)")
MOST = 400
"""Pages that are read; the kinds of pages are far fewer."""


def kind_of(path):
    """Return what kind of page a path is, so that a few of each are read."""
    return re.sub(r"/\d+(?=/|$)|/[0-9a-f]{64}", "/0", urlsplit(path).path) + "?".join(
        sorted(re.findall(r"[?&]([\w.]+)=", path))
    )


def crawl(client, *starts, each=2):
    """Return the paths that were read, and those that are not there with the page that leads to them."""
    queue, seen, kinds, dead = [(start, "") for start in starts], set(), {}, []
    while queue and len(seen) < MOST:
        path, source = queue.pop(0)
        if path in seen or kinds.get(kind := kind_of(path), 0) >= each:
            continue
        seen.add(path)
        kinds[kind] = kinds.get(kind, 0) + 1
        answer = client.get(path)
        if answer.status_code not in (200, 204):
            dead.append((path, source, answer.status_code))
        if "html" not in answer.headers.get("content-type", ""):
            continue
        for found in LEADS.findall(answer.text):
            target = unescape(next(filter(None, found), ""))
            if found[1] and not target.startswith("/"):
                # In a report: the query of the answers behind a row, which the page around it leads to.
                target = f"{path.removesuffix('/report/page')}/answers?{target}"
            target = urljoin(path, target)
            if target.startswith(("data:", "#")) or "://" in target or "mailto:" in target:
                continue
            bare, _, anchor = target.partition("#")
            if bare == path and anchor:
                assert f'id="{unescape(anchor)}"' in answer.text, (path, anchor)
            queue.append((bare, path))
    return seen, dead


@pytest.fixture
def samples(tmp_path):
    return tmp_path / "samples"


def test_pages_of_a_store_lead_somewhere(room, answered, catalogue, store, samples, tmp_path):
    first = answered(lambda number: HOSTILE[number % len(HOSTILE)], n=60)
    second = answered(name="again", n=60)
    for run in (first, second):
        room.shelf.wait(run)
    write_output(score(catalogue, store, first.name), store, tmp_path / "runs")
    client = TestClient(application(room, sample_pages(samples)), follow_redirects=True)
    form = {"question": "What?", "labels": "ok\nother", "verdict": "status", "cell.parity": "1", "n": "20"}
    assert client.post(run_url(first.name, "sample"), data=form).status_code == 200
    (sample,) = samples_in(samples)
    path = f"/label/{sample.folder.name}"
    seen, dead = crawl(client, "/", f"{path}?by=ana", f"/compare?a={first.name}&b={second.name}")
    assert dead == []
    for part in ("/trial/", "/twins/", "/numbers", "/report/page", "/sample", "/compare", "/export", "/answers?"):
        assert any(part in one for one in seen), part


def test_pages_without_a_store_lead_somewhere(room, answered, samples, tmp_path):
    """A sample that was drawn lies beside the sheet, and its run is in a store that is not here."""
    room.shelf.wait(run := answered(n=60))
    with_store = TestClient(application(room, sample_pages(samples)))
    form = {"question": "What?", "labels": "ok\nother", "verdict": "status", "n": "20"}
    with_store.post(run_url(run.name, "sample"), data=form)
    (drawn,) = samples_in(samples)
    (tmp_path / "sheet.csv").write_text("word,rating\nkind,\ncruel,\n", "utf-8")
    sheet = sample_of_sheet(str(tmp_path / "sheet.csv"), samples, ("0", "1"), "")
    alone = TestClient(application(None, sample_pages(samples, alone=True)))
    starts = [f"/sample/{sheet.folder.name}", f"/label/{sheet.folder.name}?by=ana", f"/sample/{drawn.folder.name}"]
    seen, dead = crawl(alone, *starts)
    assert dead == [] and {"/samples", "/"} <= seen and "/certificates" not in seen
    for one in (drawn, sheet):
        only = TestClient(application(None, label_pages(samples)))
        seen, dead = crawl(only, f"/label/{one.folder.name}", f"/label/{one.folder.name}?by=ana")
        assert dead == []
        lost = only.get(f"/label/{one.folder.name}x")
        assert lost.status_code == 404 and 'href="/"' not in lost.text


def test_pages_of_an_empty_store_lead_somewhere(room, samples):
    seen, dead = crawl(TestClient(application(room, sample_pages(samples))), "/")
    assert dead == [] and "/samples" in seen
