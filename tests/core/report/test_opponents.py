"""Runs that say little or nothing: the page and the terminal must be honest, readable, and say what to change."""

from __future__ import annotations

import asyncio
import html
import io
import re

import pytest
from fakes import FakeModel, MeanLength, fake_catalogue, text_of
from rich.console import Console

from prejudge.core.answer import answer_of
from prejudge.core.answer.lost import MENDS
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.cli.answer import show_answer
from prejudge.core.contracts import Estimate
from prejudge.core.contracts.records import Generation
from prejudge.core.contracts.sizes import SURE, WORDS, State
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report import render
from prejudge.core.report.output import build_content
from prejudge.core.scoring.score import score

IDENTIFIER = re.compile(r"\b[a-z0-9]+_[a-z0-9_]+\b")


class Undefined(MeanLength):
    """A measure that has no value, whatever was answered; nothing about it is declared."""

    def compute(self, observations, options):
        groups = ({"parity_of_it": level} for level in ("odd", "even"))
        return [Estimate.from_flat(metric="my_raw_score", group=g, value=None, note="no two alike") for g in groups]

    def conclude(self, estimates):
        return ""


class Undeclared(MeanLength):
    """A measure of a third party without label, meaning, unit or test."""

    def compute(self, observations, options):
        sizes = observations["length"].drop_nulls()
        value = float(sizes.mean()) if len(sizes) else None
        return [Estimate.from_flat(metric="my_raw_score", group={}, value=value, neutral=0.0, n=len(sizes))]

    def conclude(self, estimates):
        return ""


def odd_is_empty(request, seen):
    return Generation(text="") if int(text_of(request).split()[-1]) % 2 else None


REFUSED = Generation(text="I'm sorry, but I can't assist with that.", status="refused")
CASES = {
    # name: (metric, script, trials, verdict, words of the page)
    "every value is missing": ("undefined", None, 6, State.NOTHING, ["No two alike."]),
    "every answer is empty": (
        "mean",
        lambda request, seen: Generation(text=""),
        6,
        State.UNFIT,
        ["100 % of 6 answers could not be read; most have no text", "(empty: there is no"],
    ),
    "every answer is refused": (
        "mean",
        lambda request, seen: REFUSED,
        6,
        State.NOTHING,
        ["6 of 6 answers (100.0 %): 6 refused", MENDS["refused"]],
    ),
    "one group is unreadable": (
        "mean",
        odd_is_empty,
        20,
        State.UNJUDGED,
        ["10 of 20 answers (50.0 %): 10 unreadable; of parity odd, 10 of 10", MENDS["unreadable"]],
    ),
    "nothing is declared": (
        "undeclared",
        None,
        8,
        State.UNJUDGED,
        ["3.000 no interval, n = 8"],
    ),
    "a single trial": (
        "mean",
        None,
        1,
        State.OPEN,
        ["the one answer could be used.", "has 1 distinct prompt here"],
    ),
}


@pytest.fixture
def told(store):
    """Return a function that runs a case, and returns its page and what the terminal prints."""

    def made(metric, script, trials):
        bare = {"bare": StudyEntry(probe="count", metrics={metric: {}})}
        catalogue = fake_catalogue(**bare)
        for name, kind in (("undefined", Undefined), ("undeclared", Undeclared)):
            catalogue.plugins.offers["metric"][name] = Registered(Plugged(name, kind), "tests")
        FakeModel.script = script
        try:
            study = catalogue.study("bare", {"subject": "fake"}, {"n": trials})
            run = asyncio.run(execute(catalogue, study, store, RunOptions(keep_going=True)))
        finally:
            FakeModel.script = None
        scores = score(catalogue, store, run)
        show_answer(answer_of(scores), Console(file=(screen := io.StringIO()), width=120))
        return scores, render(build_content(scores, store)), " ".join(screen.getvalue().split())

    return made


@pytest.mark.parametrize("case", CASES)
def test_run_that_says_little_is_told_honestly(told, case):
    metric, script, trials, state, words = CASES[case]
    scores, page, screen = told(metric, script, trials)
    first = page[page.index('id="answer"') : page.index("</section>")]
    plain = " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())
    assert WORDS[state] in first and WORDS[state] in screen
    assert (SURE in first) == (SURE in screen) == (state in (State.NOTHING, State.OPEN))
    for told_words in words:
        assert " ".join(told_words.split()) in plain, told_words
    assert not IDENTIFIER.search(re.sub("<[^>]+>", " ", first).replace("max_tokens", ""))
    missing = sum((frame["status"] != "ok").sum() for frame in scores.observations.values())
    examples = page.split('class="example"')[1:]
    if missing:
        # The first examples are what is missing, with the reason, what was said, and what to change.
        assert 'href="#examples"' in first
        assert re.search(r'class="what">(Unreadable: empty|Refused)', examples[0])
        assert MENDS["refused" if "refused" in case else "unreadable"][:40] in html.unescape(examples[0])


def some(share, answer):
    """Return a script under which this share of 60 questions, spread over all of them, gets this answer."""

    def said(request, seen):
        number = int(text_of(request).split()[-1])
        return answer if int((number + 1) * share) > int(number * share) else None

    return said


MANY = {
    "four in ten refused": (some(0.4, REFUSED), 24, "Refused", "refused"),
    "three in ten empty": (some(0.3, Generation(text="")), 18, "Unreadable: empty", "unreadable"),
}


@pytest.mark.parametrize("case", MANY)
def test_first_examples_are_the_missing_answers_where_they_are_many(told, case):
    script, count, title, status = MANY[case]
    scores, page, screen = told("mean", script, 60)
    first = page[page.index('id="answer"') : page.index("</section>")]
    examples = [html.unescape(re.sub("<[^>]+>", " ", one)) for one in page.split('class="example"')[1:]]
    assert f"{count} {status}" in first and 'href="#examples"' in first
    # Each names the reason, how often, what was said, and what to change.
    own = [one for one in examples if title in " ".join(one.split()[:6])]
    assert own and own == examples[: len(own)]
    for one in own:
        assert f"({count} answers)" in one and MENDS[status] in one
        assert ("assist with that" if status == "refused" else "(empty: there is no") in one
    assert MENDS[status] in html.unescape(first)


@pytest.mark.parametrize("trials", [60, 4])
def test_few_missing_answers_lead_no_examples(told, trials):
    last = f"q {trials - 1}"
    scores, page, screen = told("mean", lambda request, seen: REFUSED if text_of(request) == last else None, trials)
    lost = [e for e in page.split('class="example"')[1:] if "Refused" in e]
    # One of four answers is a quarter of all: they are shown. One of sixty is counted, and nothing more.
    assert bool(lost) == (trials == 4)
    assert f"1 of {trials} answers" in page and (MENDS["refused"][:40] in page) == (trials == 4)
