"""What methods are called in print."""

from __future__ import annotations

PRINTED = {
    "plain": "Without privacy",
    "dpsgd": "DP-SGD",
    "dpadam": "DP-Adam",
    "dpsur": "DPSUR",
    "sa_dpsgd": "SA-DPSGD",
    "dpis": "DPIS",
    "dpsign_sgd": "DPSignSGD",
    "dpsign_adam": "DPSignAdam",
    "pd_sgd": "PD-SGD",
    "auto_s": "AUTO-S",
    "noise_decay": "Noise decay",
    "dpagd": "DPAGD",
    "advreg": "AdvReg",
    "selena": "SELENA",
}


def printed(label: str) -> str:
    """A label as the papers write it; a variant keeps what distinguishes it.

    >>> printed("dpsgd"), printed("dpsur-smooth"), printed("dpsgd-2x-gradients")
    ('DP-SGD', 'DPSUR smooth', 'DP-SGD 2x gradients')
    """
    method, _, variant = label.partition("-")
    return " ".join([PRINTED.get(method, method), *variant.split("-")]).strip()
