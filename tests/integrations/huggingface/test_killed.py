"""A LoRA fine-tune through the Trainer, killed in the middle and resumed: the same weights and logs to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("peft", reason="the extra reticent[hf] is not installed")

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
import peft, torch
from transformers import DataCollatorForLanguageModeling, TrainerCallback, TrainingArguments
from reticent.integrations.huggingface import ReticentTrainer
from tests.integrations.huggingface import tiny

class Kill(TrainerCallback):
    def on_step_end(self, args, state, control, **_more):
        if state.global_step == int(os.environ.get("KILLED_AT", "0")):
            os.kill(os.getpid(), 9)

torch.set_num_threads(1)
folder, resume = sys.argv[1], sys.argv[2] == "resume"
lora = peft.LoraConfig(task_type=None, r=2, target_modules=["query"], lora_dropout=0.2)
model = peft.get_peft_model(tiny.masked(), lora)
words = tiny.tokenizer()
arguments = TrainingArguments(folder, per_device_train_batch_size=10, max_steps=6, save_steps=2, logging_steps=1,
                              learning_rate=0.01, report_to=[], disable_tqdm=True, use_cpu=True, warmup_steps=2)
trainer = ReticentTrainer(model=model, args=arguments, train_dataset=tiny.dataset(), processing_class=words, seed=5,
                          data_collator=DataCollatorForLanguageModeling(words), noise_multiplier=1.0, delta=1e-4,
                          callbacks=[Kill()])
trainer.train(resume_from_checkpoint=resume)
lines = [{k: v for k, v in line.items() if "second" not in k and "runtime" not in k}
         for line in trainer.state.log_history]
weights = {name: part.detach().clone() for name, part in model.named_parameters()}
torch.save({"weights": weights, "log": lines, "epsilon": trainer.guarantee.epsilon}, folder + "/end.pt")
"""


def run(folder: Path, how: str, killed_at: int = 0) -> int:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "KILLED_AT": str(killed_at), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder), how], env=environment, cwd=ROOT, check=False)
    return done.returncode


def end(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(folder / "end.pt")
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_killed_fine_tune_goes_on_to_the_same_end(tmp_path: Path) -> None:
    """Killed in the fifth step, after the checkpoint of the fourth; masked words and dropout are drawn alike again."""
    assert run(tmp_path / "whole", "anew") == 0
    assert run(tmp_path / "killed", "anew", killed_at=5) == -signal.SIGKILL
    assert (tmp_path / "killed" / "checkpoint-4").exists()
    assert not (tmp_path / "killed" / "end.pt").exists()
    assert run(tmp_path / "killed", "resume") == 0
    whole, killed = end(tmp_path / "whole"), end(tmp_path / "killed")
    assert whole["epsilon"] == killed["epsilon"]
    assert whole["log"] == killed["log"]
    for name, part in whole["weights"].items():
        assert torch.equal(part, killed["weights"][name]), name
    assert run(tmp_path / "killed", "anew") != 0, "a folder that holds a run is not written over"
