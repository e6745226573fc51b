"""What `simulated` sees in a drawn face, and what it plants by it."""

from __future__ import annotations

import asyncio
import hashlib
import math
import struct
import zlib
from statistics import fmean, stdev

import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.choices import listed
from prejudge.adapters.simulated.pictures import Face, face_in
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.png import SIGNATURE
from prejudge.core.contracts.records import Generate, Image, Likelihood, Message, Sampling, Text

PLAIN = {"noise": 0.0, "spread": 0.0}
QUESTION = "Is the person in the picture (a) {} or (b) {}. Respond only with ({}) or ({})."


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(text, keyword=b"prejudge-face"):
    return SIGNATURE + chunk(b"IHDR", b"\0" * 13) + chunk(b"tEXt", keyword + b"\0" + text) + chunk(b"IDAT", b"")


def picture(face, filter):
    return png(b'{"face": "%s", "filter": %s}' % (face.encode(), str(filter).encode()))


def ask(data, request, **settings):
    """Ask about pictures; `request` makes a request of the name of one."""
    store = {hashlib.sha256(one).hexdigest(): one for one in data}
    model = Simulated(SimulatedOptions(positive=("kind",), negative=("rude",), **settings))
    model.services = Services(blobs=store.__getitem__)
    return list(asyncio.run(model.answer([request(name) for name in store])))


def odds(data, texts=("Kind", "Rude"), instruction="ab", **settings):
    """Return the log-odds of the first option over the second for each picture."""

    def request(name):
        message = Message("user", (Image(name), Text(QUESTION.format(*texts, *instruction))))
        return Likelihood(prompt=(message,), continuations=("(a)", "(b)"))

    return [one.scores[0].log_probability - one.scores[1].log_probability for one in ask(data, request, **settings)]


def test_drawn_face_is_read_from_its_chunk():
    assert face_in(picture("f1", 0.5)) == Face("f1", 0.5)


@pytest.mark.parametrize("data", [b"", b"GIF89a", png(b"{}"), png(b"x"), png(b"{}", b"Comment"), picture("f", 1)[:30]])
def test_any_other_picture_is_no_face(data):
    assert face_in(data) is None


def test_filter_raises_the_log_odds_of_the_positive_option_by_its_strength():
    pictures = [picture("f", 0.0), picture("f", 0.5), picture("f", 1.0)]
    assert odds(pictures, strength=2.0, **PLAIN) == pytest.approx([0.0, 1.0, 2.0])
    assert odds(pictures, ("Rude", "Kind"), strength=2.0, **PLAIN) == pytest.approx([0.0, -1.0, -2.0])
    assert odds(pictures, ("Cook", "Guard"), strength=2.0, **PLAIN) == pytest.approx([0.0] * 3)


def test_faces_differ_by_the_spread_alike_with_the_filter_and_in_every_order():
    faces = [picture(f"f{n}", filter) for n in range(400) for filter in (0.0, 1.0)]
    found = odds(faces, spread=2.0, noise=0.0)
    assert found[::2] == pytest.approx(found[1::2])
    assert stdev(found[::2]) == pytest.approx(2.0, rel=0.12)
    assert [-value for value in odds(faces, ("Rude", "Kind"), "ba", spread=2.0, noise=0.0)] == pytest.approx(found)


def test_answers_in_words_have_the_same_odds():
    def request(name):
        message = Message("user", (Image(name), Text(QUESTION.format("Rude", "Kind", "a", "b"))))
        return Generate(messages=(message,), sampling=Sampling(seed=0))

    found = ask([picture(f"f{n}", 1.0) for n in range(3000)], request, strength=1.0, **PLAIN)
    assert {one.text for one in found} == {"(a) Rude", "(b) Kind"}
    share = fmean(one.text == "(b) Kind" for one in found)
    assert share == pytest.approx(1 / (1 + math.exp(-1.0)), abs=0.03)


def test_log_probabilities_stay_below_0():
    def request(name):
        message = Message("user", (Image(name), Text(QUESTION.format("Kind", "Rude", "a", "b"))))
        return Likelihood(prompt=(message,), continuations=("(a)", "(b)"))

    found = ask([picture(f"f{n}", 1.0) for n in range(50)], request, strength=9.0, noise=0.0)
    assert all(score.log_probability < 0 for one in found for score in one.scores)


def test_without_the_bytes_a_picture_is_none_of_a_face():
    message = Message("user", (Image("0" * 64), Text(QUESTION.format("Kind", "Rude", "a", "b"))))
    model = Simulated(SimulatedOptions(strength=5.0, **PLAIN))
    (found,) = asyncio.run(model.answer([Likelihood(prompt=(message,), continuations=("(a)", "(b)"))]))
    assert found.scores[0].log_probability == found.scores[1].log_probability


@pytest.mark.parametrize("instruction", ["(a) or (b)", "(b) or (a)"])
def test_labels_named_in_the_instruction_are_no_options(instruction):
    found = listed(f"Is it a (a) Doctor or (b) Nurse. Respond only with {instruction}.")
    assert [(choice.answer, choice.text) for choice in found.choices] == [
        ("(a) Doctor", "Doctor"),
        ("(b) Nurse", "Nurse"),
    ]
    assert found.stem == f"Is it a \nRespond only with {instruction}."
