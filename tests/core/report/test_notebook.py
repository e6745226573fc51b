"""A run in a notebook: what it concludes, tables behind a click, and no text of the run is markup."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import polars as pl
import pytest
from fakes import MeanLength
from hostile import HOSTILE

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Estimate

TAGS = {"div", "h4", "p", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}


class Read(HTMLParser):
    """The tags, attributes and the texts outside closed details."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.open, self.seen, self.all = set(), [], [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.all += data
        self.seen += data if "details" not in self.open or "summary" in self.open else ""


@pytest.fixture
def run(catalogue, monkeypatch, tmp_path):
    monkeypatch.setattr(Catalogue, "load", classmethod(lambda cls, registry=None: catalogue))
    monkeypatch.setattr(MeanLength, "figures", lambda self, estimates: [])
    return prejudge.run(
        "count", "fake", prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs")), n=4
    )


def with_estimates(run, *estimates):
    return msgspec.structs.replace(run, scores=msgspec.structs.replace(run.scores, estimates={"m": list(estimates)}))


def test_run_shows_its_conclusion_and_hides_its_tables(run):
    page = Read(run._repr_html_())
    assert run.name in page.seen and "The mean length is 3.0." in page.seen and "Calibration: " in page.seen
    assert "mean_length" in page.all and "mean_length" not in page.seen
    assert page.tags <= TAGS and not page.attributes and not page.open


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert(run, text):
    one = Estimate.from_flat(metric=text, group={text: text}, unit=text, label=text, value=1.0)
    page = Read(with_estimates(run, one)._repr_html_())
    assert page.tags <= TAGS and not page.attributes and not page.open
    page.all.encode()


def test_many_estimates_are_cut_and_counted(run):
    many = [Estimate.from_flat(metric="m", group={"k": k}, value=float(k)) for k in range(250)]
    page = Read(with_estimates(run, *many)._repr_html_())
    assert "Estimates (250" in page.seen and page.all.count("k: ") == 100


def test_undefined_estimate_has_a_row(run):
    page = Read(with_estimates(run, Estimate.from_flat(metric="m", group={}, value=None))._repr_html_())
    assert "None" not in page.all and "nan" not in page.all


def test_estimates_become_a_pandas_frame(run):
    pandas = pytest.importorskip("pandas", reason="needs the extra pandas")
    pytest.importorskip("pyarrow", reason="needs the extra pandas")
    frame = run.estimates.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["value"].tolist() == run.estimates["value"].to_list()


class Shown(prejudge.Result, frozen=True):
    """A result with these texts, and as many rows."""

    text: str
    rows: int = 1

    @property
    def title(self):
        return self.text

    @property
    def conclusion(self):
        return self.text

    @property
    def estimates(self):
        text = self.text.encode("utf-8", "replace").decode()  # a frame holds no lone surrogate
        return pl.DataFrame({text: [text] * self.rows, "keys": [[text]] * self.rows, "n": [None] * self.rows})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_of_any_result_is_inert(text):
    page = Read(Shown(text)._repr_html_())
    assert page.tags <= TAGS and not page.attributes and not page.open
    page.all.encode()


def test_any_result_hides_its_estimates_and_counts_those_that_are_cut():
    page = Read(Shown("lean", 250, report="runs/report.html")._repr_html_())
    assert "Estimates (250" in page.seen and "keys" in page.all and "keys" not in page.seen
    assert page.all.count("lean") == 2 + 1 + 2 * 100
    assert "Report: runs/report.html" in page.seen


def test_any_result_is_printed_as_its_title_conclusion_and_report():
    assert repr(Shown("lean")) == "lean\nlean"
    assert repr(Shown("lean", report="a.html")) == "lean\nlean\nReport: a.html"
    with pytest.raises(prejudge.errors.UsageError):
        Shown("lean").plot("none")
