"""The pages without a browser: what a model said is inert, urls hold what is shown, and numbers lead to answers."""

from __future__ import annotations

import re
import time
from html import unescape
from html.parser import HTMLParser

import polars as pl
import pytest
from hostile import HOSTILE
from starlette.testclient import TestClient

from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.records import Generation
from prejudge.core.importing.imported import ImportOptions, import_answers
from prejudge.core.report.examples import NOT_RECORDED
from prejudge.core.report.marked import marked
from prejudge.core.report.output import write_output
from prejudge.core.scoring.score import score
from prejudge.core.store import get_run
from prejudge.core.view.app import application
from prejudge.core.view.certified import certificates_of, inline
from prejudge.core.view.room import Room
from prejudge.core.view.urls import View, read_view, run_url


class Seen(HTMLParser):
    """What a browser would make of a page: tags, attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def links(text):
    return [unescape(href) for href in re.findall(r'href="([^"]*)"', text)]


def test_what_a_model_said_stays_text(client, room, answered):
    said = [payload for payload in HOSTILE if payload.encode("utf-8", "ignore").decode() == payload]
    run = answered(lambda n: Generation(text=said[n], reasoning=said[-n]), n=len(said))
    room.shelf.wait(run)
    paths = [run_url(run.name), run_url(run.name, "export"), run_url(run.name, query="?q=<script>&f.parity='\"><b>")]
    paths += [run_url(run.name, "trial", n) for n in range(len(said))]
    paths += [run_url(run.name, "twins", 0, query="?vary=number"), f"/compare?a={run.name}&b={run.name}"]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        seen = Seen(answer.text)
        assert seen.tags.count("script") == (0 if path.endswith("export") else 1)
        assert not {"iframe", "base", "object", "embed", "animate", "template"} & set(seen.tags)
        assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("style", "srcdoc")]
        assert all(re.match(r"/(?!/)|#|\?", v or "") for n, v in seen.attributes if n in ("href", "src", "action"))
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", answer.text)
    shown = Seen(client.get(run_url(run.name, "trial", 0)).text).text
    assert said[0] in shown


def test_url_is_what_is_shown():
    view = View(filters={"a b": ("x&y", '""', ""), "from": ("1",)}, words="100 % ü", where="both", start=7)
    pairs = [one.partition("=") for one in view.query[1:].split("&")]
    from urllib.parse import unquote_plus

    assert read_view((unquote_plus(name), unquote_plus(value)) for name, _, value in pairs) == view
    assert view.toggled("a b", "").filters["a b"] == ("x&y", '""')
    assert view.without("a b").toggled("from", "1") == View(words="100 % ü", where="both")


def test_pages_follow_each_other_in_plan_order(client, room, answered):
    room.shelf.wait(run := answered(n=260))
    path, rows = run_url(run.name, query="?f.parity=even"), []
    while path:
        text = client.get(path).text
        rows += [int(row) for row in re.findall(r"/trial/(\d+)", text)]
        path = next((href for href in links(text) if f'rel="next" href="{href}"'.replace("&", "&amp;") in text), "")
    assert rows == list(range(0, 260, 2))
    assert '"prev"' in client.get(run_url(run.name, query="?from=259")).text


def test_a_number_leads_to_its_answers_and_back(client, room, answered):
    room.shelf.wait(run := answered(n=8))
    text = client.get(run_url(run.name, "numbers")).text
    assert run_url(run.name) in links(text) and "mean_length" in text
    back = links(client.get(run_url(run.name, query="?f.parity=odd")).text)
    assert run_url(run.name, "numbers", query="?f.parity=odd") in back


def test_a_number_of_a_report_is_a_filter_of_its_columns_only(client, room, answered):
    room.shelf.wait(run := answered(n=8))
    path = run_url(run.name, "answers", query="?f.parity=odd")
    assert client.get(path, follow_redirects=False).headers["location"] == run_url(run.name, query="?f.parity=odd")
    assert "unknown-factor" in client.get(run_url(run.name, "answers", query="?f.colour=red")).text


def test_reasoning_is_covered_and_labelled_by_nobody(client, room, answered):
    run = answered(lambda n: Generation(text=f"word{n}", reasoning=f"thought{n}"), n=2)
    room.shelf.wait(run)
    paths = [run_url(run.name, "trial", 0), run_url(run.name, "export"), f"/compare?a={run.name}&b={run.name}"]
    for path in (*paths, run_url(run.name, "twins", 0, query="?vary=number")):
        text = client.get(path).text
        open_part = re.sub(r'<details class="covered">.*?</details>', "", text, flags=re.S)
        assert "thought0" in text and "thought" not in open_part and "word0" in open_part, path


def test_missing_things_are_named_on_a_page(client, room, answered):
    room.shelf.wait(run := answered(n=4))
    for path, code in {
        run_url("nothing"): "unknown-run",
        run_url(run.name, "trial", 99): "unknown-row",
        run_url(run.name, query="?f.colour=red"): "unknown-factor-or-outcome",
        f"/image/{'0' * 64}": "store.no-image",
        run_url(run.name, "report"): "view.no-report",
    }.items():
        answer = client.get(path)
        assert answer.status_code in (404, 409) and code in answer.text, path


def test_only_images_are_served_as_images(client, store, answered):
    answered(n=1)
    svg = store.keep(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "image/svg+xml")
    png = store.keep(b"\x89PNG\r\n\x1a\nrest", "text/html")
    assert client.get(f"/image/{svg}").status_code == 415
    assert client.get(f"/image/{png}").headers["content-type"] == "image/png"


def test_report_runs_apart(client, room, answered):
    run = answered(n=2)
    folder = room.runs / run.name
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<script>alert(document.cookie)</script>")
    assert client.get(run_url(run.name, "report")).status_code == 404  # nothing says that it is of this run
    from prejudge.core.report.output import write_output
    from prejudge.core.scoring.score import score

    write_output(score(room.catalogue, room.store, run.name), room.store, room.runs)
    page = client.get(run_url(run.name, "report")).text
    assert 'sandbox="allow-scripts"' in page and "not checked" in page
    policy = client.get(run_url(run.name, "report", "page")).headers["content-security-policy"]
    assert policy.startswith("sandbox") and "allow-same-origin" not in policy and "default-src 'none'" in policy


def test_how_an_answer_ended_is_no_word_of_it(client, room, answered):
    run = answered(lambda n: Generation(text=f"word{n}", finish_reason="halted"), n=4)
    room.shelf.wait(run)
    twins = run_url(run.name, "twins", 0, query="?vary=number")
    for path in (run_url(run.name), twins, f"/compare?a={run.name}&b={run.name}"):
        text = client.get(path).text
        assert "word2" in text and "halted" not in text
    assert "halted" in client.get(run_url(run.name, "trial", 0)).text


def test_differing_words_are_marked_also_of_a_model_in_a_loop():
    first, second = marked(["the girl: -9.638\nyes", "the boy: -9.5\nyes"])
    assert [text.strip() for text, differs in first if differs] == ["girl", "-9.638"[1:]]
    assert "".join(text for text, _ in second) == "the boy: -9.5\nyes"
    began = time.process_time()
    loops = ["So " + "a b " * 490 + "end", "So " + "b a c " * 330 + "end"]
    pieces = marked(loops)
    assert time.process_time() - began < 1
    assert ["".join(text for text, _ in own) for own in pieces] == loops
    assert all(own[0] == ("So", False) and own[-1] == (" end", False) for own in pieces)


def test_every_certificate_has_a_page(store, tmp_path):
    room = Room(store, Catalogue.load(), tmp_path / "runs", tmp_path / "cache")
    client, known = TestClient(application(room)), certificates_of(room)
    text = client.get("/certificates").text
    assert len(known) >= 7 and all(f'href="/certificate/{name}"' in text for name in known)
    page, one = client.get("/certificate/subtle-sai"), known["subtle-sai"]
    cells = Seen(page.text).text
    assert page.status_code == 200 and all(group.null in cells for group in one.groups)
    assert "**" not in cells and "| ---" not in cells and page.text.count("<table") >= 2
    assert client.get("/certificate/subtle-sai/figure.svg").headers["content-type"].startswith("image/svg")
    assert client.get("/certificate/nothing").status_code == 404
    assert "<b>" not in str(inline("<b>`<i>`</b>")) and "<code>&lt;i&gt;</code>" in str(inline("<b>`<i>`</b>"))


def test_runs_name_the_model_as_it_was_asked_for(client, room, catalogue, answered):
    catalogue.registry.models["nick"] = ModelEntry(adapter="fake", settings={"model": "org/checkpoint-7"})
    run = answered(n=3, model="nick")
    room.shelf.wait(run)
    for path in ("/", run_url(run.name)):
        text = Seen(client.get(path).text).text
        assert 0 <= text.index("nick") < text.index("org/checkpoint-7"), path


def test_request_of_imported_answers_is_not_passed_off_as_what_was_asked(client, room, catalogue, store, tmp_path):
    study = catalogue.study("count", {}, {"n": 2})

    def page(*rows):
        (tmp_path / "answers.csv").write_text("\n".join(rows))
        options = ImportOptions(paths=(str(tmp_path / "answers.csv"),), model="theirs")
        run = get_run(store, import_answers(catalogue, study, store, options))
        room.shelf.wait(run)
        return Seen(client.get(run_url(run.name, "trial", 0)).text).text

    stated = page("trial,request,response", "t0,What is it?,a", "t1,And this?,bb")
    assert "What is it?" in stated and NOT_RECORDED[1] not in stated
    assert NOT_RECORDED[1] in page("trial,response", "t0,a", "t1,bb")


def test_numbers_are_not_those_of_an_edited_file(catalogue, room, client, answered):
    run = answered(n=8)
    scores = score(catalogue, room.store, run.name)
    write_output(scores, room.store, room.runs)
    room.shelf.wait(run)
    page = client.get(run_url(run.name, "numbers")).text
    for path in (room.runs / run.name).glob("estimates.*"):
        frame = pl.DataFrame({"metric": ["mean_length"], "value": [987654.0]})
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    room.kept.clear()
    assert client.get(run_url(run.name, "numbers")).text == page
    assert "987" not in page


@pytest.mark.parametrize("path", ["numbers", ""])
def test_changed_answer_is_shown_nowhere(room, client, answered, path):
    run = answered(n=8)
    with room.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exchange SET response = replace(response, 'Yes', 'Yeah')")
    parts = (path,) if path else ()
    while "Reading" in (answer := client.get(run_url(run.name, *parts))).text:
        pass
    assert answer.status_code == 409 and "store.row-damaged" in answer.text


def test_answer_that_was_changed_after_the_index_is_not_shown(room, client, answered):
    run = answered(n=8)
    room.shelf.wait(run)
    assert client.get(run_url(run.name, "trial", 0)).status_code == 200
    with room.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exchange SET response = replace(response, 'Yes', 'Yeah')")
    answer = client.get(run_url(run.name, "trial", 0))
    assert answer.status_code == 409 and "store.row-damaged" in answer.text


def test_unproved_room_marks_its_pages(room, client, answered):
    run = answered(n=8)
    with room.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exchange SET response = replace(response, 'Yes', 'Yeah')")
    room.store.unproved = True  # as `--unproved` opens it
    room.shelf.wait(run)
    for parts in ((), ("numbers",), ("trial", 0)):
        assert "UNPROVED" in client.get(run_url(run.name, *parts)).text


def test_page_of_a_damaged_store_names_the_row(client, room, answered):
    run = answered(n=3)
    with room.store.writing() as connection:
        connection.exec_driver_sql("UPDATE run SET head = 'x'")
    for path in (run_url(run.name, "trial", 0), run_url(run.name, "numbers"), run_url(run.name)):
        answer = client.get(path)
        assert answer.status_code == 409 and "store.row-damaged" in answer.text and "run.head" in answer.text, path
