"""Refusing: what a Trainer can be asked for that would tell of the examples, or train by another plan than stated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from transformers import Trainer, TrainingArguments

from reticent.errors import SettingError

if TYPE_CHECKING:
    from reticent.integrations.huggingface.trainer import ReticentTrainer


OVERRIDDEN = ("training_step", "get_train_dataloader", "get_batch_samples", "_get_train_sampler")
"""Methods of a Trainer that have no part in private training: one of the caller's own would be passed over."""


def refuse_leaks(trainer: ReticentTrainer) -> None:
    """Refuse before anything is trained, with every reason at once."""
    found = [*_about_arguments(trainer.args), *_about_evaluation(trainer), *_about_the_loss(trainer)]
    if found:
        raise SettingError("these settings do not go with private training:\n- " + "\n- ".join(found))


def _about_arguments(args: TrainingArguments) -> Iterator[str]:
    def asks(name: str) -> object:
        return getattr(args, name, None)

    sampling = asks("train_sampling_strategy")
    if asks("group_by_length") or (sampling is not None and str(getattr(sampling, "value", sampling)) != "random"):
        yield (
            "train_sampling_strategy (group_by_length): the proof is for a draw in which everybody takes part by "
            "chance alone; leave it at 'random'"
        )
    if asks("auto_find_batch_size"):
        yield "auto_find_batch_size: the batch is part of the plan; per_device_train_batch_size bounds the memory"
    if asks("fp16"):
        yield "fp16: its loss scale follows the gradients of private examples; use bf16=True, or neither"
    if asks("include_num_input_tokens_seen") not in (None, False, "no"):
        yield "include_num_input_tokens_seen: how many words were drawn is private"
    if asks("skip_memory_metrics") is False:
        yield "skip_memory_metrics=False: the peak of memory follows the number of examples drawn, which is private"
    if asks("gradient_checkpointing") or asks("activation_checkpointing"):
        yield "gradient_checkpointing: a lower per_device_train_batch_size bounds the memory, and changes nothing else"
    if asks("push_to_hub"):
        yield "push_to_hub: the output folder holds the run's secret key; save_pretrained(folder) makes one to upload"
    if not args.max_grad_norm or not 0 < args.max_grad_norm < math.inf:
        yield f"max_grad_norm={args.max_grad_norm}: it bounds what one example can do, and must be above 0"
    for name in ("deepspeed", "fsdp", "torch_compile", "use_liger_kernel", "neftune_noise_alpha", "parallelism_config"):
        if asks(name):
            yield f"{name}: not known to leave each example's gradient its own; leave it out"
    if asks("enable_jit_checkpoint"):
        yield "enable_jit_checkpoint: a run is resumed exactly from its own folder after any end; leave it out"
    if args.n_gpu > 1:
        yield "several devices in one process: start one process for each, with torchrun"


def _about_evaluation(trainer: ReticentTrainer) -> Iterator[str]:
    args, public = trainer.args, trainer.public_eval
    judged = trainer.eval_dataset
    several = judged.values() if isinstance(judged, dict) else [judged]
    if judged is not None and any(one is trainer.train_dataset for one in several):
        yield "eval_dataset is the training data: what it would show is not covered by the guarantee"
    elif not public and (str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no" or args.eval_on_start):
        yield "evaluation while training tells of eval_dataset: say public_eval=True if nobody in it is to be protected"
    if not public and (args.load_best_model_at_end or str(getattr(args.save_strategy, "value", "")) == "best"):
        yield "load_best_model_at_end (and save_strategy 'best') chooses by eval_dataset: say public_eval=True"


def _about_the_loss(trainer: ReticentTrainer) -> Iterator[str]:
    if trainer.compute_loss_func is not None or type(trainer).compute_loss is not Trainer.compute_loss:
        yield (
            "compute_loss gives one number for a batch, in which the examples are mixed: give loss=, a function of "
            "(model, batch) with one number for each example"
        )
    for name in OVERRIDDEN:
        if getattr(type(trainer), name) is not getattr(Trainer, name):
            yield f"{name} of {type(trainer).__name__}: no step of the Trainer's own is taken, so it would be left out"
    if trainer.args.label_smoothing_factor and trainer.own_loss is not None:
        yield "label_smoothing_factor: the loss is your own; smooth the labels in it"
