"""The word difference, the two requests of a pair, and the reading of scores."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.records import Generation, TokenScores
from prejudge.probes.shared.sentence_pairs import (
    Pair,
    PairOptions,
    ScoredStage,
    draw_places,
    request_of,
    word_difference,
    words,
)

TEXTS = st.text(alphabet="ab -.'é\u0301मि\n", max_size=24)
PAIR = Pair("p", ("good", "bad"), ("A tall man.", "A short man."), {"axis": "height"})


class Sentences(ScoredStage):
    factors = ("pair", "side")

    def trials(self, earlier):
        return iter(())


def asked(**options):
    return [request_of(PAIR, place, PairOptions(**options)) for place in (0, 1)]


def cut(text, spans):
    return [text[start:end] for start, end in spans]


def shared(text, spans):
    return [word for word, span in words(text) if span not in spans]


@given(TEXTS, TEXTS)
def test_shared_words_are_equal(first, second):
    mine, theirs = word_difference(first, second)
    assert shared(first, mine) == shared(second, theirs)


@given(TEXTS, TEXTS)
def test_spans_are_words_in_order(first, second):
    for text, spans in zip((first, second), word_difference(first, second), strict=True):
        assert list(spans) == sorted(set(spans) & {span for _, span in words(text)})


@given(TEXTS)
def test_equal_texts_have_no_difference(text):
    assert word_difference(text, text) == ((), ())


@given(TEXTS)
def test_words_leave_only_whitespace(text):
    covered = {at for _, (start, end) in words(text) for at in range(start, end)}
    assert all(text[at].isspace() or text[at] == "\u0301" for at in set(range(len(text))) - covered)


def test_hyphenated_word_is_one():
    first, second = "A dark-skinned man's hat.", "A fair-skinned man's hat."
    mine, theirs = word_difference(first, second)
    assert (cut(first, mine), cut(second, theirs)) == (["dark-skinned"], ["fair-skinned"])


def test_punctuation_stands_apart():
    assert [word for word, _ in words("Fat, thin-ish. (O’Neil)")] == ["Fat", ",", "thin-ish", ".", "(", "O’Neil", ")"]


def test_combining_marks_do_not_split_words():
    first, second = "एक मोटी लड़की", "एक पतली लड़की"
    mine, theirs = word_difference(first, second)
    assert (cut(first, mine), cut(second, theirs)) == (["मोटी"], ["पतली"])


def test_inserted_word_differs_on_one_side():
    assert word_difference("a tall man", "a man") == (((2, 6),), ())


def test_long_text_has_no_junk_words():
    text = "the man saw a man " * 60
    assert word_difference("fat " + text, "thin " + text) == (((0, 3),), ((0, 4),))


def test_word_requests_carry_spans():
    requests = asked()
    assert [cut(request.text, request.given) for request in requests] == [["tall"], ["short"]]
    assert [request.contrast for request in requests] == [None, None]


def test_token_requests_align_one_way():
    requests = asked(unit="token")
    assert [request.contrast for request in requests] == ["A short man.", "A tall man."]
    assert [request.contrast_first for request in requests] == [False, True]
    assert [request.given for request in requests] == [(), ()]


def test_requests_have_the_variant():
    assert {request.variant for request in asked(variant="within_word_l2r")} == {"within_word_l2r"}


def test_read_takes_sum_and_count():
    stage, response = Sentences(), TokenScores(log_probability=-2.5, count=3, values=(-1.0, -1.5, 0.0))
    assert stage.read({}, response) == {"log_probability": -2.5, "tokens": 3}


@pytest.mark.parametrize("response", [Generation(text="-2.5"), TokenScores(log_probability=0.0, count=0)])
def test_nothing_scored_is_unreadable(response):
    assert isinstance(Sentences().read({}, response), Unreadable)


def frame(*responses):
    return pl.DataFrame({"pair": "p", "response": [msgspec.json.encode(response).decode() for response in responses]})


@given(st.lists(st.floats(max_value=0, allow_infinity=False, allow_nan=False), min_size=1))
def test_read_frame_equals_read(values):
    stage = Sentences()
    responses = [TokenScores(log_probability=value, count=7, values=(value,)) for value in values]
    assert stage.read_frame(frame(*responses)).to_dicts() == [stage.read({}, response) for response in responses]


@pytest.mark.parametrize("odd", [Generation(text="x"), TokenScores(log_probability=0.0, count=0)])
def test_read_frame_leaves_odd_rows_to_read(odd):
    assert Sentences().read_frame(frame(TokenScores(log_probability=-1.0, count=1), odd)) is None


def test_read_frame_of_nothing_is_empty():
    read = Sentences().read_frame(pl.DataFrame(schema={"response": pl.String}))
    assert read.shape == (0, 2)


GRID = [([cell], template, f"{cell}{template}{number}") for cell in "PQ" for template in "tuvw" for number in range(3)]


def drawn(limit, seed=0, rows=GRID):
    return [rows[place] for place in sorted(draw_places([(*row, None) for row in rows], limit, seed))]


@pytest.mark.parametrize("limit", [1, 4, 5, 12, 99])
def test_sample_spreads_over_templates(limit):
    for cell in "PQ":
        counts = [sum(row[:2] == ([cell], template) for row in drawn(limit)) for template in "tuvw"]
        assert sum(counts) == min(limit, 12)
        assert max(counts) - min(counts) <= 1


def test_sample_has_the_same_templates_in_all_cells():
    assert len({template for _, template, _ in drawn(2)}) == 2


def test_larger_sample_keeps_the_smaller():
    small, large = ({name for _, _, name in drawn(limit)} for limit in (3, 7))
    assert small < large


def test_sample_depends_on_the_seed_alone():
    backwards = drawn(3, seed=1, rows=GRID[::-1])
    assert sorted(name for _, _, name in backwards) == sorted(name for _, _, name in drawn(3, seed=1))
    assert drawn(3, seed=1) != drawn(3, seed=2)


def test_sample_uses_the_words_of_each_cell_evenly():
    rows = [
        ([cell], template, f"{cell}{template}{word}", word)
        for cell in "PQ"
        for template in "tuvwxyz"
        for word in "abcd"
    ]
    for limit in (4, 6, 7, 13):
        for cell in "PQ":
            names = [rows[place][3] for place in draw_places(rows, limit, 0) if rows[place][0] == [cell]]
            counts = [names.count(word) for word in "abcd"]
            assert sum(counts) == limit and max(counts) - min(counts) <= 1 + (limit > 7)
    assert draw_places(rows, 6, 0) < draw_places(rows, 13, 0)
