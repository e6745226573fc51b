"""`hf-encoder`: vectors, compared with the library and with plain Transformers."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.core.contracts.errors import ModelLoadError, PermanentError
from prejudge.core.contracts.records import Embedding
from prejudge.testing import raises_code

from ....installed import need
from .asking import PROMPTS, TEXTS, ask, build, vectors

need("sentence_transformers", reason="needs the extra 'encoder'")


def plain(folder, texts=TEXTS, **settings):
    """The library's own answer, one text at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return np.array([model.encode(text, show_progress_bar=False, **settings) for text in texts])


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_vectors_equal_the_library(family, make_encoder):
    folder = make_encoder(family)
    assert vectors(folder) == pytest.approx(plain(folder), abs=1e-5)


def test_vector_is_mean_of_last_states(tiny):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(tiny), AutoModel.from_pretrained(tiny).eval()
    with torch.no_grad():
        states = model(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    assert vectors(tiny)[0] == pytest.approx(states.mean(0).numpy(), abs=1e-5)


def test_pooling_is_the_models_own(tiny, make_encoder):
    folder = make_encoder(pooling="cls")
    assert vectors(folder) == pytest.approx(plain(folder), abs=1e-5)
    assert vectors(folder) != pytest.approx(vectors(tiny), abs=1e-2)


def test_all_modules_are_run(projected):
    found = vectors(projected)
    assert found.shape == (4, 8)
    assert found == pytest.approx(plain(projected), abs=1e-5)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)


def test_static_embeddings_need_no_transformer(make_masked, tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(make_masked() / "tokenizer.json"))
    torch.manual_seed(3)
    module = StaticEmbedding(tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path / "static"), create_model_card=False)
    assert vectors(tmp_path / "static") == pytest.approx(plain(tmp_path / "static"), abs=1e-5)


def test_normalize_gives_length_one(tiny):
    long, short = vectors(tiny), vectors(tiny, normalize=True)
    assert np.linalg.norm(short, axis=1) == pytest.approx(1, abs=1e-12)
    assert short == pytest.approx(long / np.linalg.norm(long, axis=1, keepdims=True), abs=1e-9)
    assert np.linalg.norm(long, axis=1) != pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_vector_is_independent_of_batch(family, make_encoder):
    folder = make_encoder(family)
    together = vectors(folder, TEXTS * 3)
    alone = [vectors(folder, [text], token_budget=1)[0] for text in TEXTS]
    for row, vector in zip(together, alone * 3, strict=True):
        assert row == pytest.approx(vector, abs=1e-5)


def test_default_prompt_is_put_first(prompted):
    found = vectors(prompted)
    assert found == pytest.approx(plain(prompted), abs=1e-5)
    assert found == pytest.approx(plain(prompted, [PROMPTS["query"] + text for text in TEXTS], prompt=""), abs=1e-5)


def test_prompt_is_chosen_by_name(prompted):
    assert vectors(prompted, prompt_name="query") == pytest.approx(vectors(prompted), abs=1e-6)
    bare = vectors(prompted, prompt_name="nothing")
    assert bare == pytest.approx(plain(prompted, prompt=""), abs=1e-5)
    assert bare != pytest.approx(vectors(prompted), abs=1e-2)


def test_usage_counts_tokens_and_prompt(prompted):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(prompted)
    for text, answer in zip(TEXTS, ask(prompted), strict=True):
        assert answer.usage.input_tokens == len(tokenizer(PROMPTS["query"] + text)["input_ids"])


def test_too_long_is_an_error_with_numbers(tiny):
    before, long, after = ask(tiny, [TEXTS[0], "lazy " * 300, TEXTS[0]])
    assert isinstance(long, PermanentError)
    assert long.code == "request.too-long" and "60" in str(long) and "truncate" in str(long)
    assert before == after and isinstance(before, Embedding)


def test_truncation_is_asked_for_and_recorded(tiny):
    long, longer = ask(tiny, ["lazy " * 300, "lazy " * 300 + "boys"], truncate=True)
    assert long.vector == pytest.approx(longer.vector, abs=1e-6)
    assert long.usage.input_tokens == 60
    assert build(tiny, truncate=True).identity.settings["truncate"] is True
    assert "truncate" not in build(tiny).identity.settings


def test_half_precision_is_near(tiny):
    exact, rough = vectors(tiny), vectors(tiny, dtype="bfloat16")
    assert rough == pytest.approx(exact, abs=0.1)
    assert (rough != exact).any()


def test_missing_weights_are_an_error(copied):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    name = next(name for name in tensors if "layer.1.attention" in name)
    save_file(
        {key: value for key, value in tensors.items() if key != name}, copied / "model.safetensors", {"format": "pt"}
    )
    with raises_code(ModelLoadError, "model.weights-missing"):
        ask(copied)


def test_broken_weights_are_refused(copied):
    (copied / "model.safetensors").write_bytes(b"no tensors")
    with raises_code(ModelLoadError, "model.unloadable"):
        ask(copied)


def test_not_finite_is_an_error(copied):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    next(value for name, value in tensors.items() if name.endswith("LayerNorm.weight"))[0] = float("nan")
    save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    (answer,) = ask(copied, TEXTS[:1])
    assert isinstance(answer, PermanentError) and answer.code == "request.not-finite"
