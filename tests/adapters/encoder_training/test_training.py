import json
from functools import partial

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")
for package in ("sentence_transformers", "datasets", "accelerate", "sklearn"):
    pytest.importorskip(package, reason="needs the extra encoder")
from prejudge.adapters.encoder_training.delta_sim import deltas  # noqa: E402
from prejudge.adapters.encoder_training.encoder import embed, find_model, open_encoder  # noqa: E402
from prejudge.adapters.encoder_training.heads import HeadData, HeadSettings, macro_f1, predictions  # noqa: E402
from prejudge.adapters.encoder_training.losses import ContrastiveLoss, embed_in_buckets  # noqa: E402
from prejudge.adapters.encoder_training.settings import LossSettings, TrainSettings  # noqa: E402
from prejudge.adapters.encoder_training.splits import cut  # noqa: E402
from prejudge.adapters.encoder_training.training import (  # noqa: E402
    ContextBatches,
    DeltaSimEvaluator,
    last_checkpoint,
    rows_of,
    train,
)
from prejudge.core.contracts.errors import DataError  # noqa: E402

SETTINGS = TrainSettings(loss=LossSettings(name="triplet"), epochs=3, batch=20, learning_rate=2e-3)
HEADS = HeadSettings(seeds=2, epochs=20, patience=20, batch=16, head_rate=1e-2, learning_rate=1e-3)
FIRST = np.array([f"They are {word} near the house now." for word in ("poor", "late", "rich", "quick")], dtype=object)


@pytest.fixture
def fresh(corpus, tiny):
    """Return a loader of the tiny encoder."""
    return partial(open_encoder, find_model(str(tiny)), corpus.texts, "cpu")


@pytest.fixture
def parts(corpus):
    return cut(corpus, "sentence", 0)


@pytest.fixture
def training(corpus, parts, tmp_path):
    """Return a training of an encoder in a folder of its own."""

    def run(encoder, settings=SETTINGS, folder="a"):
        return train(encoder, (corpus, parts), settings, tmp_path / folder)

    return run


@pytest.fixture(scope="module")
def learned(corpus, tiny, tmp_path_factory):
    """An encoder trained until it parts the types, and what its training came to; do not train it again."""
    encoder = open_encoder(find_model(str(tiny)), corpus.texts, "cpu")
    longer = msgspec.structs.replace(SETTINGS, epochs=12, patience=12)
    fitted = train(encoder, (corpus, cut(corpus, "sentence", 0)), longer, tmp_path_factory.mktemp("learned"))
    return encoder, fitted


def test_training_parts_the_types(learned, corpus, parts):
    encoder, fitted = learned
    assert fitted.best > 0 and fitted.history[fitted.best].tuning > fitted.history[0].tuning + 0.3
    rows = parts.validation
    assert deltas(embed(encoder, corpus.texts[rows]), corpus, rows, 0)["overall"].value > 0.3


def test_history_has_every_epoch(learned):
    _, fitted = learned
    assert [epoch.epoch for epoch in fitted.history] == list(range(13))
    assert fitted.history[0].loss is None and {epoch.steps for epoch in fitted.history[1:]} == {4}
    assert fitted.history[12].loss < fitted.history[1].loss
    assert max(fitted.history, key=lambda epoch: epoch.tuning).epoch == fitted.best


def test_killed_training_ends_as_if_never_killed(training, fresh, monkeypatch):
    whole, cut_off, again = fresh(), fresh(), fresh()
    expected = training(whole, folder="whole")
    measure, measured = DeltaSimEvaluator.__call__, []

    def stop_at_third_epoch(*given, **named):
        measured.append(named)
        if len(measured) == 4:
            raise KeyboardInterrupt
        return measure(*given, **named)

    monkeypatch.setattr(DeltaSimEvaluator, "__call__", stop_at_third_epoch)
    with pytest.raises(KeyboardInterrupt):
        training(cut_off, folder="cut")
    found = training(again, folder="cut")
    # Before training, and once for each epoch; the third was not yet kept when it was stopped.
    assert len(measured) == 5
    assert found.history == expected.history
    assert np.array_equal(embed(again, FIRST), embed(whole, FIRST))


def test_each_epoch_is_reported_beside_the_results(corpus, parts, fresh, tmp_path, capfd):
    settings = msgspec.structs.replace(SETTINGS, epochs=1)
    tuning = [epoch.tuning for epoch in train(fresh(), (corpus, parts), settings, tmp_path, quiet=False).history]
    out, err = capfd.readouterr()
    assert not out and err.splitlines() == [
        f"  epoch {number}/1: tuning delta_sim {value:.4f}" for number, value in enumerate(tuning)
    ]


def test_finished_training_is_not_trained_further(training, fresh, tmp_path):
    # Stopped by its patience, then killed before anybody wrote the result.
    settings = msgspec.structs.replace(SETTINGS, learning_rate=1e-12, patience=1, epochs=9, batch=96)
    first = training(fresh(), settings)
    assert first.best == 0 and [epoch.epoch for epoch in first.history] == [0, 1]
    assert training(fresh(), settings).history == first.history


def test_half_written_checkpoint_is_passed_over(tmp_path):
    for name in ("checkpoint-8", "checkpoint-16"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-8" / "trainer_state.json").write_text("{}")
    assert last_checkpoint(tmp_path).name == "checkpoint-8"


def test_training_that_brings_nothing_leaves_the_encoder(training, learned, fresh):
    encoder = fresh()
    encoder.model.load_state_dict(learned[0].model.state_dict())
    before = embed(encoder, FIRST)
    # Pushes alike sentences as far away as opposed ones.
    spoiled = LossSettings(name="nt-bxent", positive_weight=1e-9, negative_weight=1e-9)
    fitted = training(encoder, msgspec.structs.replace(SETTINGS, loss=spoiled, weight_decay=30.0, patience=1))
    assert fitted.best == 0 and [epoch.epoch for epoch in fitted.history] == [0, 1]
    assert np.array_equal(embed(encoder, FIRST), before)


def test_criterion_can_be_the_loss(training, fresh):
    fitted = training(fresh(), msgspec.structs.replace(SETTINGS, criterion="loss"))
    assert min(fitted.history, key=lambda epoch: epoch.tuning).epoch == fitted.best
    assert fitted.history[0].tuning > fitted.history[fitted.best].tuning > 0


def test_mixed_precision_trains_and_leaves_float32(training, fresh):
    encoder = fresh()
    plain = training(fresh(), folder="plain")
    mixed = training(encoder, msgspec.structs.replace(SETTINGS, precision="bfloat16"), folder="mixed")
    assert {value.dtype for value in encoder.model.state_dict().values() if value.is_floating_point()} == {
        torch.float32
    }
    assert 0 < abs(mixed.history[3].loss - plain.history[3].loss) < 0.05


def test_vectors_are_measured_in_float32_after_mixed_precision(training, fresh):
    encoder = fresh()
    before = embed(encoder, FIRST)
    slow = msgspec.structs.replace(SETTINGS, precision="bfloat16", learning_rate=1e-30, weight_decay=0.0, epochs=1)
    training(encoder, slow)
    assert np.array_equal(embed(encoder, FIRST), before)


def test_schedule_and_warmup_reach_the_trainer(training, fresh, tmp_path):
    settings = msgspec.structs.replace(SETTINGS, schedule="linear", warmup=0.5, epochs=2)
    training(fresh(), settings)
    state = json.loads((last_checkpoint(tmp_path / "a") / "trainer_state.json").read_text())
    rates = [log["learning_rate"] for log in state["log_history"] if "learning_rate" in log]
    # 8 steps: the rate of the fourth is the last of the rise but one, that of the eighth the last but one of the fall.
    assert rates == pytest.approx([2e-3 * 3 / 4, 2e-3 * 1 / 4])


def test_loss_that_is_no_number_is_refused(training, fresh):
    with pytest.raises(DataError) as caught:
        training(fresh(), msgspec.structs.replace(SETTINGS, learning_rate=1e30))
    assert caught.value.code == "training.diverged"


def test_training_part_without_pairs_is_refused(fresh, corpus, parts, tmp_path):
    alone = msgspec.structs.replace(parts, train=np.flatnonzero(corpus.stereotype))
    with pytest.raises(DataError) as caught:
        train(fresh(), (corpus, alone), SETTINGS, tmp_path / "a")
    assert caught.value.code == "training.no-pairs"


def test_every_epoch_has_other_batches_and_as_many(corpus):
    rows = np.flatnonzero(np.arange(96) % 5 > 0)
    sampler = ContextBatches(rows_of(corpus, rows), size=20, batch_size=20, drop_last=False, seed=3)
    drawn = []
    for epoch in range(6):
        sampler.set_epoch(epoch)
        drawn.append(list(sampler))
        assert len(drawn[-1]) == len(sampler)
    assert len({str(batches) for batches in drawn}) == 6


def test_processes_share_the_batches_of_an_epoch(corpus, monkeypatch):
    from accelerate.data_loader import BatchSamplerShard

    monkeypatch.setenv("WORLD_SIZE", "4")
    sampler = ContextBatches(rows_of(corpus, np.arange(96)), size=20, batch_size=20, drop_last=True, seed=3)
    dealt = [list(BatchSamplerShard(sampler, 4, process, even_batches=False)) for process in range(4)]
    # Five batches of at most 24 sentences cannot be shared by four processes; eight can.
    assert [len(batches) for batches in dealt] == [2] * 4
    assert sorted(row for batches in dealt for batch in batches for row in batch) == list(range(96))


def test_buckets_change_no_vector(fresh, corpus):
    encoder = fresh()
    rows = np.random.default_rng(0).permutation(96)[:70]
    model = encoder.model.eval()
    with torch.inference_mode():
        apart = embed_in_buckets(model, model.preprocess(corpus.texts[rows].tolist()))
    assert np.allclose(apart.numpy(), embed(encoder, corpus.texts[rows]), atol=1e-5)


def test_batch_without_pairs_moves_nothing(fresh):
    model = fresh().model
    features = model.preprocess(["They are poor.", "They are rich."])
    loss = ContrastiveLoss(model, SETTINGS.loss)([features], torch.tensor([1, 3]))
    loss.backward()
    assert loss.item() == 0.0 and all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_classifier_learns_with_its_encoder(corpus, parts, fresh, tmp_path):
    predicted = predictions("unfrozen", HeadData(corpus, parts, fresh, tmp_path), HEADS)
    assert predicted.shape == (2, len(parts.validation)) and not list(tmp_path.iterdir())
    assert macro_f1(predicted, corpus, parts.validation)[0].value > 0.8


def test_classifier_reads_a_trained_encoder_and_leaves_it(learned, corpus, parts, tmp_path):
    encoder, _ = learned
    before = embed(encoder, FIRST)
    predicted = predictions("frozen", HeadData(corpus, parts, lambda: encoder, tmp_path), HEADS)
    assert macro_f1(predicted, corpus, parts.validation)[0].value > 0.8
    assert np.array_equal(embed(encoder, FIRST), before)
