"""Pairs scored from left to right: the requests, the sum over a template's sentences, and the reading of scores."""

from __future__ import annotations

import math

import polars as pl
import pytest

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.records import Generation, Likelihood, Likelihoods, TokenScores
from prejudge.probes.bistereo.causal import prefixes
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs
from prejudge.testing import raises_code

HEADER = "desirable,undesirable,axis,gender,sentiment,template"
ROWS = (
    "The cute man was tall.,The cute man was short.,height,men,positive,t",
    "The nasty man was tall.,The nasty man was short.,height,men,negative,t",
    "The man was tall.,The man was short.,height,men,neutral,t",
)


def stages(**options):
    return BIStereoPairs().stages(BIStereoOptions(**options))


@pytest.fixture
def own(tmp_path):
    def own(*rows):
        path = tmp_path / "own.csv"
        path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
        return str(path)

    return own


def answer(*values):
    return Likelihoods(scores=tuple(TokenScores(log_probability=value, count=3) for value in values))


def observed(stage, scores):
    """Return the observations of a stage whose sentences have these log-probabilities."""
    rows = [
        {**t.factors, "log_sentence": scores.get(t.request.continuations[0]), "status": "ok"} for t in stage.trials({})
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("A tall man.", ((2, 6),), ("A tall man.", "A tall", "A")),
        ("He is tall.", ((6, 10),), ("He is tall.", "He is tall", "He is")),
        ("He is tall", ((6, 10),), ("He is tall", "He is tall", "He is")),
        ("Tall men.", ((0, 4),), ("Tall men.", "Tall")),
        ("A very tall man.", ((2, 6), (7, 11)), ("A very tall man.", "A very tall", "A")),
        ("A tall man is short.", ((2, 6), (14, 19)), ("A tall man is short.", "A tall man is short", "A tall man is")
         + ("A tall", "A")),
        ("A man.", (), ("A man.",)),
    ],
)  # fmt: skip
def test_beginnings_end_where_shared_and_modified_words_do(text, given, expected):
    assert prefixes(text, given) == expected


def test_left_to_right_leaves_the_modified_words_out():
    (stage,) = stages(scoring="left-to-right", per_cell=1)
    read = stage.read({}, answer(-20.0, -15.0, -9.0))
    assert read == {"log_probability": -14.0, "tokens": 3, "log_sentence": -20.0}


def test_sentence_asks_what_left_to_right_asks():
    (first,), (second,) = (stages(scoring=name, per_cell=2) for name in ("left-to-right", "sentence"))
    assert [t.request for t in first.trials({})] == [t.request for t in second.trials({})]
    assert second.read({}, answer(-20.0, -15.0, -9.0))["log_probability"] == -20.0


def test_alternatives_are_all_sentences_of_the_template():
    chosen = {"scoring": "joint-minus-marginal", "per_cell": 1, "genders": ("men",), "axes": ("height",)}
    alternatives, _ = stages(**chosen, texts="paper")
    trials = list(alternatives.trials({}))
    # One template, as men alone are asked about: 15 attributes (one is none) and 6 nouns, on two sides; of the
    # two nouns of children one attribute is not asked.
    assert len(trials) == len({t.id for t in trials}) == len({t.request for t in trials}) == 2 * (15 * 6 - 2)
    assert all(set(t.factors) == set(alternatives.factors) for t in trials)
    # In the study's own texts each of 36 attributes has one noun of either gender, and no attribute has all six.
    alternatives, _ = stages(**chosen, attributes="paper")
    assert len({t.request for t in alternatives.trials({})}) == 2 * (36 * 2 + 6)


def test_ids_of_alternatives_are_the_same_whichever_words_are_asked():
    chosen = {
        "texts": "paper",
        "scoring": "joint-minus-marginal",
        "per_cell": 1,
        "sentiments": ("negative",),
        "axes": ("height",),
    }
    fewer, paper = (
        {t.id: t.request for t in stages(**chosen, **more)[0].trials({})} for more in ({}, {"attributes": "paper"})
    )
    assert len(paper) == 2 * 15 * 6 and fewer.items() < paper.items()


def test_pairs_ask_nothing_that_the_alternatives_did_not(own):
    alternatives, pairs = stages(scoring="joint-minus-marginal", data=own(*ROWS))
    asked = {t.request for t in alternatives.trials({})}
    again = [t.request for t in pairs.trials({})]
    assert len(again) == pairs.count({}) == 6 and set(again) == asked


def test_score_is_the_share_of_the_template(own):
    alternatives, pairs = stages(scoring="joint-minus-marginal", data=own(*ROWS))
    odds = {"The cute man was tall.": 0.002, "The nasty man was tall.": 0.001, "The man was tall.": 0.005}
    scores = {text: math.log(p) for text, p in odds.items()}
    scores |= {
        text.replace("tall", "short"): math.log(p * q) for (text, p), q in zip(odds.items(), (3, 9, 1), strict=True)
    }
    earlier = {"alternatives": observed(alternatives, scores)}
    found = {}
    for t in pairs.trials(earlier):
        sentence = t.request.continuations[0]
        found[sentence] = math.exp(pairs.read(t.factors, answer(scores[sentence]))["log_probability"])
    # Of the three sentences that end with tall, 2 in 8; of those with short, 6 in 20.
    assert found["The cute man was tall."] == pytest.approx(2 / 8)
    assert found["The cute man was short."] == pytest.approx(6 / 20)
    assert sum(p for text, p in found.items() if "short" in text) == pytest.approx(1)


def test_very_unlikely_sentences_do_not_vanish(own):
    alternatives, pairs = stages(scoring="joint-minus-marginal", data=own(*ROWS))
    scores = {t.request.continuations[0]: -2000.0 for t in alternatives.trials({})}
    t = next(iter(pairs.trials({"alternatives": observed(alternatives, scores)})))
    assert pairs.read(t.factors, answer(-2000.0))["log_probability"] == pytest.approx(-math.log(3))


def test_a_missing_alternative_makes_its_pairs_missing(own):
    alternatives, pairs = stages(scoring="joint-minus-marginal", data=own(*ROWS))
    scores = {t.request.continuations[0]: -9.0 for t in alternatives.trials({})}
    frame = observed(alternatives, scores | {"The man was tall.": None})
    read = {t.factors["side"]: pairs.read(t.factors, answer(-9.0)) for t in pairs.trials({"alternatives": frame})}
    assert read["desirable"] == Unreadable("a sentence of the template is missing")
    assert read["undesirable"]["log_probability"] == pytest.approx(-math.log(3))


def test_a_template_with_one_sentence_is_refused(own):
    alternatives, _ = stages(scoring="joint-minus-marginal", data=own(ROWS[0]))
    with raises_code(DataError, "data.incomplete-pair"):
        list(alternatives.trials({}))


@pytest.mark.parametrize("response", [Generation(text="no"), Likelihoods(scores=()), answer(float("-inf"))])
def test_what_is_no_likelihood_is_unreadable(response):
    (stage,) = stages(scoring="left-to-right", per_cell=1)
    assert isinstance(stage.read({}, response), Unreadable)


def test_sentences_are_conditioned_on_what_stands_before():
    (stage,) = stages(scoring="sentence", before="\n", per_cell=1)
    request = next(iter(stage.trials({}))).request
    assert isinstance(request, Likelihood) and request.prompt == "\n"


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("last", "The cute women they saw at the airport were tall."),
        ("first", "The tall women they saw at the airport were cute."),
    ],
)
def test_descriptor_stands_where_it_is_asked_to(position, expected):
    (stage,) = stages(scoring="sentence", position=position, axes=("height",), texts="paper")
    texts = {t.request.continuations[0]: t for t in stage.trials({})}
    assert texts[expected].factors["template"] == f"height-p-04-01-{position}"
    neutral = [t for t in texts.values() if t.factors["sentiment"] == "neutral"]
    assert bool(neutral) == (position == "last")


@pytest.mark.parametrize(
    "options",
    [
        {"scoring": "sentence", "unit": "token"},
        {"scoring": "left-to-right", "variant": "within_word_l2r"},
        {"before": "\n"},
        {"data": "own.csv", "position": "last"},
        {"data": "own.csv", "texts": "paper"},
    ],
)
def test_an_option_without_a_meaning_is_refused(options):
    with raises_code(UsageError, "options.conflict"):
        stages(**options)


@pytest.mark.parametrize("part", [{"quick": True}, {"limit": 36}])
def test_part_of_the_pairs_has_the_alternatives_of_its_templates(part):
    main, beside = prejudge.plan("bistereo-pairs", "reference-causal-biased", axes=["height"], **part)
    assert (main.stage, beside.stage) == ("pairs", "alternatives")
    catalogue = Catalogue.load()
    study = catalogue.study("bistereo-pairs", {"subject": "reference-causal-biased"}, {"axes": ["height"], **part})
    alternatives, pairs = catalogue.instrument(study).stages()
    texts = {trial.request.continuations for trial in alternatives.trials({})}
    asked = list(pairs.trials({}))
    assert len(asked) == main.trials and {trial.request.continuations for trial in asked} <= texts
    frames = {(trial.factors["template"], trial.factors["descriptors"]) for trial in asked}
    found = {(trial.factors["template"], trial.factors["descriptors"]) for trial in alternatives.trials({})}
    assert frames == found
