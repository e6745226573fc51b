"""A folder is data: whatever is wrong with it is said at once, and nothing in it leads out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.metrics.measures.declaring import MeasureTable, named_measure
from prejudge.probes.questions import measures
from prejudge.probes.questions.declared import QuestionsOptions
from prejudge.probes.questions.folder import MOST_BYTES, folder_study
from prejudge.testing import raises_code

from .folders import FACTORS, NUMBER, write


def faults(folder: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        folder_study(str(folder))
    found = caught.value.fields["faults"]
    assert isinstance(found, list)
    return found


def with_job(**job: Any) -> dict[str, Any]:
    return {"factors": FACTORS | {"job": {"role": "sampled", **job}}}


def test_every_error_is_listed_with_its_line(tmp_path):
    factors = FACTORS | {
        "town": {"role": "sampeld", "levels": ["a", "b"]},
        "job": {"role": "sampled", "levels": ["a", "a"]},
    }
    folder = write(tmp_path / "bad", {"text": "{name} {nobody}", "factors": factors}, {"form": "number"}, colour=3)
    found = faults(folder)
    assert [
        part
        for part in ("'colour'", "'sampeld'", "'a', occurs twice", "{nobody}", "range")
        if not any(part in f for f in found)
    ] == []
    assert len(found) == 5
    assert all("study.toml, line" in fault for fault in found)


@pytest.mark.parametrize("file", ["../out.csv", "/etc/passwd", ".hidden.csv", "sub/names.csv", "~/x.csv"])
def test_file_outside_of_the_folder_is_refused(tmp_path, file):
    (tmp_path / "out.csv").write_text("text\na\nb\n")
    with raises_code(DataError, "folder.file"):
        folder_study(str(write(tmp_path / "bad", with_job(file=file))))


@pytest.mark.parametrize("name", ["jobs.csv", "study.toml"])
def test_link_is_refused(tmp_path, name):
    folder = write(tmp_path / "bad", with_job(file="jobs.csv"))
    (tmp_path / "target").write_text((folder / "study.toml").read_text() if name == "study.toml" else "text\na\nb\n")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "target")
    with raises_code(DataError, "folder.file"):
        folder_study(str(folder))


def test_huge_table_is_refused_before_it_is_read(tmp_path):
    folder = write(tmp_path / "bad", with_job(file="jobs.csv"))
    with (folder / "jobs.csv").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with raises_code(DataError, "folder.file"):
        folder_study(str(folder))


def test_too_many_prompts_are_refused(tmp_path):
    factors = {f"f{at}": {"role": "fixed", "levels": [*range(60)]} for at in range(4)} | {"gender": FACTORS["gender"]}
    with raises_code(DataError, "folder.size"):
        folder_study(str(write(tmp_path / "bad", {"text": "{gender}", "factors": factors})))


@pytest.mark.parametrize(
    "text",
    [
        "{name.__class__}",
        "{name:>99999999}",
        "{name!r}",
        "{0}",
        "{}",
        "{name[0]}",
        "{% for x in y %}",
        "{{ name }}",
        "{nam}",
        "a { b",
    ],
)
def test_template_that_is_more_than_slots_is_refused(tmp_path, text):
    with raises_code(DataError, "folder.template"):
        folder_study(str(write(tmp_path / "bad", {"text": text})))


def test_levels_that_name_each_other_are_refused(tmp_path):
    factors = FACTORS | {
        "job": {"role": "sampled", "levels": ["{town}", "b"]},
        "town": {"role": "fixed", "levels": ["{job}", "c"]},
    }
    with raises_code(DataError, "folder.template"):
        folder_study(str(write(tmp_path / "bad", {"factors": factors})))


def test_row_of_no_level_of_its_group_is_named(tmp_path):
    folder = write(tmp_path / "bad")
    with (folder / "names.csv").open("a") as file:
        file.write("Kim,other,1\n")
    (fault,) = faults(folder)
    assert "names.csv" in fault
    assert "'Kim': gender is 'other'" in fault
    assert "'male', 'female'" in fault


@pytest.mark.parametrize("model", ["openai:x[base_url=http://evil.example]", "openai:x[api_key_env=HOME]"])
def test_address_and_key_of_a_proposed_model_are_refused(tmp_path, model):
    folder = write(tmp_path / "bad", roles={"judge": model})
    with raises_code(UsageError, "study.effects"):
        Catalogue.load().study(str(folder), {}, {})


def test_proposed_model_is_not_asked_unless_the_user_names_it(tmp_path):
    answer = {"form": "judged", "judge": "Is this kind? {answer}"}
    folder = write(tmp_path / "judged", None, answer, roles={"judge": "simulated-fair"})
    assert Catalogue.load().study(str(folder), {}, {}).roles == {}


def test_secret_in_a_text_is_refused(tmp_path):
    folder = write(tmp_path / "bad", {"system": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"})
    with raises_code(UsageError, "options.secret"):
        Catalogue.load().study(str(folder), {}, {})


def test_folder_of_the_name_of_a_study_needs_its_path(tmp_path, monkeypatch):
    write(tmp_path / "subtle-sai")
    monkeypatch.chdir(tmp_path)
    assert Catalogue.load().study("subtle-sai", {}, {}).probe == "subtle"
    assert Catalogue.load().study("./subtle-sai", {}, {}).probe == "questions"


def test_shipped_schema_is_that_of_the_record():
    import json

    from prejudge.core.catalogue.validation import folder_schema
    from prejudge.probes.questions.declared import FolderForm

    shipped = Path(prejudge.__file__).parent / "docs" / "folder.schema.json"
    assert json.loads(shipped.read_text()) == json.loads(json.dumps(folder_schema(FolderForm)))


def test_number_without_range_is_an_error(tmp_path):
    assert "range" in faults(write(tmp_path / "bad", None, {key: NUMBER[key] for key in ("form",)}))[0]


def test_a_question_names_the_measure_inside_it(tmp_path):
    asked = {"asks": "Is there a gap?"}
    study = folder_study(
        str(write(tmp_path / "inner", {"factors": FACTORS}, questions=[asked | {"measure": {"difference": "gender"}}]))
    )
    (question,), (declared,) = study["questions"], study["metrics"]["measures"]["measures"]
    named = named_measure(msgspec.convert({"difference": "gender"}, MeasureTable)).name
    assert question["measure"] == declared["name"] == named == "difference_gender"
    with raises_code(DataError, "study.question"):
        folder_study(
            str(write(tmp_path / "none", {"factors": FACTORS}, questions=[asked | {"measure": "gap"}], measures=[]))
        )


@pytest.mark.parametrize("of", ["gender", "Job Title", "outcome", "years-of work"])
@pytest.mark.parametrize("kind", ["difference", "ratio", "ranks"])
def test_folder_and_metric_give_a_measure_the_same_name(kind, of):
    table, asked = {kind: of}, {"design": {"text": "x", "factors": {}}, "answer": {"form": "length"}}
    named = measures.metrics_of([table], msgspec.convert(asked, QuestionsOptions))
    (declared,) = named["measures"]["measures"]
    assert declared["name"] == named_measure(msgspec.convert(table, MeasureTable)).name
