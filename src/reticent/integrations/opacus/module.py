"""The model as a loop calls it: what it is given of a private batch is written down, anything else just passes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from reticent.gradients.batches import map_tensors
from reticent.inside.guard import Guard
from reticent.integrations.opacus.listening import Note, Value, called_model, notes_of, picked, plain, turn_of, wrapped
from reticent.integrations.opacus.validators import ModuleValidator

PREFIX = "_module."


class GradSampleModule(nn.Module):
    """A pass-through of Opacus' shape: the model is `_module`, and so begin the names in its state_dict.

    >>> list(GradSampleModule(nn.Linear(2, 1)).state_dict())
    ['_module.weight', '_module.bias']
    """

    def __init__(self, module: nn.Module, *_args: Value, **_settings: Value):
        super().__init__()
        self._module = module
        self._watch: Guard | None = None

    def forward(self, *args: Value, **kwargs: Value) -> Value:
        """What the model answers; of a private batch without gradients, which the private step takes by itself."""
        turn = turn_of(args, kwargs)
        if turn is None:
            if self.training:  # what is given here may be private too, and a BatchNorm would remember it
                ModuleValidator.validate(self._module, strict=True)
            return self._module(*args, **kwargs)
        if self._watch is None:
            self._watch = Guard(self._module)
        followed = torch.is_grad_enabled()
        with self._watch(), torch.no_grad():
            answer = self._answer(plain(args), plain(kwargs), turn.rows)
        made = Note(called_model, notes_of(args), notes_of(kwargs), turn, (-1,), followed)

        def note(value: Tensor, path: tuple[object, ...]) -> Note:
            return Note(picked, (made, *path), {}, turn, tuple(value.shape), followed) if path else made

        return wrapped(answer, note)

    def _answer(self, args: tuple[Value, ...], kwargs: Mapping[str, Value], rows: int) -> Value:
        if rows:
            return self._module(*args, **kwargs)
        one = map_tensors((args, dict(kwargs)), _one_row)  # few models answer for no rows
        return map_tensors(self._module(*one[0], **one[1]), lambda part: part[:0])

    def __getattr__(self, name: str) -> Value:
        """What the model has."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_module"), name)

    def to_standard_module(self) -> nn.Module:
        """The model itself."""
        return self._module

    def load_state_dict(self, state_dict: Mapping[str, Value], *args: Value, **kwargs: Value) -> Value:
        """Load weights by names with the prefix or without."""
        if not any(name.startswith(PREFIX) for name in state_dict):
            state_dict = {PREFIX + name: part for name, part in state_dict.items()}
        return super().load_state_dict(state_dict, *args, **kwargs)


def _one_row(part: Tensor) -> Tensor:
    return part.new_zeros(1, *part.shape[1:]) if part.ndim and part.shape[0] == 0 else part
