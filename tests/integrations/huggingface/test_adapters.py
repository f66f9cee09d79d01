"""Adapters of every kind through the Trainer: what is frozen does not move, what is trained does, and it loads back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

peft = pytest.importorskip("peft", reason="the extra reticent[hf] is not installed")

from tests.integrations.huggingface import tiny  # noqa: E402

from reticent.integrations import huggingface as hf  # noqa: E402

IA3 = {"target_modules": ["query", "value"], "feedforward_modules": []}
ADAPTERS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "lora, sequences": (tiny.t5, lambda: peft.LoraConfig(task_type="SEQ_2_SEQ_LM", r=2)),
    "prompt": (tiny.gpt2, lambda: peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)),
    "prefix": (tiny.gpt2, lambda: peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)),
    "ia3": (tiny.bert, lambda: peft.IA3Config(task_type="SEQ_CLS", **IA3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("said", [{}, {"bf16": True, "label_smoothing_factor": 0.1}], ids=["plain", "bf16, smoothed"])
@pytest.mark.parametrize("kind", ADAPTERS)
def test_an_adapter_of_every_kind(kind: str, said: dict[str, Any], tmp_path: Path) -> None:
    from transformers import TrainingArguments

    make, config = ADAPTERS[kind]
    model = peft.get_peft_model(make(), config())
    rows = tiny.texts() if kind == "ia3" else [{**row, "labels": row["input_ids"]} for row in tiny.texts()]
    for row in rows:
        row.pop("label" if kind != "ia3" else "labels", None)
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_strategy": "no", "learning_rate": 0.01}
    arguments = TrainingArguments(str(tmp_path / "out"), per_device_train_batch_size=10, max_steps=2, **quiet, **said)
    trainer = hf.ReticentTrainer(
        model=model, args=arguments, train_dataset=rows, noise_multiplier=1.0, delta=1e-4, max_length=8, seed=0
    )
    before = {name: part.detach().clone() for name, part in model.named_parameters()}
    trainer.train()
    moved = {name for name, part in model.named_parameters() if not torch.equal(part, before[name])}
    assert moved == {name for name, part in model.named_parameters() if part.requires_grad}
    again = peft.PeftModel.from_pretrained(make(), trainer.save_pretrained(tmp_path / "hub"))
    trained = {name: part for name, part in model.named_parameters() if name in moved}
    loaded = dict(again.named_parameters())
    assert all(torch.equal(loaded[name], part) for name, part in trained.items())
