"""Heads: the loss of a model whose class says what it is for, as those of the Hugging Face libraries do.

Their own loss divides by the tokens of the whole batch, which mixes examples; here each example has the mean over its
own tokens. Labels of -100 are left out, as there.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent.errors import DataError, ModelError
from reticent.gradients.recomputing import keeps
from reticent.inside import Batch
from reticent.losses.calling import called, logits_of, parted
from reticent.losses.derived import derived_by_torch
from reticent.losses.masks import whole_masks

IGNORED = -100
"""The label of what is not to be learned."""

Head: TypeAlias = Literal["next token", "tokens", "sequence to sequence", "classes", "choice", "span"]

_BY_NAME: tuple[tuple[str, Head], ...] = (
    ("ForCausalLM", "next token"),
    ("LMHeadModel", "next token"),
    ("ForMaskedLM", "tokens"),
    ("ForTokenClassification", "tokens"),
    ("ForSequenceClassification", "classes"),
    ("ForImageClassification", "classes"),
    ("ForAudioClassification", "classes"),
    ("ForVideoClassification", "classes"),
    ("ForMultipleChoice", "choice"),
    ("ForNextSentencePrediction", "choice"),
    ("ForQuestionAnswering", "span"),
)
_GENERATING = ("ForConditionalGeneration", "ForSeq2SeqLM", "MTModel", "LMHeadModel", "EncoderDecoderModel")
_OWN_SHIFT = ("mbart", "plbart")


def inner(model: nn.Module) -> nn.Module:
    """The model itself, without what an adapter library puts around it.

    >>> inner(nn.Identity())
    Identity()
    """
    base = getattr(model, "get_base_model", None)
    found = base() if callable(base) else model
    return found if isinstance(found, nn.Module) else model


def head_of(model: nn.Module) -> Head | None:
    """What the class of a model says that it is for; None where it says nothing.

    >>> head_of(nn.Linear(2, 2)) is None
    True
    """
    found = inner(model)
    config, name = getattr(found, "config", None), type(found).__name__
    if config is None:
        return None
    if getattr(config, "is_encoder_decoder", False) and any(name.endswith(end) for end in _GENERATING):
        return "sequence to sequence"
    return next((head for end, head in _BY_NAME if name.endswith(end)), None)


def head_loss(model: nn.Module, *, label_smoothing: float = 0.0) -> HeadLoss | None:
    """The loss that the class of a model asks for, one number for each example; None where it says nothing."""
    head = head_of(model)
    if head is None:
        return None
    problem = getattr(getattr(inner(model), "config", None), "problem_type", None)
    return HeadLoss(head, label_smoothing, problem)


@dataclass(frozen=True, eq=False)
class HeadLoss:
    """The loss of a model's head, of the form (model, batch); the mean over an example's own tokens."""

    head: Head
    smoothing: float = 0.0
    problem: str | None = None
    """For classes: what the model's configuration says that they are."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example."""
        inputs, target = self.apart(model, batch)
        with ExitStack() as ways:
            if not _recomputes(model):
                ways.enter_context(whole_masks())
                ways.enter_context(derived_by_torch())
            answer = called(model, _without_cache(model, inputs))
        return self._span(answer, target) if self.head == "span" else self.of(logits_of(answer), target)

    def apart(self, model: nn.Module, batch: Batch) -> tuple[Batch, Batch]:
        """What the model is given, and what its answers are compared with."""
        if self.head == "span":
            names = ("start_positions", "end_positions")
            if not isinstance(batch, Mapping) or any(name not in batch for name in names):
                raise DataError(f"{type(inner(model)).__name__} learns spans: give {' and '.join(names)} by name")
            return {name: part for name, part in batch.items() if name not in names}, [batch[name] for name in names]
        inputs, target = parted(batch)
        if self.head == "sequence to sequence" and isinstance(inputs, Mapping) and "decoder_input_ids" not in inputs:
            inputs = {**inputs, "decoder_input_ids": _shifted(model, target)}
        return inputs, target

    def aligned(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Each answer beside the target that it is for: that of a token is the next one, where that is learned."""
        if self.head == "next token":
            target = target[:, 1:]
            return logits[:, -target.shape[1] - 1 : -1], target  # what a learned prompt puts in front is no answer
        if self.head in ("tokens", "sequence to sequence"):
            return logits[:, -target.shape[1] :], target
        return logits, target

    def of(self, logits: Tensor, target: Tensor) -> Tensor:
        """One number for each example, from all of a model's answers."""
        logits, target = self.aligned(logits, target)
        if self.head in ("classes", "choice"):
            return self._classes(logits, target)
        each = functional.cross_entropy(
            logits.transpose(1, 2), target, reduction="none", ignore_index=IGNORED, label_smoothing=self.smoothing
        )
        return each.sum(1) / (target != IGNORED).sum(1).clamp(min=1)

    def _classes(self, logits: Tensor, target: Tensor) -> Tensor:
        several = self.problem == "multi_label_classification" or (target.ndim == 2 and target.is_floating_point())
        if self.head == "classes" and (self.problem == "regression" or logits.shape[1:] == (1,)):
            return (logits.flatten(1) - target.reshape(len(logits), -1).to(logits.dtype)).square().mean(1)
        if self.head == "classes" and several:
            bce = functional.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")
            return bce.mean(1)
        return functional.cross_entropy(
            logits, target, reduction="none", ignore_index=IGNORED, label_smoothing=self.smoothing
        )

    def _span(self, answer: Any, target: Batch) -> Tensor:
        found = []
        for logits, place in zip((answer.start_logits, answer.end_logits), target, strict=True):
            inside = torch.where((place >= 0) & (place < logits.shape[1]), place, IGNORED)
            found.append(functional.cross_entropy(logits, inside, reduction="none", ignore_index=IGNORED))
        return (found[0] + found[1]) / 2

    def about(self) -> dict[str, str | None]:
        """In plain words, for the folder of a model."""
        kinds = {"regression": "regression", "multi_label_classification": "binary"}
        task = None if self.head == "span" else kinds.get(str(self.problem), "classes")
        return {"name": str(self), "task": task, "answers": "values" if task == "regression" else "logits"}

    def __str__(self) -> str:
        return f"the loss of its head ({self.head})"


def _without_cache(model: nn.Module, inputs: Batch) -> Batch:
    """Keys and values kept for the next token are of no use in training."""
    if isinstance(inputs, Mapping) and "use_cache" in inspect.signature(inner(model).forward).parameters:
        return {**inputs, "use_cache": False}
    return inputs


def _recomputes(model: nn.Module) -> bool:
    """Whether a part of the pass is run again in the backward pass, where the masks must be the same."""
    return not keeps() and any(
        vars(part).get("gradient_checkpointing") is True and part.training for part in model.modules()
    )


def _shifted(model: nn.Module, target: Tensor) -> Tensor:
    """What a decoder is given: the labels, one step later."""
    config = getattr(inner(model), "config", None)
    start, pad = getattr(config, "decoder_start_token_id", None), getattr(config, "pad_token_id", None)
    if start is None or pad is None or getattr(config, "model_type", "") in _OWN_SHIFT:
        raise ModelError(
            "the decoder's inputs do not follow from the labels by the model's configuration alone: set its "
            "decoder_start_token_id and pad_token_id, or give decoder_input_ids, as "
            "DataCollatorForSeq2Seq(tokenizer, model=model) makes them"
        )
    before = torch.cat([torch.full_like(target[:, :1], start), target[:, :-1]], 1)
    return torch.where(before == IGNORED, pad, before)
