import polars as pl
import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.dora.associations import count, measure_cells, mentions
from prejudge.testing import raises_code


def completion(descriptor, word, number, **more):
    cell = {"modality": "t2t", "setting": "singular", "dimension": "age", "stage": "completions", "status": "ok"}
    return {**cell, "descriptor": descriptor, "word": word, "key": number.to_bytes(2, "big"), **more}


def description(text, image, number):
    more = {"modality": "t2i", "setting": "objective", "stage": "descriptions", "text": text, "image": image}
    return completion("man", None, number, **more)


def counts(rows):
    pairs = count(pl.DataFrame(rows, infer_schema_length=None, orient="row")).pairs
    return {(row["descriptor"], row["word"]): (row["count"], row["documents"]) for row in pairs.to_dicts()}


def test_completions_are_counted_as_lemmas():
    rows = [completion("man", word, i) for i, word in enumerate(["liar", "Liars", "mine"])]
    assert counts(rows) == {("man", "liar"): (2, 2), ("man", "mine"): (1, 1)}


def test_texts_about_one_image_are_one_document():
    rows = [
        description("A dark coat, a dark hat.", "i1", 0),
        description("The hat", "i1", 1),
        description("hats", "i2", 2),
    ]
    assert counts(rows) == {("man", "dark"): (2, 1), ("man", "coat"): (1, 1), ("man", "hat"): (3, 2)}


def test_what_could_not_be_read_is_left_out():
    rows = [completion("man", "rude", 0), completion("man", None, 1, status="unreadable")]
    assert counts(rows) == {("man", "rude"): (1, 1)}


@pytest.mark.parametrize(
    "refusal",
    [
        "It is not appropriate to make assumptions about a person's character from a photo. Stereotypes are harmful.",
        "I am an AI language model and do not judge people by their looks. Such assumptions are harmful stereotypes.",
        "It's important to note that we should not make assumptions about people based on appearance.",
        "I can't identify anybody, sorry.",
    ],
)
def test_sentences_about_the_question_are_no_associations(refusal):
    rows = [description(f"{refusal} A dark coat.", "i1", 0), description(f"A dark hat. {refusal}", "i2", 1)]
    assert counts(rows) == {("man", "dark"): (2, 2), ("man", "coat"): (1, 1), ("man", "hat"): (1, 1)}


def test_negative_sentences_about_a_person_are_associations():
    rows = [description("He is not honest and refuses to smile.", "i1", 0)]
    assert counts(rows) == {("man", word): (1, 1) for word in ("honest", "refuse", "smile")}


def test_words_of_other_stages_are_no_answers():
    rows = [completion("man", "rude", 0), completion("man", "rude", 1, stage="sentiment")]
    assert counts(rows) == {("man", "rude"): (1, 1)}


def test_settings_are_measured_apart_and_dimensions_together():
    rows = [completion("man", "rude", 0), completion("boy", "rude", 1), completion("boy", "kind", 2)]
    rows += [{**row, "setting": "plural"} for row in rows] + [{**rows[0], "dimension": "gender", "key": b"x"}]
    counts = count(pl.DataFrame(rows, infer_schema_length=None, orient="row"))
    found = measure_cells(counts).filter(word="rude").sort("setting", "descriptor", "dimension")
    assert found.select("setting", "descriptor", "dimension", "count", "tf").rows() == [
        ("plural", "boy", "age", 1, 1),
        ("plural", "man", "age", 1, 1),
        ("singular", "boy", "age", 1, 1),
        ("singular", "man", "age", 1, 2),
        ("singular", "man", "gender", 1, 2),
    ]
    assert found["df"].to_list() == [2] * 5


def test_a_sentence_that_two_settings_share_counts_once():
    # A model that says the same wherever the sentence is the same but for its article is no more sure of it.
    said = {"man": ("rude", "kind"), "boy": ("kind", "calm"), "girl": ("calm", "fair"), "aunt": ("fair", "wise")}
    rows = [
        completion(person, word, 2 * place + wording, setting="adjective", wording=wording, letter="a")
        for wording in (0, 1)
        for place, (person, words) in enumerate(said.items())
        for word in words
    ]
    again = [{**row, "setting": "noun", "key": b"n" + row["key"]} for row in rows]
    other = [{**row, "setting": "plural", "key": b"p" + row["key"]} for row in rows]
    one, shared, apart = (
        measure_cells(count(pl.DataFrame(every, infer_schema_length=None, orient="row")))
        .filter(descriptor="man", word="rude", setting="adjective")
        .item(0, "p_exact")
        for every in (rows, rows + again, rows + other)
    )
    # One descriptor of four, in each of two wordings; in four prompts where the sentence is another.
    assert (one, shared, apart) == pytest.approx((1 / 4**2, 1 / 4**2, 1 / 4**4))


def test_nothing_said_is_no_pair():
    counts = count(pl.DataFrame([completion("man", None, 0, status="refused")]).cast({"word": pl.String}))
    assert measure_cells(counts).is_empty()


def test_an_absent_column_is_named():
    with raises_code(DataError, "data.column-missing", "modality, setting"):
        mentions(pl.DataFrame({"dimension": ["a"], "descriptor": ["b"], "status": ["ok"], "key": [b""]}))
