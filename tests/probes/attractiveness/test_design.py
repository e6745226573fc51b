"""The declared design: faces and scenarios are sampled, and the group is the variant or the person."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import UsageError
from prejudge.probes.attractiveness import probe as _probe
from prejudge.probes.attractiveness.probe import Attractiveness, AttractivenessOptions
from prejudge.testing import raises_code

OPTIONS = AttractivenessOptions(per_cell=2)


@pytest.fixture(scope="module")
def design():
    return Attractiveness().design(OPTIONS)


def test_the_paper_asks_a_million_questions_and_a_design_draws_no_face(monkeypatch):
    monkeypatch.setattr(_probe, "stimulus", None)
    assert Attractiveness().design(AttractivenessOptions()).size == 1_009_008


def test_facets_of_the_halo_are_faces_and_scenarios(design):
    assert [facet.name for facet in design.record().facets()] == ["face", "scenario"]


@pytest.mark.parametrize("trait", ["gender", "age_group", "race"])
def test_a_trait_is_the_group_of_its_own_question(trait, design):
    roles = design.roles(trait)
    assert [name for name, role in roles.items() if role == "group"] == [trait]
    assert [facet.name for facet in design.record().facets(trait)] == ["face"]


def test_faces_are_a_union_of_two_blocks(design):
    crossed = design.incidence("race", "gender")
    assert (crossed == crossed[0, 0]).all() and crossed.shape == (6, 2)
    race, age = design.codes("race"), design.codes("age_group")
    assert ((race < 0) != (age < 0)).all()


def test_twins_are_the_two_images_of_a_face(design):
    twins = design.twins("variant")
    faces, variants = design.column("face"), design.column("variant")
    assert twins.shape == (design.size // 2, 2) and (twins >= 0).all()
    for original, filtered in twins[::997]:
        assert faces[original] == faces[filtered]
        assert (variants[original], variants[filtered]) == ("original", "filtered")


def test_persons_are_no_twins(design):
    with raises_code(UsageError, "design.twins", "gender"):
        design.twins("gender")


def test_a_sample_is_balanced_over_orders_and_faces(design):
    rows = design.sample(limit=96)
    assert design.incidence("order", "variant", rows).tolist() == [[12, 12]] * 4
    assert len(set(design.column("face", rows))) > 20
