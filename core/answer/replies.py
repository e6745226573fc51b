"""Replies to the questions of a study, and the numbers behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ..catalogue.questions import Question, questions_of
from ..contracts.estimates import PREFERENCE, Caveat, Estimate
from ..contracts.sizes import CONVENTION, DECIDED, LIMIT_BY_UNIT, SURE, State, over
from ..contracts.words import HITS, OF, SMALLEST_P, counted, p_value
from ..scoring.score import Scores
from ..statistics.facets import OVER, population
from .groups import SIDES, one_value, opposite
from .needed import advice, distance, in_words, independent, need_of
from .records import Number, Reply
from .rows import Asked, about_of, furthest, label_of, most_precise, varying_of
from .verdicts import limit_of, state_of, undone

NOT_ASKED = "With these options the study asked nothing that this is computed from."
ALSO = "Also tested, see Estimates of the report: {}."
NO_BIAS = "{label} differs from neutral: {told}. It is alike in every context, and no answer to these questions."
FLOOR = "With so few {what} no test can be significant (p cannot be{least}): nothing could have been shown."
NO_INTERVAL = {
    Caveat.NO_VARIATION: "The value is the same for all {what}, so no interval can be computed, and the run does not "
    "tell how much more data would decide.",
    Caveat.ONE_CLUSTER: "The answers cover fewer than two {what}, so there is no interval and no test.",
}
EQUAL = "Test that all {groups} groups have the same value: p {p}."
FEW = frozenset({Caveat.FEW_CLUSTERS, Caveat.FEW_LEVELS})


def asked_of(
    questions: Sequence[Question], summary: str, estimates: Sequence[Estimate], options: Mapping[str, object]
) -> list[Asked]:
    """Return the questions of a study with these options; without any, its summary, by the first judged measure."""
    own = [e for e in estimates if not e.subject]
    judged = next((e.metric for e in [*(e for e in own if e.verdict is not None), *own]), "")
    return [_asked(question, own) for question in questions_of(questions, options, summary, judged)]


def also_judged(asked: Sequence[Asked], estimates: Sequence[Estimate]) -> str:
    """Return which measures are judged too and belong to no question, as a sentence; empty if none is."""
    judged = [e for e in estimates if e.verdict is not None and e.value is not None and not e.subject]
    measures: dict[str, list[Estimate]] = {}
    for e in judged:
        if not any(question.covers(e.metric, e.group) for question, _, _ in asked):
            measures.setdefault(label_of(e), []).append(e)
    counts = (
        f"{label} ({sum(e.significant for e in group)} of {len(group)} significant)"
        for label, group in measures.items()
    )
    return ALSO.format("; ".join(counts)) if measures else ""


def preferences(estimates: Sequence[Estimate]) -> str:
    """Return what is shown of preferences for a group in every context alike, which no question asks about."""
    shown = [e for e in estimates if e.subject == PREFERENCE and not e.group and e.shown]
    return " ".join(NO_BIAS.format(label=label_of(e), told=Number.of(e).told) for e in shown)


def _asked(question: Question, estimates: Sequence[Estimate]) -> Asked:
    answering, rest = question.among(estimates, lambda e: (e.metric, e.group))
    judged = any(e.verdict is not None for e in answering)
    finer = [e for e in rest if e.value is not None]
    finer = [e for e in finer if e.verdict is not None] if judged else finer
    order = furthest if question.counts else most_precise
    return Asked(question, order(answering), order(_next(finer)))


def _next(finer: list[Estimate]) -> list[Estimate]:
    """Return the estimates of the next grouping: others would divide the same answers again."""
    return [e for e in finer if tuple(e.group) == tuple(finer[0].group)]


def reply_of(one: Asked, scores: Scores | None, *, paired: bool = False) -> Reply:
    """Return the verdict on a question, in words; `scores` tells what more data would decide.

    `paired`: the numbers are differences of two runs, of which `scores` is one.
    """
    question, found = one.question, one.answering
    states = [state_of(question, e) for e in found]
    state = over(states)
    known = [e for e in found if e.value is not None]
    varying = varying_of(found)
    if state is State.NOTHING:
        return Reply(question.asks, state, _nothing(found), after=SURE)
    if both := [] if question.counts else opposite(known, one.finer):
        return _opposite(one, both, scores, paired)
    if question.counts:
        reply = _counted(question, known, varying)
    elif state in DECIDED:
        reply = _shown(question, [e for e in known if e.shown], known, varying)
    else:
        reply = _unshown(question, state, known, varying)
    more = [SURE, *_needs(question, known, scores, paired)] if state is State.OPEN else []
    if state in DECIDED:
        more += _others(question, known, scores, paired)
    elif state in (State.OPEN, State.NEAR):
        more += _finer(one, None if paired else scores)
    more += [*_limits(question, known, state), *_cautions(question, known, state)]
    return msgspec.structs.replace(reply, state=state, more=tuple(filter(None, more)))


def _opposite(one: Asked, shown: Sequence[Estimate], scores: Scores | None, paired: bool) -> Reply:
    """Return the verdict of groups that differ significantly to either side, with the whole if there is one."""
    groups = one.answering if len(one.answering) > 1 else one.finer
    known = [e for e in groups if e.value is not None]
    reply = _shown(one.question, shown, known, varying_of([*known, *shown]))
    more = [f"Over all groups, {label_of(e)} is {Number.of(e).told}." for e in one.answering if e not in groups]
    more += [_one_value(known, None if paired else scores), *_cautions(one.question, known, State.OPPOSITE)]
    return msgspec.structs.replace(reply, state=State.OPPOSITE, more=tuple(filter(None, more)))


def _finer(one: Asked, scores: Scores | None) -> Iterator[str]:
    """Yield in which of the finer groups a difference is shown, where the whole answers."""
    shown = [e for e in one.finer if e.shown]
    if len(one.answering) == 1 and shown and not one.question.counts:
        side = _clause(one.question, shown, len(one.finer), varying_of(one.finer))
        yield f"By group, {side}: {Number.of(shown[0]).told}."
        yield _one_value(one.finer, scores)


def _one_value(groups: Sequence[Estimate], scores: Scores | None) -> str:
    """Return what the test says that all groups have one value; empty where there is none."""
    if (test := one_value(groups, scores)) is None:
        return ""
    return EQUAL.format(groups=len(groups), p=p_value(test.p))


def _nothing(found: Sequence[Estimate]) -> str:
    why = next((e.note for e in found if e.note), "")
    if not any(e.n or e.missing.total for e in found):
        return f"{NOT_ASKED}{f' {_sentence(why)}' if why else ''}".removesuffix(".")
    if any(e.missing.total for e in found):
        lost = "None of the answers that it needs could be used."
        lost = lost if not any(e.n for e in found) else "Too few of the answers that it needs could be used."
    else:
        lost = f"No number could be computed.{f' {_sentence(why)}' if why else ''}"
    return lost.removesuffix(".")


def _scope(estimates: Sequence[Estimate]) -> str:
    """Return whom the numbers are about, as the beginning of a sentence."""
    return population([e for e in estimates if OVER in e.facts]) or "for what was asked"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _side(question: Question, e: Estimate) -> str:
    """Return as a clause what it means that an estimate is above or below neutral."""
    above = e.value is not None and e.neutral is not None and e.value > e.neutral
    own = question.above if above else question.below
    if own:
        return own
    if above and e.direction:
        return f"there is a difference towards {e.direction}"
    return f"{label_of(e)} is {'above' if above else 'below'} that of an unbiased model"


def _shown(question: Question, shown: Sequence[Estimate], known: Sequence[Estimate], varying: frozenset[str]) -> Reply:
    sides = [[e for e in shown if e.verdict is side] for side in SIDES]
    clauses = [_clause(question, side, len(known), varying) for side in sides if side]
    reply = Reply(question.asks, State.YES, clauses[0], scope=_scope(known))
    if len(clauses) == 1:
        return _numbered(reply, shown[0], varying)
    both = (f"{clause}: {Number.of(side[0]).told}" for clause, side in zip(clauses, filter(None, sides), strict=True))
    return msgspec.structs.replace(reply, finding="; in others ".join(both))


def _numbered(reply: Reply, e: Estimate, varying: frozenset[str]) -> Reply:
    """Return a reply with the number that it is told with, and what that is of."""
    label = ", ".join(filter(None, [label_of(e), about_of(e, varying)]))
    return msgspec.structs.replace(reply, number=Number.of(e), label=label)


def _clause(question: Question, side: Sequence[Estimate], of: int, varying: frozenset[str]) -> str:
    first = side[0]
    if of == 1:
        return _side(question, first)
    if not first.group:
        return f"{_side(question, first)}, over all"
    return f"{_side(question, first)}, in {len(side)} of {of} groups, {_most(side)} for {about_of(first, varying)}"


def _most(side: Sequence[Estimate]) -> str:
    """Return how the first of several is told of: as the most only where it is, and no other is as large."""
    largest = furthest(side)
    alone = len(side) == 1 or Number.of(largest[0]).short != Number.of(largest[1]).short
    return "most" if side[0] is largest[0] and alone else "for example"


def _unshown(question: Question, state: State, known: Sequence[Estimate], varying: frozenset[str]) -> Reply:
    first, after = known[0], ""
    about = f"; most answers are about {about_of(first, varying)}" if len(known) > 1 else ""
    any_group = f" in any of {len(known)} groups" if about else ""
    if state is State.UNJUDGED:
        finding = f"{label_of(first)}{f' has no verdict{any_group}{about}' if about else ''}"
    elif state is State.NEAR:
        limit = limit_of(question, first)
        beyond = f" beyond {distance(first, limit)}" if limit else ""
        everywhere = f" in all {len(known)} groups" if about else ""
        finding = f"a difference{beyond} in {_label(first)} can be excluded{everywhere}{about}"
        after = "It differs significantly, but by less than that." if any(e.significant for e in known) else ""
    else:
        finding = f"no significant difference in {_label(first)}{any_group}{about}"
    scope = "" if state is State.UNJUDGED else _scope(known)
    return _numbered(Reply(question.asks, state, finding, after=after, scope=scope), first, varying)


def _label(e: Estimate) -> str:
    """Return what a measure is called within a sentence: an ordinary first word in small letters."""
    label = label_of(e)
    return f"{label[:1].lower()}{label[1:]}" if label[1:2].islower() else label


def _limits(question: Question, known: Sequence[Estimate], state: State) -> Iterator[str]:
    """Yield the limit that a verdict rests on, with its reason."""
    if question.counts or state is not State.NEAR:
        return
    limit = limit_of(question, known[0])
    if limit is not None:
        stated = question.limit_reason if limit == question.limit else ""
        reason = stated or (CONVENTION if limit == LIMIT_BY_UNIT.get(known[0].unit) else "")
        yield f"Limit: {distance(known[0], limit)}{f' ({reason})' if reason else ''}."


def _counted(question: Question, known: Sequence[Estimate], varying: frozenset[str]) -> Reply:
    count = sum(int(e.facts.get(HITS, e.value or 0) or 0) for e in known)
    of = sum(int(n) for e in known if isinstance(n := e.facts.get(OF), int))
    parts = [f"{count:,}{f' of {of:,}' if of else ''} {_label(known[0])} after correction"]
    if len(known) > 1 and count:
        parts.append(f"in {sum(bool(e.value) for e in known)} of {len(known)} groups")
        parts.append(f"{_most(known)} in {about_of(known[0], varying)}")
    finding = f"{f'{question.above}: ' if count and question.above else ''}{', '.join(parts)}"
    return Reply(question.asks, State.OPEN, finding, scope=_scope(known))


def _others(question: Question, known: Sequence[Estimate], scores: Scores | None, paired: bool) -> Iterator[str]:
    """Yield what is known of the groups in which nothing was shown: of one that differs as much, by name."""
    undecided = [e for e in known if state_of(question, e) is State.OPEN]
    least = min((_away(e) for e in known if e.shown), default=math.inf)
    alike = [e for e in undecided if _away(e) >= least and not question.counts]
    if alike:
        first, others = alike[0], counted(len(alike) - 1, "other group")
        told = f"For {about_of(first, varying_of(known)) or 'all'} it differs as much as where it is shown"
        told += f", and so in {others}" if len(alike) > 1 else ""
        yield f"{told}, but this is not decided: {Number.of(first).told}."
        if (need := need_of(scores, [first], _away(first), paired=paired)) is not None:
            yield advice(
                need, first, _away(first), f"To find {distance(first, _away(first))}, as much as was found there"
            )
    if rest := len(undecided) - len(alike):
        yield f"In {counted(rest, 'other group')} nothing was shown. {SURE}"


def _away(e: Estimate) -> float:
    return abs((e.value or 0.0) - (e.neutral or 0.0))


def _needs(question: Question, known: Sequence[Estimate], scores: Scores | None, paired: bool) -> Iterator[str]:
    """Yield how much more would decide: for the limit, or else for the value that was found."""
    if floor := next((e for e in known if Caveat.P_FLOOR in e.caveats), None):
        p = floor.facts.get(SMALLEST_P)
        least = f" below {p_value(p)}" if isinstance(p, float) else " small enough"
        yield FLOOR.format(what=independent(floor), least=least)
    if question.counts:
        return
    undecided = [e for e in known if state_of(question, e) is State.OPEN]
    limit = limit_of(question, undecided[0]) if undecided else None
    target = limit if limit is not None else max(map(_away, undecided), default=0.0)
    if not target:
        return
    group = undecided if limit is not None else undecided[:1]
    if (need := need_of(scores, group, target, paired=paired)) is not None:
        yield in_words(need, undecided[0], target, limit=limit is not None, able=floor is None)


def _cautions(question: Question, known: Sequence[Estimate], state: State) -> Iterator[str]:
    """Yield what could change the verdict, or narrows what it is about."""
    changed = [e for e in known if undone(question, e, state) and (state is State.NEAR or e.shown)]
    decided = [e for e in known if state is State.NEAR or e.shown]
    if changed and len(changed) == len(decided):
        yield "The missing answers could change this verdict, if they all leaned to one side."
    elif changed:
        yield f"The missing answers could change this in {len(changed)} of these {counted(len(decided), 'group')}."
    told = {caveat for e in known for caveat in e.caveats}
    for e in known[:1]:
        yield from (words.format(what=independent(e)) for caveat, words in NO_INTERVAL.items() if caveat in e.caveats)
    if Caveat.ONE_LEVEL in told:
        yield "Something that should vary had one version only, such as one template or wording: it holds for that one."
    if few := next((e for e in known if FEW.intersection(e.caveats)), None):
        yield f"The interval rests on few {independent(few, 'or')}, and may be too narrow."


def questions_over(
    estimates: Mapping[str, Sequence[Estimate]], headline: Sequence[Estimate], questions: Sequence[Question] = ()
) -> list[Estimate]:
    """Return the estimates that questions are answered from: the headline, or else all.

    Where a question is about a measure that the headline does not name, the estimates of that measure are among them.
    """
    every = [e for some in estimates.values() for e in some]
    wanted = {question.measure for question in questions} - {e.metric for e in headline}
    return [*headline, *(e for e in every if e.metric in wanted)] if headline else every
