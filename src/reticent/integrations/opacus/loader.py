"""The loader as a loop iterates over it: the run's own draws, copied, as the user's loader reads them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

from reticent.errors import DataError, SettingError
from reticent.gradients.batches import map_tensors, tensors
from reticent.inside import Batch, Store, as_store
from reticent.inside.ahead import Ahead
from reticent.inside.shown import Recalled
from reticent.integrations.opacus.listening import Value
from reticent.integrations.opacus.own_loop import OwnLoop

SEEN = 64
"""So many records are looked at before the run, to see whether a collate function gives them all one shape."""


class DPDataLoader:
    """A loader of Opacus' shape: as many batches an epoch as the user's has, each a Poisson draw."""

    def __init__(self, loader: DataLoader[Value], loop: OwnLoop, steps: int):
        self.dataset, self.batch_size = loader.dataset, loader.batch_size
        self.collate_fn, self.num_workers = loader.collate_fn, loader.num_workers
        self.sample_rate = 1 / steps
        self._loop, self._steps = loop, steps

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self._steps):
            yield from self._loop.batches()


@dataclass(frozen=True, eq=False)
class Rows:
    """The records of a dataset, each as the user's collate function makes a batch of it alone."""

    dataset: Value
    collate: Callable[[list[Value]], Batch]

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Batch:
        return map_tensors(self.collate([self.dataset[number]]), lambda part: part[0])


def steps_in(loader: DataLoader[Value], size: int) -> int:
    """How many batches the loader would make of so many examples."""
    batch = loader.batch_size or 1
    return max(1, size // batch if loader.drop_last else -(-size // batch))


def refuse_other_draws(loader: DataLoader[Value], *, poisson: bool) -> None:
    """Refuse what cannot be replaced by Poisson draws without changing who takes part."""
    if not isinstance(loader, DataLoader):
        raise SettingError(f"data_loader is a {type(loader).__name__}: give the torch.utils.data.DataLoader")
    if not poisson:
        raise SettingError(
            "poisson_sampling=False: no proof covers shuffled batches at the price of Poisson draws, which Opacus "
            "states for them. Leave it out, and draws are Poisson"
        )
    if isinstance(loader.dataset, IterableDataset):
        raise DataError(
            "the dataset is iterable: a private draw must be able to pick any example; give a map-style one"
        )
    if loader.batch_size is None or type(loader.batch_sampler) is not BatchSampler:
        raise SettingError(
            "the loader has a batch_sampler of its own, which a Poisson draw would replace: leave it out"
        )
    sampler = loader.sampler
    if type(sampler) not in (RandomSampler, SequentialSampler) or getattr(sampler, "replacement", False):
        raise SettingError(
            f"the loader draws by {type(sampler).__name__}, and the price of a step holds for Poisson draws of all "
            "examples alike: leave out sampler= (for a part of the examples give a Subset of the dataset)"
        )
    if getattr(sampler, "_num_samples", None) is not None:
        raise SettingError(
            "the loader's sampler takes num_samples of the examples: give a Subset of the dataset instead"
        )


def store_of(loader: DataLoader[Value]) -> Recalled:
    """The examples as the loader reads them."""
    examples: Value = loader.dataset
    if type(examples) is TensorDataset and loader.collate_fn is default_collate:
        examples = examples.tensors
    elif loader.collate_fn is not default_collate:
        examples = Rows(examples, loader.collate_fn)
        _refuse_ragged(examples)
    read: Store = as_store(Ahead(examples, loader.num_workers) if loader.num_workers else examples)
    return Recalled(read)


def _refuse_ragged(examples: Rows) -> None:
    shapes = {tuple(tuple(part.shape) for part in tensors(examples[row])) for row in range(min(SEEN, len(examples)))}
    if len(shapes) > 1:
        raise DataError(
            "the collate function gives single records of different shapes: padded to the longest of a batch, what an "
            "example gives would depend on the others that are drawn. Cut and pad every record to one fixed length"
        )


def say_draws(loader: DataLoader[Value], steps: int) -> None:
    """One line about what became of the sampler."""
    print(
        f"reticent: the loader's batches of {loader.batch_size} become Poisson draws: every example by a coin of its "
        f"own, with chance 1/{steps}; a batch may be larger, smaller or empty",
        file=sys.stderr,
    )
