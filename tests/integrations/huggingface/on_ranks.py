"""A script as people start it with torchrun: a small model through the Trainer, on as many processes as there are."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import torch  # noqa: E402
from transformers import TrainingArguments  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.integrations.huggingface import tiny  # noqa: E402

from reticent.integrations import huggingface as hf  # noqa: E402

if __name__ == "__main__":
    world, out = int(os.environ.get("WORLD_SIZE", "1")), Path(sys.argv[1])
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_steps": 2, "learning_rate": 0.01}
    arguments = TrainingArguments(str(out), per_device_train_batch_size=16 // world, max_steps=4, **quiet)
    trainer = hf.ReticentTrainer(
        model=tiny.bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),  # whose chance is each share's own
        args=arguments,
        train_dataset=tiny.dataset(),
        noise_multiplier=1.0,
        delta=1e-4,
        max_length=tiny.LENGTH,
        seed=0,
    )
    trainer.train(resume_from_checkpoint=True if "--resume" in sys.argv else None)
    if trainer.is_world_process_zero():
        trainer.save_pretrained(out / "hub")
        torch.save([part.detach() for part in trainer.model.parameters()], out / "weights.pt")
        print(trainer.guarantee)
