from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions

PRINT = """
import sys, msgspec
from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
adapter = HFMasked(HFMaskedOptions(model=sys.argv[1]))
print(msgspec.json.encode([adapter.identity, "torch" in sys.modules, "transformers" in sys.modules]).decode())
"""


def identity(folder, **options):
    return HFMasked(HFMaskedOptions(model=str(folder), **options)).identity


@pytest.fixture
def copied(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / tiny_bert.name)


def test_identity_is_stable_and_needs_no_torch(tiny_bert):
    done = subprocess.run([sys.executable, "-c", PRINT, str(tiny_bert)], capture_output=True, text=True, check=True)
    there, torch, transformers = json.loads(done.stdout)
    own = identity(tiny_bert)
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert not torch and not transformers


def test_identity_ignores_place_device_and_batch(tiny_bert, copied):
    other = identity(copied, device="cuda", token_budget=17, batch_items=3, threads=1)
    assert other == identity(tiny_bert)


@pytest.mark.parametrize("name", ["README.md", "optimizer.pt", "training_args.bin"])
def test_identity_ignores_other_files(name, copied):
    before = identity(copied)
    (copied / name).write_text("other")
    assert identity(copied) == before


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_identity_follows_files(name, copied):
    before = identity(copied)
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert identity(copied).digest != before.digest


def test_identity_follows_dtype(tiny_bert):
    assert identity(tiny_bert, dtype="bfloat16") != identity(tiny_bert)


def test_identity_names_directory_only(tiny_bert):
    assert identity(tiny_bert).model == "tiny-bert"
    assert str(tiny_bert.parent) not in repr(identity(tiny_bert))


def test_hub_name_is_pinned_to_cached_commit(tiny_bert, tmp_path, monkeypatch, ask_masked):
    from huggingface_hub import constants

    from prejudge.core.contracts.records import PseudoLikelihood

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny_bert, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    own = identity("someone/tiny")
    assert (own.model, own.digest) == ("someone/tiny", commit)
    request = PseudoLikelihood(text="Lazy boys.")
    assert ask_masked("someone/tiny", [request]) == ask_masked(tiny_bert, [request])
