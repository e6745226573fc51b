"""Models are called by what they are: a GGUF file by its metadata, a folder by its configuration, weights and card."""

from __future__ import annotations

import json
import struct

import pytest

from prejudge.adapters.hf.described import described
from prejudge.adapters.llamacpp.gguf import GGUF


def write_weights(path, shapes):
    header = {"__metadata__": {"format": "pt"}}
    header |= {f"w{n}": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for n, shape in enumerate(shapes)}
    data = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(data)) + data)


def test_folder_is_called_by_its_card_its_weights_and_its_configuration(tmp_path):
    (tmp_path / "README.md").write_text(
        "---\nlicense: apache-2.0\nbase_model: nobody/large\ntags:\n- x\n---\n\n# A small model\n\n# More\n"
    )
    write_weights(tmp_path / "model-00001-of-00002.safetensors", [[10, 20], [7]])
    write_weights(tmp_path / "model-00002-of-00002.safetensors", [[3, 1, 1]])
    config = {
        "architectures": ["LlamaForCausalLM"],
        "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "gptq"},
        "_name_or_path": "/home/somebody/secret/model",
    }
    assert described(config, tmp_path) == {
        "name": "A small model",
        "architecture": "LlamaForCausalLM",
        "precision": "bfloat16",
        "quantisation": "gptq",
        "size": "210 parameters",
        "training": "made of nobody/large",
        "licence": "apache-2.0",
    }
    assert described({"_name_or_path": "org/model", "model_type": "bert"}, None) == {
        "name": "org/model",
        "architecture": "bert",
    }


@pytest.mark.parametrize("data", [b"", b"\xff" * 20, struct.pack("<Q", 5) + b"[1,2]"])
def test_weights_that_are_none_leave_the_size_unstated(tmp_path, data):
    (tmp_path / "model.safetensors").write_bytes(data)
    assert described({}, tmp_path) == {}


def test_gguf_is_called_by_its_metadata(tmp_path):
    metadata = {
        "general.name": "Small 135M",
        "general.size_label": "135M",
        "general.finetune": "Instruct",
        "general.architecture": "llama",
        "general.license": "apache-2.0",
        "general.file_type": 15,
    }
    file = GGUF(tmp_path / "x.gguf", "x.gguf", "sha256:0", metadata, frozenset())
    assert file.described == {
        "name": "Small 135M",
        "size": "135M",
        "training": "Instruct",
        "architecture": "llama",
        "licence": "apache-2.0",
        "quantisation": "Q4_K_M",
    }
