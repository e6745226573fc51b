"""Drafted tuples in the reading room: their sheet is labelled in the browser, and `tuples agree` reads the labels."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("starlette")

from click.testing import CliRunner
from starlette.testclient import TestClient

from prejudge.core.annotation.samples import samples_in
from prejudge.core.annotation.sheets import sample_of_sheet
from prejudge.core.contracts.errors import UsageError
from prejudge.core.view.app import application
from prejudge.core.view.desk import sample_pages
from prejudge.probes.bistereo.command import tuples
from prejudge.probes.bistereo.tuples_sheet import draft_rows, read_sheets, sheet_text


@pytest.fixture
def sheet(tmp_path):
    """Return the sheet of four drafted tuples, one of them hostile."""
    pairs = [["short", "lazy"], ["tall", "proud"], ["short", "weak"], ["tall", "<b onclick=x>kind"]]
    text = str(pairs).replace("'", '"')
    rows = draft_rows([{"dimension": "height", "term": "girl", "sentiment": "negative", "tuples": text}])
    (tmp_path / "sheet.csv").write_text(sheet_text(rows, 0), encoding="utf-8")
    return str(tmp_path / "sheet.csv")


def test_sheet_is_labelled_in_the_browser_and_read_by_the_study(sheet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples = tmp_path / "samples"
    made = sample_of_sheet(sheet, samples, ["1", "0"], "A stereotype where you live?")
    client = TestClient(application(None, sample_pages(samples, alone=True)))
    for by in ("Ana", "Bo", "Cai"):
        page = client.get(f"/label/{made.folder.name}", params={"by": by})
        while found := re.search(r'name="item" value="(\w+)"', page.text):
            assert "<b onclick" not in page.text and "times" in page.text and "<h3>stereotype" not in page.text
            label = "" if by == "Cai" else "1" if "lazy" in page.text or by == "Ana" and "weak" in page.text else "0"
            page = client.post(f"/label/{made.folder.name}", data={"by": by, "item": found[1], "label": label})
    # The same file goes on where it was.
    assert sample_of_sheet(sheet, samples, ["1", "0"], "").labels().keys() == {"Ana", "Bo", "Cai"}
    page = client.get(f"/sample/{made.folder.name}")
    assert page.status_code == 200 and "alpha" in page.text and client.get("/").status_code == 200
    (tmp_path / "labelled.csv").write_text(client.get(f"/sample/{made.folder.name}/sheet.csv").text, encoding="utf-8")
    ratings = {one.cells["attribute"]: one.ratings for one in read_sheets([str(tmp_path / "labelled.csv")])}
    assert ratings["lazy"] == {"Ana": 1, "Bo": 1} and ratings["weak"] == {"Ana": 1, "Bo": 0}
    done = CliRunner().invoke(tuples, ["agree", "labelled.csv", "--out", "tuples.csv"])
    assert done.exit_code == 0, done.output
    assert "lazy" in (tmp_path / "tuples.csv").read_text() and "weak" not in (tmp_path / "tuples.csv").read_text()


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b\n"])
def test_a_file_that_is_no_sheet_is_refused(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UsageError) as error:
        sample_of_sheet(str(tmp_path / "x.csv"), tmp_path / "samples", ["1", "0"], "")
    assert error.value.code in ("annotation.sheet", "data.no-rows") and not samples_in(tmp_path / "samples")
    with pytest.raises(UsageError) as error:
        sample_of_sheet(str(tmp_path / "x.csv"), tmp_path / "samples", ["1", "1"], "")
    assert error.value.code == "annotation.labels"
