"""Write tiny real checkpoints of several families, with tokenizers trained here: no network, no stored weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

CORPUS = [
    "The dark-skinned woman was considered beautiful by everyone at the party.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
    "Those obese girls are unfriendly, and the tall boys aren't lazy.",
    "He didn't know that unbelievable misunderstandings happened in neighbouring countries.",
    "People who live in trailers are alcoholics; people who live in mansions are not.",
] * 4
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


def _train(kind: str, names: dict[str, str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    special = [names[role] for role in ("cls", "pad", "sep", "unk", "mask")]
    quiet = {"special_tokens": special, "show_progress": False}
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(vocab=_pieces(special), unk_token=names["unk"]))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        tokenizer.add_special_tokens(special)
        trainer = None
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
        trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **quiet)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=150, unk_token=names["unk"], **quiet)
    if trainer is not None:
        tokenizer.train_from_iterator(CORPUS, trainer)
    ends = [(names[role], tokenizer.token_to_id(names[role])) for role in ("cls", "sep")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{names['cls']} $A {names['sep']}", special_tokens=ends
    )
    return tokenizer


def _pieces(special: list[str]) -> dict[str, int]:
    """Return a vocabulary of word pieces, the same every time: WordPieceTrainer breaks ties as its hashes fall."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=75, show_progress=False))
    known = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    return {piece: number for number, piece in enumerate([*special, *known, *(f"##{piece}" for piece in known)])}


def _tokenizer(family: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    names = ROBERTA if family in {"roberta", "xlm-roberta"} else SPECIAL
    kinds = {"roberta": "bytes", "modernbert": "bytes", "albert": "unigram", "xlm-roberta": "unigram"}
    backend = _train({**kinds, "deberta-v2": "unigram"}.get(family, "wordpiece"), names)
    tokens = {f"{role}_token": token for role, token in names.items()}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **tokens)


def _config(family: str, tokenizer: Any, **changes: Any) -> Any:
    from transformers import AutoConfig

    own: dict[str, dict[str, Any]] = {
        "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
        "albert": {**SMALL, "embedding_size": 16},
        "electra": {**SMALL, "embedding_size": 16},
        "deberta-v2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0},
    }
    ids = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
    }
    common = {"vocab_size": len(tokenizer), "max_position_embeddings": 64, **own.get(family, SMALL), **ids}
    return AutoConfig.for_model(family, **{**common, **changes})


def _pair_tokenizer(family: str) -> Any:
    from tokenizers import processors

    tokenizer = _tokenizer(family)
    backend = tokenizer.backend_tokenizer
    ends = [(token, tokenizer.convert_tokens_to_ids(token)) for token in (tokenizer.cls_token, tokenizer.sep_token)]
    cls, sep = tokenizer.cls_token, tokenizer.sep_token
    second = f"{sep} $B:0 {sep}" if family == "roberta" else f"$B:1 {sep}:1"
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} {second}", special_tokens=ends
    )
    blind = family in {"roberta", "distilbert", "gpt2", "bart"}
    inputs = ["input_ids", "attention_mask", *([] if blind else ["token_type_ids"])]
    special = dict(tokenizer.special_tokens_map)
    return type(tokenizer)(tokenizer_object=backend, model_input_names=inputs, **special)


CHAT_TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def _causal_tokenizer(template: str | None, bos: bool) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>", "<|system|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator([*CORPUS, *["A line:\n  an indented one"] * 9], trainer)
    # Trimmed offsets are what Llama 3 and GPT-2 have.
    steps: list[Any] = [processors.ByteLevel(trim_offsets=True)]
    if bos:
        steps.append(processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)]))
    backend.post_processor = processors.Sequence(steps)
    roles = {"eos_token": "</s>", "pad_token": "<pad>", **({"bos_token": "<s>"} if bos else {})}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=special[3:], **roles)
    tokenizer.chat_template = template
    return tokenizer


def write_masked(folder: Path, family: str = "bert", **changes: Any) -> Path:
    """Write a masked language model and return its folder."""
    from transformers import AutoModelForMaskedLM

    tokenizer = _tokenizer(family)
    return _write(folder, AutoModelForMaskedLM, _config(family, tokenizer, **changes), tokenizer, seed=7)


def write_classifier(folder: Path, family: str = "bert", labels: Sequence[str] | None = None, **changes: Any) -> Path:
    """Write a sequence classifier and return its folder."""
    from transformers import AutoModelForSequenceClassification

    tokenizer = _pair_tokenizer(family)
    named = {} if labels is None else {"id2label": dict(enumerate(labels))}
    named |= {} if labels is None else {"label2id": {label: number for number, label in enumerate(labels)}}
    config = _config(family, tokenizer, **named, **changes)
    return _write(folder, AutoModelForSequenceClassification, config, tokenizer, seed=11)


def write_causal(
    folder: Path, family: str = "llama", template: str | None = CHAT_TEMPLATE, bos: bool = True, **changes: Any
) -> Path:
    """Write a causal language model and return its folder."""
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = _causal_tokenizer(template, bos)
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    common = {"vocab_size": len(tokenizer), "max_position_embeddings": 160, **ids, **small}
    config = AutoConfig.for_model(family, **{**common, **changes})
    return _write(folder, AutoModelForCausalLM, config, tokenizer, seed=5, spread=0.1)


def write_encoder(
    folder: Path, transformer: Path, pooling: str = "mean", more: Sequence[Any] = (), **settings: Any
) -> Path:
    """Write a sentence encoder on top of a checkpoint, with more modules behind its pooling; return its folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    modules = [Transformer(str(transformer), max_seq_length=60), Pooling(32, pooling_mode=pooling), *more]
    model = SentenceTransformer(modules=modules, device="cpu", **settings)
    model.save(str(folder), create_model_card=False)
    return folder


def _write(folder: Path, kind: Any, config: Any, tokenizer: Any, *, seed: int, spread: float = 0.2) -> Path:
    import torch

    torch.manual_seed(seed)
    model = kind.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Fresh weights are so small that any mistake would vanish in the tolerance.
            parameter.add_(torch.randn_like(parameter) * spread)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
