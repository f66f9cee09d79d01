"""Views: several views of each example, whose gradients are averaged before the bound (De et al. 2022).

The mean over an example's views is one gradient that is made of this example alone, and it is bounded as such: the
price is that of the examples themselves, however many views there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import DataError, SettingError, require
from reticent.gradients.batches import map_tensors
from reticent.gradients.grouped import Grouped, flattened
from reticent.inside.store import Batch

Numbers = NDArray[np.int64]
PIXELS, COPIES = 64, 256
"""The most that images are shifted by, and the most views: each costs a pass through the model."""


@dataclass(frozen=True)
class Views:
    """An image as it is, and other views of it: mirrored, shifted by up to `shift` pixels each way, or both.

    Without shifts there are two, the image and its mirror image. With shifts, coins of each example and round decide
    about all but the first; they follow from the run's key and the number of the example.

    >>> Views.of("mirror+shift=2+count=8")
    Views(mirror=True, shift=2, count=8)
    """

    mirror: bool = False
    shift: int = 0
    count: int = 2

    def __post_init__(self) -> None:
        require(self.mirror or self.shift > 0, "views are made by mirror, by shift=PIXELS, or by both")
        require(0 <= self.shift <= PIXELS, f"shift is a number of pixels up to {PIXELS}, not {self.shift}")
        require(2 <= self.count <= COPIES, f"count is the number of views, 2 to {COPIES}, not {self.count}")
        require(
            self.shift > 0 or self.count == 2, "an image and its mirror image are 2 views: say shift=PIXELS for more"
        )

    @classmethod
    def of(cls, said: str | Views | None) -> Views | None:
        """Views in words, such as "mirror" or "mirror+shift=4+count=8"."""
        if said is None or isinstance(said, Views):
            return said
        require(isinstance(said, str), f'views are said in words, as in "mirror+shift=4+count=8", not {said!r}')
        found: dict[str, int] = {}
        for word in said.split("+"):
            name, _, number = word.strip().partition("=")
            if name not in ("mirror", "shift", "count") or (name == "mirror") != (number == "") or name in found:
                raise SettingError(
                    f"views are said as mirror, shift=4, mirror+shift=4 or shift=4+count=8, not {said!r}"
                )
            try:
                found[name] = int(number or 1)
            except ValueError as error:
                raise SettingError(f"{name} of views is a whole number, not {number!r}") from error
        return cls(bool(found.get("mirror")), found.get("shift", 0), found.get("count", 2))

    def __str__(self) -> str:
        shifted = [f"shift={self.shift}", f"count={self.count}"] if self.shift else []
        return "+".join([*(["mirror"] if self.mirror else []), *shifted])

    def seen(self, batch: Batch, index: Numbers, secret: int) -> Grouped:
        """Every example of a batch with all its views, by the example's number and the secret of the round.

        >>> seen = Views(mirror=True).seen((torch.tensor([[[1, 2]]]), torch.tensor([7])), np.array([0]), secret=0)
        >>> seen.rows[0].tolist(), seen.rows[1].tolist(), seen.weights.tolist()
        ([[[[1, 2]], [[2, 1]]]], [[7, 7]], [[0.5, 0.5]])
        """
        weights = batch.weights if isinstance(batch, Grouped) else torch.ones(len(index), 1)
        rows = flattened(batch) if isinstance(batch, Grouped) else batch
        each = weights.shape[1]
        number = (index[:, None] * 2**20 + np.arange(each)[None, :]).reshape(-1)
        made = self._of_rows(rows, number, secret)
        shape = len(index), each * self.count
        return Grouped(
            map_tensors(made, lambda part: part.reshape(*shape, *part.shape[2:])),
            (weights[:, :, None] / self.count).expand(-1, -1, self.count).reshape(shape),
        )

    def _of_rows(self, rows: Batch, number: Numbers, secret: int) -> Batch:
        """Tensors of [rows, views, ...]."""
        images, rest = _parted(rows)
        views = [images]
        for view in range(1, self.count):
            turned, down, right = self._coins(number, view, secret)
            moved = shifted(images, down, right) if self.shift else images
            mirrored = turned.reshape(-1, *[1] * (images.ndim - 1)).to(images.device)
            views.append(torch.where(mirrored, moved.flip(-1), moved))
        again = map_tensors(rest, lambda part: part[:, None].expand(-1, self.count, *[-1] * (part.ndim - 1)))
        seen = torch.stack(views, 1)
        return seen if isinstance(rows, Tensor) else type(rows)([seen, *again])

    def _coins(self, number: Numbers, view: int, secret: int) -> tuple[Tensor, Tensor, Tensor]:
        """Whether to mirror, and how far to shift, for each row: by its number, whoever else is drawn."""
        if not self.shift:
            return torch.ones(len(number), dtype=torch.bool), torch.zeros(0), torch.zeros(0)
        words = mixed(number.astype(np.uint64) * np.uint64(COPIES) + np.uint64(view), secret)
        turned = torch.from_numpy((words >> np.uint64(63)).astype(np.int64)).bool() & self.mirror
        wide = np.uint64(2 * self.shift + 1)
        ways = [(words >> np.uint64(at)) % np.uint64(2**24) % wide for at in (0, 24)]
        down, right = (torch.from_numpy(way.astype(np.int64)) - self.shift for way in ways)
        return turned, down, right


def shifted(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Each image moved by its own number of pixels; what comes in from outside is its edge.

    >>> shifted(torch.tensor([[[1, 2, 3]]]), torch.tensor([0]), torch.tensor([1]))
    tensor([[[1, 1, 2]]])
    """
    height, width = images.shape[-2:]
    flat = images.reshape(len(images), -1, height, width)
    rows = (torch.arange(height)[None, :] - down[:, None]).clamp(0, height - 1)
    columns = (torch.arange(width)[None, :] - right[:, None]).clamp(0, width - 1)
    here, channels = torch.arange(len(flat))[:, None, None, None], torch.arange(flat.shape[1])[None, :, None, None]
    return flat[here, channels, rows[:, None, :, None], columns[:, None, None, :]].reshape(images.shape)


def mixed(numbers: NDArray[np.uint64], secret: int) -> NDArray[np.uint64]:
    """Sixty-four bits for each number: coins that decide about views, on which no privacy rests (splitmix64)."""
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        found = (numbers + np.uint64(1)) * step + np.uint64(secret)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)))


def _parted(rows: Batch) -> tuple[Tensor, list[Batch]]:
    """The images of a batch, and the rest."""
    first, *rest = [rows] if isinstance(rows, Tensor) else rows if type(rows) in (tuple, list) else [None]
    if not isinstance(first, Tensor) or first.ndim < 3 or math.prod(first.shape[-2:]) < 2:
        form = tuple(first.shape[1:]) if isinstance(first, Tensor) else type(rows).__name__
        raise DataError(
            f"views are made of images, the first of a tuple such as (images, labels), with height and width as their "
            f"last axes; an example has the form {form}"
        )
    return first, rest


def viewable(said: str | Views | None, made_up: Batch) -> Views | None:
    """The views that were asked for; refuses examples that there are none of, before anything is drawn."""
    views = Views.of(said)
    if views is not None:
        _parted(made_up)
    return views
