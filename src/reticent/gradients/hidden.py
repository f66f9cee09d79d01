"""What could not be seen in a forward pass is found in its graph: parameters used past the tape, foreign gradients."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.autograd.graph import Node

from reticent.gradients.rules.recurrent import Layer
from reticent.gradients.tape import NoRule, Tap

_OURS = (Tap, Layer)
# Kinds of nodes that torch itself wrote and that hold no leaf: they need not be asked again.
_PLAIN: set[type] = set()


def refuse_hidden(losses: Tensor, parameters: Mapping[str, nn.Parameter]) -> None:
    """Refuse a parameter that reaches the losses past the tape, as inside TorchScript, and gradients written by hand.

    A function with a backward pass of its own may send one example's gradient anywhere.
    """
    names = {id(parameter): name for name, parameter in parameters.items()}
    waiting, met = [losses.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        kind = type(node)
        if kind not in _PLAIN:
            plain = not hasattr(node, "variable") and not hasattr(node, "_forward_cls")
            if plain:
                _PLAIN.add(kind)
            else:
                _refuse(node, names)
        waiting += [before for before, _ in node.next_functions]


def _refuse(node: Node, names: Mapping[int, str]) -> None:
    name = names.get(id(getattr(node, "variable", None)))
    if name is not None:
        raise NoRule(("a hidden function", (name,)), "the use of this parameter could not be seen")
    made_by = getattr(node, "_forward_cls", None)
    if made_by is not None and made_by not in _OURS:
        raise NoRule((node.name(), ()), "its gradient is written by hand, and may mix examples")
