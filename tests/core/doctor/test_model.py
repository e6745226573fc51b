"""The canary: what is broken is seen, what works passes."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.adapter import Identity, ModelAdapter, RemoteEndpoint, Services
from prejudge.core.contracts.errors import ModelLoadError, PermanentError, TransientError
from prejudge.core.contracts.records import (
    Classification,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    TokenScores,
)
from prejudge.core.doctor.model import BLIND, CONTINUED, LIKELY, examine, square
from prejudge.testing import raises_code

GOOD = {sentence for sentence, _ in LIKELY} | {likely for _, likely, _ in CONTINUED}


def scores(value):
    return TokenScores(log_probability=value, count=1, values=(value,))


class Sound(ModelAdapter):
    """A model that does everything as it should."""

    identity = Identity(adapter="sound", version="1", model="m")

    def judge(self, text):
        return -1.0 - len(text) / 100 if text in GOOD else -9.0 - len(text) / 100

    async def pseudo_likelihood(self, request):
        return scores(self.judge(request.text))

    async def likelihood(self, request):
        return Likelihoods(scores=tuple(scores(self.judge(text)) for text in request.continuations))

    async def generate(self, request):
        images = [part.sha256 for part in request.messages[-1].parts if isinstance(part, Image)]
        text = request.messages[-1].parts[-1].text
        if text.startswith("Repeat"):
            return Generation(text="I'm sorry, but I can't assist with that.", status="refused")
        return Generation(text=f"{text[:5]} {request.sampling.seed} {images}")

    async def classify(self, request):
        good = 0.9 if "wonderful" in request.text else 0.1
        return Classification(probabilities={"positive": good, "negative": 1 - good})

    async def embed(self, request):
        return Embedding(vector=(1.0, 0.1) if "dog" in request.text or "in" in request.text.split() else (0.1, 1.0))

    async def draw(self, request):
        return Drawing(image=hashlib.sha256(str(request.seed).encode()).hexdigest())


def verdicts(adapter):
    adapter.services = Services(keep=lambda data, kind: hashlib.sha256(data).hexdigest())
    return {check.name: check.verdict for check in asyncio.run(examine(adapter))}


def test_sound_model_passes_everything():
    found = verdicts(Sound())
    assert len(found) == 10 and set(found.values()) == {"pass"}


def broken(method, answer):
    """Return a sound model with one broken method."""

    async def replaced(self, request):
        if isinstance(answer, Exception):
            raise answer
        return answer(self, request) if callable(answer) else answer

    return type("Broken", (Sound,), {method: replaced})()


@pytest.mark.parametrize(
    ("method", "answer", "check"),
    [
        ("pseudo_likelihood", scores(0.0), "pseudo_likelihood: log-probabilities are valid"),
        ("pseudo_likelihood", scores(2.5), "pseudo_likelihood: log-probabilities are valid"),
        (
            "pseudo_likelihood",
            lambda s, r: scores(-len(r.text)),
            "pseudo_likelihood: a sentence is likelier than its words in random order",
        ),
        (
            "pseudo_likelihood",
            lambda s, r: TokenScores(log_probability=s.judge(r.text), count=1, values=(-0.5,)),
            "pseudo_likelihood: log-probabilities are valid",
        ),
        ("likelihood", Likelihoods(scores=(scores(-1.0), scores(-1.0))), "likelihood: log-probabilities are valid"),
        (
            "likelihood",
            lambda s, r: Likelihoods(scores=(scores(-2.0), scores(-1.0))),
            "likelihood: the expected continuation is likelier",
        ),
        ("likelihood", PermanentError("this endpoint gives none"), "likelihood: the expected continuation is likelier"),
        ("generate", Generation(text="  "), "generate: the model answers"),
        ("generate", Generation(text="Blue"), "generate: the seed has an effect"),
        ("generate", Generation(text="Blue"), "generate: the model uses an image"),
        ("classify", Classification(probabilities={"LABEL_0": 1.0}), "classify: labels are named and differ"),
        ("embed", Embedding(vector=(1.0, 1.0)), "embed: a paraphrase is nearer"),
        ("draw", Drawing(image="ab"), "draw: one image per seed"),
        ("draw", Drawing(image=None, status="filtered"), "draw: one image per seed"),
    ],
)
def test_broken_model_fails(method, answer, check):
    assert verdicts(broken(method, answer))[check] == "fail"


def test_seed_that_is_ignored_fails():
    counter = iter(range(100))
    drifting = broken("generate", lambda s, r: Generation(text=f"answer {next(counter)}"))
    assert verdicts(drifting)["generate: the seed has an effect"] == "fail"


def test_operation_that_is_not_offered_is_skipped():
    class Silent(ModelAdapter):
        identity = Identity(adapter="silent", version="1", model="m")

    assert set(verdicts(Silent()).values()) == {"skip"}


def test_square_is_a_picture():
    image = pytest.importorskip("PIL.Image")
    import io

    picture = image.open(io.BytesIO(square(255, 0, 0)))
    assert picture.size == (64, 64) and picture.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


class Remote(Sound):
    """A model behind an endpoint, with no way to likelihoods."""

    endpoint = RemoteEndpoint(name="https://example.org/v1 m")

    @classmethod
    def abilities(cls, options) -> Abilities:
        return super().abilities(options).without({"likelihood": "Set likelihood = 'echo'."})


def test_what_settings_lack_is_skipped_with_the_way_out():
    (row,) = [check for check in asyncio.run(examine(Remote())) if check.name == "likelihood"]
    assert (row.verdict, row.detail) == ("skip", "Set likelihood = 'echo'.")


def test_what_settings_lack_fails_where_it_is_named():
    (row,) = asyncio.run(examine(Remote(), [Likelihood]))
    assert (row.name, row.verdict) == ("likelihood", "fail")


def test_endpoint_is_asked_for_images_only_by_name():
    remote = Remote()
    verdict = {check.name: check.verdict for check in asyncio.run(examine(remote))}
    assert verdict["draw"] == verdict["embed"] == "skip"
    assert [check.verdict for check in asyncio.run(examine(remote, [Draw]))] == ["pass"]


def test_named_operations_alone_are_tried():
    assert [check.name for check in asyncio.run(examine(Sound(), [Embed]))] == ["embed: a paraphrase is nearer"]


def test_endpoint_that_reads_the_bytes_of_an_image_as_text_is_no_failure_and_said_to_be_blind():
    (row,) = [
        check for check in asyncio.run(examine(kept(Remote()))) if check.name == "generate: the model uses an image"
    ]
    assert row.verdict == "skip" and row.detail.startswith(BLIND) and "two files of one red square" in row.detail


def test_endpoint_that_sees_the_pixels_passes():
    async def look(self, request):
        images = [self.colours[part.sha256] for part in request.messages[-1].parts if isinstance(part, Image)]
        return Generation(text=f"{images}")

    remote = kept(type("Seeing", (Remote,), {"generate": look})())
    checks = {check.name: check.verdict for check in asyncio.run(examine(remote, [Generate]))}
    assert checks["generate: the model uses an image"] == "pass"


def test_endpoint_that_is_away_is_not_taken_for_one_without_images():
    away = broken("generate", TransientError("nobody there"))
    assert verdicts(away)["generate: the model uses an image"] == "fail"


def test_model_that_cannot_be_loaded_is_one_error():
    with raises_code(ModelLoadError, "model-load", "no such device"):
        verdicts(broken("generate", ModelLoadError("no such device")))


def test_model_that_reads_no_images_is_no_failure():
    assert verdicts(broken("generate", PermanentError("text only")))["generate: the model uses an image"] == "skip"


def on_images(answer):
    """Return an endpoint that answers texts, and does something else about images."""

    async def respond(self, request):
        if any(isinstance(part, Image) for part in request.messages[-1].parts):
            if isinstance(answer, Exception):
                raise answer
            return Generation(text=answer)
        return Generation(text=f"red {request.sampling.seed}")

    return kept(type("Partial", (Remote,), {"generate": respond})())


@pytest.mark.parametrize("answer", ["I cannot see.", TransientError("500"), PermanentError("400")])
def test_text_model_behind_an_endpoint_does_not_fail_for_images(answer):
    checks = asyncio.run(examine(on_images(answer)))
    (row,) = [check for check in checks if check.name == "generate: the model uses an image"]
    assert row.verdict == "skip" and row.detail.startswith(BLIND)
    assert not [check for check in checks if check.verdict == "fail"]


def test_model_that_declares_no_images_is_not_asked_about_any():
    class Blind(Sound):
        @classmethod
        def abilities(cls, options) -> Abilities:
            return super().abilities(options).without({"images": "It reads text only."})

        async def generate(self, request):
            assert not any(isinstance(part, Image) for part in request.messages[-1].parts)
            return await super().generate(request)

    assert verdicts(Blind())["generate: the model uses an image"] == "skip"


def kept(adapter):
    """Give an adapter a place for images, which knows their colours."""
    adapter.colours = {}

    def keep(data, kind):
        name = hashlib.sha256(data).hexdigest()
        adapter.colours[name] = "red" if square(255, 0, 0)[-30:] == data[-30:] else "blue"
        return name

    adapter.services = Services(keep=keep)
    return adapter
