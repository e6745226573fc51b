import numpy as np
import pytest
from matplotlib.colors import to_hex

from prejudge.adapters.encoder_training.figures import COLOURS, REVERSED_WORDS, delta_bars, tsne_panels
from prejudge.adapters.encoder_training.summary import Pooled, Row, Summary, Tried


def summary(split="sentence", loss="triplet", after=0.2, high=0.3, select="inner"):
    """Return a summary whose category `caste` is reversed before, with these numbers after."""
    row = Row("caste", Pooled(0.1, -0.1, 0.05, 0.15), Pooled(abs(after), after, 0.0, high))
    chosen = Tried(0.5, None, (0,), (1,))
    return Summary("m", split, loss, "margin", chosen, (row,), (chosen,), select)


def bars(axis):
    return [bar for group in axis.containers for bar in group]


def test_reversed_bars_are_hatched():
    (axis,) = delta_bars([summary(after=0.2)]).axes
    assert [bool(bar.get_hatch()) for bar in bars(axis)] == [True, False]
    assert REVERSED_WORDS in [text.get_text() for text in axis.get_legend().get_texts()]


def test_intervals_stay_on_the_axis_and_before_has_one():
    (axis,) = delta_bars([summary(after=0.2, high=5.0)]).axes
    ends = [path.get_segments()[0][:, 1].tolist() for path in axis.collections]
    top = axis.get_ylim()[1]
    assert ends == [[0.05, 0.15], [0.0, top]] and axis.get_ylim()[0] == 0.0
    assert top == pytest.approx(0.432)
    assert "interval goes on" in [text.get_text() for text in axis.get_legend().get_texts()]


def test_colour_belongs_to_the_loss():
    alone, after_other = delta_bars([summary()]).axes, delta_bars([summary(loss="pairwise"), summary()]).axes
    assert {to_hex(bars(axes[0])[-1].get_facecolor()).upper() for axes in (alone, after_other)} == {COLOURS["triplet"]}


def test_panel_that_would_be_flat_has_an_axis_of_its_own():
    one, near, far = delta_bars(
        [summary("sentence", after=0.9), summary("context", after=0.5), summary("other", after=0.05, high=0.1)]
    ).axes
    assert one.get_ylim() == near.get_ylim() != far.get_ylim()
    titles = [axis.get_title(loc="left") for axis in (near, far)]
    assert titles == ["m, split by context", "m, split by other (axis of its own)"]


def test_panel_says_that_it_was_chosen_on():
    (axis,) = delta_bars([summary(select="validation")]).axes
    assert axis.get_title(loc="left").endswith("(stopped and chosen on this part)")


def test_t_sne_says_what_it_shows(corpus):
    rows = np.arange(4)
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    figure = tsne_panels((vectors, vectors), corpus, rows, "m, triplet (margin 0.5)")
    assert figure.get_suptitle() == "m, triplet (margin 0.5)"
    assert [axis.get_title() for axis in figure.axes[::2]] == ["caste, before", "caste, after"]
