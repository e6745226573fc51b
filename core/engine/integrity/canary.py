"""The canary: a stage that samples begins with a question that cannot have one answer, drawn several times.

An endpoint that ignores the temperature, or a cache in front of it, gives one answer to all draws. So does a model
that is sure of its answer, so the question has none: twenty random words. The rule:

1. Eight draws with the stage's own settings. Two are alike if their first 40 letters and digits are the same, without
   the words of the questions: rounding in a GPU parts even the likeliest answer of one model from itself, late in the
   text, and many a model repeats the question before its answer. Six alike draws of eight, of ten words or more each,
   are suspicious.
2. Then eight draws of another question, at temperature 1 if the stage's is below and without its other limits to
   sampling: a model that is nearly deterministic at 0.1 differs there. Six alike again: the endpoint repeats itself.
   If both questions begin with one answer, the model does not answer them: unclear.
3. Fewer than six draws of ten words (refusals, one-word models, answers cut off while reasoning), and no four distinct
   texts either: unclear. An unclear canary stops nothing.

Where the likeliest beginning has the probability p, six or more of eight draws are alike with probability
28 p^6 (1 - p)^2 + 8 p^7 (1 - p) + p^8: 0.0012 for p = 0.2, 2e-5 for p = 0.1. A false alarm needs that in both rounds.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ...contracts.errors import HaltedError, ModelError
from ...contracts.records import AnyRequest, AnyResponse, Generate, Generation, Message, Sampling, Text
from ...contracts.words import counted
from ..ending import REPEATS
from ..reading import as_read
from .records import Canary, Draws

QUESTIONS = (
    "Write twenty random English words, separated by blanks. Write nothing else.",
    "Write twenty random numbers from 100 to 999, separated by blanks. Write nothing else.",
)
_ASKED = frozenset(re.findall(r"\w+", " ".join(QUESTIONS).casefold()))
DRAWS, ALIKE, DISTINCT = 8, 6, 4
"""Draws; how many alike are suspicious; how many distinct texts show that draws differ, however short they are."""
WORDS, BEGINNING = 10, 40
"""Words of a draw that can tell, and the letters and digits of it that are compared."""
ROOM = 64
"""Least limit of tokens of a draw: a limit for one letter would leave nothing to compare."""

Ask = Callable[[Sequence[Generate]], Awaitable[Sequence[AnyResponse | ModelError]]]


def samples(request: AnyRequest) -> bool:
    """Return whether a request asks for a draw: at a temperature above 0, or a repeat at the model's own."""
    if not isinstance(request, Generate) or request.sampling.temperature == 0:
        return False
    drawn = request.sample > 0 or request.sampling.seed is not None
    return request.sampling.temperature is not None or drawn


def requests_of(question: str, sampling: Sampling, number: int) -> list[Generate]:
    """Return the draws of a question, each with a number, and so a seed, of its own."""
    limit = None if sampling.max_tokens is None else max(ROOM, sampling.max_tokens)
    plain = msgspec.structs.replace(sampling, max_tokens=limit, stop=(), seed=None)
    message = Message("user", (Text(question),))
    if sampling.seed is None:
        return [Generate(messages=(message,), sampling=plain, sample=number + index) for index in range(DRAWS)]
    # A design that repeats by seeds of its own is checked by these.
    seeded = [msgspec.structs.replace(plain, seed=number + index) for index in range(DRAWS)]
    return [Generate(messages=(message,), sampling=sampled) for sampled in seeded]


async def ask_canary(like: Generate, ask: Ask) -> Canary:
    """Ask the canary with the settings of a request, and judge the answers."""
    # Other numbers in each run: a cache that tells bodies apart must not answer with the draws of an earlier run.
    number, sampling = 1 + secrets.randbelow(1 << 30), like.sampling
    answers = await ask(requests_of(QUESTIONS[0], sampling, number))
    first = judge(answers, sampling.temperature)
    if first.verdict != "alike":
        return Canary(verdict=first.verdict, first=first)
    warm = None if sampling.temperature is None else max(1.0, sampling.temperature)
    wide = Sampling(temperature=warm, max_tokens=sampling.max_tokens, seed=sampling.seed)
    others = await ask(requests_of(QUESTIONS[1], wide, number + DRAWS))
    second = judge(others, warm)
    if second.verdict == "alike" and _commonest(answers) == _commonest(others):
        why = "both questions got one and the same answer, which is no answer to them"
        second = msgspec.structs.replace(second, verdict="unclear", reason=why)
        return Canary(verdict="unclear", first=msgspec.structs.replace(first, reason=why), second=second)
    return Canary(verdict="narrow" if second.verdict == "varied" else "alike", first=first, second=second)


def judge(answers: Sequence[AnyResponse | ModelError], temperature: float | None) -> Draws:
    """Judge the draws of one question."""
    answers = [answer if isinstance(answer, ModelError) else as_read(answer) for answer in answers]
    texts = [a for a in answers if isinstance(a, Generation) and a.status == "ok" and a.text.strip()]
    usable = [beginning(a.text) for a in texts if len(re.findall(r"\w+", a.text)) >= WORDS]
    distinct = len({" ".join(a.text.split()) for a in texts})
    most = max(Counter(usable).values(), default=0)
    draws = Draws(
        verdict="varied",
        asked=time.time(),
        temperature=temperature,
        draws=len(answers),
        usable=len(usable),
        distinct=distinct,
        most=most,
        digests=tuple(hashlib.sha256(a.text.encode()).hexdigest()[:16] for a in texts),
    )
    if len(usable) >= ALIKE and most >= ALIKE:
        return msgspec.structs.replace(draws, verdict="alike")
    if len(usable) >= ALIKE or distinct >= DISTINCT:
        return draws
    return msgspec.structs.replace(draws, verdict="unclear", reason=_why(answers, len(texts), len(usable)))


def _commonest(answers: Sequence[AnyResponse | ModelError]) -> str:
    texts = Counter(beginning(answer.text) for answer in answers if isinstance(answer, Generation))
    return texts.most_common(1)[0][0]


def beginning(text: str) -> str:
    """Return the part of a draw that is compared: what it repeats of the questions is no part of it."""
    words = (word for word in re.findall(r"\w+", text.casefold()) if word not in _ASKED)
    return "".join(letter for word in words for letter in word if letter.isalnum())[:BEGINNING]


def _why(answers: Sequence[AnyResponse | ModelError], given: int, usable: int) -> str:
    kinds: Counter[str] = Counter()
    for answer in answers:
        if isinstance(answer, ModelError):
            kinds[f"failed ({answer.code})"] += 1
        elif answer.status != "ok":
            kinds[answer.status] += 1
        elif isinstance(answer, Generation) and not answer.text.strip():
            kinds["empty"] += 1
    kinds[f"of fewer than {WORDS} words"] = given - usable
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)


def halted(canary: Canary) -> HaltedError:
    """Return the error of a canary whose draws are alike."""
    second = canary.second or canary.first
    heat = "its default temperature" if second.temperature is None else f"temperature {second.temperature:g}"
    draws = f"{second.most} of {counted(second.draws, 'answer')} to {QUESTIONS[1]!r} at {heat} begin alike"
    return REPEATS.error(draws=draws)


class Watch:
    """Asks the canary of a stage once, before the first request that samples."""

    def __init__(self, *, accept: bool) -> None:
        self.outcome: Canary | None = None
        self._accept = accept

    def wants(self, requests: Sequence[AnyRequest]) -> Generate | None:
        """Return the request whose settings the canary takes; None if it was asked or nothing samples."""
        if self.outcome is not None:
            return None
        request = next(filter(samples, requests), None)
        return request if isinstance(request, Generate) else None

    async def ask(self, like: Generate, ask: Ask) -> HaltedError | None:
        """Ask; return why the run must stop, if it must."""
        self.outcome = await ask_canary(like, ask)
        return halted(self.outcome) if self.outcome.verdict == "alike" and not self._accept else None
