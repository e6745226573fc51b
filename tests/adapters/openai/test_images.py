"""`openai`: images in. 8-bit RGB goes out unchanged; what is no sound image is an error before anything is sent."""

from __future__ import annotations

import base64
import hashlib
import io
import struct
import zlib
from typing import Any

import pytest

from prejudge.core.contracts.errors import DataError, MissingExtraError, PermanentError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.records import Generate, Image, Likelihood, Message, Text
from prejudge.core.pictures import checking as _checking
from prejudge.testing import raises_code
from prejudge.testing.chaos.tiny import picture

pytest.importorskip("PIL", reason="Pillow is not installed")


def show(data: bytes) -> Generate:
    name = hashlib.sha256(data).hexdigest()
    return Generate(messages=(Message("user", (Image(name), Text("What is it?"))),))


def saved(kind: str, **options: Any) -> bytes:
    from PIL import Image as Pillow

    file = io.BytesIO()
    Pillow.merge("RGB", [Pillow.effect_noise((40, 30), 90.0) for _ in range(3)]).save(file, kind, **options)
    return file.getvalue()


def with_size(data: bytes, width: int, height: int) -> bytes:
    """Return a PNG whose header claims another size."""
    header = b"IHDR" + struct.pack(">II", width, height) + data[24:29]
    return data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]


def missing(name: str) -> bytes:
    raise DataError("request.image-missing")


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_bytes_are_sent_as_they_are(ask, server, kind):
    data = saved(kind)
    ask(show(data), blobs=lambda name: data, image_detail="low")
    image, text = server.seen[0].body["messages"][0]["content"]
    encoded = base64.b64encode(data).decode()
    assert image["image_url"] == {"url": f"data:image/{kind};base64,{encoded}", "detail": "low"}
    assert text == {"type": "text", "text": "What is it?"}


def test_turned_photo_is_sent_upright(ask, server):
    from PIL import Image as Pillow

    turned = Pillow.Exif()
    turned[0x0112] = 6
    data = saved("jpeg", exif=turned)
    ask(show(data), blobs=lambda name: data)
    url = server.seen[0].body["messages"][0]["content"][0]["image_url"]["url"]
    with Pillow.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,")))) as sent:
        assert (sent.size, sent.mode) == ((30, 40), "RGB")


def test_animation_is_sent_as_its_first_frame(ask, server):
    data = saved("gif")
    ask(show(data), blobs=lambda name: data)
    assert server.seen[0].body["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;")


def test_image_is_read_once(ask):
    data, read = picture(), []
    request = show(data)
    ask(request, request, request, blobs=lambda asked: read.append(asked) or data)
    assert read == [hashlib.sha256(data).hexdigest()]


@pytest.mark.parametrize(
    ("blobs", "code"),
    [
        (None, "request.no-image-store"),
        (missing, "request.image-missing"),
        (lambda name: b"other bytes", "request.image-damaged"),
        (lambda name: b"text", "request.image-damaged"),
    ],
)
def test_image_that_is_not_at_hand_is_permanent(ask, server, blobs, code):
    (answer,) = ask(show(b"text"), blobs=blobs)
    assert isinstance(answer, PermanentError)
    assert answer.code == code
    assert not server.seen


@pytest.mark.parametrize(
    "data",
    [
        saved("png")[:-200],
        saved("jpeg")[:-200],
        saved("gif")[:-200],
        saved("webp")[:-200],
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBP",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
    ],
)
def test_damaged_image_is_never_sent(ask, server, data):
    (answer,) = ask(show(data), blobs=lambda name: data)
    assert isinstance(answer, PermanentError)
    assert answer.code == "request.image-damaged"
    assert not server.seen


@pytest.mark.parametrize(("width", "height"), [(9460, 9460), (60_000, 60_000), (2_000_000_000, 1)])
def test_bomb_is_never_unpacked_nor_sent(ask, server, width, height):
    data = with_size(picture(), width, height)
    (answer,) = ask(show(data), blobs=lambda name: data)
    assert isinstance(answer, PermanentError)
    assert answer.code == "request.image-size"
    assert not server.seen


def test_kind_that_endpoints_do_not_take_is_converted(ask, server):
    data = saved("bmp")
    ask(show(data), blobs=lambda name: data)
    assert server.seen[0].body["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;")


def test_kind_that_is_not_read_is_permanent(ask, server):
    data = saved("tga")
    (answer,) = ask(show(data), blobs=lambda name: data)
    assert isinstance(answer, PermanentError) and answer.code == "request.image-damaged"
    assert not server.seen


def test_bad_image_spoils_only_its_own_request(ask, server):
    good, bad = picture(), b"GIF89a"
    store = {hashlib.sha256(data).hexdigest(): data for data in (good, bad)}
    first, second, third = ask(show(good), show(bad), show(good), blobs=store.__getitem__)
    assert isinstance(second, PermanentError)
    assert first == third


def test_damaged_image_gets_no_likelihood(ask, server):
    request = Likelihood(prompt=show(b"GIF89a").messages, continuations=("A", "B"))
    (answer,) = ask(request, blobs=lambda name: b"GIF89a", likelihood="first_token")
    assert isinstance(answer, PermanentError)
    assert not server.seen


def test_images_without_pillow_name_the_extra(ask, server, monkeypatch):
    monkeypatch.setattr(_checking, "find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", install_line("images")):
        ask(show(picture()), blobs=lambda name: picture())
    assert not server.seen
