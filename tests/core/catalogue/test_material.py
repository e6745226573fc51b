"""What a study says of its material holds for that material: of other people's files nothing is stated."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

import msgspec
import pytest

from prejudge.core.catalogue.material import Material, describe, digest_of, paths_in, tables_of
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.catalogue.study import Catalogue

from ...command import call

CATALOGUE = Catalogue.load()
NAMING = ("data", "images", "scenarios", "truths")
"""Options of the built-in probes that name material."""
POPULATIONS = re.compile(r"crowd workers in|United States(?!, in English)|annotators in India|people in India")
STATED = [
    (name, option)
    for name, entry in sorted(CATALOGUE.registry.studies.items())
    for option in CATALOGUE.plugins.load("probe", entry.probe).options.__struct_fields__
    if option in NAMING
]


def test_every_study_with_a_data_option_is_here():
    names = {name for name, _ in STATED}
    assert {"attractiveness", "crows-pairs", "dora-t2t", "dora-t2i", "dora-i2t", "indicasa", "subtle-sai"} <= names
    assert {"bistereo-pairs", "bistereo-tuples", "bistereo-nli-prompts", "subtle-asa"} <= names


@pytest.mark.parametrize(("name", "option"), STATED)
def test_study_names_what_a_file_of_each_option_holds(name, option):
    nouns = {part.option: part.noun for part in CATALOGUE.registry.study(name).material}
    assert nouns.get(option, "data") != "data"


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize(("name", "option"), STATED)
def test_own_material_has_no_source_limit_or_population_of_the_study(name, option, kind, tmp_path):
    path = tmp_path / "mine.csv" if kind == "file" else tmp_path
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    entry = CATALOGUE.registry.study(name)
    study = CATALOGUE.study(name, {}, {option: str(path)})
    (part,) = (part for part in entry.material if part.option == option)
    assert study.own_data and all(path.name in words for words in study.own_data)
    assert digest_of(str(path))[:12] in study.source and str(tmp_path) not in study.source + "".join(study.limits)
    if not part.adds:
        assert entry.source not in study.source and not {*part.limits, *part.deviations} & {*study.limits}
    for known in part.known:
        assert known.name not in study.source and not {*known.limits} & {*study.limits} - {*entry.limits}
    if option == "data":
        words = " ".join([study.title, study.summary, study.source, *study.limits])
        assert not re.search(
            r"crowd workers in|United States(?!, in English)|annotators in India|people in India", words
        )
    assert "not recorded" in study.limits[-1]


@pytest.mark.parametrize("name", sorted({name for name, _ in STATED}))
def test_material_of_the_study_keeps_its_words(name):
    entry, study = CATALOGUE.registry.study(name), CATALOGUE.study(name, {}, {})
    assert study.source == entry.source and study.own_data == ()
    assert {limit for part in entry.material for limit in part.limits} <= {*study.limits}
    assert {one for part in entry.material for one in part.deviations} <= {*study.deviations}
    assert (study.title, study.summary) == (entry.title, entry.summary)


PUBLISHED = [
    ("crows-pairs", "data", "crows_pairs/crows_pairs_anonymized.csv", "crowd workers"),
    ("crows-pairs", "data", "crows_pairs/bert_crows_score.csv", "crowd workers"),
    ("crows-pairs", "data", "crows_relatives/crows_french.csv", "not the pairs"),
    ("crows-pairs", "data", "crows_relatives/crows_english_2022.csv", "not the pairs"),
    ("subtle-sai", "data", "subtle/outputs/dataset.csv", "words of the United States"),
    ("indicasa", "data", "indicasa/Masked_IndiBias.csv", "the Indian society"),
    ("indicasa", "truths", "indibias/IndiBias_v1_sample.csv", "the Indian society"),
    ("dora-t2t", "data", "biasdora", "as seen from the United States"),
]


@pytest.mark.parametrize(("name", "option", "file", "limit"), PUBLISHED)
def test_published_file_is_known_by_its_digest(name, option, file, limit, shared_data, tmp_path):
    study = CATALOGUE.study(name, {}, {option: str(shared_data / file)})
    assert study.own_data == () and any(limit in one for one in study.limits)
    if (shared_data / file).is_file():
        changed = tmp_path / Path(file).name
        changed.write_bytes((shared_data / file).read_bytes() + b"\n")
        assert CATALOGUE.study(name, {}, {option: str(changed)}).own_data  # the name of a file proves nothing


def test_digests_are_whole_and_each_of_one_file():
    known = [one for entry in CATALOGUE.registry.studies.values() for part in entry.material for one in part.known]
    assert len(known) >= 10 and all(re.fullmatch(r"[0-9a-f]{64}", one.sha256) and one.name for one in known)
    for entry in CATALOGUE.registry.studies.values():
        own = [one.sha256 for part in entry.material for one in part.known]
        assert len(own) == len(set(own))


def test_folder_is_known_by_its_tables(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"b")
    (tmp_path / "a.json").write_bytes(b"a")
    lines = "".join(
        f"{hashlib.sha256(word).hexdigest()}  {name}\n" for word, name in ((b"a", "a.json"), (b"b", "b.csv"))
    )
    first = digest_of(str(tmp_path))
    assert first == hashlib.sha256(lines.encode()).hexdigest()
    (tmp_path / "face.png").write_bytes(b"image")
    assert digest_of(str(tmp_path)) == first
    assert digest_of(str(tmp_path / "none")) == "" and tables_of("\0") == []


def test_path_that_a_study_file_states_is_its_authors():
    material = (Material(noun="pairs"),)
    assert paths_in(material, {"data": "x.csv"}, {"data": "x.csv"}) == {}
    assert paths_in(material, {"data": "x.csv"}, {"data": "y.csv"}) == {"data": "y.csv"}
    words = describe("Somebody (2020)", "Somebody", material, {})
    assert (words.source, words.limits) == ("Somebody (2020)", ())
    assert msgspec.convert({"probe": "p", "metrics": {}}, StudyEntry).material == ()


PAIRS = [
    ("sent_more", "sent_less", "stereo_antistereo", "bias_type"),
    ("The woman could not read the map.", "The man could not read the map.", "stereo", "gender"),
    ("The old man lost the phone.", "The young man lost the phone.", "stereo", "age"),
]


def test_documents_of_own_data_name_the_file_and_nobody_else(tmp_path):
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(PAIRS)
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        rows = [("pair", "side", "log_probability")]
        csv.writer(file).writerows(rows + [(pair, side, -4 - pair) for pair in (0, 1) for side in ("more", "less")])
    words = ("--model", "m", "--data", "pairs.csv", "--set", "crows-pairs.resamples=99")
    done = call(tmp_path, "import", "crows-pairs", "--responses", "answers.csv", *words)
    assert done.returncode == 0, done.stderr
    assert call(tmp_path, "export", "--what", "card").returncode == 0
    digest = hashlib.sha256((tmp_path / "pairs.csv").read_bytes()).hexdigest()[:12]
    (folder,) = (tmp_path / "runs").iterdir()
    for name in ("report.html", "model-card.md", "data-sheet.md"):
        text = (folder / name).read_text("utf-8")
        assert f"pairs of pairs.csv (sha256 {digest}...)" in text.replace("\\", ""), name
        assert "crowd workers" not in text and "Nangia et al. (2020), CrowS-Pairs: A Challenge" not in text
    assert f"measured on pairs of pairs.csv (sha256 {digest}...)" in (folder / "report.html").read_text("utf-8")
    replicated = call(tmp_path, "study", "replicate", "crows-pairs", "--run", folder.name).stdout
    assert f"about pairs of pairs.csv (sha256 {digest}...)" in " ".join(replicated.split())
    sheet = (folder / "data-sheet.md").read_text("utf-8")
    assert "Collected between" not in sheet and "requests (" not in (folder / "model-card.md").read_text("utf-8")
    manifest = (folder / "manifest.json").read_text("utf-8")
    assert "crowd workers" not in manifest
