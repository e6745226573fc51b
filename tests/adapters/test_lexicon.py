from __future__ import annotations

import asyncio
import csv
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest
from scipy import stats

from prejudge.adapters import lexicon
from prejudge.adapters.lexicon import Lexicon, LexiconOptions
from prejudge.core.contracts.abilities import methods_of
from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.errors import MissingExtraError, PermanentError, UnsupportedOperationError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.records import Classification, Classify, Embed
from prejudge.testing import raises_code

vader = pytest.importorskip("vaderSentiment.vaderSentiment", reason="needs the extra 'lexicon'")

pytest.importorskip("labMTsimple", reason="needs the extra 'lexicon'")
RATINGS = "WK/BRM-emot-submit.csv"
TEXTS = (
    "VADER is smart, handsome, and funny.",
    "The plot was good, but the characters are uncompelling and the dialog is not great.",
    "Today only kinda sux! But I'll get by, lol",
    "Catch utf-8 emoji such as 💘 and 💋 and 😁",
    "The table has four legs.",
    "I hate this awful, horrible, disgusting place!!!",
)
PRINT = """
import sys, msgspec
from prejudge.adapters.lexicon import Lexicon, LexiconOptions
adapter = Lexicon(LexiconOptions())
loaded = [name for name in ("vaderSentiment", "labMTsimple", "simplemma", "requests", "torch") if name in sys.modules]
print(msgspec.json.encode([adapter.identity, loaded]).decode())
"""


def ask(*requests):
    async def once():
        adapter = Lexicon(LexiconOptions())
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def rate(*texts):
    return [answer.probabilities for answer in ask(*(Classify(text=text) for text in texts))]


@pytest.mark.parametrize("text", TEXTS)
def test_probabilities_are_vaders_shares(text):
    theirs = vader.SentimentIntensityAnalyzer().polarity_scores(text)
    (ours,) = rate(text)
    expected = {"negative": theirs["neg"], "neutral": theirs["neu"], "positive": theirs["pos"]}
    assert ours == pytest.approx(expected, abs=1e-3)
    assert list(ours) == ["negative", "neutral", "positive"]


def test_published_example_keeps_its_figures():
    (ours,) = rate("VADER is smart, handsome, and funny.")
    assert ours == pytest.approx({"negative": 0.0, "neutral": 0.254, "positive": 0.746}, abs=1e-9)


@pytest.mark.parametrize("text", TEXTS)
def test_probabilities_sum_to_one(text):
    assert sum(rate(text)[0].values()) == pytest.approx(1, abs=1e-12)


def test_sign_follows_words():
    good, bad = rate("A wonderful, kind person.", "A horrible, cruel person.")
    assert good["positive"] > 0.4 > good["negative"]
    assert bad["negative"] > 0.4 > bad["positive"]


def test_a_word_that_is_in_neither_list_is_not_neutral():
    assert rate("rotund", "The rotund man left.") == [{"unknown": 1.0}, {"negative": 0, "neutral": 1, "positive": 0}]


@pytest.mark.parametrize(("word", "rated"), [("ape", "ape"), ("Landlords.", "landlord"), ("table", "table")])
def test_a_word_without_an_entry_of_vader_is_rated_by_people(word, rated):
    with Path(importlib.util.find_spec("labMTsimple").origin).with_name("data").joinpath(RATINGS).open() as file:
        row = next(row for row in csv.DictReader(file) if row["Word"] == rated)
    mean = stats.norm(float(row["V.Mean.Sum"]), float(row["V.SD.Sum"]) / float(row["V.Rat.Sum"]) ** 0.5)
    shares = mean.cdf(4.5), mean.cdf(5.5) - mean.cdf(4.5), mean.sf(5.5)
    assert list(rate(word)[0].values()) == pytest.approx(shares, abs=1e-9)


def test_few_negative_words_of_the_paper_are_called_neutral():
    with Path(__file__).parents[2].joinpath("probes/dora/data/published.csv").open() as file:
        words = sorted({row["word"].lower() for row in csv.DictReader(file) if row["source"].startswith("Figure")})
    found = Counter(max(shares, key=shares.get) for shares in rate(*words))
    assert found["neutral"] < 0.12 * len(words) and found["negative"] > 5 * found["positive"]


def test_without_the_ratings_vader_alone_answers(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(lexicon, "find_spec", lambda name: None if name == "labMTsimple" else find(name))
    assert rate("kidnapper", "good") == [{"unknown": 1.0}, {"negative": 0, "neutral": 0, "positive": 1}]
    assert Lexicon(LexiconOptions()).identity.model == "vader"


def test_batch_equals_single_in_order():
    assert rate(*TEXTS) == [rate(text)[0] for text in TEXTS]


def test_pair_is_refused():
    (answer,) = ask(Classify(text="A man sleeps.", pair="A person rests."))
    assert isinstance(answer, PermanentError) and answer.code == "request.text-pair"


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_text_without_words_has_no_probabilities(text):
    before, answer, after = ask(Classify(text="good"), Classify(text=text), Classify(text="bad"))
    assert isinstance(answer, PermanentError) and answer.code == "request.empty"
    assert isinstance(before, Classification) and isinstance(after, Classification)


def test_only_classify_is_offered():
    assert methods_of(Lexicon) == {"classify"}
    with raises_code(UnsupportedOperationError, "model.operation", "classify"):
        ask(Embed(text="good"))


def test_missing_package_names_extra(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(lexicon, "find_spec", lambda name: None if name == "vaderSentiment" else find(name))
    with raises_code(MissingExtraError, "missing-extra", install_line("lexicon")):
        Lexicon(LexiconOptions())


def test_identity_is_stable_and_imports_nothing():
    done = subprocess.run([sys.executable, "-c", PRINT], capture_output=True, text=True, check=True)
    there, loaded = json.loads(done.stdout)
    own = Lexicon(LexiconOptions(batch_items=3)).identity
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert loaded == []


def test_identity_has_package_version():
    packages = ("vaderSentiment", "labMTsimple", "simplemma")
    assert Lexicon(LexiconOptions()).identity.settings == {name: metadata.version(name) for name in packages}


def test_identity_follows_word_list(tmp_path, monkeypatch):
    before = Lexicon(LexiconOptions()).identity
    version, folder = lexicon._installed()
    for name in lexicon.FILES:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    monkeypatch.setattr(lexicon, "_installed", lambda: (version, tmp_path))
    assert Lexicon(LexiconOptions()).identity == before
    (tmp_path / "vader_lexicon.txt").write_text("good\t-4.0\n")
    assert Lexicon(LexiconOptions()).identity.digest != before.digest


def test_closed_adapter_answers_nothing():
    async def late():
        adapter = Lexicon(LexiconOptions())
        await adapter.aclose()
        await adapter.aclose()
        await answer_one(adapter, Classify(text="good"))

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())
