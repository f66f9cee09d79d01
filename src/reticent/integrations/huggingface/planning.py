"""Planning: what a Trainer's arguments mean for a private run, and the run itself."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from reticent.accounting import Budget
from reticent.accounting.adjacency import adjacency_of
from reticent.budgets import DatasetBudget
from reticent.data import ahead
from reticent.errors import DataError, SettingError
from reticent.inside import Batch, Loss
from reticent.integrations.huggingface.reading import examples
from reticent.losses import LossLike, head_loss
from reticent.methods import Method, get
from reticent.methods import options as known_options
from reticent.methods.planning import default_delta
from reticent.methods.solving import rounds_in
from reticent.origins import Initial
from reticent.run import Run

if TYPE_CHECKING:
    from reticent.integrations.huggingface.trainer import ReticentTrainer

SELDOM = 1e9
"""Seconds between the run's own checkpoints where the Trainer's come in steps: they are written together."""


@dataclass(frozen=True)
class PrivateTerms:
    """What the caller said of privacy, as `rt.fit` is told it."""

    epsilon: float | None
    delta: float | None
    noise_multiplier: float | None
    method: str | Method
    size: int | None
    adjacency: str | None
    max_length: int | Mapping[str, int] | None
    loss: LossLike
    probes: Batch | None
    initial: Initial
    dataset: DatasetBudget | None
    seed: int | None

    def made(self, max_grad_norm: float) -> Method:
        """The method, bounded as the Trainer's arguments say."""
        if isinstance(self.method, Method):
            if self.noise_multiplier is not None:
                raise SettingError("noise_multiplier goes with a method's name; a Method carries its own")
            return self.method
        known = known_options(self.method)
        chosen = {"max_grad_norm": max_grad_norm, "noise_multiplier": self.noise_multiplier}
        said = {name: value for name, value in chosen.items() if value is not None and name in known}
        if self.noise_multiplier is not None and "noise_multiplier" not in known:
            raise SettingError(f"{self.method} takes no noise_multiplier: give epsilon")
        return get(self.method, **said)

    def budget(self, public: int) -> Budget | None:
        """What may be spent."""
        if self.epsilon is None:
            return None
        bound = default_delta(public) if self.delta is None else self.delta
        return Budget(self.epsilon, bound, adjacency=adjacency_of(self.size, self.adjacency))


@dataclass(frozen=True, eq=False)
class Rounded:
    """A loss whose model calculates in bfloat16 where autocast does; weights and gradients stay as they are."""

    loss: Loss
    device: str

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example."""
        with torch.autocast(self.device, dtype=torch.bfloat16):
            return self.loss(model, batch).float()


def opened(trainer: ReticentTrainer, asked: PrivateTerms, folder: Path, *, resume: bool) -> Run:
    """The run that a Trainer's arguments ask for."""
    args, data = trainer.args, trainer.train_dataset
    if data is None or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise DataError("train_dataset must be a dataset with __len__ and __getitem__: a private draw picks by number")
    public = len(data) if asked.size is None else asked.size
    at_once, times = args.per_device_train_batch_size, args.gradient_accumulation_steps * args.world_size
    batch = at_once * times
    rounds = args.max_steps if args.max_steps > 0 else rounds_in(args.num_train_epochs, public, batch)
    method = asked.made(args.max_grad_norm)
    trainer.create_optimizer_and_scheduler(num_training_steps=rounds)
    if isinstance(trainer.lr_scheduler, ReduceLROnPlateau):
        raise SettingError("lr_scheduler_type='reduce_lr_on_plateau' follows an evaluation: use a fixed schedule")
    steps = str(getattr(args.save_strategy, "value", args.save_strategy)) != "no"
    run = Run(
        trainer.model,
        trainer.optimizer,
        read(trainer, asked),
        method=method,
        batch_size=batch,
        size=asked.size,
        adjacency=asked.adjacency,
        loss=_loss(trainer, asked),
        rounds=rounds,
        budget=asked.budget(public),
        delta=asked.delta,
        initial=asked.initial,
        dataset=asked.dataset,
        scheduler=trainer.lr_scheduler,
        seed=asked.seed,
        max_physical_batch_size=at_once,
        probes=asked.probes,
        folder=folder,
        resume=resume,
        checkpoint_seconds=SELDOM if steps else 30.0,
    )
    if trainer.is_world_process_zero():
        bound = f"max_grad_norm {method.max_grad_norm:g} bounds each example's gradient"
        if not math.isclose(method.max_grad_norm, args.max_grad_norm):
            bound += f" (the method's own, not the {args.max_grad_norm:g} of the arguments)"
        print(
            f"reticent: each of {rounds} steps draws {batch} of {public} examples on average, {at_once} computed at "
            f"once; {bound}; no training loss is logged",
            file=sys.stderr,
        )
    return run


def read(trainer: ReticentTrainer, asked: PrivateTerms) -> Any:
    """The training data, each record by itself, without the columns that the model does not take."""
    data, collator = trainer.train_dataset, trainer.collator_of_one
    if hasattr(data, "column_names"):
        data = trainer._remove_unused_columns(data, description="training")
    else:
        collator = trainer._get_collator_with_removed_columns(collator, description="training")
    found = examples(data, _text(trainer.processing_class), max_length=asked.max_length, collator=collator)
    workers = trainer.args.dataloader_num_workers
    return ahead(found, workers=workers) if workers else found


def _text(processing: Any) -> Any:
    """The tokenizer, if there is one: what reads pictures has no length."""
    return processing if hasattr(processing, "model_max_length") else None


def _loss(trainer: ReticentTrainer, asked: PrivateTerms) -> LossLike:
    """The loss of the model's head, or the caller's own."""
    args, loss = trainer.args, asked.loss
    if loss is None:
        loss = head_loss(trainer.model, label_smoothing=args.label_smoothing_factor)
        if loss is None and args.label_smoothing_factor:
            raise SettingError(
                f"label_smoothing_factor: no head is known of a {type(trainer.model).__name__}; give loss="
            )
    if not args.bf16:
        return loss
    if loss is None or not callable(loss):
        raise SettingError("bf16 needs a loss of the form (model, batch): give loss=")
    return Rounded(loss, trainer.args.device.type)
