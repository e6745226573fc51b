"""`observe`: the observations of a probe from given answers, without a store, a run or a model."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import polars as pl

from ..core.contracts import Probe
from ..core.contracts.canonical import encode, encode_response, question_of, request_key
from ..core.contracts.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    PseudoLikelihood,
    TokenScores,
)
from ..core.engine.observations import TRIALS, gather_observations

Answer = Callable[[AnyRequest], AnyResponse]
WORDS = ("yes", "no", "(a)", "(b)", "1", "2", "3", "positive", "negative", "neutral")
LABELS = ("entailment", "neutral", "contradiction")


def observe(probe: Probe, options: Any, answer: Answer, most: int = 2000) -> dict[str, pl.DataFrame]:
    """Return the observations of each stage, by name, as a run with these answers gives them.

    Args:
        probe: the instrument.
        options: its options record.
        answer: called once per trial; the stage reads its return value.
        most: number of trials of each stage that are asked, from the first on.
    """
    earlier: dict[str, pl.DataFrame] = {}
    declared = probe.design(options)
    varied = None if declared is None else declared.record()
    for stage in probe.stages(options):
        trials = list(islice(stage.trials(earlier), most))
        rows = [_row(trial.id, trial.factors, trial.request, answer) for trial in trials]
        prompts = {_key(trial.request): _key(question_of(trial.request)) for trial in trials}
        frame = pl.DataFrame(rows, schema=TRIALS, orient="row")
        earlier[stage.name] = gather_observations(stage, [frame], {}, prompts=prompts, design=varied)
    return earlier


def _row(trial: str, factors: Any, request: AnyRequest, answer: Answer) -> tuple[Any, ...]:
    response = answer(request)
    return trial, encode(factors).decode(), _key(request), response.status, encode_response(response).decode()


def _key(request: AnyRequest) -> bytes:
    return request_key(b"observed", encode(request))


def guesses(seed: int = 0, words: tuple[str, ...] = WORDS, labels: tuple[str, ...] = LABELS) -> Answer:
    """Return a function that answers any request at random, with the same result in every process.

    Args:
        seed: of the answers; an answer depends on it and on the request alone.
        words: the possible answers to `Generate`.
        labels: of `Classify`.
    """

    def answer(request: AnyRequest) -> AnyResponse:
        draw = random.Random(f"{seed} {encode(request).decode()}")
        return _GUESS[type(request)](request, draw, words, labels)

    return answer


def _scores(draw: random.Random) -> TokenScores:
    values = tuple(-draw.expovariate(0.5) for _ in range(draw.randint(1, 6)))
    return TokenScores(log_probability=sum(values), count=len(values), values=values)


def _shares(draw: random.Random, labels: tuple[str, ...]) -> Classification:
    weights = [draw.random() + 1e-6 for _ in labels]
    return Classification(probabilities={label: w / sum(weights) for label, w in zip(labels, weights, strict=True)})


_GUESS: dict[type, Callable[[Any, random.Random, tuple[str, ...], tuple[str, ...]], AnyResponse]] = {
    Generate: lambda request, draw, words, labels: Generation(text=draw.choice(words)),
    Likelihood: lambda request, draw, words, labels: Likelihoods(
        scores=tuple(_scores(draw) for _ in request.continuations)
    ),
    PseudoLikelihood: lambda request, draw, words, labels: _scores(draw),
    Classify: lambda request, draw, words, labels: _shares(draw, labels),
    Embed: lambda request, draw, words, labels: Embedding(vector=tuple(draw.gauss(0, 1) for _ in range(8))),
    Draw: lambda request, draw, words, labels: Drawing(image=hashlib.sha256(encode(request)).hexdigest()),
}
