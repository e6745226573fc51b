"""Files as others publish them: relatives of CrowS-Pairs, and tables of other programs."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.core.tables import TableOptions
from prejudge.probes.crows_pairs.probe import CrowsOptions, CrowsPairs, neutral_note, read_pairs
from prejudge.testing import raises_code

SKIP = TableOptions(bad_rows="skip")


@pytest.fixture
def cases(shared_data):
    if not (shared_data / "cases").is_dir():
        pytest.skip("the cases are not among the published data")
    return shared_data / "cases"


@pytest.fixture
def relatives(shared_data):
    if not (shared_data / "crows_relatives").is_dir():
        pytest.skip("the relatives of CrowS-Pairs are not among the published data")
    return shared_data / "crows_relatives"


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("sepline.csv", 3),
        ("case.csv", 3),
        ("spaces.csv", 3),
        ("trail_space.csv", 1),
        ("hf_ints.csv", 2),
        ("json.jsonl", 1),
    ],
)
def test_tables_of_other_programs_are_read(cases, name, pairs):
    parsed = read_pairs(str(cases / name), TableOptions())
    assert len(parsed.values) == pairs and not parsed.left_out.count
    assert not any(text != text.strip() for pair in parsed.values for text in pair.texts)


def test_all_faulty_lines_are_one_message_or_are_left_out(cases):
    path = str(cases / "bad_rows.csv")
    with raises_code(DataError, "data.rows", "sent_less", "bias_type") as caught:
        read_pairs(path, TableOptions())
    assert caught.value.fields["lines"] == [3, 4, 5, 6]
    parsed = read_pairs(path, SKIP)
    assert [pair.id for pair in parsed.values] == ["0", "5"] and parsed.left_out.count == 4
    assert "2 of 4 pairs" in neutral_note(parsed)


def test_the_encoding_of_a_mac_can_be_stated(cases):
    with raises_code(DataError, "file.encoding", "café owner’s", "cafŽ ownerÕs"):
        read_pairs(str(cases / "macroman.csv"), TableOptions())
    (pair,) = read_pairs(str(cases / "macroman.csv"), TableOptions(encoding="mac_roman")).values
    assert pair.texts[0].startswith("The café owner’s wife")


def test_decimal_commas_of_scores_are_read(cases):
    imported = CrowsPairs().import_scores(str(cases / "sc_de.csv"), CrowsOptions())
    assert imported.observations["log_probability"].to_list() == [-35.2, -48.1] and imported.notes


@pytest.mark.parametrize(
    ("name", "asked", "left_out"), [("crows_french.csv", 1461, 2), ("crows_english_2022.csv", 1462, 1)]
)
def test_relatives_of_the_data_set_are_read_but_for_their_bad_rows(relatives, name, asked, left_out):
    with pytest.raises(DataError):
        read_pairs(str(relatives / name), TableOptions())
    parsed = read_pairs(str(relatives / name), SKIP)
    assert (len(parsed.values), parsed.left_out.count, parsed.left_out.rows) == (asked, left_out, asked + left_out)


def test_published_scores_give_both_figures(relatives):
    path = str(relatives / "scores_camembert.csv")
    with raises_code(DataError, "data.cell-empty", "line 129"):
        CrowsPairs().import_scores(path, CrowsOptions())
    imported = CrowsPairs().import_scores(path, CrowsOptions(bad_rows="skip"))
    wide = imported.observations.pivot("side", index="pair", values="log_probability")
    # SOURCE.md: 853 of 1,462 with the equal pair neutral, and of 1,461 without it.
    assert wide.height == 1462 and (wide["more"] > wide["less"]).sum() == 853
    assert "58.34%" in imported.notes[1] and "58.38%" in imported.notes[1]
