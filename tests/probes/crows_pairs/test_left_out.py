"""Rows that cannot be asked are counted wherever a run is described, and a resumed run leaves out the same."""

from __future__ import annotations

import json

from ...command import call

LINES = (
    "sent_more,sent_less,stereo_antistereo,bias_type",
    "Fat cooks are kind.,Thin cooks are kind.,stereo,body",
    "The cook left.,The cook left.,stereo,body",
    "Bald cooks sing.,,stereo,body",
    "Old cooks dance.,Young cooks dance.,neither,age",
    "Short cooks run.,Tall cooks run.,antistereo,body",
)


def test_rows_left_out_stand_in_manifest_report_and_card(tmp_path):
    (tmp_path / "own.csv").write_text("\n".join(LINES) + "\n")
    words = ("run", "crows-pairs", "--data", "own.csv", "--model", "simulated-biased")
    refused = call(tmp_path, *words)
    assert refused.returncode == 2
    assert [line.split(":")[0].strip() for line in refused.stderr.splitlines()[1:-1]] == ["line 3", "line 4", "line 5"]
    assert call(tmp_path, *words, "--bad-rows", "skip").returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert call(tmp_path, "export", folder.name, "--what", "card").returncode == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["study"]["options"]["bad_rows"] == "skip"
    assert manifest["stages"]["pairs"]["planned"] == 4
    for text in (*manifest["notes"][:1], (folder / "report.html").read_text(), (folder / "model-card.md").read_text()):
        assert "3 of 5 rows" in text
    assert call(tmp_path, "resume", folder.name).returncode == 0


def test_columns_and_encoding_of_a_file_are_options_of_its_study(tmp_path):
    text = "a;b;c;d\nDer Bäcker ist arm.;Der Bäcker ist reich.;0;x\nDie Ärztin ruht.;Der Ärztin ruht.;1;x\n"
    (tmp_path / "own.csv").write_bytes(text.encode("cp1252"))
    columns = "sent_more=a,sent_less=b,stereo_antistereo=c,bias_type=d"
    words = ("plan", "crows-pairs", "--data", "own.csv", "--columns", columns)
    unknown = call(tmp_path, *words)
    assert unknown.returncode == 2 and "--encoding cp1252" in unknown.stderr
    coded = call(tmp_path, *words, "--encoding", "cp1252")
    assert coded.returncode == 2 and "values=stereo_antistereo.0=stereo" in coded.stderr
    values = "values=stereo_antistereo.0=stereo,stereo_antistereo.1=antistereo"
    assert call(tmp_path, *words, "--encoding", "cp1252", "--set", values).returncode == 0
