"""Check that a model does what one study needs of it: operations, sampling, images, log-probabilities, long prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ..catalogue.instrument import Instrument
from ..contracts import Stage, Trial, Unreadable
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import ModelAdapter, RemoteEndpoint, abilities_of
from ..contracts.errors import DataError, ModelError, UsageError
from ..contracts.probe import stage_need
from ..contracts.records import AnyResponse, Generate, Generation, Image, Likelihood
from ..contracts.words import counted
from ..engine.integrity.canary import ask_canary, samples
from ..engine.integrity.replies import Inspector
from ..engine.reading import read_answer
from ..engine.tokens import weigh
from ..pictures.names import source_of
from .model import PROBES, SEES, Check, Verdict, checked

LOOKED_AT = 100_000
"""Trials that are searched for what the study needs."""
ASKED = 5
"""Questions of the study that are asked, besides the longest."""
TWICE, HARDLY = 2.0, 1.1
"""A prompt of twice the characters of another that is counted with hardly more tokens was cut off."""
_ENOUGH = {"the model answers"}
"""Of the checks of `generate`, the one of every study; the rest is replaced by the study's own questions."""
Ask = Callable[[ModelAdapter], Awaitable[tuple[Verdict, str]]]


class Questions(NamedTuple):
    """What the trials of a stage ask for."""

    some: tuple[Trial, ...]
    """Trials spread over the stage."""
    longest: Trial
    sampled: Generate | None
    """A request that samples."""
    repeats: bool
    images: bool
    top_logprobs: bool


async def examine_study(instrument: Instrument, adapters: Mapping[str, ModelAdapter]) -> list[Check]:
    """Check what each stage of a study needs of the model of its role.

    Args:
        instrument: the study's probe and options.
        adapters: by role, bound to a store for images.

    Raises:
        ModelLoadError: a model cannot be loaded, so there is nothing to ask.
        MissingExtraError: what it needs is not installed.
        DataError: the study has no trial.
    """
    checks: list[Check] = []
    for place, stage in enumerate(instrument.every_stage()):
        label = f"{stage.name} ({stage.role})"
        adapter = adapters.get(stage.role)
        if adapter is None:
            optional = "the study can do without" if stage.rules.optional else "a run needs one"
            why = f"no model is named for it: --model {stage.role}=NAME; {optional}"
            checks.append(Check(label, "skip", why))
            continue
        checks += [Check(f"{label}: {c.name}", c.verdict, c.detail) for c in await _stage(stage, adapter, place == 0)]
    return checks


async def _stage(stage: Stage, adapter: ModelAdapter, first: bool) -> list[Check]:
    operation = OPERATIONS[stage.operation]
    if why := abilities_of(adapter).missing(stage_need(stage)):
        return [Check(f"it can {operation}", "fail", why)]
    try:
        stage.check_model(adapter.identity)
    except UsageError as error:
        return [Check("it fits the study's options", "fail", str(error))]
    found = [Check(f"it can {operation}", "pass", "the adapter offers it")]
    questions = _questions(stage) if first else None
    general = PROBES[stage.operation]
    chosen = {n: p for n, p in general.items() if stage.operation is not Generate or n in _ENOUGH}
    if questions is not None and questions.images and stage.operation is Generate:
        chosen[SEES] = general[SEES]
    found += [await checked(name, probe, adapter) for name, probe in chosen.items()]
    # A study about images needs a model that sees them.
    found = [Check(c.name, "fail", c.detail) if c.name == SEES and c.verdict == "skip" else c for c in found]
    if questions is None:
        return [*found, Check("its questions", "skip", "they depend on the answers of the stage before")]
    _keep_images(stage, adapter, [*questions.some, questions.longest])
    own = _own(stage, questions)
    return [*found, *[await checked(name, probe, adapter) for name, probe in own.items()]]


def _own(stage: Stage, questions: Questions) -> dict[str, Ask]:
    """Return the checks with the study's own questions."""
    checks: dict[str, Ask] = {"answers can be read": lambda adapter: _readable(stage, questions, adapter)}
    checks["the longest prompt is answered, and not cut off"] = lambda adapter: _whole(questions, adapter)
    if questions.sampled is not None:
        like = questions.sampled
        what = "repeats are draws of their own" if questions.repeats else "answers are drawn"
        checks[what] = lambda adapter: _draws(like, adapter)
    if questions.top_logprobs or stage.operation is Likelihood:
        checks["log-probabilities are given as they are"] = lambda adapter: _values(questions, adapter)
    return checks


def _questions(stage: Stage) -> Questions:
    trials = list(islice(stage.trials({}), LOOKED_AT))
    if not trials:
        raise DataError(f"the stage {stage.name!r} has no trial. {stage.shortage()}".strip(), code="study.empty")
    requests = [trial.request for trial in trials]
    sampled = next((one for one in requests if samples(one) and isinstance(one, Generate)), None)
    generated = [one for one in requests if isinstance(one, Generate)]
    longest = max(trials, key=lambda trial: weigh(trial.request)[0])
    step = max(1, len(trials) // ASKED)
    ordered = sorted(trials[::step][:ASKED], key=lambda trial: weigh(trial.request)[0])
    return Questions(
        some=tuple(ordered),
        longest=longest,
        sampled=sampled,
        repeats=any(one.sample for one in generated),
        images=any(weigh(one)[1] for one in requests),
        top_logprobs=any(one.top_logprobs for one in generated),
    )


def _images_of(trials: Sequence[Trial]) -> Iterator[str]:
    for trial in trials:
        messages = getattr(trial.request, "messages", getattr(trial.request, "prompt", ()))
        for message in messages if isinstance(messages, tuple) else ():
            yield from (source_of(part.sha256) for part in message.parts if isinstance(part, Image))


def _keep_images(stage: Stage, adapter: ModelAdapter, trials: Sequence[Trial]) -> None:
    wanted = set(_images_of(trials))
    if not wanted or adapter.services.keep is None:
        return
    for data, media_type in stage.images():
        wanted.discard(adapter.services.keep(data, media_type))
        if not wanted:
            return


def _inspector(adapter: ModelAdapter) -> Inspector:
    return Inspector(adapter.identity.model, adapter.endpoint or RemoteEndpoint(name=""))


async def _answer(adapter: ModelAdapter, trial: Trial) -> AnyResponse:
    (answer,) = await adapter.answer([trial.request])
    if isinstance(answer, ModelError):
        raise answer
    return answer


async def _readable(stage: Stage, questions: Questions, adapter: ModelAdapter) -> tuple[Verdict, str]:
    outcomes = [read_answer(stage, trial.factors, await _answer(adapter, trial)) for trial in questions.some]
    read = sum(one is not None and not isinstance(one, Unreadable) for one in outcomes)
    reasons = sorted({one.reason for one in outcomes if isinstance(one, Unreadable)})
    why = f" ({'; '.join(reasons)[:200]})" if reasons else ""
    return ("pass" if read else "fail"), f"{read} of {len(outcomes)} answers to questions of the study{why}"


async def _whole(questions: Questions, adapter: ModelAdapter) -> tuple[Verdict, str]:
    short, long = questions.some[0], questions.longest
    (few, _), (many, images) = weigh(short.request), weigh(long.request)
    answer = await _answer(adapter, long)
    tokens, context = answer.usage.input_tokens, adapter.endpoint.context if adapter.endpoint is not None else None
    told = f"{many:,} characters" + (f", {tokens:,} tokens" if tokens else "")
    inspector = _inspector(adapter)
    inspector.look(b"", long.request, answer)
    if any(one.name == "context" for one in inspector.result().findings):
        return "fail", f"{told} where the context has {context:,}"
    if tokens and not images and many >= TWICE * max(few, 1):
        other = (await _answer(adapter, short)).usage.input_tokens
        if other and tokens <= HARDLY * other:
            return "fail", f"{told}; a prompt of {few:,} characters has {other:,} tokens: it may be cut off"
    return "pass", told


async def _draws(like: Generate, adapter: ModelAdapter) -> tuple[Verdict, str]:
    async def ask(requests: Sequence[Generate]) -> Sequence[AnyResponse | ModelError]:
        return await adapter.answer(requests)

    canary = await ask_canary(like, ask)
    draws = canary.first if canary.second is None or canary.verdict == "narrow" else canary.second
    told = f"{counted(draws.distinct, 'distinct answer')} to {draws.draws} draws"
    if canary.verdict == "alike":
        told += f", {draws.most} begin alike: the endpoint ignores the temperature, or a cache answers"
    if canary.verdict == "narrow":
        told += " at the study's temperature, which is low; at 1 they differ"
    if canary.verdict == "unclear":
        told = f"it could not tell: {draws.reason}"
    failed = "failed" in draws.reason
    verdict: Verdict = "fail" if canary.verdict == "alike" or failed else "pass"
    return ("skip" if canary.verdict == "unclear" and not failed else verdict), told


async def _values(questions: Questions, adapter: ModelAdapter) -> tuple[Verdict, str]:
    inspector = _inspector(adapter)
    given = 0
    for number, trial in enumerate(questions.some):
        answer = await _answer(adapter, trial)
        given += not isinstance(answer, Generation) or bool(answer.top_logprobs)
        inspector.look(bytes([number]), trial.request, answer)
    if not given:
        return "fail", f"none of {len(questions.some)} answers has the log-probabilities that were asked for"
    wrong = [one.words for one in inspector.result().findings if one.name in ("rounded", "clipped")]
    return ("fail", "; ".join(wrong)) if wrong else ("pass", f"{given} of {len(questions.some)} answers have them")
