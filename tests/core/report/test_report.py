"""The page as a whole: what it shows, and that nothing a model or a file said becomes markup."""

import base64
import hashlib
import html
import re
from html.parser import HTMLParser

import msgspec
import pytest
from matplotlib.figure import Figure

from prejudge.core import report
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.estimates import Chart, Estimate, Example
from prejudge.core.report import Published, ReportContent, ShownExample, StudyInfo, Table, render, write
from prejudge.testing import raises_code

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "</style></title></textarea><script>alert(1)</script>",
    '" onmouseover="alert(1)" x=\'',
    "' autofocus onfocus='alert(1)",
    "<svg onload=alert(1)><!--",
    "javascript:alert(1)",
    "--><iframe srcdoc=x>]]><![CDATA[",
    "{{ content.title }}{% raw %}",
    "&lt;b&gt;&#60;script&#62;&",
    "a\x00<b\x00>\x1b[31m",
    "\u202egnp.exe\u2066",
    "\ud800<i>\udfff",
]


@pytest.fixture
def content():
    figure = Figure(figsize=(2, 1))
    estimates = [
        Estimate.from_flat(
            metric="z1", group={"axis": "height"}, value=0.61, neutral=0.5, low=0.52, high=0.7, p=0.0004, n=90
        ),
        Estimate.from_flat(metric="z1", group={"axis": "body"}, value=None, missing={"refused": 3}, test="binomial"),
        Estimate.from_flat(metric="gap", group={}, value=0.1, unit="points", effect=0.2, effect_name="risk difference"),
    ]
    example = Example("Strongest", {"axis": "height"}, (b"\x01\x02",), 0.9, "Why it was picked.")
    return ReportContent(
        title="Pairs on a model",
        study=StudyInfo(name="pairs", summary="a question", citation="A paper", url="https://example.org"),
        models={"subject": Identity(adapter="fake", version="1", model="tiny", settings={"dtype": "fp32", "n": None})},
        estimates=estimates,
        conclusions={"z1": "It leans.", "gap": "A little."},
        warnings=["Unfinished."],
        charts=[Chart("bars", "Bars", "A caption.", figure)],
        published=[Published(metric="z1", published=0.6, measured=0.61, note="from table 3")],
        missing=[Table("By stage", ("stage", "ok"), (("main", 90),))],
        examples=[ShownExample(example, (("prompt", "A harmful text."), ("answer", "Another.")))],
        methods=["A paragraph."],
        limits=["A limit."],
        deviations=["A deviation."],
        provenance={"run": "r1", "seeds": [1, 2], "cache": {"asked": 3}, "parts": [{"deep": "value"}], "none": None},
    )


def with_strings(value, change):
    """Return a copy of plain records in which every string, keys included, went through `change`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, msgspec.Struct):
        names = type(value).__struct_fields__
        return type(value)(**{name: with_strings(getattr(value, name), change) for name in names})
    if isinstance(value, dict):
        return {change(key): with_strings(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(with_strings(inner, change) for inner in value)
    return value


class Outline(HTMLParser):
    """Tags with the names of their attributes, in order; texts and attribute values apart."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.values, self.texts = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(name for name, _ in attrs)))
        self.values += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        self.tags.append(f"/{tag}")

    def handle_comment(self, data):
        self.tags.append("comment")

    def unknown_decl(self, data):
        self.tags.append("declaration")

    def handle_data(self, data):
        self.texts.append(data)


def text_of(page):
    return " ".join("".join(Outline(page).texts).split())


@pytest.mark.parametrize("payload", HOSTILE)
def test_hostile_strings_change_no_markup(content, payload):
    def numbered(fill):
        count = iter(range(1000))
        # Unlike numbers keep keys apart; equal lengths keep the layout the same.
        return with_strings(content, lambda text: f"{fill}{next(count):03d}")

    hostile, harmless = Outline(render(numbered(payload))), Outline(render(numbered("x" * len(payload))))
    assert hostile.tags == harmless.tags


@pytest.mark.parametrize("payload", HOSTILE)
def test_hostile_strings_stay_within_their_attributes(content, payload):
    for tag, name, value in Outline(render(with_strings(content, lambda text: payload + text))).values:
        assert not name.startswith("on")
        assert (name, tag) not in {("style", tag), ("src", "script"), ("srcdoc", "iframe")}
        assert name != "href" or value.startswith("#")
        assert name != "src" or value.startswith("data:image/svg+xml;base64,")


@pytest.mark.parametrize("payload", HOSTILE)
def test_hostile_page_can_be_written(content, payload, tmp_path):
    page = write(with_strings(content, lambda text: payload + text), tmp_path).read_bytes()
    assert b"\x00" not in page
    assert page.decode("utf-8")


def test_hostile_answer_is_shown_as_it_was_said(content):
    page = render(with_strings(content, lambda text: "<b>bold" if text == "Another." else text))
    assert html.escape("<b>bold") in page


@pytest.mark.parametrize(
    "said",
    ["Pairs on a model", "It leans.", "Unfinished.", "A caption.", "from table 3", "90", "A harmful text.", "0102"]
    + ["A paragraph.", "A limit.", "A deviation.", "r1", "1, 2", "value", "fp32", "refused", "0.610", "A paper"],
)
def test_page_shows_every_part(content, said):
    assert said in text_of(render(content))


def test_undefined_value_has_a_name(content):
    assert '<span title="undefined" role="img" aria-label="undefined">&mdash;</span>' in render(content)


def test_every_link_has_a_target(content):
    page = Outline(render(content))
    ids = {value for _, name, value in page.values if name == "id"}
    links = {value[1:] for tag, name, value in page.values if (tag, name) == ("a", "href") and value[0] == "#"}
    assert links <= ids
    assert {"main", "figures", "estimates", "examples", "provenance"} <= links


def test_ids_are_unique(content):
    ids = [value for _, name, value in Outline(render(content)).values if name == "id"]
    assert len(ids) == len(set(ids))


def test_web_address_becomes_a_link(content):
    assert ("a", "href", "https://example.org") in Outline(render(content)).values


def test_examples_are_covered(content):
    page = Outline(render(content))
    assert ("details", "class", "data-item") in page.tags
    assert not any(tag[0] == "details" and "open" in tag and "data-item" in tag for tag in page.tags)


def test_page_asks_nothing_of_the_network(content):
    page = render(content)
    loaded = {(tag, name) for tag, name, _ in Outline(page).values if name in {"src", "srcset", "data", "poster"}}
    assert loaded == {("img", "src")}
    assert not re.search(r"<link|@import|url\(|fetch\(|XMLHttp", page)


def test_policy_allows_only_the_page_s_own_script_and_style(content):
    page = render(content)
    (policy,) = (value for tag, name, value in Outline(page).values if "default-src" in value)
    for tag in ("style", "script"):
        (inner,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_tables_say_what_heads_what(content):
    page = Outline(render(content))
    tables = [tag for tag in page.tags if tag[0] == "table"]
    captions = [tag for tag in page.tags if tag[0] == "caption"]
    assert len(captions) == len(tables) > 3
    assert all("scope" in tag for tag in page.tags if tag[0] == "th")


def test_images_have_words(content):
    assert ("img", "alt", "Bars") in Outline(render(content)).values


def test_same_content_gives_the_same_page(content):
    assert render(content) == render(content)


def test_least_content_is_a_page():
    page = render(ReportContent(title="Nothing", study=StudyInfo(name="s"), models={}, estimates=[]))
    assert "There are no estimates." in page
    assert "<table" not in page


def test_write_leaves_page_and_figures(content, tmp_path):
    path = write(content, tmp_path / "runs" / "r1")
    assert path == tmp_path / "runs" / "r1" / "report.html"
    assert path.read_text(encoding="utf-8") == render(content)
    assert {file.name for file in (path.parent / "figures").iterdir()} == {"01-bars.svg"}


def test_figures_are_written_in_more_formats_where_asked_for(content, tmp_path):
    write(content, tmp_path, more_formats=("pdf", "png"))
    found = {file.suffix: file.read_bytes()[:5] for file in (tmp_path / "figures").iterdir()}
    assert found.keys() == {".svg", ".pdf", ".png"} and found[".pdf"] == b"%PDF-" and found[".png"][1:4] == b"PNG"


def test_broken_figure_costs_only_itself(content, tmp_path):
    figure = Figure()
    figure.text(0, 0, "$\\frac{$")
    broken = msgspec.structs.replace(content, charts=[Chart("bad", "Bad", "", figure), *content.charts])
    page = write(broken, tmp_path).read_text(encoding="utf-8")
    assert "This figure could not be drawn" in page
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {"02-bars.svg"}


def test_folder_that_cannot_be_written_is_named(content, tmp_path):
    (tmp_path / "file").touch()
    with raises_code(UsageError, "file.unwritable"):
        write(content, tmp_path / "file")


def test_door_is_sorted_and_whole():
    assert report.__all__ == sorted(report.__all__)
    assert all(hasattr(report, name) for name in report.__all__)
