from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.core.contracts.adapter import abilities_of
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.records import Likelihood, Likelihoods

REQUEST = Likelihood(prompt="The tall boys", continuations=(" are lazy.",))
PRINT = """
import sys, msgspec
from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
adapter = HFCausal(HFCausalOptions(model=sys.argv[1]))
print(msgspec.json.encode([adapter.identity, "torch" in sys.modules, "transformers" in sys.modules]).decode())
"""


def build(folder, **options):
    return HFCausal(HFCausalOptions(model=str(folder), **options))


def identity(folder, **options):
    return build(folder, **options).identity


@pytest.fixture
def copied(tiny_llama, tmp_path):
    return shutil.copytree(tiny_llama, tmp_path / tiny_llama.name)


def refusal(folder, **options):
    with pytest.raises(ModelLoadError) as caught:
        build(folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def load_refusal(ask_causal, folder, **options):
    with pytest.raises(ModelLoadError) as caught:
        ask_causal(folder, [REQUEST], **options)
    return str(caught.value)


def change(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_identity_is_stable_and_needs_no_torch(tiny_llama):
    done = subprocess.run([sys.executable, "-c", PRINT, str(tiny_llama)], capture_output=True, text=True, check=True)
    there, torch, transformers = json.loads(done.stdout)
    own = identity(tiny_llama)
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert not torch and not transformers


def test_identity_ignores_place_device_and_batch(tiny_llama, copied):
    assert identity(copied, device="cuda", token_budget=17, batch_items=3, threads=1) == identity(tiny_llama)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "bfloat16"},
        {"chat": "plain"},
        {"system_prompt": "Be kind."},
        {"max_new_tokens": 3},
    ],
    ids=str,
)
def test_identity_follows_settings(options, tiny_llama):
    assert identity(tiny_llama, **options) != identity(tiny_llama)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "generation_config.json", "chat_template.jinja"]
)
def test_identity_follows_files(name, copied):
    before = identity(copied)
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert identity(copied).digest != before.digest


def test_identity_names_the_template(copied):
    template = (copied / "chat_template.jinja").read_text()
    settings = identity(copied).settings
    assert settings["chat"] == "template"
    assert settings["chat_template"] == f"sha256:{hashlib.sha256(template.encode()).hexdigest()}"


@pytest.mark.parametrize("named", [False, True])
def test_template_of_the_tokenizer_configuration_is_found(named, copied):
    before = identity(copied).settings
    template = (copied / "chat_template.jinja").read_text()
    (copied / "chat_template.jinja").unlink()
    several = [{"name": "tools", "template": "x"}, {"name": "default", "template": template}]
    change(copied / "tokenizer_config.json", chat_template=several if named else template)
    assert identity(copied).settings == before


def test_model_without_template_is_plain(copied):
    assert abilities_of(build(copied)).chat and not abilities_of(build(copied, chat="plain")).chat
    (copied / "chat_template.jinja").unlink()
    assert not abilities_of(build(copied)).chat
    assert identity(copied).settings["chat"] == "plain"
    assert "no chat template" in refusal(copied, chat="template")


def test_directory_without_tokenizer_is_refused(copied):
    for path in copied.glob("tokenizer*"):
        path.unlink()
    assert "no tokenizer" in refusal(copied)


def test_own_code_needs_trust(copied):
    change(copied / "config.json", auto_map={"AutoModelForCausalLM": "modeling.Own"})
    assert "trust_remote_code = true" in refusal(copied)
    assert build(copied, trust_remote_code=True).identity.settings["trust_remote_code"] is True


def test_pickled_weights_need_allowing(copied, ask_causal):
    import torch
    from transformers import AutoModelForCausalLM

    torch.save(AutoModelForCausalLM.from_pretrained(copied).state_dict(), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    assert "allow_pickle = true" in refusal(copied)
    (answer,) = ask_causal(copied, [REQUEST], allow_pickle=True)
    assert isinstance(answer, Likelihoods)


def test_encoder_in_disguise_is_refused(tiny_bert, tmp_path, ask_causal):
    folder = shutil.copytree(tiny_bert, tmp_path / "disguised")
    change(folder / "config.json", architectures=["BertLMHeadModel"])
    assert "depends on later tokens" in load_refusal(ask_causal, folder)


def test_missing_head_is_an_error(copied, ask_causal):
    from transformers import AutoModel

    AutoModel.from_pretrained(copied).save_pretrained(copied)
    change(copied / "config.json", architectures=["LlamaForCausalLM"])
    assert "lack lm_head" in load_refusal(ask_causal, copied)


def test_broken_weights_are_refused(copied, ask_causal):
    (copied / "model.safetensors").write_bytes(b"no tensors")
    assert "cannot load 'tiny-llama' as a causal language model" in load_refusal(ask_causal, copied)


def test_hub_name_is_pinned_to_cached_commit(tiny_llama, tmp_path, monkeypatch, ask_causal):
    from huggingface_hub import constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny_llama, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    own = identity("someone/tiny")
    assert (own.model, own.digest, own.settings) == ("someone/tiny", commit, identity(tiny_llama).settings)
    assert ask_causal("someone/tiny", [REQUEST]) == ask_causal(tiny_llama, [REQUEST])
