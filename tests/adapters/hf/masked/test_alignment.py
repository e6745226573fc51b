from __future__ import annotations

import difflib
import random
import zlib

import pytest

from prejudge.adapters.hf.masked.pll import Tokens, plan_sentence, shared_positions
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import PseudoLikelihood
from prejudge.testing import raises_code


def published(first, second):
    """CrowS-Pairs (Nangia et al. 2020), `get_span` with 'equal': positions in both sequences."""
    matcher = difflib.SequenceMatcher(None, [str(i) for i in first], [str(i) for i in second])
    equal = [code for code in matcher.get_opcodes() if code[0] == "equal"]
    return {i for op in equal for i in range(op[1], op[2])}, {j for op in equal for j in range(op[3], op[4])}


def tokens(text, special=()):
    """One token per word, the space before it included, as byte-level tokenizers have it."""
    ids, offsets, start = [], [], 0
    for word in text.split(" "):
        ids.append(zlib.crc32(word.encode()))
        offsets.append((max(0, start - 1), start + len(word)))
        start += len(word) + 1
    return Tokens(ids, offsets, list(range(len(ids))), [place in special for place in range(len(ids))])


@pytest.mark.parametrize("seed", range(20))
def test_shared_positions_equal_published(seed):
    rng = random.Random(seed)
    # Beyond 200 tokens difflib leaves popular ones out, which the published metric does too.
    size = 250 if seed % 5 == 0 else 15
    first, second = ([101, *rng.choices(range(6), k=size), 102] for _ in range(2))
    one, two = published(first, second)
    assert shared_positions(first, second, contrast_first=False) == one
    assert shared_positions(second, first, contrast_first=True) == two


def test_both_sentences_share_one_count():
    first, second = [1, 7, 7, 8, 9, 7, 8, 2], [1, 8, 7, 8, 7, 9, 7, 2]
    one = shared_positions(first, second, contrast_first=False)
    assert len(one) == len(shared_positions(second, first, contrast_first=True))


def test_crows_pairs_align_as_published(shared_data, tiny_bert):
    import csv

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    with (shared_data / "crows_pairs" / "crows_pairs_anonymized.csv").open(encoding="utf-8") as file:
        pairs = [(row["sent_more"], row["sent_less"]) for row in csv.DictReader(file)]
    assert len(pairs) == 1508
    for more, less in pairs:
        ids = tokenizer(more)["input_ids"], tokenizer(less)["input_ids"]
        one, two = published(*ids)
        assert shared_positions(*ids, contrast_first=False) == one
        assert shared_positions(*reversed(ids), contrast_first=True) == two


def test_given_span_spares_the_word_before():
    text = "the dark woman"
    plan = plan_sentence(PseudoLikelihood(text=text, given=((4, 8),)), tokens(text), None)
    assert plan.positions == [0, 2]


def test_given_span_with_its_space_spares_the_word_before():
    text = "the dark woman"
    plan = plan_sentence(PseudoLikelihood(text=text, given=((3, 8),)), tokens(text), None)
    assert plan.positions == [0, 2]


def test_given_part_of_word_covers_it():
    text = "the dark-skinned woman"
    plan = plan_sentence(PseudoLikelihood(text=text, given=((9, 10),)), tokens(text), None)
    assert plan.positions == [0, 2]


def test_given_and_contrast_add_up():
    text, contrast = "the dark woman was tall", "the fair woman was tall"
    request = PseudoLikelihood(text=text, given=((0, 3),), contrast=contrast)
    assert plan_sentence(request, tokens(text), tokens(contrast)).positions == [2, 3, 4]


def test_special_tokens_are_never_scored():
    text = "[CLS] dark woman [SEP]"
    assert plan_sentence(PseudoLikelihood(text=text), tokens(text, {0, 3}), None).positions == [1, 2]


def test_given_token_is_never_masked_with_its_word():
    text = Tokens([5, 6, 7], [(0, 2), (2, 4), (4, 6)], [0, 0, 0], [False] * 3)
    request = PseudoLikelihood(text="abcdef", given=((2, 4),), variant="within_word_l2r")
    assert plan_sentence(request, text, None).also_masked == [0, -1, 0]


@pytest.mark.parametrize("span", [(-1, 2), (3, 3), (0, 99)])
def test_span_outside_text_is_refused(span):
    with raises_code(PermanentError, "request.span"):
        plan_sentence(PseudoLikelihood(text="the dark", given=(span,)), tokens("the dark"), None)


def test_nothing_left_to_score_is_refused():
    with raises_code(PermanentError, "request.empty", "'the dark'"):
        plan_sentence(PseudoLikelihood(text="the dark", given=((0, 8),)), tokens("the dark"), None)


@pytest.mark.parametrize(("first", "positions"), [(False, [0, 2]), (True, [2])])
def test_contrast_order_is_honoured(first, positions):
    text, contrast = "c a b", "b c b"
    request = PseudoLikelihood(text=text, contrast=contrast, contrast_first=first)
    assert plan_sentence(request, tokens(text), tokens(contrast)).positions == positions
