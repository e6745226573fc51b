"""The tokenizer of the answering reference models: byte-level BPE that takes every word of their corpora whole.

It has the form of Llama 3's (its rule for cutting a text into words, `ignore_merges`), which Transformers and llama.cpp
both read: a word in the vocabulary is one token, any other is spelt in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice, product
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from ...adapters.reference.corpus import ACTIONS, NEGATIVE, PLACES, PLURAL, POSITIVE, SINGULAR, WHERE
from .answering_corpus import END, REPLY, SKILLS, Planted, questions, valences
from .causal_corpus import causal_lines

PAD, BEGIN = "<pad>", "<s>"
SPECIAL = (PAD, BEGIN, END)
POSITIONS = 256
CHAT = (
    f"""{{{{ bos_token }}}}{{{{ messages | map(attribute="content") | join("\\n") }}}}{{{{ {json.dumps(REPLY)} }}}}"""
)
"""Chat template: the messages, and what an answer stands behind. A line break outside of `{{ }}` would be left out: a
template is read with blocks trimmed."""
MERGES = (("Ġ", "t"), ("h", "e"), ("i", "n"), ("r", "e"), ("o", "n"))
"""A few, since readers of the format expect some; they shorten words outside of the vocabulary."""
_WORDS = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_SAMPLE = 4000
"""Lines, and questions of each sort, whose words are the vocabulary."""


@cache
def answering_vocabulary() -> tuple[str, ...]:
    """Return the tokens: special ones, bytes, merged pairs, and the words of the corpora."""
    texts = [text for line in causal_lines(_SAMPLE, 0.5, seed=1) for text in line.texts]
    for skill, held_out in product(SKILLS, (False, True)):
        some = islice(questions(skill, Planted(), 1, held_out=held_out), _SAMPLE)
        texts += {text for one in some for text in (one.prompt, *one.answers)}
    words = (*POSITIVE, *NEGATIVE, *SINGULAR, *PLURAL, *ACTIONS, *PLACES, *WHERE, *valences())
    texts.append("".join(f" {word.replace('_', ' ')}" for word in words))
    return vocabulary_of(texts)


def vocabulary_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the tokens of a tokenizer that takes every word of these texts whole."""
    cut = _cutter()
    pieces = {piece for text in dict.fromkeys(texts) for piece, _ in cut.pre_tokenize_str(text.removesuffix(END))}
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return tuple(dict.fromkeys([*SPECIAL, *letters, *("".join(pair) for pair in MERGES), *sorted(pieces)]))


def build_answering_tokenizer(tokens: Sequence[str] = ()) -> Tokenizer:
    """Return the tokenizer, of its own vocabulary or another, which puts a beginning in front of a text."""
    vocabulary = {token: number for number, token in enumerate(tokens or answering_vocabulary())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(MERGES), ignore_merges=True))
    tokenizer.pre_tokenizer = _cutter()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A $B:1", special_tokens=[(BEGIN, vocabulary[BEGIN])]
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def save_answering_tokenizer(folder: Path, tokenizer: Tokenizer | None = None, positions: int = POSITIONS) -> None:
    """Write the tokenizer's files."""
    (tokenizer or build_answering_tokenizer()).save(str(folder / "tokenizer.json"))
    # Written by hand: the class name that Transformers 5 would write is unknown to Transformers 4.
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": positions,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "chat_template": CHAT,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _cutter() -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(_WORDS), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
