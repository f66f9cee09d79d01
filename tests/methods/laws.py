"""A vault, a task and a proposal whose numbers are known, for testing the laws of gates."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reticent.accounting import Ledger, Unlimited
from reticent.inside import Clip, Draw, Flat, GradientSum, Randomness, RoundSettings, Sealed, Task, Vault, as_store
from reticent.outside import Proposal


class Point(nn.Module):
    """A model that is only its parameters."""

    def __init__(self, size: int):
        super().__init__()
        self.at = nn.Parameter(torch.zeros(size))


def slope(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """The loss whose gradient, for an example x, is x itself."""
    return batch[0] @ model.at


class Law:
    """Examples with chosen gradients, and proposals that moved the parameters by a chosen amount."""

    def __init__(
        self, gradients: Tensor, *, batch_size: float | None = None, noise_multiplier: float = 1.0, seed: int = 0
    ):
        size = len(gradients)
        self.task = Task(model := Point(gradients.shape[1]), slope, Flat(model))
        self.vault = Vault(
            as_store((gradients,)),
            randomness=Randomness.from_seed(seed),
            ledger=Ledger(),
            allowance=Unlimited("a test of a law"),
        )
        self.settings = RoundSettings(size, size if batch_size is None else batch_size, 1.0, noise_multiplier)

    def proposal(
        self, here: Tensor, *, kept: int = 0, rejections: int = 0, coin: float = 0.5, **more: object
    ) -> Proposal:
        """The parameters have just moved from `before` (zero, if not said) to `here`."""
        self.task.flat.vector.copy_(here)
        nobody = Sealed(torch.zeros(1), 1.0, Draw(torch.zeros(0).numpy(), None, self.settings))  # type: ignore[arg-type]
        known: dict[str, object] = {
            "query": GradientSum(self.task, Clip(), self.settings),
            "sealed": nobody,
            "released": torch.zeros(1),
            "before": torch.zeros_like(here),
        }
        known |= more
        return Proposal(
            vault=self.vault,
            task=self.task,
            settings=self.settings,
            kept=kept,
            rejections=rejections,
            coin=coin,
            **known,  # type: ignore[arg-type]
        )
