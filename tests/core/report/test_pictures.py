"""Images of the store on the page: small, few enough, and never of a kind that can hold a script."""

from __future__ import annotations

import builtins
import io
import json

import pytest

from prejudge.core.report import Picture, picture, within
from prejudge.core.report.pictures import MOST_UNSCALED, SIDE, island, kind_of

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.fixture
def no_pillow(monkeypatch):
    def refuse(name, *rest):
        if name.startswith("PIL"):
            raise ImportError(name)
        return importer(name, *rest)

    importer = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)


def encoded(pillow, kind="PNG", mode="RGB", size=(900, 600)):
    pillow.new(mode, size).save(buffer := io.BytesIO(), kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_image_becomes_a_thumbnail(pillow, kind):
    made = picture(encoded(pillow, kind))
    with pillow.open(io.BytesIO(made.data)) as opened:
        assert opened.size == (SIDE, round(SIDE * 2 / 3))
    assert made.source.startswith("data:image/jpeg;base64,")


def test_small_image_is_not_blown_up(pillow):
    with pillow.open(io.BytesIO(picture(encoded(pillow, mode="RGBA", size=(10, 5))).data)) as opened:
        assert opened.size == (10, 5)


@pytest.mark.parametrize(
    "data", [b"<svg onload='alert(1)'/>", b"<html>", b"", b"GIF", b"RIFF0000WAVE", b"BM" + b"0" * 99]
)
def test_what_is_no_image_is_not_shown(data):
    assert not kind_of(data)
    assert picture(data) == Picture(problem="not a PNG, JPEG, GIF or WebP image")


def test_broken_image_is_told(pillow):
    made = picture(PNG + b"<script>alert(1)</script>")
    assert not made.data
    assert made.problem.startswith("cannot be read")


def test_gigantic_image_is_refused(pillow, monkeypatch):
    monkeypatch.setattr(pillow, "MAX_IMAGE_PIXELS", 1000)
    assert "DecompressionBomb" in picture(encoded(pillow)).problem


def test_without_pillow_a_small_image_is_shown_as_it_is(no_pillow):
    assert picture(PNG + b"1") == Picture("image/png", PNG + b"1")


def test_without_pillow_a_large_image_names_the_extra(no_pillow):
    assert "prejudge[images]" in picture(PNG + bytes(MOST_UNSCALED)).problem


def test_images_beyond_the_page_s_share_give_way_to_a_note():
    kept = within([("a", Picture("image/png", b"12")), ("b", Picture("image/png", b"34"))], most=3)
    assert kept["a"].data == b"12"
    assert kept["b"] == Picture(problem="left out to keep this page small")


def test_island_cannot_be_closed_from_within():
    made = island({"</script><script>": Picture("image/png", b"x"), "none": Picture(problem="gone")})
    assert "<" not in made
    assert json.loads(made) == {"</script><script>": "data:image/png;base64,eA=="}
