"""The few lines of plain PyTorch that an exported model comes with."""

SNIPPET = '''\
"""A model trained privately: {guarantee}.

Needs torch and safetensors, not Reticent. {inputs}
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

HERE = Path(__file__).parent
CLASSES = {names}
{classes}

def load() -> nn.Module:
    """The trained network, for inputs as they were in training."""
    model = {network}
    model.load_state_dict(load_file(HERE / "model.safetensors"))
    return model.eval()
'''

READING = '''

def inputs(path: str) -> Tensor:
    """The rows of a CSV file as the model takes them."""
    from encoding import encode, read_column
    from rows import read_rows

    schema = json.loads((HERE / "{schema}").read_text())
    raw = Path(path).read_bytes()
    raw = gzip.decompress(raw) if path.endswith(".gz") else raw
    rows = list(read_rows(raw, coding=schema.get("coding"), separator=schema.get("separator")))
    names = schema.get("names") or [name.strip() for name in rows.pop(0)]
    frame = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns = {{name: read_column(name, entry) for name, entry in schema["columns"].items()}}
    return torch.from_numpy(encode(frame, columns, schema.get("missing", ())))
'''

NAMES = '''

def predict(path: str) -> list[str]:
    """The name of the class of each row."""
    with torch.no_grad():
        return [CLASSES[place] for place in load()(inputs(path)).argmax(1).tolist()]
'''

NUMBERS = '''

def predict(path: str) -> list[str]:
    """The number that is predicted for each row, in its own units."""
    span = json.loads((HERE / "schema.json").read_text())["target"]
    with torch.no_grad():
        shares = load()(inputs(path)).flatten().tolist()
    return [f"{span['low'] + (span['high'] - span['low']) * share:.6g}" for share in shares]
'''

MAIN = """

if __name__ == "__main__":
    print("\\n".join(predict(sys.argv[1])))
"""
