"""The answers of `simulated` to each request, in closed form.

Every score holds `tilt`, which is all there is of bias and noise:

    lean = spread * z(skeleton) + word_spread * z(word) + item_spread * z(item)
    tilt = described / 2 * (strength * valued + lean) + valued / 2 * group_spread * z(group) + noise / sqrt(2) * z(text)

where `described` and `valued` are the signs of the listed words and z is a standard normal number that belongs to a
text, to the positive or negative word in it or to the desirable or undesirable one, its group (the mean of several).
The item is the text without the words of `described`. Two texts that differ only in a desirable and an
undesirable word thus differ by +strength on average beside positive words and by -strength beside negative ones, plus
leans of their template (standard deviation `spread`), word (`word_spread`), groups (`group_spread`) and item
(`item_spread`), which are no bias, since others have others, and noise of their own (`noise`), all in nats.

An inference that is asked for (`Premise:`, `Hypothesis:`) has no such words in its labels. Each label scores

    item_spread * z(item, label) + prompt_spread * z(prompt, label) + word_spread * z(word, prompt, label)

so prompts differ (`prompt_spread`), also in what they make of a positive or negative word (`word_spread`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.contracts.adapter import Services
from ...core.contracts.canonical import question_of
from ...core.contracts.errors import PermanentError
from ...core.contracts.records import (
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
    Prompt,
    PseudoLikelihood,
    TokenScores,
    Usage,
)
from .analogies import analogy_in
from .choices import Choice, Listed, listed
from .completions import Completions, begun
from .habits import UNREADABLE, Habits
from .inferences import Inference, inference_in
from .masks import Masked, masked_in, reworded
from .noise import LARGEST, Leans, Noise
from .pictures import Faces, only_image, squares
from .planted import Planted
from .responses import POLITE, REFUSAL, choose, cut, softmax, top_tokens
from .scenes import Scene, Scenes
from .words import CACHED, CLASH, NEITHER, WORD, Lists, Signs, clashes, images_of, scored_words, words_of

LARGEST_SIDE = 2048
"""Of a drawing, in pixels."""
NEUTRAL = "neutral"
DECLINED = 0.25
"""Share of the people in drawings about whom a model that declines by group does so."""
NAMED = 4
"""Number of words of each list that may answer an open question."""
_encode = msgspec.json.Encoder().encode


class Stem(NamedTuple):
    """A question without its options."""

    text: str
    signs: Signs
    skeleton: str


class Answers:
    """One method per operation; each response depends on its request alone."""

    def __init__(
        self,
        planted: Planted,
        noise: Noise,
        lists: Lists,
        subjects: tuple[Sequence[str], ...],
        habits: Habits,
        masks: Mapping[str, Masked],
    ) -> None:
        """Take the numbers, the noise, the lists, the words that an answer may name, the habits, and known masks."""
        self._habits, self._masks = habits, masks
        self._planted, self._noise, self._lists, self._subjects = planted, noise, lists, subjects
        # Keeps every log-probability below 0, which is where those of a real model are.
        self._floor = (
            abs(planted.strength) / 2
            + planted.analogies
            + habits.reach
            + LARGEST * ((planted.spread + planted.leans) / 2 + planted.noise / math.sqrt(2))
            + 1
        )
        self._leans = Leans(noise, planted.correlation, planted.unequal)
        self._vector = lru_cache(CACHED)(self._word_vector)
        self._faces = Faces(noise, self._leans, planted)
        self._completions = Completions(noise, planted.strength, planted.spread, planted.noise)
        self._scenes = Scenes(noise, self._completions) if planted.scenes else None
        self._misread = self._misread_as() if planted.misread_stereotype or planted.misread_opposite else {}
        self.services: Callable[[], Services] = Services

    def pseudo_likelihood(self, request: PseudoLikelihood) -> TokenScores:
        """Score the words that are not conditioned on; words that a pair shares score the same in both sentences."""
        words = scored_words(request)
        ease = 4 * self._noise.uniform("ease", " ".join(words)) - 4 - 4 * len(words) - CLASH * clashes(words)
        ease += self._habits.words(words) + self._habits.drift
        return self._scored(ease + self._tilt(self._lists.signs(request.text), request.text), len(words))

    def likelihood(self, request: Likelihood) -> Likelihoods:
        """Score continuations. Length is ignored, so that options of different length differ by the bias alone."""
        prompt = words_of(request.prompt)
        marked = self._marked(prompt, request)
        scores = [marked.get(text.strip()) or self._continued(prompt, text) for text in request.continuations]
        if not scores:
            raise PermanentError("the request has no continuation to score. Give one or more.", code="request.empty")
        return Likelihoods(scores=tuple(scores), usage=Usage(input_tokens=_count(prompt)))

    def generate(self, request: Generate) -> Generation:
        """Complete a sentence, choose one of the options that the prompt lists, or name a listed word."""
        prompt = words_of(request.messages)
        usage = Usage(input_tokens=_count(prompt), output_tokens=1)
        asked = _encode(question_of(request) if self._planted.same_samples else request)
        draws = self._noise.draws(asked)
        if draws.refusal < self._habits.refusal_rate(self._about(prompt, request)):
            return self._refused(request, asked, usage)
        if (told := self._described(request, asked)) is not None:
            text, reason = cut(told, request)
            return Generation(text=text, finish_reason=reason, usage=usage)
        answers, scores = self._alternatives(prompt, request)
        errs = self._errs(asked)
        chosen = choose(
            [0.0] * len(scores) if errs else scores, 1.0 if errs else request.sampling.temperature, draws.answer
        )
        text, reason = cut(self._written(answers, chosen, asked), request)
        top = top_tokens(answers, scores, request.top_logprobs) if request.top_logprobs else ()
        return Generation(text=text, finish_reason=reason, top_logprobs=top, usage=usage)

    def classify(self, request: Classify) -> Classification:
        """Give sentiment for a text, entailment for a pair of texts; the neutral label's logit is 0."""
        text = request.text if request.pair is None else f"{request.text}\n{request.pair}"
        described, valued = self._lists.signs(text)
        planted, own = self._planted, self._planted.noise * self._noise.normal("class", text) + self._habits.drift
        if request.pair is None:
            labels, odds = ("positive", NEUTRAL, "negative"), planted.strength * described + 2 * valued + own
        else:
            signs, skeleton = Signs(described, valued), self._lists.skeleton(text)
            labels, odds = ("entailment", NEUTRAL, "contradiction"), 2 * self._leaning(signs, text, skeleton) + own
        scores = (odds / 2, 0.0, -odds / 2)
        leaning = [score + self._habits.label(label) for score, label in zip(scores, labels, strict=True)]
        weights = softmax(leaning)
        if self._errs(text.encode()):
            weights = [float(int(3 * self._noise.uniform("err", text)) == place) for place in range(3)]
        return Classification(
            probabilities=dict(zip(labels, weights, strict=True)), usage=Usage(input_tokens=_count(text))
        )

    def embed(self, request: Embed) -> Embedding:
        """Add up the vectors of the words, and scale to length 1."""
        text = self._misread.get(request.text, request.text)
        words = WORD.findall(text.lower())
        total = np.sum([self._vector(word) for word in words or [""]], axis=0)
        vector = total / np.linalg.norm(total)
        return Embedding(vector=tuple(vector.tolist()), usage=Usage(input_tokens=len(words)))

    def draw(self, request: Draw) -> Drawing:
        """Draw squares; a share of `refusal_rate` of the prompts and seeds is filtered."""
        if not (1 <= request.width <= LARGEST_SIDE and 1 <= request.height <= LARGEST_SIDE):
            size = f"{request.width} x {request.height}"
            raise PermanentError(
                f"an image of {size} pixels cannot be drawn. Give sides from 1 to {LARGEST_SIDE}.", code="request.size"
            )
        encoded = _encode(request)
        if self._noise.draws(encoded).refusal < self._planted.refusal_rate:
            return Drawing(image=None, status="filtered")
        comment = self._scenes.drawn(request.prompt, encoded).comment if self._scenes else ""
        data = squares(self._noise.key("image", encoded.decode()), request.width, request.height, comment)
        keep = self.services().keep
        return Drawing(image=keep(data, "image/png") if keep else hashlib.sha256(data).hexdigest())

    def _tilt(self, signs: Signs, text: str) -> float:
        return self._tilted(signs, text, lambda: self._lists.skeleton(text))

    def _tilted(self, signs: Signs, text: str, skeleton: Callable[[], str]) -> float:
        planted = self._planted
        tilt = planted.noise / math.sqrt(2) * self._noise.normal("item", text) + signs.valued / 2 * self._habits.drift
        if signs.described:
            tilt += self._leaning(signs, text, skeleton() if planted.spread else "")
        elif signs.valued and planted.group_spread:
            tilt += self._group_lean(signs, text)
        return tilt

    def _leaning(self, signs: Signs, text: str, skeleton: str) -> float:
        """Return what is planted in a text: the bias, and the leans of its template, words, groups and item."""
        planted, leans = self._planted, self._leans
        lean = planted.spread * leans.of("lean", skeleton) if planted.spread else 0.0
        if planted.word_spread:
            lean += planted.word_spread * leans.mean("word lean", self._lists.valued(text))
        if planted.item_spread:
            lean += planted.item_spread * leans.of("item lean", self._lists.undescribed(text))
        tilt = signs.described / 2 * (planted.strength * signs.valued + lean)
        return tilt + self._group_lean(signs, text) if planted.group_spread else tilt

    def _group_lean(self, signs: Signs, text: str) -> float:
        groups = self._lists.described(text)
        return signs.valued / 2 * self._planted.group_spread * self._leans.mean("group lean", groups)

    def _label_lean(self, inference: Inference, label: str) -> float:
        """Return the leans of an inference's item, prompt and words to a label."""
        planted, leans, prompt = self._planted, self._leans, inference.prompt
        found = planted.item_spread * leans.of("inferred item", f"{inference.item}|{label}")
        found += planted.prompt_spread * leans.of("prompt", f"{prompt}|{label}")
        words = tuple(f"{word}|{prompt}|{label}" for word in self._lists.valued(inference.item))
        return found + planted.word_spread * leans.mean("inferred word", words)

    def _scored(self, score: float, count: int) -> TokenScores:
        values = ((score - self._floor) / count,) * count
        return TokenScores(log_probability=math.fsum(values), count=count, values=values)

    def _continued(self, prompt: str, continuation: str) -> TokenScores:
        if not (count := _count(continuation)):
            raise PermanentError(f"continuation {continuation!r} has no word to score.", code="request.empty")
        text = prompt + continuation
        signs = self._lists.signs(text)
        score = self._tilt(signs, text) + self._habits.text(continuation) + self._listed_lean(prompt, continuation)
        if self._planted.leans and (inference := inference_in(prompt)) is not None:
            score += self._label_lean(inference, continuation.strip().lower())
        if (self._planted.analogies or self._planted.word_spread) and (analogy := analogy_in(prompt)) is not None:
            described = self._lists.signs(analogy.second).described
            score += analogy.lean(continuation.strip(), described, self._planted)
            # The text names two groups, so that no sign of it says whom the end is about.
            lean = self._leans.mean("word lean", self._lists.valued(continuation)) if self._planted.word_spread else 0.0
            score += described / 2 * self._planted.word_spread * lean
        if signs == NEITHER:
            score -= CLASH * clashes(WORD.findall(f"{_last(prompt)} {continuation}"))
        return self._scored(score, count)

    def _alternatives(self, prompt: str, request: Generate) -> tuple[list[str], list[float]]:
        """Return the possible answers, and the score of each."""
        if (sentence := begun(prompt)) is not None:
            words = self._completions.choices(sentence)
            return [word.answer for word in words], self._completions.scores(sentence)
        if (masked := masked_in(prompt, self._masks)) is not None:
            return [choice.answer for choice in masked.choices(self._planted.reworded)], self._completed(masked)
        found = listed(prompt)
        if found is None:
            named = Listed(prompt, tuple(self._named(prompt, request)))
            return [choice.answer for choice in named.choices], self._fits(named, request.messages)
        return [choice.answer for choice in found.choices], self._scores(found, request.messages)

    def _about(self, prompt: str, request: Generate) -> int:
        """Return whether a question is about a desirable (1) or undesirable (-1) group, or neither (0).

        Whom a drawing shows is undesirable at random, since the words that say so are in no list.
        """
        described = self._lists.signs(prompt).described
        if described or not self._planted.refusal_lean or (scene := self._shown(request)) is None:
            return described
        return -1 if self._noise.uniform("declined", scene.people) < DECLINED else 0

    def _refused(self, request: Generate, asked: bytes, usage: Usage) -> Generation:
        if not self._planted.polite:
            return Generation(text=REFUSAL, status="refused", finish_reason="refusal", usage=usage)
        text, reason = cut(POLITE[int(self._noise.of("polite", asked) * len(POLITE))], request)
        return Generation(text=text, finish_reason=reason, usage=usage)

    def _shown(self, request: Generate) -> Scene | None:
        """Return what the only picture of a question shows; None where it says nothing of it."""
        if self._scenes is None or (image := only_image(request.messages)) is None:
            return None
        return self._scenes.seen(image, self.services().blobs)

    def _described(self, request: Generate, asked: bytes) -> str | None:
        """Return the description of a drawing that says what it shows; None where there is none."""
        if self._scenes is None or (scene := self._shown(request)) is None:
            return None
        return self._scenes.described(scene, only_image(request.messages) or "", asked)

    def _misread_as(self) -> dict[str, str]:
        """Return what an encoder takes for what, of completions in words that no reference has."""
        found, planted = {}, self._planted
        for masked in self._masks.values():
            for text, other, share in (
                (masked.stereotype, masked.opposite, planted.misread_stereotype),
                (masked.opposite, masked.stereotype, planted.misread_opposite),
            ):
                if self._noise.uniform("misread", text) < share:
                    found[reworded(text)] = reworded(other)
        return found

    def _completed(self, masked: Masked) -> list[float]:
        """Return the scores of a stereotype and of its opposite: the bias, and leans of the item and of its words."""
        planted, leans, own = self._planted, self._leans, self._noise.normal("item", masked.masked)
        half = (planted.strength + planted.noise * own + self._habits.drift) / 2
        if planted.item_spread:
            half += planted.item_spread * leans.of("item lean", masked.masked) / 2
        return [
            sign * half
            + planted.group_spread * leans.mean("group lean", masked.filled(text))
            + planted.word_spread * leans.mean("word lean", masked.filled(text))
            + self._habits.text(text)
            for sign, text in ((1, masked.stereotype), (-1, masked.opposite))
        ]

    def _scores(self, found: Listed, prompt: Prompt) -> list[float]:
        """Return the scores of listed options, habits included."""
        habits = (self._habits.option(choice, place) for place, choice in enumerate(found.choices))
        return [fit + habit for fit, habit in zip(self._fits(found, prompt), habits, strict=True)]

    def _fits(self, found: Listed, prompt: Prompt) -> list[float]:
        stem = Stem(found.stem, self._lists.signs(found.stem), self._lists.skeleton(found.stem))
        face = self._faces.seen(prompt, self.services().blobs)
        return [
            self._fit(stem, choice) + self._faces.lean(face, choice.text, self._lists.signs(choice.text).valued)
            for choice in found.choices
        ]

    def _marked(self, prompt: str, request: Likelihood) -> dict[str, TokenScores]:
        """Return the scores of the labels of listed options, where a drawn face is asked about."""
        if self._faces.seen(request.prompt, self.services().blobs) is None or (found := listed(prompt)) is None:
            return {}
        labels = (choice.answer.removesuffix(choice.text).strip() for choice in found.choices)
        scores = self._scores(found, request.prompt)
        return {label: self._scored(score - self._faces.reach, 1) for label, score in zip(labels, scores, strict=True)}

    def _named(self, prompt: str, request: Generate) -> list[Choice]:
        """Return the answers to an open question: as many words of the better list as of the worse one."""
        described, valued = self._lists.signs(prompt)
        # A prompt that describes somebody is asked about the value, any other about the description.
        pair = [words for words in (self._subjects[2:] if described and not valued else self._subjects[:2]) if words]
        count, at = min([NAMED, *map(len, pair)]), self._noise.uniform("word", prompt)
        names = [words[(int(at * len(words)) + step) % len(words)] for words in pair for step in range(count)]
        seen = "".join(f" I see {name[:8]}." for name in images_of(request.messages))
        return [Choice(f"I think of someone {name}.{seen}", name) for name in names] or [Choice("I cannot tell.", "")]

    def _listed_lean(self, prompt: str, continuation: str) -> float:
        """Return the lean to a continuation that names a listed option, or a class, by its place and label."""
        planted = self._planted
        if not (planted.position_lean or planted.label_spread):
            return 0.0
        text, found = continuation.strip(), listed(prompt)
        for place, choice in enumerate(found.choices if found else ()):
            mark = choice.answer.removesuffix(choice.text).strip()
            if text in (choice.answer, choice.text, mark, mark.strip("().:[]")):
                return self._habits.option(choice, place) - self._habits.text(choice.text)
        return self._habits.label(text) if inference_in(prompt) is not None else 0.0

    def _errs(self, asked: bytes) -> bool:
        """Return whether the model answers this at random."""
        rate = self._planted.error_rate
        return bool(rate) and self._noise.of("error", asked) < rate

    def _written(self, answers: Sequence[str], chosen: int, asked: bytes) -> str:
        """Return the chosen answer, or what cannot be read in its place."""
        share = self._planted.unreadable_share
        alone = share and answers[chosen] == min(answers) and self._noise.of("unreadable", asked) < share
        return UNREADABLE if alone else answers[chosen]

    def _fit(self, stem: Stem, choice: Choice) -> float:
        its = self._lists.signs(choice.text)
        signs = Signs(its.described or stem.signs.described, its.valued or stem.signs.valued)
        # A line break parts words, so that the skeleton of both is that of each.
        skeleton = f"{stem.skeleton} {self._lists.skeleton(choice.text)}".strip()
        return self._tilted(signs, f"{stem.text}\n{choice.text}", lambda: skeleton)

    def _word_vector(self, word: str) -> npt.NDArray[np.float64]:
        vector = self._direction(word)
        described, valued = self._lists.signs(word)
        shift = self._planted.strength * described + valued
        return vector + shift * self._direction("|") if shift else vector

    def _direction(self, word: str) -> npt.NDArray[np.float64]:
        generator = np.random.Generator(np.random.Philox(key=self._noise.key("vector", word)))
        return generator.standard_normal(self._planted.dimension)


def _last(text: str) -> str:
    return "".join(text.rsplit(maxsplit=1)[-1:])


def _count(text: str) -> int:
    return len(text.split())
