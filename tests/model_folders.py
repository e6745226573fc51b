"""Folders of models that have no weights: all that is read before a study asks anything."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MASKED_TOKENIZER = {"tokenizer_class": "BertTokenizer", "mask_token": "[MASK]"}
CAUSAL_TOKENIZER = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"}
BODY = ("bert.embeddings.word_embeddings.weight", "bert.encoder.layer.0.attention.self.query.weight")
WORDS = (*BODY, "cls.predictions.bias", "cls.predictions.transform.dense.weight")
CLASSES = (*BODY, "classifier.weight", "classifier.bias")


def write_safetensors(path: Path, names: Sequence[str]) -> None:
    """Write a file of one number per tensor."""
    spans = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)}
    header = json.dumps(spans).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * len(names)))


def write_model(
    folder: Path,
    architecture: str,
    tensors: Sequence[str] = BODY,
    tokenizer: Mapping[str, Any] = MASKED_TOKENIZER,
    **config: Any,
) -> Path:
    """Write the folder of a Transformers model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"architectures": [architecture], **config}))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def write_kinds(folder: Path) -> dict[str, Path]:
    """Write one model of each kind, sound and unsound, and return their places."""
    made = {
        "masked": write_model(folder / "masked", "BertForMaskedLM", WORDS),
        "headless": write_model(folder / "headless", "BertForMaskedLM", BODY),
        "maskless": write_model(folder / "maskless", "BertForMaskedLM", WORDS, CAUSAL_TOKENIZER),
        "causal": write_model(folder / "causal", "LlamaForCausalLM", ("model.norm.weight",), CAUSAL_TOKENIZER),
        "seq2seq": write_model(folder / "seq2seq", "T5ForConditionalGeneration", ("shared.weight",), CAUSAL_TOKENIZER),
        "classifier": write_model(folder / "classifier", "BertForSequenceClassification", CLASSES),
        "untrained": write_model(folder / "untrained", "BertForSequenceClassification", BODY),
        "encoder": write_model(folder / "encoder", "BertModel"),
        "vlm": write_model(
            folder / "vlm",
            "LlavaForConditionalGeneration",
            ("lm_head.weight",),
            CAUSAL_TOKENIZER,
            vision_config={},
            image_token_id=7,
        ),
        "pipeline": folder / "pipeline",
        "gguf": folder / "gguf" / "tiny.gguf",
    }
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (made["encoder"] / "modules.json").write_text(json.dumps([module]))
    (made["vlm"] / "preprocessor_config.json").write_text("{}")
    made["pipeline"].mkdir()
    (made["pipeline"] / "model_index.json").write_text('{"_class_name": "StableDiffusionPipeline"}')
    made["gguf"].parent.mkdir()
    made["gguf"].write_bytes(b"GGUF")
    return made
