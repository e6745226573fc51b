import numpy as np
import pytest

from prejudge.adapters.encoder_training.data import cut, describe, read_corpus
from prejudge.adapters.encoder_training.settings import SPLITS
from prejudge.core.contracts.errors import DataError

GOOD = ("0,He is poor.,stereotype", "0,He is rich.,anti_stereotype")


def test_category_is_the_end_of_the_file_name(corpus):
    assert corpus.categories == ("caste", "gender") and corpus.contexts == 12


def test_category_column_wins(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("category,context,sentence,type\nAge,a,Old.,stereotype\nAge,a,Young.,anti-stereotype\n")
    found = read_corpus([str(path)])
    assert found.categories == ("age",) and list(found.stereotype) == [True, False]


def test_empty_category_is_named(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("category,context,sentence,type\nAge,a,Old.,stereotype\n ,a,Young.,anti-stereotype\n")
    with pytest.raises(DataError) as caught:
        read_corpus([str(path)])
    assert caught.value.fields["line"] == 3


def test_no_file_counts_twice(write, tmp_path):
    path = write(*GOOD)
    for again in (path, write(*GOOD)):
        with pytest.raises(DataError) as caught:
            read_corpus([path, again])
        assert (caught.value.code, caught.value.fields["path"]) == ("data.duplicate", again)
    (tmp_path / "sub").mkdir()
    namesake = tmp_path / "sub" / "set - own0.csv"
    namesake.write_text("\n".join(["context_id,sentence,type", *GOOD, "0,He is sad.,stereotype"]))
    with pytest.raises(DataError) as caught:
        read_corpus([path, str(namesake)])
    assert caught.value.code == "data.duplicate"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("1,She is late.,stereotype", "data.incomplete"),
        ("0,She is late.,neutral", "data.unknown-value"),
        ("0, ,stereotype", "data.cell-empty"),
        (",She is late.,stereotype", "data.cell-empty"),
        ("0,She, is late.,stereotype", "data.row-length"),
    ],
)
def test_bad_row_is_named(write, row, code):
    path = write(*GOOD, row)
    with pytest.raises(DataError) as caught:
        read_corpus([path])
    assert caught.value.code == code and caught.value.fields == {"path": path, "line": 4}


def test_missing_column_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("context_id,text,type\n0,He.,stereotype\n")
    with pytest.raises(DataError) as caught:
        read_corpus([str(path)])
    assert (caught.value.code, caught.value.fields) == (
        "data.column-missing",
        {"path": str(path), "column": "sentence"},
    )


def test_missing_file_is_named():
    with pytest.raises(DataError) as caught:
        read_corpus(["nowhere.csv"])
    assert caught.value.code == "file.missing"


def test_file_without_rows_is_refused(write):
    with pytest.raises(DataError) as caught:
        read_corpus([write()])
    assert caught.value.code == "data.no-rows"


def test_repeated_and_contradicted_sentences_are_counted(write):
    corpus = read_corpus([write(*GOOD, "0,He is poor. ,stereotype", "0,He is rich.,stereotype")])
    total = describe(corpus)[-1]
    assert (total["repeated"], total["both types"], total["sentences"]) == (2, 1, 4)


def test_kappa_is_that_of_the_textbook(tmp_path):
    pairs = [("1", "1")] * 20 + [("1", "2")] * 5 + [("2", "1")] * 10 + [("2", "2")] * 15
    kinds = ("stereotype", "anti_stereotype")
    lines = [f"0,Sentence {place}.,{kinds[place % 2]},{one},{other}" for place, (one, other) in enumerate(pairs)]
    path = tmp_path / "rated.csv"
    path.write_text("\n".join(["context_id,sentence,type,Annotator 1,Annotator 2", *lines]))
    (_, total) = describe(read_corpus([str(path)]))
    assert total["kappa"] == pytest.approx(0.4)


def test_kappa_is_missing_where_chance_agrees_always(tmp_path):
    path = tmp_path / "rated.csv"
    rows = ("0,A.,stereotype,3,3", "0,B.,anti_stereotype,3,3", "0,C.,stereotype,44,3")
    path.write_text("\n".join(["context_id,sentence,type,Annotator 1,Annotator 2", *rows]))
    total = describe(read_corpus([str(path)]))[-1]
    assert total["kappa"] is None and total["off the scale"] == 1


def test_published_data_give_table_1(shared_data):
    names = ("caste", "religion", "gender", "disability", "socioeconomic")
    corpus = read_corpus([str(shared_data / "indicasa" / f"IndiCASA_dataset - {name}.csv") for name in names])
    found = {row["category"]: tuple(row.values())[1:5] for row in describe(corpus)}
    assert found == {
        "caste": (23, 244, 254, 498),
        "religion": (20, 262, 160, 422),
        "gender": (37, 462, 391, 853),
        "disability": (19, 140, 158, 298),
        "socioeconomic": (20, 282, 222, 504),
        "total": (119, 1390, 1185, 2575),
    }


def test_published_annotators_hardly_agree(shared_data):
    corpus = read_corpus([str(path) for path in sorted((shared_data / "indicasa").glob("IndiCASA_dataset*.csv"))])
    kappas = {row["category"]: round(row["kappa"], 2) for row in describe(corpus)[:-1]}
    assert kappas == {"caste": 0.15, "disability": 0.04, "gender": -0.01, "religion": 0.04, "socioeconomic": 0.03}
    assert describe(corpus)[-1]["repeated"] == 57


@pytest.mark.parametrize("by", SPLITS)
def test_parts_cover_all_and_share_nothing(corpus, by):
    parts = cut(corpus, by, 3)
    assert sorted(np.concatenate([parts.train, parts.tuning, parts.validation])) == list(range(96))
    assert 0.15 <= len(parts.validation) / 96 <= 0.35 and set(corpus.category[parts.validation]) == {0, 1}


def test_split_by_context_shares_no_context_and_by_sentence_does(corpus):
    apart, mixed = cut(corpus, "context", 3), cut(corpus, "sentence", 3)
    assert not set(corpus.context[apart.known]) & set(corpus.context[apart.validation])
    assert set(corpus.context[mixed.validation]) & set(corpus.context[mixed.train])


def test_seed_decides(corpus):
    assert list(cut(corpus, "sentence", 1).validation) == list(cut(corpus, "sentence", 1).validation)
    assert list(cut(corpus, "sentence", 1).validation) != list(cut(corpus, "sentence", 2).validation)


def test_validation_can_serve_for_tuning(corpus):
    parts = cut(corpus, "sentence", 0, "validation")
    assert list(parts.tuning) == list(parts.validation) and not set(parts.known) & set(parts.validation)


def test_split_of_the_authors_is_that_of_a_permutation_of_contexts(shared_data):
    """What `train_test_split` does, without it: numpy's legacy generator, the first fifth of a permutation."""
    corpus = read_corpus([str(path) for path in sorted((shared_data / "indicasa").glob("IndiCASA_dataset*.csv"))])
    parts = cut(corpus, "context", 42, "validation")
    for index in range(5):
        contexts = list(dict.fromkeys(corpus.context[corpus.category == index]))
        held = np.random.RandomState(42).permutation(len(contexts))[: -(-len(contexts) // 5)]
        own = corpus.category[parts.validation] == index
        assert set(corpus.context[parts.validation][own]) == {contexts[place] for place in held}


@pytest.mark.parametrize(("by", "rows"), [("context", 1), ("sentence", 2)])
def test_too_few_to_divide_are_refused(write, by, rows):
    pairs = (f"{place},He is {kind}.,{kind}" for place in range(rows) for kind in ("stereotype", "anti_stereotype"))
    corpus = read_corpus([write(*pairs)])
    with pytest.raises(DataError) as caught:
        cut(corpus, by, 0) if by == "context" else cut(read_corpus([write(*list(GOOD))]), by, 0)
    assert (caught.value.code, caught.value.fields["category"][:3]) == ("training.too-few", "own")
