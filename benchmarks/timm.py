"""`python -m benchmarks.timm`: small networks of timm, the path each takes, its error, its time beside SGD.

timm needs torchvision, of which the registry has no build for processors alone: `pip install timm torchvision` brings
gigabytes, so that it is in no extra of ours. Weights are by chance; nothing is fetched. XCiT is not among them: torch's
own gradient for a batch of one is not that of finite differences there (that of a batch, and vmap's, are), so that a
loop over single examples is no measure.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.huggingface import CLASSES, OUT, ROWS, examples, told

TITLE = "Small networks of timm"
SIZES = f"{ROWS} examples of 32 x 32 pixels, BatchNorm as it came; made smaller where that is one setting"
VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4}
MODELS: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": VIT,
    "deit_tiny_patch16_224": VIT,
    "deit3_small_patch16_224": VIT,
    "beit_base_patch16_224": VIT,
    "cait_xxs24_224": {**VIT, "depth_token_only": 1},
    "gmlp_ti16_224": {"img_size": 32},
    "swin_tiny_patch4_window7_224": {
        "img_size": 32,
        "patch_size": 4,
        "window_size": 2,
        "embed_dim": 16,
        "depths": (1, 1),
        "num_heads": (2, 2),
    },
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (16, 16, 32, 32)},
    "resnet10t": {},
    "regnetx_002": {},
    "regnety_002": {},
    "efficientnet_lite0": {},
    "mobilenetv2_035": {},
    "mobilenetv3_small_050": {},
}


def cross_entropy(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Each example's own."""
    return functional.cross_entropy(model(batch["pixel_values"]), batch["labels"], reduction="none")


def make(name: str) -> tuple[nn.Module, Any, dict[str, Tensor]]:
    """A network at rest, as a backbone is: its BatchNorms keep what they came with."""
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=CLASSES, **MODELS[name])
    return model.float().eval(), cross_entropy, examples("picture")


if __name__ == "__main__":
    import timm

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("reticent.gradients").setLevel(logging.ERROR)
    versions = f"torch {torch.__version__}, timm {timm.__version__}"
    told(list(MODELS), OUT.with_name("timm"), versions, whole=True, make=make, title=TITLE, sizes=SIZES)
