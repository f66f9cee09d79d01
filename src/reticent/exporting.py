"""Export: a trained model for those who do not have Reticent."""

from __future__ import annotations

import copy
import inspect
import json
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from reticent.data.loading.opening import STORED
from reticent.data.tables import encoding, rows
from reticent.data.tables.schema import Schema
from reticent.errors import ModelError, SettingError
from reticent.files import make_folder, replace_file
from reticent.models.activations import TemperedSigmoid
from reticent.models.normalising import Centre, Fill, PublicNormalise
from reticent.models.presence import PresenceLinear
from reticent.models.whitening import Whiten
from reticent.snippet import MAIN, NAMES, NUMBERS, READING, SNIPPET
from reticent.trained import Trained

Form = Literal["plain", "torch-export", "torchscript", "onnx"]
FORMS: tuple[Form, ...] = get_args(Form)
OWN = (TemperedSigmoid, Centre, Fill, PublicNormalise, PresenceLinear, Whiten)


def export(trained: Trained, folder: str | Path, form: str = "plain", *, example: Tensor | None = None) -> Path:
    """Write a model so that it can be used without Reticent, and say which file to begin with.

    `plain` is the weights with a few lines of PyTorch that build the network, read tables and predict; the others are
    one file each, for which `example` is an input of the model, where it does not say itself what it takes.

    >>> import tempfile, reticent as rt
    >>> data = torch.rand(100, 4), torch.randint(0, 2, (100,))
    >>> trained = rt.fit(nn.Sequential(nn.Linear(4, 2)), data, noise_multiplier=2.0, epochs=1, seed=0)
    >>> export(trained, tempfile.mkdtemp()).name
    'model.py'
    """
    place = Path(folder)
    make_folder(place)
    if form == "plain":
        return _plain(trained, place)
    if form not in FORMS:
        raise SettingError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
    model, row = copy.deepcopy(trained.model).eval(), _example(trained, example)  # a copy: weights of one's own memory
    if form == "torch-export":
        return _exported(model, row, place / "model.pt2")
    return _onnx(model, row, place / "model.onnx") if form == "onnx" else _traced(model, row, place / "model.pt")


def _plain(trained: Trained, place: Path) -> Path:
    network = written(trained.model)
    read = trained.preprocessing
    classes = sorted({type(layer) for layer in trained.model.modules() if isinstance(layer, OWN)}, key=OWN.index)
    features = trained.about.get("network", {}).get("features")
    text = SNIPPET.format(
        guarantee=str(trained.guarantee),
        inputs=f"Its inputs are the features {features!r} of Reticent." if features else "",
        classes="".join(f"\n\n{inspect.getsource(kind).rstrip()}\n" for kind in classes),
        network=network,
        names=(list(read.classes) or None) if read is not None else None,
    )
    trained.save(place)  # weights, card, and how the examples were read
    if isinstance(read, Schema):
        for source in (Path(inspect.getfile(module)) for module in (encoding, rows)):
            replace_file(place / source.name, source.read_bytes())
        text += READING.format(schema=STORED) + (NUMBERS if read.target is not None else NAMES) + MAIN
    replace_file(place / "model.py", text.encode())
    return place / "model.py"


def written(layer: nn.Module) -> str:
    """A network as the expression that builds it.

    >>> written(nn.Sequential(nn.Linear(4, 2), nn.Tanh()))
    'nn.Sequential(nn.Linear(in_features=4, out_features=2, bias=True), nn.Tanh())'
    """
    if type(layer) is nn.Sequential:
        return f"nn.Sequential({', '.join(written(part) for part in layer)})"
    if isinstance(layer, PublicNormalise):
        count = layer.mean.numel()
        return f"PublicNormalise(torch.zeros({count}), torch.ones({count}), dimensions={layer.mean.ndim})"
    if isinstance(layer, Centre | Fill):
        return f"{type(layer).__name__}({tuple(layer.mean.shape)})"
    if isinstance(layer, Whiten):
        return f"Whiten({layer.shape})"
    if isinstance(layer, PresenceLinear):
        return f"PresenceLinear({len(layer.weight) - 1}, {len(layer.bias)})"
    if isinstance(layer, TemperedSigmoid):
        return repr(layer)
    if type(layer).__module__.startswith("torch.nn.") and _says_itself(layer):
        return f"nn.{layer!r}"
    raise ModelError(
        f"a {type(layer).__name__} cannot be written down in a few lines: choose another form "
        f"({', '.join(FORMS[1:])}), or take model.safetensors, whose weights load into your own class"
    )


def _says_itself(layer: nn.Module) -> bool:
    """Whether what a layer prints builds the same layer."""
    try:
        again: nn.Module = eval(f"nn.{layer!r}", {"nn": nn})
    except Exception:
        return False
    shapes = ({name: part.shape for name, part in one.state_dict().items()} for one in (layer, again))
    return (
        repr(again) == repr(layer) and len({json.dumps({n: list(s) for n, s in each.items()}) for each in shapes}) == 1
    )


def _example(trained: Trained, example: Tensor | None) -> Tensor:
    """Two rows of the model's inputs, made up if their shape is known."""
    if example is not None:
        return example
    known = trained.about.get("network", {}).get("inputs") or next(
        filter(None, (trained.about.get(name) for name in ("inputs", "normalised", "whitened", "filled"))), None
    )
    if known is None:
        raise SettingError("what does the model take? Give example=, a made-up input of two rows")
    if (buckets := trained.about.get("network", {}).get("buckets")) is not None:
        return torch.arange(known[0]).clamp(max=buckets).repeat(2, 1)
    return torch.rand(2, *known)


def _exported(model: nn.Module, row: Tensor, path: Path) -> Path:
    rows = torch.export.Dim("rows", min=1)
    program = torch.export.export(model, (row,), dynamic_shapes=({0: rows},))
    torch.export.save(program, path)
    return path


def _traced(model: nn.Module, row: Tensor, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch prefers torch.export by now
        torch.jit.save(torch.jit.trace(model, (row,)), path)  # type: ignore[no-untyped-call]
    return path


def _onnx(model: nn.Module, row: Tensor, path: Path) -> Path:
    absent = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if absent:
        raise ModelError(f"ONNX needs the package {' and '.join(absent)}: pip install 'reticent[onnx]'")
    shapes = ({0: torch.export.Dim("rows", min=1)},)  # or it would take as many rows as the example has, and no others
    named = partial(torch.onnx.export, input_names=["inputs"], output_names=["answers"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of PyTorch's own parts
        named(model, (row,), path, dynamo=True, dynamic_shapes=shapes, verbose=False)
    return path
