"""Shares of answers, what does not vary, and the words for both."""

from __future__ import annotations

import pytest

from prejudge.core.fitness import FitAnswer, StageFitness, mass_words, profile_of, unfit_words, unvaried_words


def answers(read=0, refused=0, cut=0, echo=0, empty=0, other=0, label="neutral"):
    return [
        *[FitAnswer(status="ok", values={"label": label, "p": 0.5})] * read,
        *[FitAnswer(status="refused")] * refused,
        *[FitAnswer(status="unreadable", cut=True)] * cut,
        *[FitAnswer(status="unreadable", echo=True)] * echo,
        *[FitAnswer(status="unreadable", empty=True)] * empty,
        *[FitAnswer(status="unreadable")] * other,
        *[FitAnswer(status="failed")] * 3,
    ]


def test_shares_leave_failed_calls_out():
    profile = profile_of(answers(read=2, refused=3, cut=4, echo=1))
    assert (profile.asked, profile.read, profile.refused, profile.unread) == (10, 2, 3, 5)
    assert profile.answered == pytest.approx(0.5) and profile.usable == pytest.approx(0.2)
    assert profile.share("cut") == pytest.approx(0.4) and profile.share("echo") == pytest.approx(0.1)


def test_fit_begins_at_half():
    assert StageFitness(stage="main", role="subject", every=profile_of(answers(read=5, other=5))).fit
    assert not StageFitness(stage="main", role="subject", every=profile_of(answers(read=4, other=5))).fit
    assert StageFitness(stage="main", role="subject", every=profile_of(answers(refused=9))).fit


def test_words_name_how_most_fail():
    assert "98 %" in unfit_words(profile_of(answers(read=1, echo=40, cut=9)))
    assert "repeat the question" in unfit_words(profile_of(answers(read=1, echo=40, cut=9)))
    assert "limit of tokens" in unfit_words(profile_of(answers(cut=40, other=9)))
    assert "most" not in unfit_words(profile_of(answers(cut=10, other=30)))


def test_answers_of_one_value_do_not_vary():
    profile = profile_of(answers(read=76) + answers(read=4, label="entailment"))
    assert profile.constant() == {"label": ("neutral", 76, 80)}
    assert "76 of 80" in next(unvaried_words(profile))
    assert profile_of(answers(read=70) + answers(read=10, label="entailment")).constant() == {}
    assert profile_of(answers(read=19)).constant() == {}  # too few to say so


def test_numbers_are_no_choice_among_few():
    assert "p" not in profile_of(answers(read=30)).values


def test_options_that_hold_little_of_the_probability_are_said():
    chosen = {"status": "ok", "values": {"label": "neutral"}}
    little = [FitAnswer(mass=mass, **chosen) for mass in (0.02, 0.031, 0.9)]
    assert profile_of(little).mass == 0.031 and "3.1 %" in next(mass_words(profile_of(little)))
    assert not [*mass_words(profile_of([FitAnswer(mass=0.6, **chosen)] * 3))]
    # Without options, as of whole sentences, the sum is none of the model's choice.
    assert not [*mass_words(profile_of([FitAnswer(status="ok", values={"log_sentence": -9.0}, mass=1e-9)] * 3))]
    assert not [*mass_words(profile_of([FitAnswer(**chosen)] * 3))]
