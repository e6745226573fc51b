from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from prejudge.adapters import hf_encoder
from prejudge.adapters._encoder_model import EncoderScorer
from prejudge.adapters.hf_encoder import HFEncoder, HFEncoderOptions
from prejudge.core.errors import MissingExtraError, ModelLoadError, PermanentError
from prejudge.core.records import Embed, Embedding

from .checkpoints import write_encoder

pytest.importorskip("sentence_transformers", reason="needs the extra 'encoder'")

TEXTS = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)
PROMPTS = {"query": "the lazy girls ", "nothing": ""}
PRINT = """
import sys, msgspec
from prejudge.adapters.hf_encoder import HFEncoder, HFEncoderOptions
adapter = HFEncoder(HFEncoderOptions(model=sys.argv[1]))
loaded = [name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules]
print(msgspec.json.encode([adapter.identity, loaded]).decode())
"""


def build(folder, **options):
    return HFEncoder(HFEncoderOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options}))


def ask(folder, texts=TEXTS, **options):
    async def once():
        adapter = build(folder, **options)
        try:
            return list(await adapter.answer([Embed(text=text) for text in texts]))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def vectors(folder, texts=TEXTS, **options):
    return np.array([answer.vector for answer in ask(folder, texts, **options)])


def plain(folder, texts=TEXTS, **settings):
    """The library's own answer, one text at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return np.array([model.encode(text, show_progress_bar=False, **settings) for text in texts])


def change(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture(scope="session")
def make_encoder(make_masked, tmp_path_factory):
    """Return a maker of encoders: `make_encoder(family, pooling, more modules)` gives a new directory."""

    def make(family="bert", pooling="mean", more=(), **settings) -> Path:
        folder = tmp_path_factory.mktemp("encoder") / f"tiny-{family}-encoder"
        return write_encoder(folder, make_masked(family), pooling, more, **settings)

    return make


@pytest.fixture(scope="session")
def tiny(make_encoder):
    return make_encoder()


@pytest.fixture(scope="session")
def prompted(make_encoder):
    return make_encoder(prompts=PROMPTS, default_prompt_name="query")


@pytest.fixture(scope="session")
def projected(make_encoder):
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    torch.manual_seed(3)
    return make_encoder(more=(Dense(32, 8), Normalize()))


@pytest.fixture
def copied(tiny, tmp_path):
    return shutil.copytree(tiny, tmp_path / tiny.name)


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
    for row, text in enumerate(TEXTS * 3):
        assert together[row] == pytest.approx(vectors(folder, [text], token_budget=1)[0], abs=1e-5)


def test_default_prompt_is_put_first(prompted):
    found = vectors(prompted)
    assert found == pytest.approx(plain(prompted), abs=1e-5)
    assert found == pytest.approx(plain(prompted, [PROMPTS["query"] + text for text in TEXTS], prompt=""), abs=1e-5)


def test_prompt_is_chosen_by_name(prompted):
    assert vectors(prompted, prompt_name="query") == pytest.approx(vectors(prompted), abs=1e-6)
    bare = vectors(prompted, prompt_name="nothing")
    assert bare == pytest.approx(plain(prompted, prompt=""), abs=1e-5)
    assert bare != pytest.approx(vectors(prompted), abs=1e-2)


def test_unknown_prompt_is_refused(prompted):
    with pytest.raises(ModelLoadError, match=r"no prompt 'passage'; it has: .*nothing, query"):
        build(prompted, prompt_name="passage")


def test_usage_counts_tokens_and_prompt(prompted):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(prompted)
    for text, answer in zip(TEXTS, ask(prompted), strict=True):
        assert answer.usage.input_tokens == len(tokenizer(PROMPTS["query"] + text)["input_ids"])


def test_too_long_is_an_error_with_numbers(tiny):
    before, long, after = ask(tiny, [TEXTS[0], "lazy " * 300, TEXTS[0]])
    assert isinstance(long, PermanentError)
    assert "at most 60" in str(long) and "truncate = true" in str(long)
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


def test_identity_is_stable_and_imports_nothing(tiny):
    done = subprocess.run([sys.executable, "-c", PRINT, str(tiny)], capture_output=True, text=True, check=True)
    there, loaded = json.loads(done.stdout)
    own = build(tiny).identity
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert loaded == []


def test_identity_ignores_place_device_and_batch(tiny, copied):
    assert build(copied, device="cuda", token_budget=17, batch_items=3).identity == build(tiny).identity


@pytest.mark.parametrize("name", ["README.md", "optimizer.pt", "onnx/model.onnx"])
def test_identity_ignores_other_files(name, copied):
    before = build(copied).identity
    (copied / name).parent.mkdir(exist_ok=True)
    (copied / name).write_text("other")
    assert build(copied).identity == before


def test_identity_follows_every_module_file(projected, tmp_path):
    folder = shutil.copytree(projected, tmp_path / projected.name)
    before = build(folder).identity
    seen = {before.digest}
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "model.safetensors"} <= {
        path.relative_to(folder).as_posix() for path in names
    }
    for path in names:
        with path.open("ab") as file:
            file.write(b" ")
        seen.add(build(folder).identity.digest)
    assert len(seen) == len(names) + 1


def test_identity_tells_modules_apart(projected, tmp_path):
    folder = shutil.copytree(projected, tmp_path / projected.name)
    before = build(folder).identity
    one, other = folder / "1_Pooling" / "config.json", folder / "2_Dense" / "config.json"
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert build(folder).identity.digest != before.digest


@pytest.mark.parametrize("options", [{"normalize": True}, {"dtype": "bfloat16"}, {"prompt_name": "nothing"}])
def test_identity_follows_settings(options, prompted):
    assert build(prompted, **options).identity != build(prompted).identity


def test_plain_transformer_is_refused(tiny_bert):
    with pytest.raises(ModelLoadError, match="holds no modules.json"):
        build(tiny_bert)


@pytest.mark.parametrize("name", ["/no/such/place", "a/b/c"])
def test_neither_directory_nor_hub_name_is_refused(name):
    with pytest.raises(ModelLoadError, match="neither a directory nor a hub name"):
        build(name)


def test_revision_of_directory_is_refused(tiny):
    with pytest.raises(ModelLoadError, match="only hub names have one"):
        build(tiny, revision="main")


def test_hub_name_is_pinned_to_cached_commit(tiny, tmp_path, monkeypatch):
    from huggingface_hub import constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    own = build("someone/tiny").identity
    assert (own.model, own.digest) == ("someone/tiny", commit)
    assert ask("someone/tiny") == ask(tiny)


@pytest.mark.parametrize("path", ["../elsewhere", "/etc"])
def test_module_outside_the_model_is_refused(path, copied):
    modules = json.loads((copied / "modules.json").read_text())
    modules[1]["path"] = path
    (copied / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelLoadError, match="outside the model"):
        build(copied)


def test_own_code_needs_trust(copied):
    modules = json.loads((copied / "modules.json").read_text())
    modules[1]["type"] = "custom.Pooling"
    (copied / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelLoadError, match="trust_remote_code = true"):
        build(copied)
    assert build(copied, trust_remote_code=True).identity.settings["trust_remote_code"] is True


@pytest.mark.parametrize("text", ["{", "[]", '[{"idx": 0}]'])
def test_broken_modules_are_refused(text, copied):
    (copied / "modules.json").write_text(text)
    with pytest.raises(ModelLoadError, match="modules.json"):
        build(copied)


def test_pickled_module_needs_allowing(projected, tmp_path):
    import torch
    from safetensors.torch import load_file

    folder = shutil.copytree(projected, tmp_path / projected.name)
    weights = folder / "2_Dense" / "model.safetensors"
    torch.save(load_file(weights), folder / "2_Dense" / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(ModelLoadError, match="allow_pickle = true"):
        build(folder)
    assert vectors(folder, allow_pickle=True) == pytest.approx(vectors(projected), abs=1e-6)


def test_missing_weights_are_an_error(copied):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    name = next(name for name in tensors if "layer.1.attention" in name)
    save_file(
        {key: value for key, value in tensors.items() if key != name}, copied / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(ModelLoadError, match="lack"):
        ask(copied)


def test_broken_weights_are_refused(copied):
    (copied / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelLoadError, match="as a sentence encoder"):
        ask(copied)


def test_not_finite_is_an_error(copied):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    next(value for name, value in tensors.items() if name.endswith("LayerNorm.weight"))[0] = float("nan")
    save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    (answer,) = ask(copied, TEXTS[:1])
    assert isinstance(answer, PermanentError) and "not finite" in str(answer)


def test_missing_extra_names_pip_line(tiny, monkeypatch):
    monkeypatch.setattr(hf_encoder, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'prejudge\[encoder\]'"):
        build(tiny)


def test_loading_prints_nothing(tiny, capfd):
    ask(tiny)
    assert capfd.readouterr() == ("", "")


def test_cancelled_batch_stops_early(tiny, monkeypatch):
    forward, passes = EncoderScorer._forward, []

    def slow(self, texts):
        passes.append(len(texts))
        time.sleep(0.02)
        return forward(self, texts)

    async def cancel() -> bool:
        adapter = build(tiny, token_budget=1)
        await adapter.embed(Embed(text=TEXTS[0]))
        monkeypatch.setattr(EncoderScorer, "_forward", slow)
        work = asyncio.ensure_future(adapter.answer([Embed(text=text) for text in TEXTS * 250]))
        await asyncio.sleep(0.5)
        work.cancel()
        await adapter.aclose()
        return work.cancelled()

    assert asyncio.run(cancel())
    assert len(passes) < 500


def test_closed_adapter_answers_nothing(tiny):
    async def late():
        adapter = build(tiny)
        await adapter.aclose()
        await adapter.aclose()
        await adapter.embed(Embed(text=TEXTS[0]))

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())


def test_module_names_of_older_versions_load(tiny, copied):
    path = copied / "modules.json"
    modules = json.loads(path.read_text())
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rpartition(".")[2]
    path.write_text(json.dumps(modules))
    assert ask(copied) == ask(tiny)
