"""Construct files: what is refused, and that the built-in ones name rows that their studies have."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.constructs import find_construct, read_construct
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.core.lab.converge.cases import cases_of
from prejudge.testing import raises_code

TEXT = """
title = "A trait"
direction = "more of it"

[methods.one]
study = "subtle-sai"
measure = "delta_PL"
group = { domain = "beauty" }
scale = "difference"

[methods.two]
study = "subtle-asa"
measure = "delta_PL"
scale = "difference"
"""


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue.load()


def written(tmp_path, text):
    (tmp_path / "trait.toml").write_text(text)
    return str(tmp_path / "trait.toml")


def test_file(tmp_path):
    found = find_construct(written(tmp_path, TEXT), {})
    assert found.name == "trait" and list(found.methods) == ["one", "two"]
    assert found.methods["one"].group == {"domain": "beauty"} and found.methods["two"].sign == 1


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        (('scale = "difference"', 'scale = "hedges"'), DataError, "construct.value"),
        (('direction = "more of it"', ""), DataError, "construct.value"),
        (("measure", "mesure"), UnknownNameError, None),
        (("[methods.two]", "[methods.one.size]"), DataError, None),
    ],
)
def test_wrong_files_are_refused(tmp_path, change, kind, code):
    with pytest.raises(kind) as raised:
        read_construct(written(tmp_path, TEXT.replace(*change, 1)))
    assert code is None or raised.value.code == code


def test_one_method_is_no_convergence(tmp_path):
    with raises_code(DataError, "construct.value"):
        read_construct(written(tmp_path, TEXT.split("[methods.two]")[0]))


def test_unknown_construct_and_missing_file(catalogue):
    with raises_code(UnknownNameError, "unknown-construct"):
        find_construct("beauty-and-competense", catalogue.plugins.constructs)
    with raises_code(DataError, "file.unreadable"):
        find_construct("./none.toml", {})


def test_built_in_constructs_name_studies_measures_and_options(catalogue):
    constructs = list(catalogue.plugins.constructs.values())
    assert {one.name for one in constructs} == {"beauty-and-competence", "skin-tone-and-desirability"}
    cases = cases_of(catalogue, constructs, ["simulated-fair"], {}, {})
    assert all(case.study for case in cases)
    for case in cases:
        metrics = catalogue.instrument(case.study).metrics.values()
        assert any(case.method.measure in metric.measures for metric, _ in metrics), case.name


def test_what_a_model_cannot_answer_has_a_reason(catalogue):
    constructs = [catalogue.plugins.constructs["skin-tone-and-desirability"]]
    cases = cases_of(catalogue, constructs, ["lexicon", "reference-masked-fair"], {}, {})
    able = {(case.model, case.name) for case in cases if case.study}
    assert ("reference-masked-fair", "pseudo-likelihood") in able and ("lexicon", "pseudo-likelihood") not in able
    assert all(case.reason and case.model in case.reason for case in cases if case.study is None)


def test_assignments_are_of_methods(catalogue):
    one = catalogue.plugins.constructs["beauty-and-competence"]
    cases = cases_of(catalogue, [one], ["simulated-fair"], {}, {"forced-choice.per_cell": 7})
    sizes = {case.name: case.study.options.get("per_cell") for case in cases}
    assert (
        sizes["forced-choice"] == 7 and sizes["option-likelihood"] == one.methods["option-likelihood"].size["per_cell"]
    )
    with raises_code(UnknownNameError, "unknown-method"):
        cases_of(catalogue, [one], ["simulated-fair"], {}, {"forced.per_cell": 7})
    with raises_code(UsageError, "converge.twice"):
        cases_of(catalogue, [one], ["simulated-fair", "simulated-fair"], {}, {})


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        (('measure = "delta_PL"', 'measure = "delta_LP"'), UnknownNameError, "unknown-measure"),
        (('measure = "delta_PL"', 'measure = "delta_PL"\nmetric = "subtel"'), UnknownNameError, "unknown-metric"),
        (("subtle-asa", "subtle-sai"), DataError, "construct.value"),
        (('subtle-asa"', 'subtle-sai"\noptions = { asking = "generate" }'), DataError, "construct.value"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_it_is_asked(tmp_path, catalogue, change, kind, code):
    text = TEXT.replace('scale = "difference"', 'scale = "difference"\nmaterial = "other"', 1)
    one = read_construct(written(tmp_path, text.replace(*change)))[1]
    with raises_code(kind, code):
        cases_of(catalogue, [one], ["simulated-fair"], {}, {})
