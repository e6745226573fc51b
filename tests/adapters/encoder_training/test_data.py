import pytest

from prejudge.adapters.encoder_training.data import read_corpus
from prejudge.adapters.encoder_training.describe import cohen_kappa, describe
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
    with pytest.raises(DataError, match="line 3: category ' ' is empty. Fill it in"):
        read_corpus([str(path)])


def test_no_file_counts_twice(write, tmp_path):
    path = write(*GOOD)
    with pytest.raises(DataError, match=r"own0\.csv' is given twice\. Give each file once"):
        read_corpus([path, path])
    with pytest.raises(DataError, match=r"own1\.csv' holds the same as '.*own0\.csv'\. Give each"):
        read_corpus([path, write(*GOOD)])
    (tmp_path / "sub").mkdir()
    namesake = tmp_path / "sub" / "set - own0.csv"
    namesake.write_text("\n".join(["context_id,sentence,type", *GOOD, "0,He is sad.,stereotype"]))
    with pytest.raises(DataError, match="have one name, by which results tell them. Rename one"):
        read_corpus([path, str(namesake)])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("1,She is late.,stereotype", "line 4: context '1' has stereotype sentences only (1). Pairs need both"),
        ("0,She is late.,neutral", "line 4: unknown type 'neutral'. Write 'stereotype' or 'anti-stereotype'"),
        ("0, ,stereotype", "line 4: sentence ' ' is empty. Fill it in"),
        (",She is late.,stereotype", "line 4: context_id '' is empty"),
        ("0,She, is late.,stereotype", "line 4: the row has not as many cells as the header. Quote"),
    ],
)
def test_bad_row_is_named(write, row, says):
    path = write(*GOOD, row)
    with pytest.raises(DataError) as caught:
        read_corpus([path])
    assert path in str(caught.value) and says in str(caught.value)


def test_missing_column_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("context_id,text,type\n0,He.,stereotype\n")
    with pytest.raises(DataError, match=r"x\.csv: no column 'sentence'. It has: 'context_id', 'text', 'type'"):
        read_corpus([str(path)])


def test_missing_file_is_named():
    with pytest.raises(DataError, match=r"cannot read 'nowhere\.csv'"):
        read_corpus(["nowhere.csv"])


def test_file_without_rows_is_refused(write):
    with pytest.raises(DataError, match="no rows"):
        read_corpus([write()])


def test_repeated_and_contradicted_sentences_are_counted(write):
    corpus = read_corpus([write(*GOOD, "0,He is poor. ,stereotype", "0,He is rich.,stereotype")])
    total = describe(corpus)[-1]
    assert (total.repeated, total.contradicted, total.sentences) == (2, 1, 4)


def test_kappa_is_that_of_the_textbook():
    one = ["1"] * 25 + ["2"] * 25
    other = ["1"] * 20 + ["2"] * 5 + ["1"] * 10 + ["2"] * 15
    assert cohen_kappa(one, other) == pytest.approx(0.4)
    assert cohen_kappa(["3"], ["3"]) is None


def test_published_data_give_table_1(shared_data):
    names = ("caste", "religion", "gender", "disability", "socioeconomic")
    corpus = read_corpus([str(shared_data / "indicasa" / f"IndiCASA_dataset - {name}.csv") for name in names])
    found = {
        row.category: (row.contexts, row.stereotypes, row.anti_stereotypes, row.sentences) for row in describe(corpus)
    }
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
    kappas = {row.category: round(row.kappa, 2) for row in describe(corpus)[:-1]}
    assert kappas == {"caste": 0.15, "disability": 0.04, "gender": -0.01, "religion": 0.04, "socioeconomic": 0.03}
    assert describe(corpus)[-1].repeated == 57
