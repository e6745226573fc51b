"""Answers to the questions of a declared design: what is planted in a question's cells, in the study's answer form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.contracts.canonical import question_of
from ...core.contracts.cells import Alternative, Cells, ComputedResponses, LocatedRequests
from ...core.contracts.errors import PermanentError
from ...core.contracts.records import (
    AnyResponse,
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    PseudoLikelihood,
    Request,
    TokenScores,
    Usage,
)
from ...core.design import Planting
from ...core.design.locating import bare
from ...core.design.planting import keyed_draws
from .choices import listed
from .noise import LARGEST, Noise
from .responses import REFUSAL, choose, cut, logsumexp, softmax, top_tokens
from .words import words_of

ALWAYS = 10.0
"""Nats below 0 of every log-probability, besides what keeps it below 0."""
NEARLY = 1e-9
"""Nats by which each alternative is behind the one before it, so that no two are equal."""
ENDS = 2
"""Answers of a scale that names its ends; one that names more is answered by one of them."""
_encode = msgspec.json.Encoder().encode


class CellAnswers:
    """The answers of a model in which effects are planted by cells."""

    def __init__(self, cells: Cells, planting: Planting, noise: Noise, deviation: float, refusals: float) -> None:
        """Work out what is planted in every cell.

        Args:
            cells: The cells of the study that is asked.
            planting: What is planted.
            noise: The noise of the model.
            deviation: Standard deviation of a question's own noise, in nats.
            refusals: Share of refused answers in words.
        """
        self.cells, self._noise, self._refusals = cells, noise, refusals
        self._own = deviation / math.sqrt(2)
        self._effects = planting.effects(cells, keyed_draws(str(noise.seed)))
        reach = float(abs(self._effects).max(initial=0.0))
        self._floor = reach + LARGEST * self._own + ALWAYS
        self._normals: dict[tuple[bytes, str], float] | None = None

    def answer(self, request: Request) -> AnyResponse | None:
        """Return the answer to a question of the design; None to any other.

        Raises:
            PermanentError: What is asked is not in the answer form that the study declares.
        """
        rows = self.cells.locate(request)
        if not rows:
            return None
        planted = float(self._effects[list(rows)].mean())
        return self._in_form(request, self._menu(rows), planted, _encode(request))

    def answers(self, located: LocatedRequests) -> ComputedResponses:
        """Return the answers to questions of the design; the noise of one seed is drawn once for all models."""
        planted = np.array(located.means(self._effects))
        menus = [self._menu(rows) for rows in located.rows]
        kinds = {(type(request), len(menu)) for request, menu in zip(located.requests, menus, strict=True)}
        if kinds == {(PseudoLikelihood, 0)}:
            counts = _counts_of(located)
            scores = planted + self._own * _normals_of(self._noise, located, ("",))[:, 0]
            log_probabilities = counts * ((scores - self._floor) / counts)
            return ComputedResponses(lambda: self._one_by_one(located), log_probabilities[:, None])
        if len(kinds) == 1 and len(set(menus)) == 1 and kinds < {(Classify, number) for number in range(2, 9)}:
            up = np.array([0.5 if answer.up else -0.5 for answer in menus[0]])
            normals = _normals_of(self._noise, located, tuple(answer.text for answer in menus[0]))
            weights = np.exp(planted[:, None] * up + self._own * normals - NEARLY * np.arange(len(up)))
            shares = weights / weights.sum(axis=1, keepdims=True)
            return ComputedResponses(lambda: self._one_by_one(located), shares)
        return ComputedResponses(lambda: self._one_by_one(located))

    def _one_by_one(self, located: LocatedRequests) -> list[AnyResponse]:
        self._normals = _memory_of(self._noise.seed, located)
        planted = located.means(self._effects)
        rows = zip(located.requests, map(self._menu, located.rows), planted, located.encoded, strict=True)
        return [self._in_form(*row) for row in rows]

    def _menu(self, rows: Sequence[int]) -> Sequence[Alternative]:
        return self.cells.menus[self.cells.menu_codes[rows[0]]]

    def _in_form(self, request: Request, menu: Sequence[Alternative], planted: float, encoded: bytes) -> AnyResponse:
        if isinstance(request, PseudoLikelihood):
            return self._scored(planted + self._noise_of(encoded), len(words_of(request.text).split()))
        if isinstance(request, Likelihood):
            return self._likelihoods(request, menu, planted, encoded)
        if isinstance(request, Classify) and menu and self.cells.form != "number":
            weights = softmax(self._scores(menu, planted, encoded))
            names = (alternative.text for alternative in menu)
            return Classification(probabilities=dict(zip(names, weights, strict=True)))
        if isinstance(request, Generate):
            return self._generation(request, menu, planted, encoded)
        raise PermanentError(
            f"a {type(request).__name__} cannot be answered in the form {self.cells.form!r} that the study declares.",
            code="request.form",
        )

    def _noise_of(self, encoded: bytes, alternative: str = "") -> float:
        if not self._own:
            return 0.0
        key = encoded, alternative
        if self._normals is not None and key in self._normals:
            return self._own * self._normals[key]
        normal = self._noise.normal("cell", encoded.decode() + alternative)
        if self._normals is not None:
            self._normals[key] = normal
        return self._own * normal

    def _scores(self, menu: Sequence[Alternative], planted: float, encoded: bytes) -> list[float]:
        return [
            (planted / 2 if answer.up else -planted / 2) + self._noise_of(encoded, answer.text) - NEARLY * at
            for at, answer in enumerate(menu)
        ]

    def _likelihoods(
        self, request: Likelihood, menu: Sequence[Alternative], planted: float, encoded: bytes
    ) -> Likelihoods:
        """Score the alternatives among the continuations; without any, all is planted in the first continuation."""
        scores = [0.0] * len(request.continuations)
        if menu and (self.cells.form != "number" or len(menu) > ENDS):
            by_name = dict(
                zip((bare(answer.text) for answer in menu), self._scores(menu, planted, encoded), strict=True)
            )
            scores = [by_name.get(bare(text), -ALWAYS / 2) for text in request.continuations]
            # The model would say one of the options: together they have all of the probability.
            shift = self._floor - logsumexp(scores)
            scores = [score + shift for score in scores]
        elif scores:
            scores[0] = planted + self._noise_of(encoded)
        counts = (len(text.split()) for text in request.continuations)
        return Likelihoods(scores=tuple(self._scored(*pair) for pair in zip(scores, counts, strict=True)))

    def _scored(self, score: float, count: int) -> TokenScores:
        number = max(count, 1)
        values = ((score - self._floor) / number,) * number
        return TokenScores(log_probability=math.fsum(values), count=number, values=values)

    def _generation(self, request: Generate, menu: Sequence[Alternative], planted: float, encoded: bytes) -> Generation:
        prompt = words_of(request.messages)
        usage = Usage(input_tokens=len(prompt.split()), output_tokens=1)
        draws = self._noise.draws(encoded)
        if draws.refusal < self._refusals:
            return Generation(text=REFUSAL, status="refused", finish_reason="refusal", usage=usage)
        # All samples of a prompt share its noise; the draw alone differs.
        question = _encode(question_of(request))
        if self.cells.form == "number":
            answers, scores = [_number(menu, planted + self._noise_of(question))], [0.0]
        else:
            answers, scores = _said(menu, prompt), self._scores(menu, planted, question)
        if not answers:
            raise PermanentError("the study declares no answers to choose from.", code="request.form")
        text, reason = cut(answers[choose(scores, request.sampling.temperature, draws.answer)], request)
        top = top_tokens(answers, scores, request.top_logprobs) if request.top_logprobs else ()
        return Generation(text=text, finish_reason=reason, top_logprobs=top, usage=usage)


@lru_cache(maxsize=2)
def _memory_of(seed: int, located: LocatedRequests) -> dict[tuple[bytes, str], float]:
    """Return where the noise of the models of a seed is kept, by question and alternative."""
    return {}


def _normals_of(noise: Noise, located: LocatedRequests, alternatives: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return the noise of each request and alternative, drawn once for the models of a seed."""
    memory = _memory_of(noise.seed, located)
    if not memory:
        memory |= {
            (encoded, text): noise.normal("cell", encoded.decode() + text)
            for encoded in located.encoded
            for text in alternatives
        }
    return _array_of(noise.seed, located, alternatives)


@lru_cache(maxsize=2)
def _array_of(seed: int, located: LocatedRequests, alternatives: tuple[str, ...]) -> npt.NDArray[np.float64]:
    memory = _memory_of(seed, located)
    return np.array([[memory[encoded, text] for text in alternatives] for encoded in located.encoded])


@lru_cache(maxsize=2)
def _counts_of(located: LocatedRequests) -> npt.NDArray[np.float64]:
    """Return the number of words of each text, at least 1."""
    texts = (request.text for request in located.requests if isinstance(request, PseudoLikelihood))
    return np.array([max(len(words_of(text).split()), 1) for text in texts], np.float64)


def _said(menu: Sequence[Alternative], prompt: str) -> list[str]:
    """Return the alternatives as a model answers them: as an option that the prompt lists, or by their own text."""
    options = listed(prompt)
    names = {}
    for choice in options.choices if options else ():
        names[bare(choice.answer.removesuffix(choice.text))] = names[bare(choice.text)] = choice.answer
    return [names.get(bare(answer.text), answer.text) for answer in menu]


def _number(menu: Sequence[Alternative], value: float) -> str:
    """Return a number: the value itself, or, on a scale, the share of the way that its odds are of."""
    if not menu:
        return f"{value:.3f}"
    low, high = float(menu[0].text), float(menu[-1].text)
    number = low + (high - low) / (1 + math.exp(-value))
    if len(menu) > ENDS:
        return min((answer.text for answer in menu), key=lambda text: abs(float(text) - number))
    return f"{number:.4g}"
