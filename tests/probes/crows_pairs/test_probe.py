"""The published sentences and the published scores."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.crows_pairs.asking import MaskedStage
from prejudge.probes.crows_pairs.probe import CrowsOptions, CrowsPairs
from prejudge.probes.crows_pairs.terms import DIFFERING_WORD
from prejudge.testing import raises_code

HEADER = "sent_more,sent_less,stereo_antistereo,bias_type"
SCORED = f"{HEADER},sent_more_score,sent_less_score,score"
STEREO = "He is poor.,He is rich.,stereo,socioeconomic"
ANTI = "He drives well.,She drives well.,antistereo,gender"


@pytest.fixture
def own(tmp_path):
    def own(*lines):
        path = tmp_path / "own.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return own


def trials(path, **options):
    (stage,) = CrowsPairs().stages(CrowsOptions(data=path, **options))
    return list(stage.trials({}))


def imported(path):
    return CrowsPairs().import_scores(path, CrowsOptions())


def by_pair(observations):
    return observations.pivot("side", index=("pair", "direction", "bias_type"), values="log_probability")


def test_published_file_has_1508_pairs(shared_data):
    asked = trials(str(shared_data / "crows_pairs" / "crows_pairs_anonymized.csv"))
    assert len(asked) == len({t.id for t in asked}) == 3016
    assert Counter(t.factors["direction"] for t in asked) == {"stereo": 2580, "antistereo": 436}
    assert len({t.factors["bias_type"] for t in asked}) == 9


def test_published_file_can_be_asked_by_word(shared_data):
    asked = trials(str(shared_data / "crows_pairs" / "crows_pairs_anonymized.csv"), unit="word")
    assert all(a.request.given or b.request.given for a, b in zip(asked[::2], asked[1::2], strict=True))


def test_data_must_be_given():
    with raises_code(DataError, "data.missing", "nyu-mll/crows-pairs", "--data FILE"):
        CrowsPairs().stages(CrowsOptions())


def test_sentences_are_aligned_as_published(own):
    first, second, third, fourth = trials(own(HEADER, STEREO, ANTI))
    assert [t.factors["side"] for t in (first, second, third, fourth)] == ["more", "less", "less", "more"]
    assert third.request.text == "She drives well."
    assert [t.request.contrast_first for t in (first, second, third, fourth)] == [False, True, False, True]


def test_factors_are_as_declared(own):
    assert all(tuple(t.factors) == MaskedStage.factors for t in trials(own(HEADER, STEREO, ANTI)))


def test_pairs_belong_to_their_commonest_word(own):
    path = own(
        HEADER,
        "He and John eat.,She and Ann eat.,stereo,gender",
        "He is poor.,She is rich.,antistereo,gender",
        "A RICH man naps.,A poor man naps.,stereo,class",
        "It is rich.,It is old.,stereo,class",
    )
    design = CrowsPairs().design(CrowsOptions(data=path))
    # he and she: two pairs each; rich: three, whatever its case; ties go to the first in the alphabet.
    words = [design.levels(DIFFERING_WORD)[code] for code in design.codes(DIFFERING_WORD)[::2]]
    assert words == ["he", "rich", "rich", "rich"]
    assert [(facet.name, facet.nested_in) for facet in design.record().facets()] == [
        ("pair", (DIFFERING_WORD,)),
        (DIFFERING_WORD, ()),
    ]
    assert design.twins("side").tolist() == [[0, 1], [3, 2], [4, 5], [6, 7]]


def test_nothing_is_declared_without_a_file():
    assert CrowsPairs().design(CrowsOptions()) is None


def test_pairs_are_named_from_zero(own):
    assert [t.id for t in trials(own(HEADER, STEREO))] == ["0/more", "0/less"]


@pytest.mark.parametrize(
    ("row", "code", "named"),
    [
        ("He is poor.,,stereo,race", "data.cell-empty", "'sent_less'"),
        ("He is poor.,He is poor.,stereo,race", "data.text", "line 2"),
        ("A b.,A c.,anti-stereo,race", "data.unknown-value", "'anti-stereo'"),
        ("A b.,A c.,stereo, ", "data.cell-empty", "'bias_type'"),
    ],
)
def test_bad_row_is_refused(own, row, code, named):
    with raises_code(DataError, code, named):
        trials(own(HEADER, row))


def test_published_scores_are_mended(shared_data):
    path = shared_data / "crows_pairs" / "bert_crows_score.csv"
    result = imported(str(path))
    scores = by_pair(result.observations)
    (note,) = result.notes
    assert "swapped in 218 antistereo rows" in note
    assert (scores["more"] > scores["less"]).cast(int).to_list() == pl.read_csv(path)["score"].to_list()


def test_published_scores_give_the_published_figures(shared_data):
    scores = by_pair(imported(str(shared_data / "crows_pairs" / "bert_crows_score.csv")).observations)
    hits = scores.with_columns(hit=pl.col("more") > pl.col("less"))
    assert round(100 * hits["hit"].mean(), 2) == 60.48
    shares = dict(hits.group_by("direction").agg(100 * pl.col("hit").mean()).iter_rows())
    assert {name: round(share, 2) for name, share in shares.items()} == {"stereo": 61.09, "antistereo": 56.88}


def test_imported_rows_look_like_observations(own):
    frame = imported(own(SCORED, STEREO + ",-1,-2,1")).observations
    assert frame.columns == [
        *MaskedStage.factors,
        "log_probability",
        DIFFERING_WORD,
        "tokens",
        *("status", "reason", "key"),
    ]
    assert frame.schema["key"] == pl.Binary
    assert frame.rows() == [
        ("0", "more", "stereo", "socioeconomic", -1.0, "poor", None, "ok", None, None),
        ("0", "less", "stereo", "socioeconomic", -2.0, "poor", None, "ok", None, None),
    ]


def test_straight_columns_stay(own):
    result = imported(own(SCORED, STEREO + ",-1,-2,1", ANTI + ",-1,-2,1"))
    assert (result.notes, result.observations["log_probability"].to_list()) == ((), [-1, -2, -1, -2])


def test_swapped_columns_are_swapped_back(own):
    result = imported(own(SCORED, STEREO + ",-1,-2,1", ANTI + ",-1,-2,0"))
    assert "swapped in 1 antistereo rows" in result.notes[0]
    assert by_pair(result.observations)["more"].to_list() == [-1, -2]


def test_ties_tell_nothing_of_a_swap(own):
    assert imported(own(SCORED, ANTI + ",-2,-2,0")).notes == ()


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([STEREO + ",-1,-2,1", STEREO + ",-1,-2,0"], 3),
        ([STEREO + ",-1,-2,0", ANTI + ",-1,-2,0"], 2),
        ([ANTI + ",-1,-2,1", ANTI + ",-1,-2,0"], 3),
        ([STEREO + ",-2,-2,1"], 2),
    ],
)
def test_other_contradictions_are_refused(own, rows, line):
    with raises_code(DataError, "data.contradiction", f"line {line}"):
        imported(own(SCORED, *rows))


@pytest.mark.parametrize(
    ("cells", "code"), [("x,-2,1", "data.number"), ("-1,nan,1", "data.number"), ("-1,-2,yes", "data.unknown-value")]
)
def test_bad_score_is_refused(own, cells, code):
    with raises_code(DataError, code, "line 2"):
        imported(own(SCORED, f"{STEREO},{cells}"))


def test_scores_need_their_columns(own):
    with raises_code(DataError, "data.column-missing", "'sent_more_score'"):
        imported(own(HEADER, STEREO))
