"""The normaliser of pictures, against pixels that are computed here by hand, and its pass-through."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest

from prejudge.core.contracts.errors import UsageError
from prejudge.core.pictures.checking import check_picture, conversion_notes
from prejudge.core.pictures.names import background_colour, converted_name, source_of
from prejudge.core.pictures.normalise import PictureSizeError, look, normalise
from prejudge.testing import raises_code

Image = pytest.importorskip("PIL.Image")
ImageCms = pytest.importorskip("PIL.ImageCms")


def encoded(image, kind="PNG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def pixels(data):
    """Return the pixels of the normalised picture, read from the PNG by hand: 8-bit RGB, every row without a filter."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack_from(">IIBB", data, 16)
    assert (depth, colour) == (8, 2)
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 3 * width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3).astype(int)


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_8_bit_rgb_passes_unchanged_under_its_own_name(kind):
    data = encoded(Image.fromarray(noise(20, 30, 3)), kind)
    checked = check_picture(data)
    assert normalise(data) is data and checked.name == checked.sha256 and not checked.reasons
    assert (checked.size, checked.blank) == ((30, 20), False)


def test_colour_that_transparent_pixels_hide_is_never_seen():
    shown = noise(16, 16, 4)
    shown[..., 3] = 255
    shown[:8, :, 3] = 0
    hidden = shown.copy()
    hidden[:8, :, :3] = 255 - hidden[:8, :, :3]
    one, other = (encoded(Image.fromarray(picture)) for picture in (shown, hidden))
    assert one != other and normalise(one, "336699") == normalise(other, "336699")
    seen = pixels(normalise(one, "336699"))
    assert (seen[:8] == (0x33, 0x66, 0x99)).all() and (seen[8:] == shown[8:, :, :3]).all()
    assert (pixels(normalise(one))[:8] == 255).all()


def test_half_transparent_pixels_are_mixed_with_the_background():
    picture = noise(32, 32, 4, seed=1)
    seen = pixels(normalise(encoded(Image.fromarray(picture)), "ff8000"))
    alpha = picture[..., 3:] / 255
    exact = picture[..., :3] * alpha + np.array([255, 128, 0]) * (1 - alpha)
    assert np.abs(seen - exact).max() <= 1


def test_16_bit_grey_is_scaled():
    wide = np.random.default_rng(2).integers(0, 65_536, (24, 24), np.uint16)
    wide[0, :3] = 0, 65_535, 257
    seen = pixels(normalise(encoded(Image.fromarray(wide))))
    assert (seen == np.rint(wide / 257).astype(int)[..., None]).all()


def test_published_16_bit_faces_keep_their_grey_levels(shared_data):
    for path in sorted((shared_data / "cases" / "faces16").glob("*.png")):
        with Image.open(path) as image:
            wide = np.asarray(image).astype(float)
        seen = pixels(normalise(path.read_bytes()))[..., 0]
        assert np.abs(seen - wide / 257).max() <= 0.5 and len(np.unique(seen)) > 10
        assert not check_picture(path.read_bytes()).blank


def test_palette_grey_and_cmyk_become_rgb():
    grey = noise(16, 16, seed=3)
    assert (pixels(normalise(encoded(Image.fromarray(grey)))) == grey[..., None]).all()
    colours = Image.fromarray(noise(4, 4, 3, seed=4)).resize((16, 16), Image.Resampling.NEAREST)
    palette = colours.quantize(16)
    assert (pixels(normalise(encoded(palette))) == np.asarray(palette.convert("RGB"))).all()
    inks = Image.fromarray(np.full((16, 16, 4), (0, 255, 255, 0), np.uint8), "CMYK")
    seen = pixels(normalise(encoded(inks, "JPEG", quality=95)))
    assert (seen[..., 0] > 245).all() and (seen[..., 1:] < 10).all()


@pytest.mark.parametrize("orientation", range(2, 9))
def test_picture_is_turned_as_exif_says(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = noise(6, 10, 3, seed=5)
    data = encoded(Image.fromarray(stored), exif=exif)
    turned = {
        2: stored[:, ::-1],
        3: stored[::-1, ::-1],
        4: stored[::-1],
        5: stored.transpose(1, 0, 2),
        6: np.rot90(stored, -1),
        7: stored[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(stored, 1),
    }[orientation]
    assert (pixels(normalise(data)) == turned).all()
    assert look(data).size == (turned.shape[1], turned.shape[0])


def test_animation_is_its_first_frame_and_says_so():
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert (pixels(normalise(data)) == (255, 0, 0)).all()
    assert any("the first" in reason for reason in look(data).reasons)


def test_profile_of_srgb_passes_and_another_is_converted():
    picture = Image.fromarray(noise(8, 8, 3, seed=6))
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(picture, icc_profile=srgb)
    assert normalise(data) is data
    # The same colour space with red and blue named the other way round: every pixel changes its colour.
    swapped = bytearray(srgb)
    red, blue = srgb.index(b"rXYZ"), srgb.index(b"bXYZ")
    swapped[red : red + 4], swapped[blue : blue + 4] = b"bXYZ", b"rXYZ"
    seen = pixels(normalise(encoded(picture, icc_profile=bytes(swapped))))
    expected = np.asarray(picture).astype(int)[..., ::-1]
    assert np.abs(seen - expected).max() <= 3


def test_broken_profile_is_ignored():
    data = encoded(Image.fromarray(noise(8, 8, 3)), icc_profile=b"no profile")
    assert normalise(data) is data


@pytest.mark.parametrize("data", [b"", b"no picture", encoded(Image.fromarray(noise(30, 30, 3)))[:400]])
def test_what_is_no_whole_picture_is_an_error(data):
    with pytest.raises(ValueError, match=r"\w"):
        normalise(data)


def test_bomb_is_told_by_its_header(monkeypatch):
    monkeypatch.setattr("prejudge.core.pictures.normalise.MAX_PIXELS", 99)
    with pytest.raises(PictureSizeError, match="10 x 10"):
        look(encoded(Image.new("RGB", (10, 10))))


def test_picture_of_hidden_colours_alone_is_blank():
    picture = noise(32, 32, 4)
    picture[..., 3] = 0
    assert check_picture(encoded(Image.fromarray(picture))).blank
    picture[..., 3] = 255
    assert not check_picture(encoded(Image.fromarray(picture))).blank


def test_name_of_a_converted_picture_has_original_version_and_background():
    checked = check_picture(encoded(Image.fromarray(noise(8, 8, 4))), "00ff00")
    assert checked.name == f"{checked.sha256}-1-00ff00" and source_of(checked.name) == checked.sha256
    assert converted_name(checked.name) == (checked.sha256, 1, "00ff00") and converted_name(checked.sha256) is None
    (note,) = conversion_notes([checked], "00ff00")
    assert "1 picture" in note and "transparency (1)" in note and "#00ff00" in note


def test_background_is_a_colour():
    assert background_colour("#FFEEdd") == "ffeedd"
    with raises_code(UsageError, "options.value", "'white'"):
        background_colour("white")
