"""What a person means by an option that does not exist."""

import msgspec
import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Options
from prejudge.core.contracts.meanings import descriptions, meant


class Sampled(Options, frozen=True, kw_only=True):
    """Options whose names say little."""

    aliases = {"breadth": "k"}  # a mapping of the class

    k: int = 1
    """Largest number of neighbours."""
    per_cell: int | None = None
    """Maximum number of pairs."""
    temperature: float = 1.0


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("per_cel", "per_cell"),  # by spelling
        ("breadth", "k"),  # as declared
        ("breadht", "k"),
        ("neighbours", "k"),  # by its description alone
        ("per_group", "per_cell"),  # by a synonym of its name
        ("categories_per_group", "per_cell"),
        ("zzz", None),
        ("", None),
        ("\N{SNOWMAN}", None),
    ],
)
def test_option_that_is_meant(name, option):
    assert meant(name, Sampled) == option


def test_descriptions_are_those_under_the_fields_also_inherited():
    class Narrow(Sampled, frozen=True, kw_only=True):
        per_cell: int | None = None
        """Another text."""

    assert descriptions(Narrow) == {"k": "Largest number of neighbours.", "per_cell": "Another text."}


def test_record_made_at_run_time_has_no_descriptions():
    made = msgspec.defstruct("Made", [("per_cell", int, 1)])
    assert descriptions(made) == {} and meant("per_group", made) == "per_cell"


@pytest.mark.parametrize(
    ("probe", "name", "option"),
    [
        ("subtle", "per_group", "per_cell"),
        ("bistereo-pairs", "per_group", "per_cell"),
        ("dora-t2t", "per_group", "per_dimension"),
        ("bistereo-nli-prompts", "per_group", "per_label"),
        ("indicasa", "repetitions", "samples"),
        ("bistereo-pairs", "axis", "axes"),
        ("dora-t2t", "sample", "samples"),
        ("subtle", "sample", None),  # its seed is "of the sample", and no sample
        ("subtle", "random_state", "seed"),
    ],
)
def test_options_of_studies_are_found_by_the_words_of_other_studies(probe, name, option):
    assert meant(name, Catalogue.load().plugins.load("probe", probe).options) == option
