"""A local model whose template knows `enable_thinking`, from a folder, in one varied study."""

from __future__ import annotations

import pytest

import prejudge
from prejudge.adapters.hf.text import Encoder
from prejudge.core.contracts.errors import ModelLoadError, UsageError
from prejudge.testing import raises_code

from ...checkpoints import CHAT_TEMPLATE, write_causal

THINKS = CHAT_TEMPLATE.removesuffix("{% endif %}") + "{% if enable_thinking %}<think>\n{% endif %}{% endif %}"
pytestmark = pytest.mark.usefixtures("no_figures")
SMALL = {"per_dimension": 1, "samples": 1, "letters": "a", "dimensions": "gender"}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))


def test_thinking_of_a_local_model_is_varied(tmp_path, settings):
    write_causal(tmp_path / "thinker", template=THINKS)
    done = prejudge.vary("dora-t2t", "./thinker", {"thinking": ["off", "on"]}, settings, **SMALL)
    labels = [f"hf-causal:./thinker[thinking={level}]" for level in ("off", "on")]
    assert list(done.comparison.runs) == labels
    off, on = (scores.reasoned for scores in done.comparison.runs.values())
    assert off.answers == on.answers == on.reasoned and off.reasoned == 0
    assert not off.ignored and not on.ignored


def test_level_that_the_template_does_not_know_is_refused_first(tmp_path, settings):
    write_causal(tmp_path / "thinker", template=THINKS)
    write_causal(tmp_path / "plain")
    for model, levels in (("./thinker", ["off", "low"]), ("./plain", ["off", "on"])):
        with raises_code(UsageError, "model.thinking"):
            prejudge.vary("dora-t2t", model, {"thinking": levels}, settings, **SMALL)
    assert not (tmp_path / "s.db").exists()
    with raises_code(ModelLoadError, "model.template"):
        prejudge.run("dora-t2t", "hf-causal:./plain[chat_template_kwargs={enable_thinking=true}]", settings, **SMALL)


def test_marks_that_are_special_tokens_are_seen(tmp_path):
    """As Magistral's `[THINK]`: a decoder that skips special tokens would leave the thoughts in the answer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(write_causal(tmp_path / "thinker"))
    tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]"]})
    ids = tokenizer("<|user|>[THINK]The tall boys[/THINK]Lazy</s>", add_special_tokens=False)["input_ids"]
    assert Encoder(tokenizer).text([], ids) == "[THINK]The tall boys[/THINK]Lazy"
    assert Encoder(tokenizer, ()).text([], ids) == "The tall boysLazy"
