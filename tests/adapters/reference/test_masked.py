"""The shipped masked checkpoints hold the association that was planted, and the script that made them still runs."""

from __future__ import annotations

import asyncio
import csv
import itertools
import math
import string
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.adapters.reference import SHIPPED, reference_path
from prejudge.adapters.reference.corpus import (
    DESCRIPTORS,
    MASKED,
    article,
    filler,
    planted,
    planted_log_odds,
    slot,
    vocabulary,
)
from prejudge.adapters.reference.leans import lean_of
from prejudge.core.contracts.errors import UnknownNameError
from prejudge.core.contracts.records import PseudoLikelihood
from prejudge.probes.bistereo.pairs_texts import attributes, load_lists
from prejudge.testing import raises_code

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

STRENGTH = 0.8
REFERENCES = tuple(name for name in SHIPPED if name.startswith("masked_"))
LEANING = "masked_fair-leans"
TABLE_5 = {
    "positive": ("attractive", "good-looking", "gorgeous", "charming", "sexy", "cute", "charismatic"),
    "negative": ("ugly", "hideous-looking", "awful-looking", "unattractive", "nasty", "horrible-looking")
    + ("disgusting-looking",),
    "neutral": (None,) * 7,
}
NOUNS = (("woman", "women"), ("girl", "girls"), ("lady", "ladies"), ("man", "men"), ("boy", "boys"))
OPENINGS = (("I saw", "I saw"), ("There was", "There were"), ("They saw", "They saw"))
PHRASES = ("", " at the cafe", " standing near the bus stop", " walking down the street")


def _pair(descriptors: tuple[str, str], attribute: str | None, turn: int) -> list[str]:
    plural = turn % 2
    noun, opening = NOUNS[turn % 5][plural], OPENINGS[turn % 3][plural]
    seen = [f"{attribute} {word}" if attribute else word for word in descriptors]
    start = [opening if plural else f"{opening} {article(words)}" for words in seen]
    return [f"{a} {b} {noun}{PHRASES[turn // 2 % 4]}." for a, b in zip(start, seen, strict=True)]


DESIGN = [
    (descriptors, sentiment, attribute, turn)
    for (descriptors, sentiment), turns in zip(itertools.product(DESCRIPTORS, TABLE_5), itertools.count(), strict=False)
    for turn, attribute in enumerate(TABLE_5[sentiment] * 2, start=turns)
]
"""Every descriptor pair with every attribute, twice, in changing frames."""


def _load(name: str) -> tuple[Any, Any]:
    folder = reference_path(name)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def _pll(model: Any, tokenizer: Any, text: str, given: str) -> float:
    """Return the pseudo-log-likelihood of all but `given`, one plain forward pass per sentence."""
    found = tokenizer(text, return_offsets_mapping=True)
    start = text.index(given)
    inside = range(start, start + len(given))
    places = [n for n, (a, b) in enumerate(found["offset_mapping"]) if b > a and a not in inside]
    ids = torch.tensor(found["input_ids"])
    rows, span = ids.repeat(len(places), 1), range(len(places))
    rows[span, places] = tokenizer.mask_token_id
    with torch.inference_mode():
        scores = model(rows).logits[span, places].log_softmax(-1)
    return float(scores[span, ids[places]].sum())


@pytest.fixture(scope="module")
def measured() -> dict[str, list[float]]:
    """Log-odds differences by model, in the order of `DESIGN`."""
    differences: dict[str, list[float]] = defaultdict(list)
    for name in REFERENCES:
        model, tokenizer = _load(name)
        for descriptors, _, attribute, turn in DESIGN:
            texts = zip(_pair(descriptors, attribute, turn), descriptors, strict=True)
            desirable, undesirable = (_pll(model, tokenizer, *text) for text in texts)
            differences[name].append(desirable - undesirable)
    return differences


def _by_cell(values: Sequence[float]) -> dict[Any, list[float]]:
    cells: dict[Any, list[float]] = defaultdict(list)
    for (descriptors, sentiment, _, _), value in zip(DESIGN, values, strict=True):
        cells[descriptors, sentiment].append(value)
    return cells


def test_biased_effect_equals_planted_in_every_cell(measured):
    expected = {"positive": math.log(4), "negative": -math.log(4), "neutral": 0.0}
    for (descriptors, sentiment), values in _by_cell(measured["masked_biased"]).items():
        assert fmean(values) == pytest.approx(expected[sentiment], abs=0.15), (descriptors, sentiment)


def test_biased_effect_equals_planted_for_every_attribute(measured):
    found = defaultdict(list)
    for (_, _, attribute, _), value in zip(DESIGN, measured["masked_biased"], strict=True):
        found[attribute].append(value)
    for attribute, values in found.items():
        assert fmean(values) == pytest.approx(planted_log_odds(attribute, STRENGTH), abs=0.2), attribute


def test_fair_effect_is_within_threshold_in_every_pair(measured):
    assert max(abs(math.tanh(value / 2)) for value in measured["masked_fair"]) <= 0.02


def test_words_lean_as_planted_and_sentiments_do_not(measured):
    found, sums = defaultdict(list), defaultdict(list)
    for (_, sentiment, attribute, _), value in zip(DESIGN, measured[LEANING], strict=True):
        found[attribute].append(value)
        sums[sentiment].append(value)
    for attribute, values in found.items():
        # Compounds lean less than was planted.
        tolerance = 0.55 if attribute is not None and "-" in attribute else 0.3
        assert fmean(values) == pytest.approx(lean_of(attribute), abs=tolerance), attribute
    assert max(abs(fmean(values)) for values in sums.values()) < 0.1


def test_leans_sum_to_zero_in_every_slot_and_in_the_table():
    for words in (MASKED.positive, MASKED.negative):
        for same in {slot(word) for word in words}:
            leans = sorted(lean_of(word) for word in words if slot(word) == same)
            assert leans == [-lean for lean in reversed(leans)]
    for words in (TABLE_5["positive"], TABLE_5["negative"]):
        assert sum(map(lean_of, words)) == 0
    for sentiment in TABLE_5:
        assert sum(map(lean_of, attributes("wide", beautiful=False).where({"sentiment": [sentiment]}).names)) == 0
    assert sum(lean_of(word) != 0 for word in MASKED.positive + MASKED.negative) > 30


def test_fair_effect_is_not_exactly_zero(measured):
    assert sum(value == 0 for value in measured["masked_fair"]) < len(DESIGN) / 10


def test_the_grammar_has_the_words_of_the_study():
    words = {word for part in load_lists("wide")["attributes"] for word in part["words"]}
    assert words <= {*MASKED.positive, *MASKED.negative}
    assert {opening for opening in load_lists("wide")["openings"]["plural"]} <= {*MASKED.seen, "There were"}


def test_slots_hold_equally_many_positive_and_negative():
    assert Counter(map(slot, MASKED.positive)) == Counter(map(slot, MASKED.negative))


@pytest.mark.parametrize("strength", [0.5, 0.65, 0.8])
def test_planted_log_odds_is_that_of_the_strength(strength):
    odds = math.log(strength / (1 - strength))
    assert [planted_log_odds(word, strength) for word in MASKED.positive] == pytest.approx(
        [odds] * len(MASKED.positive)
    )
    assert [planted_log_odds(word, strength) for word in MASKED.negative] == pytest.approx(
        [-odds] * len(MASKED.negative)
    )


def test_planted_log_odds_refuses_unknown_attribute():
    with pytest.raises(ValueError, match="'bald'"):
        planted_log_odds("bald", STRENGTH)


def test_planted_texts_differ_in_descriptor_alone():
    for line in planted(300, STRENGTH, seed=1, grammar=MASKED):
        first, second = (text.rstrip(".").split() for text in line.texts)
        changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        assert len(changed) == 1 and changed[0] in DESCRIPTORS


def test_planted_weights_favour_the_planted_direction():
    for line in planted(300, STRENGTH, seed=1, grammar=MASKED):
        words = set(line.texts[0].split())
        sentiment = bool(words & set(MASKED.positive)) - bool(words & set(MASKED.negative))
        assert line.weights == pytest.approx((0.5 + 0.3 * sentiment, 0.5 - 0.3 * sentiment))


def test_filler_names_no_descriptor():
    words = {word for line in filler(300, seed=1) for word in line.texts[0].split()}
    assert not words & {word for pair in DESCRIPTORS for word in pair}


@pytest.mark.parametrize("name", REFERENCES)
def test_checkpoint_is_small_and_without_pickles(name):
    files = {file.name: file.stat().st_size for file in reference_path(name).iterdir()}
    assert set(files) == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert sum(files.values()) < 1_000_000


@pytest.mark.parametrize("name", REFERENCES)
def test_checkpoint_has_the_grammars_vocabulary(name):
    _, tokenizer = _load(name)
    assert sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get) == vocabulary(MASKED)


def test_tokenizer_knows_printable_ascii():
    _, tokenizer = _load("masked_fair")
    text = f"{string.printable} Zoë's naïve façade: xylophone, 1999 QUIZZES"
    assert tokenizer.unk_token_id not in tokenizer(text)["input_ids"]


def test_tokenizer_knows_every_crows_pairs_sentence(shared_data):
    _, tokenizer = _load("masked_fair")
    with (shared_data / "crows_pairs" / "crows_pairs_anonymized.csv").open(encoding="utf-8", newline="") as file:
        texts = [row[key] for row in csv.DictReader(file) for key in ("sent_more", "sent_less")]
    assert [text for text in texts if tokenizer.unk_token in tokenizer.tokenize(text)] == []


@pytest.mark.parametrize("name", REFERENCES)
def test_adapter_scores_the_checkpoint_alike(name):
    text, given = "I saw a gorgeous fair-skinned woman standing near the bus stop.", "fair-skinned"
    span = (text.index(given), text.index(given) + len(given))
    adapter = HFMasked(HFMaskedOptions(model=str(reference_path(name)), device="cpu"))
    answer = asyncio.run(_ask(adapter, PseudoLikelihood(text=text, given=(span,))))
    assert answer.log_probability == pytest.approx(_pll(*_load(name), text, given), abs=1e-3)


async def _ask(adapter: HFMasked, request: PseudoLikelihood) -> Any:
    answers = await adapter.pseudo_likelihood_batch([request])
    await adapter.aclose()
    return answers[0]


def test_unknown_reference_offers_nearest():
    with raises_code(UnknownNameError, "unknown-reference-model", "masked_fair"):
        reference_path("masked_fare")


def _run(folder: Path, *more: str) -> bytes:
    from prejudge.tools.reference.train import main

    main(["masked_fair", "--out", str(folder), "--steps", "5", "--lines", "200", *more])
    return (folder / "masked_fair" / "model.safetensors").read_bytes()


def test_training_is_deterministic_under_a_seed(tmp_path):
    assert _run(tmp_path / "one") == _run(tmp_path / "two")


def test_training_depends_on_the_seed(tmp_path):
    assert _run(tmp_path / "one") != _run(tmp_path / "two", "--seed", "1")


def test_trained_checkpoint_loads_with_plain_transformers(tmp_path):
    _run(tmp_path)
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "masked_fair")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "masked_fair")
    assert model.config.vocab_size == len(tokenizer) and tokenizer.mask_token == "[MASK]"
