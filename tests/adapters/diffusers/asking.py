"""Draw with a tiny pipeline, and look at the pixels."""

from __future__ import annotations

import hashlib
import io

import msgspec
import numpy as np
import pytest

from prejudge.adapters.diffusers.adapter import Diffusers, DiffusersOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.records import Draw

from ..pool import POOL

Image = pytest.importorskip("PIL.Image")


ASK = Draw(prompt="a photo of a person", width=16, height=16, steps=2, seed=3)


def chosen(folder, **options):
    return DiffusersOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options})


def build(folder, **options):
    return Diffusers(chosen(folder, **options))


def draw(folder, *requests, **options):
    """Return the answers, and the images kept by their sha256."""
    kept = {}

    def keep(data, media_type):
        assert media_type == "image/png"
        name = hashlib.sha256(data).hexdigest()
        kept[name] = data
        return name

    return POOL.ask(Diffusers, chosen(folder, **options), requests, Services(keep=keep)), kept


def pixels(folder, request, **options):
    (answer,), kept = draw(folder, request, **options)
    return decode(kept[answer.image])


def decode(data):
    return np.asarray(Image.open(io.BytesIO(data))).astype(int)


def differ(**changes):
    return msgspec.structs.replace(ASK, **changes)


def refusal(folder, **options):
    with pytest.raises(ModelLoadError) as caught:
        draw(folder, ASK, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
