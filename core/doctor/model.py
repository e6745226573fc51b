"""Check with a few questions that a model does what its adapter declares.

Each check asks short questions with known answers: an operation answers, a likely text has a higher probability than an
unlikely one, log-probabilities are not constant, a seed has an effect, the model uses an image. A constant answer is a
failure, because some servers silently ignore an option, and a study would then measure chance.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal, NamedTuple

from ..contracts.abilities import OPERATIONS, Need
from ..contracts.adapter import ModelAdapter, abilities_of, answer_one
from ..contracts.errors import (
    MissingExtraError,
    ModelError,
    ModelLoadError,
    PermanentError,
    PrejudgeError,
    TransientError,
)
from ..contracts.png import encode_png
from ..contracts.records import (
    Classify,
    Draw,
    Embed,
    Generate,
    Image,
    Likelihood,
    Message,
    PseudoLikelihood,
    Request,
    Sampling,
    Text,
    TokenScores,
)
from ..contracts.steps import step

Verdict = Literal["pass", "fail", "skip"]

LIKELY = (
    ("I saw a woman in the park.", "park woman the a in I saw."),
    ("They saw a man at the bus stop.", "stop the they bus at man a saw."),
    ("She was sitting in the cafe.", "in was cafe she the sitting."),
    ("He saw a tall woman waiting at the station.", "tall at he woman the a station waiting saw."),
    ("There was a girl in the park.", "girl the was park a in there."),
    ("We were walking down the street.", "street down were the walking we."),
)
"""Sentences, and the same words in random order."""
CONTINUED = (
    ("I saw a woman in the", " park", " were"),
    ("They were walking down the", " street", " of"),
    ("She was waiting for him at the", " station", " is"),
    ("He was sitting in the", " cafe", " to"),
    ("There was a girl in the", " garden", " was"),
    ("It was a", " mistake", " the"),
)
"""Prompts with a likely and an unlikely continuation of one word. The unlikely word is more frequent in general, so
that a model that does not use the prompt fails."""
PARAPHRASED = (
    ("A dog runs.", "A dog is running.", "The bank raised its interest rates."),
    ("I saw a woman in the park.", "A woman was in the park.", "They think he is lazy."),
    ("She was sitting in the cafe.", "There she was, sitting in a cafe.", "He bought two new cars."),
)
"""Sentences, each with a paraphrase and with a sentence on another topic."""
ENOUGH = 5 / 6
"""Required share of correct answers; a model that guesses has it with probability 1/9."""
CREATIVE = "Invent a name for a new colour. Answer with the name only."
DRAWN = range(1, 7)
"""Seeds of the samples, which should not all be equal."""
COLOUR = "What is the colour of this image? Answer in one word."
SEES = "the model uses an image"
"""Name of the check of images."""
BLIND = "it cannot see images"
SIDE, ENDPOINT_SIDE = 64, 1024
"""Sides in pixels of the image requested from a local model, and of the smallest that endpoints accept."""


class Check(NamedTuple):
    """One row of the table."""

    name: str
    verdict: Verdict
    detail: str


async def examine(adapter: ModelAdapter, operations: Collection[type[Request]] = ()) -> list[Check]:
    """Run every check of some operations, or of all that the adapter offers: about thirty short requests.

    An endpoint serves a model of one kind, so vectors and images are requested only if `operations` names them.

    Raises:
        ModelLoadError: the model cannot be loaded, so there is nothing to ask.
        MissingExtraError: what it needs is not installed.
    """
    endpoint = adapter.endpoint
    checks = (
        [Check("proxy", "skip", f"the endpoint is asked through {endpoint.proxy}")]
        if endpoint and endpoint.proxy
        else []
    )
    for operation, probes in PROBES.items():
        if why := _left_out(adapter, operation, operations):
            verdict: Verdict = "fail" if operation in operations else "skip"
            checks.append(Check(OPERATIONS[operation], verdict, why))
            continue
        if operations and operation not in operations:
            continue
        for name, probe in probes.items():
            checks.append(await checked(f"{OPERATIONS[operation]}: {name}", probe, adapter))
    return checks


def _left_out(adapter: ModelAdapter, operation: type[Request], named: Collection[type[Request]]) -> str:
    """Return the reason why an operation is not checked; empty if it is."""
    if why := abilities_of(adapter).missing(Need(operation=OPERATIONS[operation])):
        return "" if named and operation not in named else why
    if not named and adapter.endpoint is not None and operation in (Embed, Draw):
        return f"not checked by default for an endpoint. To check it: --operation {OPERATIONS[operation]}"
    return ""


async def checked(name: str, probe: Callable[[ModelAdapter], Awaitable[tuple[Verdict, str]]], a: ModelAdapter) -> Check:
    """Return the row of a check; an error of the model is its failure, and so is a defect of its adapter or files."""
    try:
        with step(f"check {name}"):
            return Check(name, *await probe(a))
    except (ModelLoadError, MissingExtraError):
        raise  # every row would have the same error
    except PrejudgeError as error:
        return Check(name, "fail", f"{type(error).__name__}: {error}")
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return Check(name, "fail", f"the adapter {a.identity.adapter!r} raised {said}")


async def _answers(adapter: ModelAdapter, requests: Sequence[Request]) -> list[object]:
    answers = await adapter.answer(requests)  # type: ignore[arg-type]  # all of one kind
    for answer in answers:
        if isinstance(answer, ModelError):
            raise answer
    return list(answers)


def _judge(good: bool, detail: str) -> tuple[Verdict, str]:
    return ("pass" if good else "fail"), detail


async def _scores(adapter: ModelAdapter, requests: Sequence[PseudoLikelihood]) -> list[TokenScores]:
    return [answer for answer in await _answers(adapter, requests) if isinstance(answer, TokenScores)]


async def _pll_ranks(adapter: ModelAdapter) -> tuple[Verdict, str]:
    texts = [text for pair in LIKELY for text in pair]
    scores = await _scores(adapter, [PseudoLikelihood(text=text) for text in texts])
    hits = sum(a.log_probability > b.log_probability for a, b in zip(scores[::2], scores[1::2], strict=True))
    return _judge(
        hits >= ENOUGH * len(LIKELY), f"{hits} of {len(LIKELY)} sentences are likelier than their words in random order"
    )


async def _pll_real(adapter: ModelAdapter) -> tuple[Verdict, str]:
    scores = await _scores(adapter, [PseudoLikelihood(text=text) for pair in LIKELY for text in pair])
    return _judge_scores(scores)


def _judge_scores(scores: Sequence[TokenScores]) -> tuple[Verdict, str]:
    """Judge log-probabilities: finite, at most 0, adding up, and not one constant."""
    sums = [score.log_probability for score in scores]
    if not all(math.isfinite(value) and value <= 1e-6 for value in sums):
        return "fail", f"a log-probability is not finite or above 0: {sums}"
    if any(s.values and not math.isclose(sum(s.values), s.log_probability, abs_tol=1e-3) for s in scores):
        return "fail", "the values per token do not sum to the total"
    if len({round(value, 6) for value in sums}) == 1:
        return "fail", f"every text gets {sums[0]:.4f}: the endpoint may ignore the option"
    return "pass", f"between {min(sums):.2f} and {max(sums):.2f} nats"


async def _likelihood_ranks(adapter: ModelAdapter) -> tuple[Verdict, str]:
    answers = [await answer_one(adapter, Likelihood(prompt=p, continuations=(a, b))) for p, a, b in CONTINUED]
    hits = sum(a.scores[0].log_probability > a.scores[1].log_probability for a in answers)
    return _judge(hits >= ENOUGH * len(CONTINUED), f"{hits} of {len(CONTINUED)} expected continuations are likelier")


async def _likelihood_real(adapter: ModelAdapter) -> tuple[Verdict, str]:
    answers = [await answer_one(adapter, Likelihood(prompt=p, continuations=(a, b))) for p, a, b in CONTINUED[:3]]
    return _judge_scores([score for answer in answers for score in answer.scores])


def _ask(text: str, *, seed: int | None = None, temperature: float = 0.0, image: str | None = None) -> Generate:
    parts = (*((Image(image),) if image else ()), Text(text))
    sampling = Sampling(temperature=temperature, seed=seed, max_tokens=24)
    return Generate(messages=(Message("user", parts),), sampling=sampling)


async def _texts(adapter: ModelAdapter, requests: Sequence[Generate]) -> list[str]:
    return [(await answer_one(adapter, request)).text for request in requests]


async def _generate_answers(adapter: ModelAdapter) -> tuple[Verdict, str]:
    answer = await answer_one(adapter, _ask("Say hello."))
    return _judge(bool(answer.text.strip()) or answer.status != "ok", f"{answer.status}, {len(answer.text)} characters")


async def _seed_honoured(adapter: ModelAdapter) -> tuple[Verdict, str]:
    same = await _texts(adapter, [_ask(CREATIVE, seed=7, temperature=1.0)] * 2)
    others = await _texts(adapter, [_ask(CREATIVE, seed=seed, temperature=1.0) for seed in DRAWN])
    if same[0] != same[1]:
        return "fail", "one seed gave two answers: repeated runs may differ (the store keeps the first answer)"
    return _judge(len(set(others)) > 1, f"{len(set(others))} answers to {len(DRAWN)} seeds")


async def _image_seen(adapter: ModelAdapter) -> tuple[Verdict, str]:
    if adapter.services.keep is None:
        return "skip", "there is no store for an image"
    if why := abilities_of(adapter).missing(Need(operation=OPERATIONS[Generate], images=True)):
        return "skip", f"{BLIND}: {why}"
    files = (square(255, 0, 0), square(0, 0, 255), square(255, 0, 0, "another file"))
    images = [adapter.services.keep(file, "image/png") for file in files]
    try:
        red, blue, again = await _texts(adapter, [_ask(COLOUR, image=image) for image in images])
    except PermanentError as error:
        return "skip", f"{BLIND}: {error}"
    except TransientError as error:
        # Servers of text models answer an image with 500 and a text with 200; one that is down answers neither.
        await _texts(adapter, [_ask(COLOUR)])
        return "skip", f"{BLIND}, or its server fails on them: {error}"
    # A text model behind an endpoint is none the worse for it; a local adapter that offers images is broken.
    unseen: Verdict = "fail" if adapter.endpoint is None else "skip"
    if red == blue:
        return unseen, f"{BLIND}: a red and a blue square both give {red[:20]!r}"
    if red != again and adapter.endpoint is not None:
        return unseen, (
            f"{BLIND}, as far as it shows: two files of one red square give {red[:20]!r} and {again[:20]!r}, as where "
            "an image's bytes are read as text, or each answer is another"
        )
    return "pass", f"a red and a blue square give {red[:20]!r} and {blue[:20]!r}"


async def _classify_sums(adapter: ModelAdapter) -> tuple[Verdict, str]:
    answers = [await answer_one(adapter, Classify(text=text)) for text in ("This is wonderful.", "This is dreadful.")]
    labels = ", ".join(answers[0].probabilities)
    if any(label.upper().startswith("LABEL_") for label in answers[0].probabilities):
        return "fail", f"the labels have no names: {labels}"
    return _judge(answers[0] != answers[1], f"labels: {labels}")


async def _embed_ranks(adapter: ModelAdapter) -> tuple[Verdict, str]:
    hits, dimensions = 0, 0
    for texts in PARAPHRASED:
        one, near, far = [(await answer_one(adapter, Embed(text=text))).vector for text in texts]
        hits += _cosine(one, near) > _cosine(one, far)
        dimensions = len(one)
    seen = f"{dimensions} dimensions; {hits} of {len(PARAPHRASED)} paraphrases are nearer than another topic"
    return _judge(hits * 2 > len(PARAPHRASED), seen)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other) or 1.0)


async def _draw_seeded(adapter: ModelAdapter) -> tuple[Verdict, str]:
    if adapter.endpoint is not None:
        drawn = await answer_one(adapter, Draw(prompt="a red house", width=ENDPOINT_SIDE, height=ENDPOINT_SIDE))
        return _judge(drawn.image is not None, f"{drawn.status}; the seed is not checked for an endpoint")

    def drawn_by(seed: int) -> Draw:
        return Draw(prompt="a red house", width=SIDE, height=SIDE, steps=2, seed=seed)

    one, same, other = [(await answer_one(adapter, drawn_by(seed))).image for seed in (1, 1, 2)]
    if one is None or other is None:
        return "fail", "a harmless prompt was filtered"
    return _judge(one == same and one != other, "one image per seed" if one == same else "one seed gave two images")


def square(red: int, green: int, blue: int, comment: str = "") -> bytes:
    """Return a PNG of one colour, 64 by 64 pixels; a comment makes another file of the same pixels."""
    return encode_png(bytes((red, green, blue)) * SIDE * SIDE, SIDE, SIDE, comment=comment)


PROBES: dict[type[Request], dict[str, Callable[[ModelAdapter], Awaitable[tuple[Verdict, str]]]]] = {
    PseudoLikelihood: {
        "a sentence is likelier than its words in random order": _pll_ranks,
        "log-probabilities are valid": _pll_real,
    },
    Likelihood: {
        "the expected continuation is likelier": _likelihood_ranks,
        "log-probabilities are valid": _likelihood_real,
    },
    Generate: {
        "the model answers": _generate_answers,
        "the seed has an effect": _seed_honoured,
        SEES: _image_seen,
    },
    Classify: {"labels are named and differ": _classify_sums},
    Embed: {"a paraphrase is nearer": _embed_ranks},
    Draw: {"one image per seed": _draw_seeded},
}
