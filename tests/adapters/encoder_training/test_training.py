import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")
pytest.importorskip("sentence_transformers", reason="needs the extra encoder")
from prejudge.adapters.encoder_training.classifier import HeadSettings, macro_f1, predictions  # noqa: E402
from prejudge.adapters.encoder_training.losses import LossSettings  # noqa: E402
from prejudge.adapters.encoder_training.model import embed, find_model, forward, open_trainee  # noqa: E402
from prejudge.adapters.encoder_training.parts import cut  # noqa: E402
from prejudge.adapters.encoder_training.progress import Progress  # noqa: E402
from prejudge.adapters.encoder_training.similarity import deltas  # noqa: E402
from prejudge.adapters.encoder_training.train import Task, TrainSettings, train  # noqa: E402

SETTINGS = TrainSettings(loss=LossSettings(name="triplet"), epochs=3, batch=24, learning_rate=2e-3)
LONGER = msgspec.structs.replace(SETTINGS, epochs=20, patience=20)


@pytest.fixture
def task(corpus, tiny, tmp_path):
    def make(name="a"):
        return Task(
            corpus,
            cut(corpus, "sentence", 0),
            open_trainee(find_model(str(tiny)), corpus.texts, "cpu"),
            tmp_path / name,
        )

    return make


class Killed(Progress):
    def __init__(self, after):
        self.after, self.notes = after, []

    def epoch(self, epoch, most):
        if epoch.epoch == self.after:
            raise KeyboardInterrupt

    def note(self, text):
        self.notes.append(text)


def test_training_parts_the_types(task):
    made = task()
    state = train(made, LONGER, Progress())
    assert state.best > 0 and state.history[state.best].tuning > state.history[0].tuning + 0.3
    rows = made.parts.validation
    assert deltas(embed(made.trainee, rows), made.corpus, rows, 0)["overall"].value > 0.3


def test_killed_training_ends_as_if_never_killed(task, corpus):
    whole, cut_off = task("whole"), task("cut")
    expected = train(whole, SETTINGS, Progress())
    with pytest.raises(KeyboardInterrupt):
        train(cut_off, SETTINGS, Killed(after=2))
    again, heard = task("cut"), Killed(after=None)
    found = train(again, SETTINGS, heard)
    assert heard.notes == ["resumed after epoch 2"]
    assert [(e.loss, e.tuning) for e in found.history] == [(e.loss, e.tuning) for e in expected.history]
    rows = np.arange(20)
    assert np.array_equal(embed(again.trainee, rows), embed(whole.trainee, rows))


def test_state_holds_no_pickle(task):
    made = task()
    train(made, SETTINGS, Progress())
    assert {path.suffix for path in made.folder.rglob("*") if path.is_file()} == {".safetensors", ".json"}


def test_training_stops_when_nothing_improves(task):
    still = TrainSettings(loss=SETTINGS.loss, epochs=9, patience=2, learning_rate=1e-12, batch=96)
    # Steps this small leave float32 weights as they are, so no epoch can be better than none.
    state = train(task(), still, Progress())
    assert state.history[-1].epoch == 2 and state.best == 0


def test_buckets_change_no_vector(task):
    trainee = task().trainee
    rows = np.random.default_rng(0).permutation(96)[:70]
    with torch.inference_mode():
        apart, together = forward(trainee, rows), forward(trainee, rows, buckets=False)
    assert torch.allclose(apart, together, atol=1e-5)
    assert np.allclose(apart.numpy(), embed(trainee, rows), atol=1e-5)


def test_classifier_learns_with_its_encoder(corpus, task):
    settings = HeadSettings(seeds=2, epochs=30, batch=16, head_rate=1e-2, encoder_rate=1e-3)
    rows = cut(corpus, "sentence", 0)
    taken = predictions("unfrozen", lambda: task().trainee, (corpus, rows), settings)
    assert taken.shape == (2, len(rows.validation))
    assert macro_f1(taken, corpus, rows.validation)[0].value > 0.8


def test_classifier_reads_a_trained_encoder_and_leaves_it(task):
    made = task()
    train(made, LONGER, Progress())
    before = embed(made.trainee, np.arange(4))
    settings = HeadSettings(seeds=2, epochs=30, batch=16, head_rate=1e-2)
    taken = predictions("frozen", lambda: made.trainee, (made.corpus, made.parts), settings)
    assert macro_f1(taken, made.corpus, made.parts.validation)[0].value > 0.8
    assert np.array_equal(embed(made.trainee, np.arange(4)), before)
