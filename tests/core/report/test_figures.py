import base64
import io
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from prejudge.core.charts.numbers import tell
from prejudge.core.contracts.estimates import Chart
from prejudge.core.report.figures import draw, export, file_name


def chart(title="bars", name="bars"):
    figure = Figure(figsize=(4, 2))
    figure.subplots().set_title(title)
    return Chart(name, "Bars", "Three of them.", figure)


def test_drawing_is_an_image():
    (drawing,) = draw([chart()])
    head, data = drawing.source.split(",")
    assert head == "data:image/svg+xml;base64"
    assert b"<svg" in base64.b64decode(data)
    assert (drawing.width, drawing.height) == (384, 192)


def test_heavy_drawing_is_a_small_picture_of_the_same_shape():
    from PIL import Image

    figure = Figure(figsize=(8, 6))
    figure.subplots().set_xticks(range(90), [f"scenario {n} of many" for n in range(90)], rotation=90)
    (drawing,) = draw([Chart("labels", "Labels", "Many.", figure)])
    head, data = drawing.source.split(",")
    picture = base64.b64decode(data)
    assert head == "data:image/png;base64" and len(picture) < len(drawing.svg) / 2
    with Image.open(io.BytesIO(picture)) as image:
        assert image.width / image.height == pytest.approx(drawing.width / drawing.height, rel=0.01)


def test_numbers_of_a_figure_are_tables_beside_it():
    drawn = chart()
    assert draw([drawn])[0].alt == "Bars" and draw([drawn])[0].numbers == ()
    tell(drawn.figure.axes[0].figure, "left", ("bar", "value", "mark"), [("a", 1.5, ""), ("b", None, "")])
    tell(drawn.figure, "right", ("bar", "value"), [("a", 2)])
    (drawing,) = draw([drawn])
    assert drawing.alt == "Bars. Its numbers follow as a table."
    assert [grid.caption for grid in drawing.numbers] == ["Figure 1, left", "Figure 1, right"]
    assert [column.label for column in drawing.numbers[0].columns] == ["bar", "value"]
    assert [cell.undefined for cell in drawing.numbers[0].rows[1]] == [False, True]


def test_same_chart_gives_the_same_bytes():
    assert export(chart(), "svg") == export(chart(), "svg")


def test_letters_are_drawn_as_paths():
    assert b"<text" not in export(chart(), "svg")


def test_pdf_has_no_type_3_fonts():
    pdf = export(chart(), "pdf")
    assert pdf.startswith(b"%PDF")
    assert b"/Type3" not in pdf


@pytest.mark.parametrize("title", ["$\\frac{$", "lone \ud800"])
def test_figure_that_cannot_be_drawn_is_told(title):
    (drawing,) = draw([chart(title)])
    assert drawing.problem
    assert not drawing.svg


@pytest.mark.parametrize(
    ("name", "expected"), [("../../etc/passwd", "03-etc-passwd"), ("CON\x00", "03-con"), ("\ud800", "03"), ("", "03")]
)
def test_file_name_is_harmless(name, expected):
    assert file_name(3, name) == expected


@pytest.mark.parametrize(
    "said",
    ["--><script>alert(1)</script>", "]]><svg onload='alert(1)'/>", '"/><a href="javascript:alert(1)">x</a>', "a\x01b"],
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_words_in_a_figure_file_are_no_markup(said):
    """The files beside the report are opened by themselves, where no policy holds a script back."""
    figure = Figure(figsize=(4, 2))
    axes = figure.subplots()
    axes.bar([said, "other"], [1, 2], label=said)
    axes.set_title(said)
    axes.legend()
    nodes = list(ElementTree.fromstring(export(Chart(said, said, said, figure), "svg")).iter())
    kinds = {str(node.tag).rpartition("}")[2] for node in nodes}
    assert not kinds & {"script", "a", "foreignObject", "iframe", "image"}
    names = {name.rpartition("}")[2] for node in nodes for name in node.attrib}
    assert not any(name.startswith("on") for name in names)
    assert all(value.startswith("#") for node in nodes for name, value in node.attrib.items() if name.endswith("href"))
