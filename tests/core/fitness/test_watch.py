"""The sequential test of whether a model answers at least half of the questions."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.core.fitness import FIRST, FitAnswer, Watch

OK, UNREAD, REFUSED = (FitAnswer(status=status) for status in ("ok", "unreadable", "refused"))


def watched(answers, groups=("",)):
    """Return the verdict on answers that are looked at one by one, and how many were asked for it."""
    watch = Watch()
    for number, answer in enumerate(answers):
        watch.see(number.to_bytes(4, "big"), groups[number % len(groups)], answer)
        if watch.verdict != "watch":
            break
    return watch.verdict, watch.asked


def drawn(share, seed, most=FIRST):
    rng = np.random.default_rng(seed)
    return [OK if hit else UNREAD for hit in rng.random(most) < share]


def test_model_that_answers_nothing_stops_after_few():
    verdict, asked = watched([UNREAD] * FIRST)
    assert verdict == "stops" and asked <= 12


def test_model_that_answers_all_goes_on_after_few():
    verdict, asked = watched([OK] * FIRST)
    assert verdict == "goes on" and asked <= 12


def test_model_that_refuses_all_goes_on():
    assert watched([REFUSED] * FIRST)[0] == "goes on"


def test_undecided_model_goes_on_after_fifty():
    assert watched([OK, UNREAD] * FIRST) == ("goes on", FIRST)


def test_filtered_and_failed_answers_say_nothing():
    watch = Watch()
    for number, status in enumerate(["filtered", "failed"] * 40):
        watch.see(number.to_bytes(4, "big"), "", FitAnswer(status=status))
    assert watch.asked == 0 and watch.verdict == "watch"


def test_samples_of_one_prompt_count_once():
    watch = Watch()
    for _ in range(40):
        watch.see(b"one", "", UNREAD)
    assert watch.asked == 1 and watch.verdict == "watch"


def test_model_that_fails_for_one_group_of_three_goes_on():
    """Two of three groups cannot be read; the third is: a finding, and no lack of ability."""
    answers = [OK if number % 3 == 0 else UNREAD for number in range(150)]
    watch = Watch()
    for number, answer in enumerate(answers):
        watch.see(number.to_bytes(4, "big"), "abc"[number % 3], answer)
    assert watch.bounds.high < 0.5
    assert watch.verdict == "goes on"


def test_it_watches_on_after_it_went_on():
    watch = Watch()
    for number in range(1000):
        watch.see(number.to_bytes(4, "big"), "", OK if number < 60 else UNREAD)
    assert watch.verdict == "stops"


def test_every_tenth_answer_is_read_of_a_long_run():
    watch, wanted = Watch(), 0
    for number in range(5000):
        prompt = number.to_bytes(4, "big")
        if watch.wants(prompt):
            wanted += 1
            watch.see(prompt, "", OK)
    assert 500 < wanted < 1100


@pytest.mark.parametrize(("share", "least"), [(0.02, 1.0), (0.1, 0.97), (0.3, 0.15)])
def test_power_of_the_stop(share, least):
    stopped = [watched(drawn(share, seed))[0] == "stops" for seed in range(100)]
    assert np.mean(stopped) >= least


@pytest.mark.parametrize("share", [0.6, 0.7, 0.8])
def test_fit_model_is_not_stopped(share):
    assert sum(watched(drawn(share, seed))[0] == "stops" for seed in range(100)) <= 1


def test_half_answered_is_stopped_in_one_percent_at_most():
    """The boundary is the worst case, over 400 answers that are each looked at."""
    stopped = []
    for seed in range(60):
        watch = Watch()
        for number, answer in enumerate(drawn(0.5, seed, 400)):
            watch.see(number.to_bytes(4, "big"), "", answer)
            if watch.verdict == "stops":
                break
        stopped.append(watch.verdict == "stops")
    assert sum(stopped) <= 3
