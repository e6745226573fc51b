"""Checks of each answer of an endpoint, as it arrives: limits, stop texts, context, names, log-probabilities."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import takewhile

import msgspec

from ...contracts.adapter import Remark, RemoteEndpoint
from ...contracts.records import AnyRequest, AnyResponse, Generate, Generation, Likelihoods, Text, TokenScores
from ...fitness import is_cut
from ...reading.reasoning import remaining_marks
from ..reading import as_read
from ..tokens import CHARACTERS_PER_TOKEN, weigh
from .canary import Watch, samples
from .numbers import Numbers
from .records import IN_REASONING, REPEATS, Canary, Finding, Integrity, Sighting

SLACK = 1
"""Tokens above a limit that are let pass: some servers count the token that ends an answer."""
OVER_CONTEXT = 1.5
"""A prompt is longer than the context where a rule of thumb puts it at this many times as many tokens."""
PLATEAU, LONGEST, TELLING = 3, 256, 1.3
"""Prompts of different length with one number of tokens, which is at least this large, whose longest is this many times
as long as the shortest: they were cut off."""
LENGTHS, LOOSER = 512, 1.5
"""Lengths of prompts that are kept, the longest; and how many times as many characters a token the longest must have as
all others, if a server cut them off to less than it would have read whole, as Ollama does to half of its context."""
SHOWN, SHOWN_MARKS = 60, 3
"""Characters of an answer, and marks, that a finding shows."""
PROMPTS, WORDS = 20, 10
"""Different prompts that one text of at least so many words must answer, and nothing else any of them. A text that a
prompt offers is a choice, which may be the same every time."""
_DATED = r"\d{4,}|v\d+|latest|preview|exp|experimental|stable|free"
_LEAVES_OUT = re.compile(_DATED)
_ADDS = re.compile(rf"{_DATED}|\d+|gguf|awq|gptq|fp\d+|bf\d+|int\d+|q\d.*|[kmsl]|xs")
"""Parts that a reply may leave out of the name that was asked, and those that it may add."""


class Inspector:
    """Looks at the answers of one endpoint in one stage. Nothing of an answer is kept but counts."""

    def __init__(self, model: str, expected: RemoteEndpoint, canary: Watch | None = None) -> None:
        self.canary = canary
        self._expected, self._model = expected, model
        self._checked = 0
        self._findings: dict[str, Finding] = {}
        self._models: dict[str, Sighting] = {}
        self._fingerprints: dict[str, Sighting] = {}
        self._longest: dict[int, bytes] = {}
        self._most_tokens = 0
        self._text: str | None = None
        self._told: set[int] = set()
        """The text of all answers so far, and the prompts that it answers, while there is one."""
        self._varied = False
        self._sizes: dict[int, tuple[int, bytes]] = {}
        """Tokens and key by characters; 0 tokens where they differ."""
        self._providers: dict[str, Sighting] = {}
        self._numbers = Numbers()

    def wants_canary(self, request: AnyRequest) -> bool:
        """Return whether the canary is to be asked before this request."""
        return self.canary is not None and self.canary.outcome is None and samples(request)

    def hear(self, remark: Remark) -> None:
        """Receive what the endpoint says of itself beside an answer."""
        sighting = Sighting(1, now := time.time(), now)
        names = (
            (remark.model, self._models),
            (remark.fingerprint, self._fingerprints),
            (remark.provider, self._providers),
        )
        for name, seen in names:
            if name:
                seen[name] = seen[name].plus(sighting) if name in seen else sighting

    def look(self, key: bytes, request: AnyRequest, answer: AnyResponse) -> None:
        """Look at an answer."""
        self._checked += 1
        self._look_at_prompt(key, request, answer)
        match answer:
            case Generation() if isinstance(request, Generate):
                self._look_at_text(key, request, answer)
                self._look_at_reasoning(key, answer)
                if answer.top_logprobs and not request.sample and not request.attempt:
                    tops = [candidate.log_probability for position in answer.top_logprobs for candidate in position]
                    self._numbers.see(key, tops)
            case Likelihoods():
                self._numbers.see(key, [value for score in answer.scores for value in _values(score)])
            case TokenScores():
                self._numbers.see(key, _values(answer))
            case _:
                pass

    def result(self, repeated: str = "") -> Integrity:
        """Return what was found."""
        findings = [*self._findings.values(), *self._names(), *self._numbers.findings()]
        canary = self.canary.outcome if self.canary is not None else None
        if canary is not None and canary.verdict == "alike":
            findings.insert(0, Finding(name=REPEATS, count=_alike(canary), detail=_drawn(canary)))
        return Integrity(
            checked=self._checked,
            canary=canary,
            repeated=repeated,
            findings=tuple(findings),
            models=dict(self._models),
            fingerprints=dict(self._fingerprints),
            providers=dict(self._providers),
        )

    def _look_at_reasoning(self, key: bytes, received: Generation) -> None:
        """Look whether the server's parser of reasoning fits the model."""
        ended = received.status == "ok" and not is_cut(received)
        if ended and received.reasoning.strip() and not received.text.strip():
            self._find(IN_REASONING, key, repr(" ".join(received.reasoning.split())[-SHOWN:]))
        if marks := remaining_marks(received.text):
            self._find("marks", key, ", ".join(map(repr, marks[:SHOWN_MARKS])))

    def _look_at_text(self, key: bytes, request: Generate, received: Generation) -> None:
        answer = as_read(received)
        assert isinstance(answer, Generation)
        if not self._varied and answer.status == "ok":
            self._text = self._text or answer.text
            short = len(answer.text.split()) < WORDS
            self._varied = answer.text != self._text or short or _is_offered(answer.text, request)
            self._told.add(hash(request.messages))
        limit = request.sampling.max_tokens or self._expected.max_tokens
        if limit is not None and answer.usage.output_tokens > (most := limit + self._expected.answer_room) + SLACK:
            self._find("max-tokens", key, f"{answer.usage.output_tokens} tokens where {most} were allowed")
        if answer.status == "ok" and (left := next((s for s in request.sampling.stop if s in answer.text), None)):
            self._find("stop", key, repr(left))

    def _look_at_prompt(self, key: bytes, request: AnyRequest, answer: AnyResponse) -> None:
        tokens, context = answer.usage.input_tokens, self._expected.context
        if tokens < LONGEST and context is None:
            return
        characters, images = weigh(request)
        if images or not isinstance(request, Generate):
            return
        guess = characters / CHARACTERS_PER_TOKEN
        if context is not None and (tokens > context or guess > OVER_CONTEXT * context):
            size = f"{tokens} tokens" if tokens > context else f"{characters} characters, counted as {tokens} tokens,"
            self._find("context", key, f"{size} where the context has {context}")
        if tokens > self._most_tokens:
            self._most_tokens, self._longest = tokens, {}
        if tokens == self._most_tokens and tokens >= LONGEST:
            self._plateau(key, characters)
        if tokens >= LONGEST:
            earlier = self._sizes.get(characters, (tokens, key))
            self._sizes[characters] = (tokens if earlier[0] == tokens else 0, earlier[1])
            if len(self._sizes) > LENGTHS:
                del self._sizes[min(self._sizes)]

    def _plateau(self, key: bytes, characters: int) -> None:
        self._longest.setdefault(characters, key)
        if len(self._longest) > PLATEAU:
            del self._longest[sorted(self._longest)[1]]  # the shortest and the longest are kept

    def _find(self, name: str, key: bytes, detail: str) -> None:
        earlier = self._findings.get(name)
        if earlier is None:
            self._findings[name] = Finding(name=name, count=1, key=key.hex(), detail=detail)
        else:
            self._findings[name] = msgspec.structs.replace(earlier, count=earlier.count + 1)

    def _names(self) -> list[Finding]:
        findings = []
        lengths = sorted(self._longest)
        if len(lengths) >= PLATEAU and lengths[-1] >= TELLING * lengths[0]:
            detail = f"{lengths[0]} to {lengths[-1]} characters are {self._most_tokens} tokens each"
            key = self._longest[lengths[-1]].hex()
            findings.append(Finding(name="truncated", count=len(lengths), key=key, detail=detail))
        elif (halved := self._halved()) is not None:
            findings.append(halved)
        if not self._varied and len(self._told) >= PROMPTS:
            detail = f"{len(self._told):,} prompts, {' '.join((self._text or '').split())[:80]!r}"
            findings.append(Finding(name="one-text", count=self._checked, detail=detail))
        names = self._expected.names or (self._model,)
        if other := [name for name in self._models if not any(is_name_of(name, asked) for asked in names)]:
            count = sum(self._models[name].count for name in other)
            detail = f"{self._model!r} was asked, {', '.join(map(repr, other[:3]))} answered"
            findings.append(Finding(name="other-model", count=count, detail=detail))
        for what, seen in (("model-changed", self._models), ("providers", self._providers)):
            if len(seen) > 1:
                ordered = sorted(seen.items(), key=lambda item: item[1].first)
                count = sum(sighting.count for _, sighting in ordered[1:])
                detail = ", then ".join(f"{name!r} ({sighting.count:,} answers)" for name, sighting in ordered[:3])
                findings.append(Finding(name=what, count=count, detail=detail))
        return findings

    def _halved(self) -> Finding | None:
        """Return the finding of a server that cuts long prompts to fewer tokens than it reads of shorter ones."""
        ordered = sorted(self._sizes, reverse=True)
        tokens = self._sizes[ordered[0]][0] if ordered else 0
        cut = list(takewhile(lambda characters: self._sizes[characters][0] == tokens, ordered))
        if not tokens or len(cut) < PLATEAU:
            return None
        others = [size / self._sizes[size][0] for size in ordered[len(cut) :] if self._sizes[size][0]]
        if cut[-1] / tokens < (LOOSER * max(others) if others else 2 * CHARACTERS_PER_TOKEN):
            return None
        detail = f"the longest, of {cut[-1]} to {cut[0]} characters, are {tokens} tokens each"
        return Finding(name="truncated", count=len(cut), key=self._sizes[cut[0]][1].hex(), detail=detail)


def is_name_of(reply: str, asked: str) -> bool:
    """Return whether a name in a reply can be that of the model asked: the same, or a version or vendor's name of it.

    Names are compared by their parts: `gpt-4o-2024-08-06` is a version of `gpt-4o`, and `gpt-4o-mini` is another model.
    """
    asked_parts, reply_parts = _parts(asked), _parts(reply)
    lost = [part for part in asked_parts if part not in reply_parts and not _LEAVES_OUT.fullmatch(part)]
    added = [part for part in reply_parts if part not in asked_parts and not _ADDS.fullmatch(part)]
    return not lost and not added


def _parts(name: str) -> list[str]:
    """Return the parts of a name without folders, vendor and file ending, in lower case."""
    last = re.split(r"[/\\]", name.strip().lower())[-1].removesuffix(".gguf")
    name_only = re.sub(r"^(?:[a-z]+\.)+(?=[a-z])|:\d+$", "", last)
    return [part for part in re.split(r"[^a-z0-9.]+", name_only) if part]


def _is_offered(text: str, request: Generate) -> bool:
    """Return whether a text is one of those that the request offers: a model may choose one of them every time."""
    answer = _squeezed(text)
    texts = (part.text for message in request.messages for part in message.parts if isinstance(part, Text))
    return any(answer in _squeezed(offered) for offered in (*request.choices, *texts))


def _squeezed(text: str) -> str:
    """Return the letters and digits of a text, in lower case: a model may leave out quotes, numbers and stops."""
    return "".join(filter(str.isalnum, text.casefold()))


def _values(score: TokenScores) -> Sequence[float]:
    return score.values or (score.log_probability,)


def _alike(canary: Canary) -> int:
    return sum(draws.most for draws in (canary.first, canary.second) if draws is not None)


def _drawn(canary: Canary) -> str:
    draws = [drawing for drawing in (canary.first, canary.second) if drawing is not None]
    return f"{_alike(canary)} of {sum(drawing.draws for drawing in draws)} draws of questions without one answer"
