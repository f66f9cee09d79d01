"""What the form of the first record says of all: which fields are sequences, and the line that pads them."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from torch import Tensor

from reticent.inside.store import Batch, Mapped, Store


def as_padded(form: Batch) -> str:
    """The line to write where the records of this form have many lengths; empty where no field can have.

    >>> import torch
    >>> as_padded((torch.zeros(1, 7, 3), torch.zeros(1)))
    'For sequences of many lengths write rt.fit(model, rt.data.padded(examples, {"0": (LENGTH, 3)}), ...)'
    """
    padded = padding(form, "examples")
    return f"For sequences of many lengths write rt.fit(model, {padded}, ...)" if padded else ""


def padding(form: Batch, name: str) -> str:
    """The call that pads records of this form, which have this name.

    >>> import torch
    >>> padding({"ids": torch.zeros(1, 7, dtype=torch.long)}, "texts")
    'rt.data.padded(texts, LENGTH)'
    """
    found = {field: part for field, part in _fields(form).items() if part.ndim in (2, 3)}
    if not found:
        return ""
    said = ", ".join(f'"{field}": {_length(part)}' for field, part in found.items())
    each = any(part.is_floating_point() for part in found.values())
    return f"rt.data.padded({name}, {'{' + said + '}' if each else 'LENGTH'})"


def say_one_form(examples: Store) -> None:
    """One line where records seem to be sequences as they are: by the first one's form, which is public."""
    if type(examples) is not Mapped:
        return
    parts = _fields(examples.form).values()
    if any(part.ndim == (3 if part.is_floating_point() else 2) for part in parts):
        print(
            "reticent: records of other shapes than the first count for nothing (check_data=True looks whether there "
            f"are any). {as_padded(examples.form)}",
            file=sys.stderr,
        )


def _fields(form: Batch) -> dict[str, Tensor]:
    if isinstance(form, Tensor):
        return {"0": form}
    pairs = form.items() if isinstance(form, Mapping) else enumerate(form)
    return {str(name): part for name, part in pairs if isinstance(part, Tensor)}


def _length(part: Tensor) -> str:
    return f"(LENGTH, {part.shape[2]})" if part.is_floating_point() and part.ndim == 3 else "LENGTH"
