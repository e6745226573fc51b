import numpy as np
import pytest

from prejudge.adapters.encoder_training.data import read_corpus
from prejudge.adapters.encoder_training.splits import SPLITS, cut, pack, repeated_across
from prejudge.core.contracts.errors import DataError


@pytest.mark.parametrize("by", SPLITS)
def test_parts_cover_all_and_share_nothing(corpus, by):
    parts = cut(corpus, by, 3)
    together = np.concatenate([parts.train, parts.tuning, parts.validation])
    assert sorted(together) == list(range(96))
    assert 0.15 <= len(parts.validation) / 96 <= 0.25


def test_split_by_context_shares_no_context(corpus):
    parts = cut(corpus, "context", 3)
    seen = set(corpus.context[parts.known])
    assert not seen & set(corpus.context[parts.validation])
    assert set(corpus.category[parts.validation]) == {0, 1}


def test_split_by_sentence_shares_contexts(corpus):
    parts = cut(corpus, "sentence", 3)
    assert set(corpus.context[parts.validation]) & set(corpus.context[parts.train])


def test_seed_decides(corpus):
    assert list(cut(corpus, "sentence", 1).validation) == list(cut(corpus, "sentence", 1).validation)
    assert list(cut(corpus, "sentence", 1).validation) != list(cut(corpus, "sentence", 2).validation)


def test_validation_can_serve_for_tuning(corpus):
    parts = cut(corpus, "sentence", 0, "validation")
    assert list(parts.tuning) == list(parts.validation) and not set(parts.known) & set(parts.validation)


@pytest.mark.parametrize(("size", "processes", "sizes"), [(20, 1, [24, 24, 16, 16, 16]), (40, 4, [24] * 4)])
def test_batches_are_whole_contexts(corpus, size, processes, sizes):
    found = pack(corpus.context, size, np.random.default_rng(0), processes)
    assert sorted(row for batch in found for row in batch) == list(range(96))
    assert [len(batch) for batch in found] == sizes
    assert all(len(batch) == 8 * len({*corpus.context[batch]}) for batch in found)


def test_context_with_one_sentence_is_left_out():
    assert pack(np.array([0, 0, 1]), 9, np.random.default_rng(0)) == [[0, 1]]


def test_single_context_cannot_be_held_out(write):
    corpus = read_corpus([write("0,He is poor.,stereotype", "0,He is rich.,anti_stereotype")])
    with pytest.raises(DataError) as caught:
        cut(corpus, "context", 0)
    assert (caught.value.code, caught.value.fields["category"]) == ("training.too-few", "own0")


@pytest.mark.parametrize(("select", "least"), [("inner", 6), ("validation", 3)])
def test_least_number_of_sentences_is_told(write, select, least):
    def corpus(count):
        kinds = ("stereotype", "anti_stereotype")
        return read_corpus([write(*(f"0,He is {place}.,{kinds[place % 2]}" for place in range(count)))])

    with pytest.raises(DataError) as caught:
        cut(corpus(least - 1), "sentence", 0, select)
    assert caught.value.fields["least"] == least
    parts = cut(corpus(least), "sentence", 0, select)
    assert min(map(len, (parts.train, parts.tuning, parts.validation))) > 0


@pytest.mark.parametrize(("select", "least"), [("inner", 3), ("validation", 2)])
def test_least_number_of_contexts_is_told(write, select, least):
    def corpus(count):
        rows = ((place, kind) for place in range(count) for kind in ("stereotype", "anti_stereotype"))
        return read_corpus([write(*(f"{place},He is {kind}.,{kind}" for place, kind in rows))])

    with pytest.raises(DataError) as caught:
        cut(corpus(least - 1), "context", 0, select)
    assert caught.value.fields["least"] == least
    parts = cut(corpus(least), "context", 0, select)
    assert min(map(len, (parts.train, parts.tuning, parts.validation))) > 0


def test_repeats_across_the_split_are_counted(write):
    lines = [
        f"{place},He is {word}.,{kind}"
        for place in range(5)
        for word, kind in (("poor", "stereotype"), ("rich", "anti_stereotype"))
    ]
    corpus = read_corpus([write(*lines)])
    parts = cut(corpus, "context", 0)
    assert repeated_across(corpus, parts) == len(parts.validation) == 2
