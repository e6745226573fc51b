"""Study files: read where a study can be named, and everything wrong with one is said at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prejudge.core.catalogue.plugins import Plugins, built_in_plugins
from prejudge.core.catalogue.question_checks import ensure_questions
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.studyfile import load_study_file
from prejudge.core.catalogue.trust import load_registry
from prejudge.core.catalogue.validation import problems_of, study_schema
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.core.scoring.replicate import ReplicateOptions, replicate
from prejudge.testing import raises_code

GOOD = """
name = "mine"
probe = "bistereo-pairs"
title = "Mine"
seed = 7

[options]
per_cell = 5

[metrics.trisentbias]
resamples = 99

[roles]
subject = "reference-masked-fair"

[[published]]
measure = "z2"
value = 0.4
"""
SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "study.schema.json"


@pytest.fixture
def study(tmp_path):
    def write(text=GOOD, name="mine.toml"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


@pytest.fixture(scope="module")
def catalogue():
    entries = load_registry()
    return Catalogue(entries, Plugins(entries, found=built_in_plugins()))


def test_sound_file_has_no_problems(study, catalogue):
    assert problems_of(study(), catalogue) == []


def test_file_is_a_study(study, catalogue):
    found = catalogue.study(study(), {}, {"per_cell": 6})
    assert (found.name, found.title, found.roles) == ("mine", "Mine", {"subject": "reference-masked-fair"})
    assert found.options == {"per_cell": 6, "seed": 7} and found.published[0].value == 0.4


def test_published_values_of_a_file_can_be_replicated(study, catalogue):
    with raises_code(UsageError, "published.no-run", "mine"):
        replicate(catalogue, study(), ReplicateOptions(), None)


QUESTION = """
[[questions]]
asks = "Is it more?"
measure = "{measure}"
{when}
"""


@pytest.mark.parametrize(
    ("measure", "when", "sound"),
    [
        ("favouritism", "", True),
        ("favouritism", 'when = { scoring = "pll", "trisentbias.threshold_main" = [0.02, 0.04] }', True),
        ("favoritism", "", False),
        ("favouritism", 'when = { scorings = "pll" }', False),
        ("favouritism", 'when = { scoring = ["pll", "plll"] }', False),
        ("favouritism", 'when = { "trisentbias.thresholds_main" = 0.02 }', False),
    ],
)
def test_question_that_nothing_answers_is_refused(study, catalogue, measure, when, sound):
    path = study(GOOD + QUESTION.format(measure=measure, when=when))
    if sound:
        assert problems_of(path, catalogue) == []
        assert catalogue.study(path, {}, {}).questions[0].measure == measure
        return
    assert len(problems_of(path, catalogue)) == 1
    with raises_code(UsageError, "study.question", "Is it more?"):
        catalogue.study(path, {}, {})


def test_questions_of_built_in_studies_can_be_answered(catalogue):
    for entry in catalogue.registry.studies.values():
        ensure_questions(catalogue.plugins, entry)


def test_seed_goes_to_all_that_have_one(study, catalogue):
    text = GOOD.replace("resamples = 99", "resamples = 99\nseed = 1")
    found = catalogue.study(study(text), {}, {})
    assert found.options["seed"] == 7 and found.metrics["trisentbias"]["seed"] == 1


def test_name_is_the_files_own_by_default(study, catalogue):
    assert catalogue.study(study(GOOD.replace('name = "mine"', ""), "other-name.toml"), {}, {}).name == "other-name"


def test_paths_are_relative_to_the_file(study, tmp_path):
    _, data = load_study_file(study('probe = "x"\n[options]\ndata = "./mine.csv"\nword = "plain"\n'))
    assert data["options"] == {"data": str(tmp_path / "mine.csv"), "word": "plain"}


def test_every_problem_is_said_at_once(study, catalogue):
    text = """
prob = "x"
title = 3
[options]
per_cell = "many"
[metrics.trisentbais]
[metrics.contrast]
outcom = "x"
[roles]
subject = "reference-masked-fairr"
"""
    found = "\n".join(problems_of(study(text.replace("prob =", "probe = 'bistereo-pairs'\nprob =")), catalogue))
    for part in ("'prob'", "title", "'many'", "'trisentbais'", "'outcom'", "'reference-masked-fairr'", "Did you mean"):
        assert part in found, part


def test_missing_parts_are_named(study, catalogue):
    found = problems_of(study("title = 'x'"), catalogue)
    assert any(line.startswith("probe is not set") for line in found)
    assert any(line.startswith("metrics is not set") for line in found)


def test_option_that_is_needed_is_named_once(study, catalogue):
    text = 'probe = "bistereo-pairs"\n[metrics.contrast]\noutcome = "x"\n'
    (problem,) = problems_of(study(text), catalogue)
    assert "metrics.contrast" in problem and "is not set" in problem


def test_metric_that_does_not_fit_the_probe_is_a_problem(study, catalogue):
    (problem,) = problems_of(study('probe = "crows-pairs"\n[metrics.subtle]\n'), catalogue)
    assert "needs" in problem


def test_role_that_nobody_asks_is_a_problem(study, catalogue):
    (problem,) = problems_of(study(GOOD.replace("subject =", "jury =")), catalogue)
    assert "role 'jury' of probe bistereo-pairs" in problem


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("probe = ", "data.syntax", ""),
        ("name = 3", "studyfile.value", "name"),
        ("seed = -1", "studyfile.value", "seed"),
    ],
)
def test_file_that_cannot_be_read_says_why(study, catalogue, text, code, named):
    with raises_code(DataError, code, named):
        problems_of(study(text), catalogue)


def test_absent_file_is_named(catalogue, tmp_path):
    with raises_code(DataError, "file.unreadable"):
        catalogue.study(str(tmp_path / "none.toml"), {}, {})


def test_unknown_key_is_refused_by_a_run_too(study, catalogue):
    with raises_code(UnknownNameError, "unknown-key", "'title'"):
        catalogue.study(study(GOOD.replace("title", "titel")), {}, {})


def test_command_counts_the_problems(study):
    done = CliRunner().invoke(
        cli, ["study", "validate", study(GOOD.replace("per_cell", "per_cel"))], standalone_mode=False
    )
    assert done.return_value == 1 and "1 problem\n" in done.stderr and "'per_cell'" in done.stderr


def test_command_says_that_a_file_is_sound(study):
    done = CliRunner().invoke(cli, ["study", "validate", study()], standalone_mode=False)
    assert done.return_value == 0 and "is valid" in done.output


def test_published_schema_is_the_one_the_command_prints(catalogue):
    assert json.loads(SCHEMA.read_text("utf-8")) == json.loads(json.dumps(study_schema(catalogue.plugins)))


def test_schema_knows_options_and_what_they_mean(catalogue):
    schema = study_schema(catalogue.plugins)
    own = schema["$defs"]["probe bistereo-pairs"]["properties"]["per_cell"]
    assert own["description"] and {"type": "integer"} in own["anyOf"]
    metrics = schema["properties"]["metrics"]["properties"]
    assert metrics["contrast"] == {"$ref": "#/$defs/metric contrast"}
