"""Large batches in little memory: a draw is shown in parts, and the step is taken with the last of them."""

from __future__ import annotations

from reticent.errors import require
from reticent.integrations.opacus.loader import DPDataLoader
from reticent.integrations.opacus.optimizer import DPOptimizer


class BatchMemoryManager:
    """A block in which no more than so many examples are shown, and held, at a time.

    `optimizer.step()` is called for every part, as in Opacus, and moves the weights after the last part of a draw.
    """

    def __init__(self, *, data_loader: DPDataLoader, max_physical_batch_size: int, optimizer: DPOptimizer):
        require(
            max_physical_batch_size >= 1, f"max_physical_batch_size must be 1 or more, not {max_physical_batch_size}"
        )
        self._loader, self._most, self._optimizer = data_loader, max_physical_batch_size, optimizer
        self._before: int | None = None

    def __enter__(self) -> DPDataLoader:
        loop = self._optimizer._loop
        self._before, loop.most = loop.most, self._most
        return self._loader

    def __exit__(self, *_error: object) -> None:
        self._optimizer._loop.most = self._before
