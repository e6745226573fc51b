"""`hf-encoder`: which files make an encoder, and what pins them."""

from __future__ import annotations

import json
import shutil

import pytest

from prejudge.core.contracts.errors import ModelLoadError
from prejudge.testing import raises_code

from ....installed import need
from .asking import ask, build, vectors

need("sentence_transformers", reason="needs the extra 'encoder'")


@pytest.mark.parametrize("name", ["README.md", "optimizer.pt", "onnx/model.onnx"])
def test_identity_ignores_other_files(name, copied):
    before = build(copied).identity
    (copied / name).parent.mkdir(exist_ok=True)
    (copied / name).write_text("other")
    assert build(copied).identity == before


def change_pooling(folder, **fields):
    """Change what `modules.json` says of the second module."""
    modules = json.loads((folder / "modules.json").read_text())
    modules[1] |= fields
    (folder / "modules.json").write_text(json.dumps(modules))


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


def test_plain_transformer_is_refused(tiny_bert):
    with raises_code(ModelLoadError, "model.kind", "modules.json"):
        build(tiny_bert)


@pytest.mark.parametrize("name", ["/no/such/place", "a/b/c"])
def test_neither_directory_nor_hub_name_is_refused(name):
    with raises_code(ModelLoadError, "model.not-found"):
        build(name)


def test_revision_of_directory_is_refused(tiny):
    with raises_code(ModelLoadError, "model.revision"):
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
    change_pooling(copied, path=path)
    with raises_code(ModelLoadError, "model.config"):
        build(copied)


def test_own_code_needs_trust(copied):
    change_pooling(copied, type="custom.Pooling")
    with raises_code(ModelLoadError, "model.own-code", "trust_remote_code"):
        build(copied)
    assert build(copied, trust_remote_code=True).identity.settings["trust_remote_code"] is True


@pytest.mark.parametrize(
    "named",
    [
        "sentence_transformers.util.misc.importlib",
        "sentence_transformers.base.model.torch",
        "sentence_transformers.SentenceTransformer",
        "sentence_transformers.sentence_transformer.modules.Router",
        "sentence_transformers.sentence_transformer.modules.pooling.Pooling.x",
        "Sentence_transformers.models.Pooling",
    ],
)
def test_class_that_is_not_listed_is_not_imported(named, copied):
    change_pooling(copied, type=named)
    with raises_code(ModelLoadError, "model.own-code"):
        build(copied)


@pytest.mark.parametrize("named", ["torch.utils.cpp_extension.os", "torch.hub.load", "torch.nn.Linear", "evil.Evil"])
def test_class_that_a_module_names_is_one_of_the_list(named, projected, tmp_path):
    folder = shutil.copytree(projected, tmp_path / projected.name)
    path = folder / "2_Dense" / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "activation_function": named}))
    with raises_code(ModelLoadError, "model.own-code"):
        build(folder)
    path.write_text(json.dumps({**settings, "activation_function": "torch.nn.modules.activation.Tanh"}))
    assert build(folder).identity


def test_every_listed_class_is_one_that_this_version_has_or_had():
    from sentence_transformers.util import import_from_string

    from prejudge.adapters.hf.encoder.allowed import ALLOWED

    assert len(ALLOWED) > 80
    for named in ALLOWED:
        assert isinstance(import_from_string(named), type), named


@pytest.mark.parametrize("text", ["{", "[]", '[{"idx": 0}]'])
def test_broken_modules_are_refused(text, copied):
    (copied / "modules.json").write_text(text)
    with raises_code(ModelLoadError, "model.config", "modules.json"):
        build(copied)


def test_pickled_module_needs_allowing(projected, tmp_path):
    import torch
    from safetensors.torch import load_file

    folder = shutil.copytree(projected, tmp_path / projected.name)
    weights = folder / "2_Dense" / "model.safetensors"
    torch.save(load_file(weights), folder / "2_Dense" / "pytorch_model.bin")
    weights.unlink()
    with raises_code(ModelLoadError, "model.pickled", "allow_pickle"):
        build(folder)
    assert vectors(folder, allow_pickle=True) == pytest.approx(vectors(projected), abs=1e-6)


def test_module_names_of_older_versions_load(tiny, copied):
    path = copied / "modules.json"
    modules = json.loads(path.read_text())
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rpartition(".")[2]
    path.write_text(json.dumps(modules))
    assert ask(copied) == ask(tiny)
