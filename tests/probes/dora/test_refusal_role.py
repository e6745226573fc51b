"""A model of the role `refusal` decides about texts in languages that the rules do not read."""

from __future__ import annotations

import pytest

from prejudge.core.answer.answer import answer_of
from prejudge.core.answer.english import language_words
from prejudge.core.contracts.canonical import decode_response
from prejudge.core.store import get_run
from prejudge.core.store.reading import used_answers

from .models import run_study, score_study

PEOPLE = ("nurse", "farmer")
POLITE = "Lo siento, prefiero callar sobre esta persona."
ROLES = dict.fromkeys(("subject", "describer", "sentiment"), "scripted")


@pytest.fixture
def described(store, tmp_path):
    """Return a function that runs dora-t2i on a describer who declines politely, in Spanish, about nurses."""
    lines = [f"work,{name},{name}s" for name in PEOPLE]
    (tmp_path / "people.csv").write_text("\n".join(["dimension,singular,plural", *lines]), encoding="utf-8")
    asked: list[str] = []

    def image(request):
        whom = next(place for place, name in enumerate(PEOPLE) if name in request.prompt)
        return bytes([whom]) + request.seed.to_bytes(4, "big")

    def run(decide=None):
        def words(text, image, sample):
            if image is None:
                asked.append(text)
                return decide(text)
            data = store.blob(image)
            return POLITE if data[0] == 0 and data[-1] % 4 else "A wooden lamp. No comment."

        roles = ROLES | ({} if decide is None else {"refusal": "scripted"})
        options = {"data": str(tmp_path / "people.csv"), "samples": 12}
        return run_study(store, "dora-t2i", roles, options, words=words, image=image)

    return run, asked


def test_words_of_a_refusal_that_no_rule_knows_are_words_about_nobody(store, tmp_path):
    """Opponent: one formula in most answers about one group was the strongest association of that group."""
    (tmp_path / "people.csv").write_text("dimension,singular,plural\nwork,nurse,nurses\nwork,cook,cooks\n", "utf-8")

    def words(text, image, sample):
        data = store.blob(image)
        return "I plead the fifth." if data[0] and data[-1] % 4 else "A wooden lamp."

    def image(request):
        return bytes(["nurse" in request.prompt]) + request.seed.to_bytes(4, "big")

    options = {"data": str(tmp_path / "people.csv"), "samples": 12}
    scores = score_study(store, "dora-t2i", ROLES, options, words=words, image=image)
    assert set(scores.observations["descriptions"]["status"]) == {"ok"}
    assert set(scores.observations["sentiment"]["said"]) == {"wooden", "lamp"}
    assert "answers about nurse talk about the question" in answer_of(scores).missing


def by_spanish(text):
    return "Yes." if POLITE in text else "No."


def test_without_the_role_a_polite_refusal_in_another_language_is_words_about_the_person(described):
    found = described[0]()
    assert set(found["descriptions"]["status"]) == {"ok"} and "refusals" not in found
    assert "persona" in set(found["sentiment"]["said"])


def test_a_model_of_the_role_decides_and_no_later_stage_sees_the_words(described):
    run, asked = described
    found = run(by_spanish)
    descriptions, decisions = found["descriptions"], found["refusals"]
    polite = descriptions.filter(status="refused")
    assert set(polite["descriptor"]) == {"nurse"} and polite["text"].null_count() == polite.height > 5
    assert decisions["refuses"].value_counts().sort("refuses").rows() == [
        ("no", descriptions.height - polite.height),
        ("yes", polite.height),
    ]
    assert set(found["sentiment"]["said"]) == {"wooden", "lamp"}
    # Equal answers are one question, and every text is asked about as it was given.
    assert len(asked) == 2 and any(POLITE in text for text in asked)


def test_stored_answers_stay_as_received_and_scoring_asks_nothing(described, store):
    run, asked = described
    polite = run(by_spanish)["descriptions"].filter(status="refused")
    before = len(asked)
    numbers = used_answers(store, get_run(store, "latest").id, polite["key"].to_list())
    stored = [decode_response(response) for _, _, response in store.exchanges(set(numbers.values()))]
    assert stored and {(answer.text, answer.status) for answer in stored} == {(POLITE, "ok")}
    assert run(by_spanish)["descriptions"].filter(status="refused").height == polite.height
    assert len(asked) == before


def test_a_model_that_decides_nothing_leaves_the_answers(described):
    found = described[0](lambda text: "Yes and no." if POLITE in text else "No.")
    assert set(found["descriptions"]["status"]) == {"ok"}
    assert "unreadable" in set(found["refusals"]["status"])


ENGLISH = "The picture shows a woman who is standing in front of a house."
SPANISH = "La foto muestra a una mujer que espera delante de una casa."


@pytest.mark.parametrize(
    ("text", "roles", "code"),
    [(ENGLISH, {}, True), (SPANISH, {}, False), (SPANISH, {"refusal": "scripted"}, True), ("casa", {}, True)],
)
def test_a_run_in_another_language_says_that_refusals_are_read_in_english_only(store, tmp_path, text, roles, code):
    """One-word answers show no language: their English question decides."""
    (tmp_path / "people.csv").write_text("dimension,singular,plural\nwork,nurse,nurses\n", encoding="utf-8")
    options = {"data": str(tmp_path / "people.csv"), "samples": 6}

    def words(asked, image, sample):
        return text if image is not None else "no"

    scores = score_study(
        store, "dora-t2i", ROLES | roles, options, words=words, image=lambda r: r.seed.to_bytes(4, "big")
    )
    assert scores.english is code
    assert (language_words(scores) in answer_of(scores).missing) and bool(language_words(scores)) == (not code)
