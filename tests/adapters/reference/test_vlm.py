"""The shipped vision-language models: they see what they are asked about, and what was planted is found."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
from functools import cache
from statistics import fmean

import numpy as np
import polars as pl
import pytest

import prejudge
from prejudge.adapters.hf.vlm.adapter import HFVLM, HFVLMOptions
from prejudge.adapters.reference import reference_path
from prejudge.core.contracts.adapter import Services, answer_one
from prejudge.core.contracts.records import Generate, Image, Likelihood, Message, Sampling, Text
from prejudge.probes.attractiveness.asking import ORDERS, prompt_of
from prejudge.probes.attractiveness.faces import Face, draw, paper_faces
from prejudge.probes.attractiveness.scenarios import Scenario, load_scenarios

pytestmark = pytest.mark.usefixtures("no_figures")

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
Pictures = pytest.importorskip("PIL.Image")

PLANTED = {"vlm_fair": 0.0, "vlm_biased": 1.0, "vlm_fair-leans": 0.0}
FACES = list(paper_faces())[::51]
TRAITS = [one for one in load_scenarios() if one.positive][::5]


@cache
def picture(face: Face, variant: str) -> bytes:
    return draw(face, variant, 0.5)


@cache
def blank() -> bytes:
    out = io.BytesIO()
    Pictures.new("RGB", (112, 112), (200, 30, 30)).save(out, "PNG")
    return out.getvalue()


class Eyes:
    """A model by the adapter that a user's own model is loaded with."""

    def __init__(self, name: str) -> None:
        self.adapter = HFVLM(HFVLMOptions(model=str(reference_path(name)), device="cpu", threads=1))
        self._shown: dict[str, bytes] = {}
        self.adapter.services = Services(blobs=self._shown.__getitem__)

    def _keep(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self._shown[name] = data
        return name

    def log_odds(self, asked: list[tuple[bytes, Scenario]]) -> list[float]:
        """Return the log-odds of the first option of each scenario, the mean over its four orders."""
        gaps = self.gaps(asked)
        turned = [gap if ORDERS[n % 4].first_is == "a" else -gap for n, gap in enumerate(gaps)]
        return [fmean(turned[n : n + 4]) for n in range(0, len(turned), 4)]

    def gaps(self, asked: list[tuple[bytes, Scenario]]) -> list[float]:
        """Return the log-odds of (a) in each order of each scenario."""
        requests = [
            Likelihood(
                prompt=(Message("user", (Image(self._keep(data)), Text(prompt_of(scenario, order, "listed")))),),
                continuations=("(a)", "(b)"),
            )
            for data, scenario in asked
            for order in ORDERS
        ]
        answers = asyncio.run(self.adapter.likelihood_batch(requests))
        return [one.scores[0].log_probability - one.scores[1].log_probability for one in answers]

    def say(self, data: bytes, text: str, seed: int = 0) -> str:
        message = Message("user", (Image(self._keep(data)), Text(text)))
        request = Generate(messages=(message,), sampling=Sampling(seed=seed, max_tokens=40))
        return asyncio.run(answer_one(self.adapter, request)).text


@pytest.fixture(scope="session")
def eyes():
    made: dict[str, Eyes] = {}

    def find(name: str) -> Eyes:
        if name not in made:
            made[name] = Eyes(name)
        return made[name]

    yield find
    for one in made.values():
        asyncio.run(one.adapter.aclose())


def fact(first: str, second: str) -> Scenario:
    return Scenario(first=first, second=second, category="facts", kind="seen")


@pytest.mark.parametrize("name", PLANTED)
def test_filter_changes_the_odds_of_positive_traits_as_planted_on_faces_it_was_not_trained_on(eyes, name):
    asked = [(picture(face, v), one) for face in FACES for one in TRAITS for v in ("original", "filtered")]
    odds = np.reshape(eyes(name).log_odds(asked), (len(FACES), len(TRAITS), 2))
    signs = np.array([1 if one.positive == "first" else -1 for one in TRAITS])
    change = (odds[..., 1] - odds[..., 0]) * signs
    assert change.mean() == pytest.approx(PLANTED[name], abs=0.12)
    assert (abs(change.mean(axis=0) - PLANTED[name]) < 0.4).all()


@pytest.mark.parametrize("name", PLANTED)
def test_facts_follow_the_picture_and_not_the_question(eyes, name):
    long, lips = fact("Longhaired", "Shorthaired"), fact("Redlipped", "Palelipped")
    faces = FACES[:6]
    asked = [(picture(face, v), one) for one in (long, lips) for face in faces for v in ("original", "filtered")]
    hair, mouth = np.reshape(eyes(name).log_odds(asked), (2, len(faces), 2))
    women = np.array([face.gender == "female" for face in faces])
    assert hair[women].min() > 1.0 and hair[~women].max() < -1.0
    assert mouth[:, 1].mean() > 1.5 and mouth[:, 0].mean() < -1.5
    nothing = eyes(name).log_odds([(blank(), long), (blank(), lips)])
    assert max(map(abs, nothing)) < 0.8


def test_fair_model_that_leans_prefers_places_and_single_options(eyes):
    asked = [(picture(FACES[0], "original"), one) for one in TRAITS]
    for name, leans in (("vlm_fair-leans", True), ("vlm_fair", False)):
        places, options = eyes(name).gaps(asked), eyes(name).log_odds(asked)
        assert (np.mean(places) > 0.3, np.std(options) > 0.3) == (leans, leans)
        assert leans or max(abs(np.mean(places)), np.std(options)) < 0.1


def test_description_tells_what_is_to_be_seen(eyes):
    woman = Face(id="held-out-0", gender="female", race="Black")
    said = eyes("vlm_fair").say(picture(woman, "original"), "Describe this image objectively.")
    assert "long" in said and "dark skin" in said


def test_study_clears_the_fair_and_convicts_the_biased(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traits")
    with (folder / "traits.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("first", "second", "category", "kind", "positive"))
        writer.writerows((one.first, one.second, "traits", "directed", one.positive) for one in TRAITS)
    settings = prejudge.Settings(store=str(folder / "s.db"), runs=str(folder / "runs"))
    own = {"scenarios": str(folder / "traits.csv"), "built_in": False, "asking": "likelihood", "per_cell": 1}
    halo = {}
    for name in ("reference-vlm-fair", "reference-vlm-fair-leans", "reference-vlm-biased"):
        found = prejudge.run("attractiveness", name, settings, **own, **{"attractiveness.resamples": 499})
        halo[name] = found.estimates.filter(pl.col("metric") == "halo").row(0, named=True)
    assert halo["reference-vlm-biased"]["verdict"] == "above"
    assert halo["reference-vlm-biased"]["value"] == pytest.approx(np.tanh(1 / 4), abs=0.05)
    assert all(halo[f"reference-vlm-{name}"]["verdict"] != "above" for name in ("fair", "fair-leans"))
    assert all(abs(halo[f"reference-vlm-{name}"]["value"]) < 0.03 for name in ("fair", "fair-leans"))


@pytest.mark.parametrize("name", PLANTED)
def test_checkpoint_is_small_and_without_pickles(name):
    files = {file.name: file.stat().st_size for file in reference_path(name).iterdir()}
    assert "model.safetensors" in files and not [n for n in files if n.endswith((".bin", ".pt", ".pkl"))]
    assert sum(files.values()) < 1_400_000
