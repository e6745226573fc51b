import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra encoder")
from prejudge.adapters.encoder_training.figures import delta_figure, tsne_panels
from prejudge.adapters.encoder_training.results import Pooled, Results, Summary


def results(model="m", after=0.2, select="inner"):
    """Return results whose category `caste` is reversed before training, with this value after."""
    before, after = Pooled(0.1, -0.1, 0.05, 0.15), Pooled(abs(after), after, 0.0, 0.3)
    one = Summary("context", "triplet", "margin", 0.5, None, (0,), (1,), {"caste": before}, {"caste": after}, True)
    other = Summary("sentence", "triplet", "margin", 0.5, None, (0,), (1,), {"gender": after}, {"gender": after}, True)
    return Results(
        model=model, digest="", data={}, select=select, summaries=[one, other], best={}, classifiers=[], trainings=[]
    )


def rows_of(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_rows_name_encoder_category_and_reversed():
    figure = delta_figure([results(), results("n", after=-0.2)], "context")
    assert rows_of(figure) == [
        "m: caste\n(reversed: before training)",
        "n: caste\n(reversed: before training, triplet)",
    ]


def test_marks_have_their_intervals():
    lines = delta_figure([results()], "context").axes[0].lines
    ends = [sorted(line.get_xdata()) for line in lines if len(line.get_xdata()) == 2]
    assert [0.05, 0.15] in ends and [0.0, 0.3] in ends


@pytest.mark.parametrize(("select", "told"), [("inner", False), ("validation", True)])
def test_axis_says_that_the_part_was_chosen_by(select, told):
    label = delta_figure([results(select=select)], "context").axes[0].get_xlabel()
    assert label.startswith("validation delta-sim, split by context") and ("chosen by this part" in label) == told


def test_t_sne_says_what_it_shows(corpus):
    rows = np.arange(4)
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    figure = tsne_panels((vectors, vectors), corpus, rows, "m, triplet (margin 0.5)")
    assert figure.get_suptitle() == "m, triplet (margin 0.5)"
    assert [axis.get_title() for axis in figure.axes[::2]] == ["caste, before", "caste, after"]
