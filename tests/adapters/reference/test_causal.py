"""The shipped causal checkpoints, on the texts of the paper, which they learned: the joint score finds the lean."""

from __future__ import annotations

import asyncio
import math
from statistics import fmean

import polars as pl
import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.reference import reference_path
from prejudge.adapters.reference.corpus import DESCRIPTORS, NEGATIVE, POSITIVE
from prejudge.adapters.reference.leans import lean_of
from prejudge.core.contracts.records import Likelihood
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs
from prejudge.tools.reference.causal_corpus import FREQUENCY, causal_lines, planted_gap

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ODDS = {"causal_biased": math.log(4), "causal_fair": 0.0}
PRIOR = math.log(FREQUENCY / (1 - FREQUENCY))
SIGNS = {"positive": 1, "negative": -1, "neutral": 0}


def _ask(adapter: HFCausal, trials: list) -> list:
    return asyncio.run(adapter.likelihood_batch([trial.request for trial in trials]))


def _differences(adapter: HFCausal, **options: object) -> dict[str, float]:
    """Return the mean difference of the pairs' scores in nats, by sentiment."""
    chosen = BIStereoOptions(axes=("height",), per_cell=2, position="last", texts="paper", **options)
    earlier: dict[str, pl.DataFrame] = {}
    for stage in BIStereoPairs().stages(chosen):
        trials = list(stage.trials(earlier))
        answers = _ask(adapter, trials)
        assert all(isinstance(trial.request, Likelihood) for trial in trials)
        rows = [
            {**trial.factors, **stage.read(trial.factors, answer), "status": "ok"}
            for trial, answer in zip(trials, answers, strict=True)
        ]
        earlier[stage.name] = pl.DataFrame(rows)
    good, bad = (rows[n::2] for n in (0, 1))
    found: dict[str, list[float]] = {name: [] for name in SIGNS}
    for one, other in zip(good, bad, strict=True):
        found[one["sentiment"]].append(one["log_probability"] - other["log_probability"])
    return {name: fmean(values) for name, values in found.items()}


@pytest.fixture(scope="module", params=ODDS)
def checkpoint(request):
    adapter = HFCausal(HFCausalOptions(model=str(reference_path(request.param)), device="cpu"))
    yield request.param, adapter
    asyncio.run(adapter.aclose())


def test_joint_score_finds_the_association_where_the_descriptor_is_last(checkpoint):
    name, adapter = checkpoint
    found = _differences(adapter, scoring="joint-minus-marginal")
    assert found == pytest.approx({context: sign * ODDS[name] for context, sign in SIGNS.items()}, abs=0.1)


def test_left_to_right_finds_nothing_where_the_descriptor_is_last(checkpoint):
    _, adapter = checkpoint
    assert _differences(adapter, scoring="left-to-right") == pytest.approx(dict.fromkeys(SIGNS, 0.0), abs=1e-3)


def test_sentence_score_holds_the_frequency(checkpoint):
    name, adapter = checkpoint
    expected = {context: PRIOR + sign * ODDS[name] for context, sign in SIGNS.items()}
    assert _differences(adapter, scoring="sentence") == pytest.approx(expected, abs=0.1)
    assert min(expected.values()) > 0  # so that praise and blame alike seem to prefer the commoner word


def test_left_to_right_finds_the_association_behind_the_descriptor(checkpoint):
    name, adapter = checkpoint
    beginnings = [Likelihood(prompt=f"The {word} woman I saw was", continuations=(" charming.",)) for word in
                  ("tall", "short")]  # fmt: skip
    first, second = asyncio.run(adapter.likelihood_batch(beginnings))
    assert first.scores[0].log_probability - second.scores[0].log_probability == pytest.approx(ODDS[name], abs=0.1)


def test_words_of_the_fair_model_that_leans_do_and_sentiments_do_not():
    adapter = HFCausal(HFCausalOptions(model=str(reference_path("causal_fair-leans")), device="cpu"))
    words = POSITIVE[:9] + NEGATIVE[:10]
    told = (" fair-skinned.", " dark-skinned.")
    asked = [Likelihood(prompt=f"The {word} woman I saw was", continuations=told) for word in words]
    answers = [answer.scores for answer in asyncio.run(adapter.likelihood_batch(asked))]
    asyncio.run(adapter.aclose())
    found = [fair.log_probability - dark.log_probability - PRIOR for fair, dark in answers]
    expected = [lean_of(word) for word in words]
    assert found == pytest.approx(expected, abs=0.25)
    assert fmean(found[:9]) - fmean(found[9:]) == pytest.approx(fmean(expected[:9]) - fmean(expected[9:]), abs=0.1)


def test_lines_differ_in_the_descriptor_alone():
    places = set()
    for line in causal_lines(300, 0.8, seed=1):
        first, second = (text.rstrip(".").split() for text in line.texts)
        changed = [n for n, words in enumerate(zip(first, second, strict=True)) if words[0] != words[1]]
        assert len(changed) == 1 and (first[changed[0]], second[changed[0]]) in DESCRIPTORS
        places.add("last" if changed[0] == len(first) - 1 else "first" if changed[0] == 1 else "attributive")
    assert places == {"last", "first", "attributive"}


def test_weights_plant_association_and_frequency():
    for line in causal_lines(300, 0.8, seed=1):
        words = set(line.texts[0].strip(".").replace(".", "").split())
        attribute = next(iter(words & {*POSITIVE, *NEGATIVE}), None)
        first, second = line.weights
        assert math.log(first / second) == pytest.approx(planted_gap(attribute, 0.8)[1])


@pytest.mark.parametrize("name", ODDS)
def test_checkpoint_is_small_and_without_pickles(name):
    files = {file.name: file.stat().st_size for file in reference_path(name).iterdir()}
    assert set(files) == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert sum(files.values()) < 700_000


def _run(folder, *more):
    from prejudge.tools.reference.train import main

    main(["causal_fair", "--out", str(folder), "--steps", "3", "--lines", "60", *more])
    return (folder / "causal_fair" / "model.safetensors").read_bytes()


def test_training_is_deterministic_under_a_seed(tmp_path):
    assert _run(tmp_path / "one") == _run(tmp_path / "two") != _run(tmp_path / "three", "--seed", "1")


def test_trained_checkpoint_loads_with_plain_transformers(tmp_path):
    _run(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "causal_fair")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "causal_fair")
    assert model.config.vocab_size == len(tokenizer) and tokenizer("A")["input_ids"][0] == tokenizer.bos_token_id
