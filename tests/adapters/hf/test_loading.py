"""How weights are loaded: each setting is in the identity, does what it says, and fails with a code."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import threading

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.hf.hub import one_line
from prejudge.adapters.hf.loading import resolve_dtype
from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.adapters.shared.torch import float32_products
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.records import Likelihood, PseudoLikelihood
from prejudge.testing import raises_code

# PEFT asks Transformers for a property that is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
REQUEST = Likelihood(prompt="The tall boys", continuations=(" are lazy.", " aren't unfriendly."))


def build(folder, **options):
    return HFCausal(HFCausalOptions(model=str(folder), device="cpu", threads=1, **options))


def ask(folder, **options):
    async def run():
        adapter = build(folder, **options)
        try:
            (answer,) = await adapter.likelihood_batch([REQUEST])
            return [score.log_probability for score in answer.scores]
        finally:
            await adapter.aclose()

    return asyncio.run(run())


def settings(folder, **options):
    return build(folder, **options).identity.settings


@pytest.fixture
def copied(tiny_llama, tmp_path):
    return shutil.copytree(tiny_llama, tmp_path / "copy")


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture(scope="session")
def lora(tiny_llama, tmp_path_factory):
    """Return LoRA weights for the tiny Llama, which change its answers, and that model with them merged into it."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    wrapped = peft.get_peft_model(model, config)
    own = tmp_path_factory.mktemp("lora") / "tiny-lora"
    wrapped.save_pretrained(own)
    merged = shutil.copytree(tiny_llama, tmp_path_factory.mktemp("merged") / "merged")
    wrapped.merge_and_unload().save_pretrained(merged)
    return own, merged


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "float32"),
        ({"torch_dtype": "bfloat16"}, "bfloat16"),
        ({"dtype": "torch.float16"}, "float16"),
        ({"dtype": None, "text_config": {"dtype": "bfloat16"}}, "bfloat16"),
        ({"dtype": "float16", "text_config": {"dtype": "float32"}}, "float16"),
    ],
)
def test_dtype_of_the_checkpoint_is_read_from_its_configuration(config, expected):
    assert resolve_dtype(config, "m") == expected


def test_dtype_that_no_adapter_has_is_refused():
    with raises_code(ModelLoadError, "model.dtype", "float8_e4m3fn"):
        resolve_dtype({"dtype": "float8_e4m3fn"}, "m")


def test_resolved_dtype_is_in_the_identity_and_loaded(copied):
    change(copied, dtype="bfloat16")
    adapter = build(copied, dtype="auto")
    assert adapter.identity == build(copied, dtype="bfloat16").identity
    assert str(adapter._ready().loaded.head.model.dtype) == "torch.bfloat16"
    asyncio.run(adapter.aclose())


def test_settings_enter_the_identity_only_when_set(tiny_llama):
    plain = settings(tiny_llama)
    assert plain["dtype"] == "float32"
    assert not {"tf32", "device_map", "attention", "quantization", "peft", "compile"} & set(plain)
    for name, value in {"tf32": True, "device_map": "auto", "attention": "eager", "compile": True}.items():
        assert settings(tiny_llama, **{name: value}) == {**plain, name: value}
    bits = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    assert json.loads(settings(tiny_llama, quantization=bits)["quantization"]) == bits


def test_other_ways_to_load_answer_alike(tiny_llama):
    plain = ask(tiny_llama)
    assert ask(tiny_llama, attention="eager") == pytest.approx(plain, abs=1e-4)
    assert ask(tiny_llama, device_map="auto") == pytest.approx(plain, abs=1e-4)


def test_compiled_model_answers_alike(tiny_llama, monkeypatch):
    import torch

    # The compiler itself takes a minute; what is captured, hooks included, is what this is about.
    traced = functools.partialmethod(torch.nn.Module.compile, backend="eager")
    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    assert ask(tiny_llama, compile=True) == pytest.approx(ask(tiny_llama), abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [{"attention": "flash_attention_2"}, {"quantization": {"quant_method": "bitsandbytes", "load_in_4bit": True}}],
    ids=["attention", "quantization"],
)
def test_missing_package_is_named(tiny_llama, options):
    with raises_code(ModelLoadError, "model.package"):
        ask(tiny_llama, **options)


@pytest.mark.parametrize("quantization", [{"bits": 4}, {"quant_method": "odd"}])
def test_unknown_quantization_is_refused(tiny_llama, quantization):
    with raises_code(ModelLoadError, "model.quantization"):
        ask(tiny_llama, quantization=quantization)


def test_quantised_checkpoint_says_so_and_takes_no_second_quantization(copied):
    change(copied, quantization_config={"quant_method": "gptq", "bits": 4})
    assert settings(copied)["quantization"] == "checkpoint:gptq"
    with raises_code(ModelLoadError, "model.quantization"):
        build(copied, quantization={"quant_method": "bitsandbytes", "load_in_8bit": True})
    with pytest.raises(ModelLoadError) as caught:
        ask(copied)
    assert caught.value.code in {"model.package", "model.unloadable"}


def test_peft_adapter_answers_as_its_weights_merged(tiny_llama, lora):
    own, merged = lora
    found = ask(tiny_llama, peft=str(own))
    assert found == pytest.approx(ask(merged), abs=1e-4)
    assert max(abs(a - b) for a, b in zip(found, ask(tiny_llama), strict=True)) > 0.01


def test_peft_adapter_is_pinned_by_its_files(tiny_llama, lora, tmp_path):
    own = shutil.copytree(lora[0], tmp_path / "renamed-lora")
    before = settings(tiny_llama, peft=str(lora[0]))
    assert str(before["peft"]).startswith("sha256:")
    assert build(tiny_llama, peft=str(own)).identity.model == f"{tiny_llama.name} with renamed-lora"
    assert settings(tiny_llama, peft=str(own)) == before
    path = own / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "lora_alpha": 77}))
    assert settings(tiny_llama, peft=str(own))["peft"] != before["peft"]


def test_peft_adapter_of_another_model_is_refused(make_causal, tiny_llama, lora):
    deeper = make_causal("llama", num_hidden_layers=3)
    with raises_code(ModelLoadError, "model.peft"):
        ask(deeper, peft=str(lora[0]))
    with raises_code(ModelLoadError, "model.peft"):
        ask(make_causal("llama", hidden_size=48, num_attention_heads=2), peft=str(lora[0]))


def test_peft_adapter_that_is_incomplete_or_changes_prompts_is_refused(tiny_llama, lora, tmp_path):
    with raises_code(ModelLoadError, "model.files", "adapter_config.json"):
        build(tiny_llama, peft=str(tmp_path))
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "PROMPT_TUNING"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with raises_code(ModelLoadError, "model.peft", "PROMPT_TUNING"):
        build(tiny_llama, peft=str(tmp_path))
    with raises_code(ModelLoadError, "model.revision"):
        build(tiny_llama, peft=str(lora[0]), peft_revision="main")


def test_masked_model_takes_a_peft_adapter(tiny_bert, tmp_path):
    import peft
    import torch
    from transformers import AutoModelForMaskedLM

    torch.manual_seed(0)
    wrapped = peft.get_peft_model(
        AutoModelForMaskedLM.from_pretrained(tiny_bert),
        peft.LoraConfig(r=2, target_modules=["query"], init_lora_weights=False),
    )
    wrapped.save_pretrained(tmp_path / "lora")
    merged = shutil.copytree(tiny_bert, tmp_path / "merged")
    wrapped.merge_and_unload().save_pretrained(merged)

    def score(folder, **options):
        async def run():
            adapter = HFMasked(HFMaskedOptions(model=str(folder), device="cpu", threads=1, **options))
            try:
                (answer,) = await adapter.pseudo_likelihood_batch([PseudoLikelihood(text="The tall boys are lazy.")])
                return answer.values
            finally:
                await adapter.aclose()

        return asyncio.run(run())

    assert score(tiny_bert, peft=str(tmp_path / "lora")) == pytest.approx(score(merged), abs=1e-4)


def test_models_with_and_without_tf32_take_turns(monkeypatch):
    import torch

    switch = torch.backends.cuda.matmul
    before = switch.allow_tf32, torch.backends.cudnn.allow_tf32
    seen = []

    def work(tf32):
        for _ in range(20):
            with float32_products("cuda:0", tf32=tf32):
                seen.extend(switch.allow_tf32 == torch.backends.cudnn.allow_tf32 == tf32 for _ in range(50))

    threads = [threading.Thread(target=work, args=(number % 2 == 0,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
        with float32_products("cpu", tf32=True):
            pass
    finally:
        switch.allow_tf32, torch.backends.cudnn.allow_tf32 = before
    assert len(seen) == 4000 and all(seen)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("\n first \nsecond", "first"),
        ("none of:\n(1) a file,\n(2) another.", "none of: (1) a file, (2) another."),
        ("x" * 999, "x" * 300 + "..."),
        ("", "OSError"),
    ],
)
def test_message_of_another_library_is_one_line_that_says_something(said, line):
    assert one_line(OSError(said)) == line
