"""Whole runs before endpoints that drop a part of what they are asked, and before odd but honest models."""

from __future__ import annotations

import asyncio
import json

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
from scipy import stats

pytest.importorskip("openai", reason="the extra 'openai' is not installed")
pytest.importorskip("aiohttp", reason="the extra 'openai' is not installed")

from prejudge.adapters.openai.options import OpenAIOptions, make_identity
from prejudge.core.contracts.canonical import encode, identity_digest, request_key, wire_seed
from prejudge.core.contracts.errors import BudgetError, HaltedError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.records import Generate, Message, Sampling, Text
from prejudge.core.engine.budget import Caps
from prejudge.core.engine.integrity.canary import DRAWS, QUESTIONS, ROOM
from prejudge.core.engine.manifest import Manifest
from prejudge.core.engine.plan import plan
from prejudge.core.engine.runs import RunOptions
from prejudge.core.report.integrity import integrity_words
from prejudge.core.scoring.recheck import RecheckOptions, recheck
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import Store, get_run, list_runs, statistics
from prejudge.core.store.evidence import seal
from prejudge.testing import ChaosServer, Reply, raises_code
from prejudge.testing.chaos import cached, cut_prompt, ignored, named, over_limit, scored, stop_left
from prejudge.testing.chaos.tiny import answer_well, problem

from .coins import catalogue_of, coin, perform, saying, sure

ACCEPT = RunOptions(accept_repeats=True)


@pytest.fixture(scope="module")
def _server():
    with ChaosServer(coin) as server:
        yield server


@pytest.fixture
def server(_server):
    _server.clear()
    return _server


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        yield opened


def asked_of(server, canary: bool):
    """Return the bodies that arrived, of the canary or of the study."""
    return [one.body for one in server.seen if (one.body["messages"][-1]["content"] in QUESTIONS) == canary]


def found_in(manifest):
    return {one.name: one for one in manifest.integrity["coin"].findings}


@pytest.mark.parametrize("temperature", [0.7, None])
def test_honest_endpoint_has_a_canary_and_no_finding(store, server, temperature):
    manifest = perform(store, catalogue_of(server.url), temperature=temperature)
    found, counts = manifest.integrity["coin"], manifest.stages["coin"].counts
    assert (found.canary.verdict, found.findings, found.repeated) == ("varied", (), "")
    assert found.canary.first.distinct == DRAWS and len(set(found.canary.first.digests)) == DRAWS
    assert len(asked_of(server, canary=True)) == DRAWS == counts["canary"] and counts["asked"] == 120
    assert statistics(store)["Exchange"] == 120, "draws of the canary are not stored"
    assert all(body.get("temperature") == temperature for body in asked_of(server, canary=True))
    assert found.models["tiny"].count == 128


def test_every_repeat_has_a_seed_of_its_own_and_the_first_draw_none(store, server):
    perform(store, catalogue_of(server.url), prompts=5)
    seeds = [body.get("seed") for body in asked_of(server, canary=False)]
    assert seeds.count(None) == 5 and len(set(seeds)) == 16
    assert all(seed is None or 0 <= seed < 2**31 for seed in seeds)


def test_nothing_is_drawn_where_nothing_is_asked_or_sampled(store, server):
    catalogue = catalogue_of(server.url)
    greedy = perform(store, catalogue, temperature=0.0)
    assert greedy.integrity["coin"].canary is None and not asked_of(server, canary=True)
    perform(store, catalogue)
    before = len(server.seen)
    again = perform(store, catalogue)
    assert len(server.seen) == before and again.integrity["coin"].canary is None
    replay = perform(store, catalogue, RunOptions(mode="replay"))
    assert replay.integrity == {}


def test_stage_of_single_draws_at_the_default_temperature_needs_no_canary(store, server):
    assert perform(store, catalogue_of(server.url), temperature=None, samples=1).integrity["coin"].canary is None
    assert perform(store, catalogue_of(server.url), temperature=0.5, samples=1).integrity["coin"].canary is not None


REPEATING = {
    "temperature-ignored": lambda: ignored("temperature", answer=lambda body: coin("", {**body, "temperature": 0})),
    "cached-by-prompt": lambda: cached(by="prompt"),
}


@pytest.mark.parametrize("name", REPEATING)
def test_endpoint_that_repeats_itself_stops_the_run_before_the_study(store, server, name):
    server.play(REPEATING[name]())
    with raises_code(HaltedError, "endpoint.repeats"):
        perform(store, catalogue_of(server.url))
    assert len(asked_of(server, canary=True)) == 2 * DRAWS and not asked_of(server, canary=False)
    run = get_run(store, "latest")
    manifest = json.loads(run.manifest)
    assert run.state == "interrupted" and manifest["integrity"]["coin"]["canary"]["verdict"] == "alike"
    assert manifest["stages"]["coin"]["counts"]["canary"] == 2 * DRAWS
    # Mended, the run goes on, and its draws are draws.
    server.stop_playing()
    study = manifest["run"]
    resumed = perform(store, catalogue_of(server.url), RunOptions(name=study))
    assert resumed.run == study and resumed.integrity["coin"].repeated == ""
    assert resumed.integrity["coin"].canary.verdict == "varied"
    assert resumed.stages["coin"].counts["canary"] == 3 * DRAWS


def test_cache_by_body_is_told_from_draws_by_the_seeds_that_are_sent(store, server):
    server.play(cached(by="body"))
    assert perform(store, catalogue_of(server.url)).integrity["coin"].canary.verdict == "varied"
    server.clear()
    server.play(cached(by="body"))
    with raises_code(HaltedError, "endpoint.repeats"):
        perform(store, catalogue_of(server.url, omit=["seed"]), temperature=0.9)


def test_copies_of_one_call_with_several_samples_are_found(store, server):
    """The canary is asked as the study is: `n` samples in one call, which an endpoint may draw with one seed."""

    def copies(path, body):
        made = coin(path, body)
        many = [{**made["choices"][0], "index": place} for place in range(body.get("n", 1))]
        return {**made, "choices": many}

    server.model = copies
    with raises_code(HaltedError, "endpoint.repeats"):
        perform(store, catalogue_of(server.url, samples_per_call=8))


def test_endpoint_that_ignores_seeds_is_sound(store, server):
    server.play(ignored("seed", answer=lambda body: coin("", body)))
    found = perform(store, catalogue_of(server.url)).integrity["coin"]
    assert (found.canary.verdict, found.findings) == ("varied", ())


def test_model_that_is_sure_of_its_answers_is_not_at_fault(store, server):
    server.model = sure
    catalogue = catalogue_of(server.url)
    manifest = perform(store, catalogue)
    assert (manifest.integrity["coin"].canary.verdict, manifest.integrity["coin"].repeated) == ("varied", "")
    scores = score(catalogue, store, "latest")
    repeats = scores.manifest.repeats["coin"]
    assert (repeats.prompts, repeats.draws, repeats.alike, repeats.pairs) == (30, 120, 30, 1.0)
    assert not any("same answer each time" in text for text in warnings_of(scores))
    assert Caveat.ONE_DRAW not in scores.headline[0].caveats and scores.headline[0].n == 120


SILENT = {
    "refuses": saying("I'm sorry, but I can't help with that."),
    "one word": saying("no"),
    "cut off while reasoning": saying("", status="length"),
    "echo": saying("no more"),
}


@pytest.mark.parametrize("name", SILENT)
def test_canary_that_cannot_tell_stops_nothing_and_is_said(store, server, name):
    server.model = SILENT[name]
    catalogue = catalogue_of(server.url)
    manifest = perform(store, catalogue, RunOptions(keep_going=True))
    found = manifest.integrity["coin"]
    assert (found.canary.verdict, found.canary.second, found.repeated) == ("unclear", None, "")
    assert found.canary.first.reason
    if name in ("one word", "echo"):
        scores = score(catalogue, store, "latest")
        assert any("same answer each time" in text for text in warnings_of(scores))


def test_reasoning_model_with_room_passes(store, server):
    def thinking(path, body):
        made = coin(path, body)
        message = made["choices"][0]["message"]
        message["reasoning_content"] = "Let me think. " * 5
        return made

    server.model = thinking
    assert perform(store, catalogue_of(server.url, answer_room=500)).integrity["coin"].canary.verdict == "varied"


def test_nearly_deterministic_at_its_own_temperature_is_narrow_and_goes_on(store, server):
    def cold(path, body):
        return coin(path, {**body, "temperature": 0.0 if body.get("temperature", 1.0) < 0.5 else 1.0})

    server.model = cold
    found = perform(store, catalogue_of(server.url), temperature=0.1).integrity["coin"]
    assert (found.canary.verdict, found.canary.second.temperature) == ("narrow", 1.0) and not found.findings


def test_accepted_repeats_count_as_one_draw(store, server):
    """Against numpy: the mean, its standard error and n are those of one draw per prompt."""
    server.play(cached(by="prompt"))
    catalogue = catalogue_of(server.url)
    manifest = perform(store, catalogue, ACCEPT, prompts=40, samples=5)
    assert manifest.integrity["coin"].repeated and found_in(manifest)["repeats"].count == 2 * DRAWS
    scores = score(catalogue, store, "latest")
    (e,) = scores.headline
    answers = np.array([json.loads(r)["text"] == "yes" for r in responses(store)]).reshape(40, 5)
    assert (answers == answers[:, :1]).all(), "the cache answered each prompt once"
    x = answers[:, 0].astype(float)
    half = stats.t.ppf(0.975, 39) * x.std(ddof=1) / np.sqrt(40)
    assert (e.n, e.clusters) == (40, 40) and e.value == pytest.approx(x.mean())
    assert (e.low, e.high) == pytest.approx((x.mean() - half, x.mean() + half))
    assert Caveat.ONE_DRAW in e.caveats
    warnings = warnings_of(scores)
    assert any("160 further samples" in text for text in warnings), warnings
    assert not any("not complete" in text for text in warnings)
    section = integrity_words(scores.manifest)["coin"]
    assert "count as one" in section["draws of a prompt"] and "repeats" in section["found"]


def responses(store):
    """Return the responses of the latest run in plan order."""
    query = (
        "SELECT e.response FROM run_trial t JOIN exchange e ON e.id = t.exchange_id "
        "WHERE t.run_id = :run ORDER BY t.ordinal"
    )
    with store.engine.connect() as connection:
        return [row[0] for row in connection.execute(sa.text(query), {"run": get_run(store, "latest").id})]


def test_accepted_repeats_stay_repeats_in_a_later_run_that_takes_them_from_the_store(store, server):
    server.play(cached(by="prompt"))
    catalogue = catalogue_of(server.url)
    first = perform(store, catalogue, ACCEPT)
    server.stop_playing()
    more = perform(store, catalogue, samples=6)
    assert more.integrity["coin"].canary.verdict == "varied" and first.run in more.integrity["coin"].repeated
    anew = perform(store, catalogue, RunOptions(mode="refresh"))
    assert anew.integrity["coin"].repeated == ""
    assert len(list_runs(store)) == 3


def test_plan_shows_the_canary_with_its_tokens(store, server):
    catalogue = catalogue_of(server.url)
    study = catalogue.study("coins", {"subject": "tiny"}, {"max_tokens": 8})
    greedy = catalogue.study("coins", {"subject": "tiny"}, {"temperature": 0.0, "max_tokens": 8})
    (drawn,), (sure_of,) = plan(catalogue, study), plan(catalogue, greedy)
    assert (drawn.canary, sure_of.canary, drawn.requests) == (DRAWS, 0, sure_of.requests)
    assert drawn.output_tokens - sure_of.output_tokens == DRAWS * ROOM
    perform(store, catalogue, max_tokens=8)
    assert plan(catalogue, study, store)[0].canary == 0, "all is in the store"


def test_budget_holds_for_the_canary_too(store, server):
    catalogue = catalogue_of(server.url)
    with raises_code(BudgetError, "budget-spent", str(2 * DRAWS + 1)):
        perform(store, catalogue, RunOptions(caps=Caps(requests=2 * DRAWS)))
    assert not server.seen, "a canary that leaves no question would be paid again by every resume"
    with pytest.raises(BudgetError):
        perform(store, catalogue, RunOptions(caps=Caps(requests=2 * DRAWS + 1)))
    assert len(server.seen) == 2 * DRAWS + 1 and len(asked_of(server, canary=False)) == DRAWS + 1


@pytest.mark.parametrize("most", [DRAWS + 1, 2 * DRAWS])
def test_budget_without_room_for_the_second_question_asks_nothing(store, server, most):
    server.play(REPEATING["temperature-ignored"]())
    with raises_code(BudgetError, "budget-spent", str(2 * DRAWS + 1)):
        perform(store, catalogue_of(server.url), RunOptions(caps=Caps(requests=most)))
    assert not server.seen
    with raises_code(HaltedError, "endpoint.repeats"):
        perform(store, catalogue_of(server.url), RunOptions(caps=Caps(requests=2 * DRAWS + 1)))


def test_refresh_mixes_the_generation_into_the_seed(store, server):
    """A cache that tells bodies apart cannot answer a refresh with the old answers."""
    catalogue = catalogue_of(server.url)
    server.play(cached(by="body"))
    perform(store, catalogue, prompts=4)
    before = {json.dumps(body, sort_keys=True) for body in asked_of(server, canary=False)}
    perform(store, catalogue, RunOptions(mode="refresh"), prompts=4)
    after = {json.dumps(body, sort_keys=True) for body in asked_of(server, canary=False)[16:]}
    assert len(before) == len(after) == 16 and not before & after
    perform(store, catalogue, RunOptions(mode="refresh"), prompts=4)
    third = {json.dumps(body, sort_keys=True) for body in asked_of(server, canary=False)[32:]}
    assert len(third) == 16 and not third & (before | after)


def test_limit_and_stop_text_that_are_dropped_are_found(store, server):
    server.play(over_limit(), where=lambda call: "max_tokens" in call.body and "stop" not in call.body)
    found = found_in(perform(store, catalogue_of(server.url), samples=1, max_tokens=20))
    assert found["max-tokens"].count == 30 and len(found["max-tokens"].key) == 64
    server.clear()
    server.play(stop_left(), where=lambda call: "stop" in call.body)
    assert found_in(perform(store, catalogue_of(server.url), samples=1, stop=("\n\n",)))["stop"].count == 30


def test_room_for_reasoning_belongs_to_the_limit(store, server):
    server.play(over_limit(1))
    manifest = perform(store, catalogue_of(server.url, answer_room=200), samples=1, max_tokens=20)
    assert manifest.integrity["coin"].findings == ()


def test_prompts_that_are_cut_off_are_found(store, server):
    server.play(cut_prompt(300))
    found = found_in(perform(store, catalogue_of(server.url), samples=1, lengths=120))
    assert "300 tokens each" in found["truncated"].detail
    assert "truncated" not in found_in(perform(store, catalogue_of(server.url, revision="b"), samples=1))
    server.clear()
    found = found_in(perform(store, catalogue_of(server.url, revision="c", context=300), samples=1, lengths=120))
    assert found["context"].count > 5


def test_names_in_replies_are_recorded_and_a_change_is_found(store, server):
    server.play(named("tiny-2024-08-06", "tiny-mini", each=60))
    manifest = perform(store, catalogue_of(server.url))
    found, seen = found_in(manifest), manifest.integrity["coin"].models
    assert {name: one.count for name, one in seen.items()} == {"tiny-2024-08-06": 60, "tiny-mini": 68}
    assert found["model-changed"].count == found["other-model"].count == 68
    assert all(one.first <= one.last for one in seen.values())


def test_fingerprints_are_recorded_without_a_finding(store, server):
    server.play(named("fp_1", "fp_2", each=60, field="system_fingerprint"))
    manifest = perform(store, catalogue_of(server.url))
    assert {n: s.count for n, s in manifest.integrity["coin"].fingerprints.items()} == {"fp_1": 60, "fp_2": 68}
    assert manifest.integrity["coin"].findings == ()


def test_name_of_a_deployment_can_be_stated(store, server):
    server.play(named("gpt-4o-2024-08-06"))
    assert "other-model" in found_in(perform(store, catalogue_of(server.url)))
    catalogue = catalogue_of(server.url, named_as=["gpt-4o"])
    assert found_in(perform(store, catalogue, RunOptions(mode="refresh"))) == {}


CHANGES = {"rounded": lambda value: round(value, 1) - 0.1, "clipped": lambda value: max(value, -4.0)}


@pytest.mark.parametrize("what", [*CHANGES, "own"])
def test_log_probabilities_that_are_not_the_models_own_are_found(store, server, what):
    server.model = answer_well
    if what in CHANGES:
        server.play(scored(CHANGES[what]))
    catalogue = catalogue_of(server.url, likelihood="prompt_logprobs")
    manifest = perform(store, catalogue, scored=True, prompts=40)
    assert set(found_in(manifest)) == {what} - {"own"}
    assert manifest.integrity["coin"].canary is None


def test_recheck_is_sent_with_seeds_of_its_own(store, server):
    """So a cache that tells bodies apart cannot hide a drift."""
    catalogue = catalogue_of(server.url)
    perform(store, catalogue, prompts=5)
    before, count = [body.get("seed") for body in asked_of(server, canary=False)], len(server.seen)
    asyncio.run(recheck(catalogue, store, "latest", RecheckOptions(sample=20)))
    after = [one.body["seed"] for one in server.seen[count:]]
    assert len(after) == 20 == len(set(after)) and not set(after) & set(before)


def test_keys_are_those_of_stored_answers():
    """Settings of readers are no part of them."""
    identity = identity_digest(make_identity(OpenAIOptions(model="m", api_key_env=""), "http://h/v1"))
    message = Message("user", (Text("a"),))
    sampling = Sampling(temperature=0.7, max_tokens=8, stop=("x",), seed=5)
    keys = {
        "e8df26b3ee545e0da8029070924707242a08032fad76e193a4f4dc325313bee0": Generate(messages=(message,)),
        "d4a5c847e1b4d85d0e3cedd954ba68274e304713167ce9f012bad776a2026d79": Generate(messages=(message,), sample=3),
        "82caa6522bb423fb5fda4623bb67fbbc7dda40a742b4190c068b95ab3645e464": Generate(
            messages=(message,), sampling=sampling, sample=1, attempt=2
        ),
    }
    assert {request_key(identity, encode(request)).hex() for request in keys.values()} == set(keys)


def test_seeds_on_the_wire_follow_from_the_request_alone():
    plain = Generate(messages=(Message("user", (Text("a"),)),))
    own = msgspec.structs.replace(plain, sampling=Sampling(seed=5))
    repeats = [msgspec.structs.replace(plain, sample=n, attempt=m) for n in range(3) for m in range(3)]
    seeds = [wire_seed(one, generation) for one in repeats for generation in range(3)]
    assert seeds[0] is None and seeds == [wire_seed(one, generation) for one in repeats for generation in range(3)]
    assert len(set(seeds)) == 27 and all(0 <= seed < 2**31 for seed in seeds[1:])
    assert wire_seed(own) == wire_seed(own, 7) == 5, "a seed of the request decides"
    assert wire_seed(msgspec.structs.replace(own, sample=1)) not in (
        5,
        wire_seed(msgspec.structs.replace(plain, sample=1)),
    )


def test_run_without_the_section_opens_and_reports(store, server):
    """A run of an earlier version has no integrity in its manifest."""
    catalogue = catalogue_of(server.url)
    made = perform(store, catalogue)
    told = msgspec.to_builtins(made)
    for name in ("integrity", "repeats"):
        told.pop(name)
    assert msgspec.convert(told, Manifest).integrity == {}
    old = msgspec.json.encode(told).decode()
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE run SET manifest = :old, local = NULL"), {"old": old})
        seal(connection, 1)
    scores = score(catalogue, store, "latest")
    assert scores.headline[0].n == 120 and not any("endpoint" in text.lower() for text in warnings_of(scores))
    assert set(integrity_words(scores.manifest)["coin"]) == {"repeated prompts"}


def test_endpoint_without_seeds_is_named_with_its_mend(store, server):
    refused = Reply(400, problem(None, "Unrecognized request argument supplied: seed"))
    server.play(refused, where=lambda call: "seed" in call.body)
    single = perform(store, catalogue_of(server.url), samples=1)
    assert single.integrity["coin"].canary.verdict == "unclear" and single.stages["coin"].counts["failed"] == 0
    with raises_code(HaltedError, "endpoint.seed") as stopped:
        perform(store, catalogue_of(server.url))
    assert 'omit = ["seed"]' in str(stopped.value)
    counts = perform(store, catalogue_of(server.url, omit=["seed"])).stages["coin"].counts
    # The first draws have no seed, so they are those of the run of single draws.
    assert (counts["asked"], counts["cached"]) == (90, 30)
