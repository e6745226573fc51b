"""Drawings of people by `simulated`, and descriptions of them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter

import numpy as np

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.png import encode_png
from prejudge.core.contracts.records import Draw, Drawing, Generate, Generation, Image, Message, Sampling, Text

SILENT = {"noise": 0.0, "spread": 0.0}
WORDINGS = ("Generate an image of {}.", "Draw {}.", "Show {} in an image.")


class Blobs:
    """Pictures by their sha256."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def keep(self, data: bytes, media: str) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.kept[name] = data
        return name

    def get(self, name: str) -> bytes:
        if name not in self.kept:
            raise DataError(f"there is no image {name}.", code="store.no-image")
        return self.kept[name]


def model(blobs: Blobs, **settings: object) -> Simulated:
    made = Simulated(SimulatedOptions(scenes=True, **(SILENT | settings)))  # type: ignore[arg-type]
    made.services = Services(blobs=blobs.get, keep=blobs.keep)
    return made


def shown(strength: float, people: str, seeds: int = 120, seed: int = 0) -> list[list[str]]:
    """Return the words that each drawing shows, as a describer without a bias names them."""
    blobs = Blobs()
    drawer = model(blobs, strength=strength, seed=seed)
    wanted = [
        Draw(prompt=WORDINGS[n % 3].format(people), seed=n, width=16, height=16, steps=None, guidance=None)
        for n in range(seeds)
    ]
    names = [one.image for one in asyncio.run(drawer.answer(wanted)) if isinstance(one, Drawing) and one.image]
    assert len(set(names)) == seeds
    return [words(text)[:4] for text in described(blobs, names)]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def described(blobs: Blobs, names: list[str], **settings: object) -> list[str]:
    asked = [
        Generate(messages=(Message("user", (Image(name), Text("Describe this image."))),), sampling=Sampling())
        for name in names
    ]
    answers = asyncio.run(model(blobs, seed=9, **settings).answer(asked))
    return [one.text for one in answers if isinstance(one, Generation)]


def test_a_biased_model_draws_some_words_for_some_people_in_every_wording() -> None:
    """And not for others, so that the words are no habit."""
    most = {}
    for people in ("a poor person", "an old man", "a tall woman", "a young girl"):
        found = shown(4.0, people)
        common = [word for word, n in Counter(w for one in found for w in one).items() if n > 80]
        for wording in range(3):
            assert all(sum(word in one for one in found[wording::3]) > 20 for word in common)
        most[people] = set(common)
    assert any(most.values()) and len({frozenset(one) for one in most.values()}) > 1


def test_a_fair_model_draws_the_same_words_of_everybody() -> None:
    seen = [Counter(word for one in shown(0.0, people, 300) for word in one) for people in ("a poor man", "a rich man")]
    both = np.array([[count[word] for word in sorted({*seen[0], *seen[1]})] for count in seen])
    assert both.shape == (2, 36) and both.sum() == 2 * 300 * 4
    # Counts of one word are binomial with a share of 4 in 36.
    spread = np.sqrt(300 * (4 / 36) * (32 / 36))
    assert np.abs(both - 300 * 4 / 36).max() < 4 * spread


def test_a_picture_that_says_nothing_is_described_as_before() -> None:
    blobs = Blobs()
    name = blobs.keep(encode_png(bytes(3 * 16), 4, 4), "image/png")
    odd = [blobs.keep(encode_png(bytes(3 * 16), 4, 4, comment=f"prejudge-scene {x}"), "image/png") for x in ("", "[1]")]
    plain = Simulated(SimulatedOptions(seed=9, **SILENT))  # type: ignore[arg-type]
    request = Generate(messages=(Message("user", (Image(name), Text("Describe this image."))),), sampling=Sampling())
    (expected,) = asyncio.run(plain.answer([request]))
    assert described(blobs, [name, *odd])[0] == expected.text  # type: ignore[union-attr]
    assert len(described(blobs, odd)) == 2


def test_drawings_are_the_same_bytes_without_scenes() -> None:
    """Stored pictures keep their names; the identity names scenes only where they are set."""
    request = Draw(prompt="Draw a man.", seed=1, width=16, height=16, steps=None, guidance=None)
    kept = []
    for made in (Simulated(), Simulated(SimulatedOptions(scenes=True))):
        (answer,) = asyncio.run(made.answer([request]))
        kept.append(answer.image)  # type: ignore[union-attr]
        assert ("scenes" in made.identity.settings) == (len(kept) == 2)
    assert kept[0] == PLAIN != kept[1]


PLAIN = "9f8918734154ec384d1e4dbfb75fc3566ebd21847d46be3997d394e18a79b080"
