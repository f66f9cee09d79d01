"""Features of a dataset by a public extractor, computed once and kept on disk, for their owner only.

An extractor maps each example by itself with public weights, so features cost no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from reticent.data.examples import Dataset, Examples
from reticent.data.features.beside import beside
from reticent.data.features.deskew import Deskew
from reticent.data.features.frozen import Frozen
from reticent.data.features.hashing import PAIRS, WORDS, hashes, present
from reticent.data.features.kept import kept
from reticent.data.features.patches import RandomPatches, few
from reticent.data.features.pretrained import LITE0, efficientnet_lite0
from reticent.data.features.scattering import Scattering
from reticent.data.features.threads import threads_inside
from reticent.data.features.two_scales import GROUPS, TwoScales
from reticent.data.features.vectors import MEANS, mean_vectors
from reticent.data.features.whitened import Whitened, photographs, writing
from reticent.data.loading.arrays import Array, fingerprint
from reticent.data.texts import Texts, as_texts
from reticent.errors import DataError, ModelError, UnknownName

Extractor = Callable[[Tensor], Tensor]
Progress = Callable[[int, int], None]

_BATCH = 64
_OURS = Scattering | TwoScales | Whitened | RandomPatches
"""Known by their settings, and safe to run side by side."""
NORMALISED = "scattering-normalised"
WHITENED: dict[str, Callable[[tuple[int, int, int]], Extractor]] = {
    "scattering-whitened": Whitened,
    "scattering-photos": photographs,
    "scattering-strokes": writing,
    "patches": RandomPatches,
    "patches-1000": few,
}
SCALED = (NORMALISED, "scattering-two-scales", *WHITENED)
"""Whose numbers have their sizes already, each image by itself: no released statistics go with them."""
NAMES = ("scattering", *SCALED, "deskew", LITE0, WORDS, PAIRS, *MEANS)


def extract(
    dataset: Dataset,
    extractor: str | Extractor,
    *,
    key: str | None = None,
    progress: Progress | None = None,
    folder: str | Path | None = None,
) -> Dataset:
    """The dataset with every input replaced by its features; `progress(done, total)` is told as it goes.

    docs/features.md has all names: `"scattering"` and its kin, `"deskew"`, `"efficientnet-lite0"` for images,
    `"hashed-words"`, `"hashed-ngrams"`, `"glove-mean"`, `"wordllama"` for texts. Names joined by `+` follow one
    another; those joined by `|` stand side by side, each scaled to the same length. A module or function may be given
    instead: features of a module are cached under its weights, those of a function only if `key` names it. A module is
    taken in evaluation mode, and what mixes examples is refused. Vectors of words are read from the data `folder`.

    >>> from reticent.data import load
    >>> extract(load("digits"), lambda images: images.flatten(1)).inputs
    (64,)
    """
    found = _extract(dataset, extractor, key, progress, folder)
    return replace(found, made_of=dataset.made_of or dataset.inputs)


def _extract(
    dataset: Dataset,
    extractor: str | Extractor,
    key: str | None,
    progress: Progress | None,
    folder: str | Path | None,
) -> Dataset:
    if isinstance(extractor, str) and "|" in extractor:
        names = [name.strip() for name in extractor.split("|")]
        return beside(dataset, names, [extract(dataset, name, progress=progress, folder=folder) for name in names])
    if isinstance(extractor, str) and "+" in extractor:
        for name in extractor.split("+"):
            dataset = extract(dataset, name, progress=progress, folder=folder)
        return dataset
    if isinstance(extractor, str) and (asked := hashes(extractor)) is not None:
        kind, buckets = asked
        found = _of_texts(dataset, f"{kind} in {buckets:,} buckets", partial(present, kind=kind, buckets=buckets))
        return replace(found, buckets=buckets)
    if isinstance(extractor, str) and extractor in MEANS:
        means = partial(mean_vectors, name=extractor, folder=folder)
        return _of_texts(dataset, extractor, means, MEANS[extractor][1])
    if extractor == NORMALISED:
        plain = extract(dataset, "scattering", progress=progress)
        return extract(plain, nn.GroupNorm(GROUPS[2], plain.inputs[0], affine=False), progress=progress)
    transform = _named(extractor, dataset) if isinstance(extractor, str) else extractor
    label = key or _describe(transform)
    parts = [part for part in (dataset.train, dataset.test) if part is not None]
    told = _Counter(sum(len(part) for part in parts), progress)
    made_with = transform.stands_on if isinstance(transform, Frozen) else ()
    with _evaluated(transform):
        if not isinstance(extractor, str):
            _refuse_mixing(transform, dataset.train.x)
        parts = [_transform(part, transform, label, told) for part in parts]
    train, *test = (replace(part, stands_on=part.stands_on + made_with) for part in parts)
    named = extractor if extractor == LITE0 else " ".join(repr(transform).split())[:80]
    note = "; ".join([dataset.note, f"features per example by {named}", *made_with])
    return replace(dataset, train=train, test=test[0] if test else None, note=note)


def _of_texts(dataset: Dataset, what: str, make: Callable[[Texts], Tensor], *stands_on: str) -> Dataset:
    """Made anew in a second or two every time: nothing of it is kept on disk."""

    def of(part: Examples) -> Examples:
        if part.texts is None:
            raise DataError(f"{what} needs texts, and {dataset.name} has none")
        return replace(part, x=make(part.texts), texts=None, stands_on=part.texts.assumes + stands_on)

    train, test = of(dataset.train), None if dataset.test is None else of(dataset.test)
    note = "; ".join([dataset.note, f"{what}, of whole texts", *train.stands_on])
    return replace(dataset, train=train, test=test, note=note)


def features_of(x: Tensor, names: str, made_of: Sequence[int] | None = None) -> Tensor:
    """The named features of some inputs, which must have the shape that a model's features were `made_of`, if said.

    >>> features_of(torch.rand(2, 1, 8, 8), "deskew").shape
    torch.Size([2, 1, 8, 8])
    """
    if made_of is not None and list(x.shape[1:]) != list(made_of):
        raise DataError(
            f"this model was trained on features of inputs of the shape {tuple(made_of)}, and these have "
            f"{tuple(x.shape[1:])}: bring them into that shape first"
        )
    rows = Examples(x, torch.zeros(len(x), dtype=torch.int64))
    return extract(Dataset("new inputs", rows, None, 2, ""), names).train.x


def text_features(texts: Iterable[str], names: str) -> Tensor:
    """The named features of some texts, as they are made of a dataset's.

    >>> text_features(["a good film", "bad"], "hashed-words-100").shape
    torch.Size([2, 512])
    """
    found = as_texts(texts)
    rows = Examples(torch.zeros(len(found), 1), torch.zeros(len(found), dtype=torch.int64), texts=found)
    return extract(Dataset("new texts", rows, None, 2, ""), names).train.x


def are_of_texts(names: str) -> bool:
    """Whether features are made of whole texts.

    >>> are_of_texts("hashed-words"), are_of_texts("deskew+scattering"), are_of_texts("glove-mean|glove-mean-50")
    (True, False, True)
    """
    return all(hashes(name) is not None or name in MEANS for name in map(str.strip, names.split("|")))


def _named(name: str, dataset: Dataset) -> Extractor:
    if name not in NAMES:
        raise UnknownName("features", name, list(NAMES))
    if len(dataset.inputs) != 3:
        raise DataError(f"{name} needs images; inputs of {dataset.name} have the shape {dataset.inputs}")
    if name == LITE0:
        if dataset.inputs[0] not in (1, 3):
            raise DataError(f"{name} needs images of 1 or 3 colours; those of {dataset.name} have {dataset.inputs[0]}")
        return efficientnet_lite0()
    if name == "deskew":
        return Deskew()
    colours, height, width = dataset.inputs
    if name in WHITENED:
        return WHITENED[name]((colours, height, width))
    return (Scattering if name == "scattering" else TwoScales)((height, width))


def _describe(extract: Extractor) -> str | None:
    """What identifies the extractor's answers: its settings and weights; None if that cannot be known."""
    if isinstance(extract, _OURS):
        return repr(extract)
    if isinstance(extract, nn.Module):
        weights = [f"{name}:{fingerprint(value.cpu().numpy())}" for name, value in extract.state_dict().items()]
        turned = ["evaluated"] if extract.training else []  # once they were taken in the mode that they were in
        return "\n".join([repr(extract), *weights, *turned])
    return None


class _Counter:
    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self.progress = 0, total, progress

    def add(self, rows: int) -> None:
        self.done += rows
        if self.progress is not None:
            self.progress(self.done, self.total)


def _transform(part: Examples, extract: Extractor, label: str | None, told: _Counter) -> Examples:
    shape = (len(part), *_apply(extract, part.x[:1]).shape[1:])
    if label is None:
        answers = np.empty(shape, np.float32)
        _fill(answers, part.x, extract, told)
        return replace(part, x=torch.from_numpy(answers))
    identity = f"{label}\n{fingerprint(part.x.numpy())}"
    fill = partial(_fill, x=part.x, extract=extract, told=told)
    return replace(part, x=kept(identity, shape, fill, partial(told.add, len(part))))


@contextmanager
def _evaluated(extract: Extractor) -> Iterator[None]:
    """A module is in evaluation mode inside, where batch statistics mix no examples and nothing is dropped."""
    modules = list(extract.modules()) if isinstance(extract, nn.Module) else []
    before = [module.training for module in modules]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module, mode in zip(modules, before, strict=True):
            module.training = mode


def _refuse_mixing(extract: Extractor, x: Tensor) -> None:
    """Refuse an extractor that says something else of a made-up row among others than of the row alone."""
    rows = torch.rand((5, *x.shape[1:]), generator=torch.Generator().manual_seed(0))
    rows = (rows if x.is_floating_point() else rows.round()).to(x.dtype)  # words 0 and 1, where inputs are words
    try:
        together, alone = _apply(extract, rows), [_apply(extract, row[None]) for row in rows]
    except Exception:  # not for rows like these: what is wrong with it shows with real ones
        return
    if together.ndim < 2 or len(together) != len(rows) or any(len(one) != 1 for one in alone):
        raise ModelError(f"features must be one row for each example: 5 examples gave shape {tuple(together.shape)}")
    apart = (together - torch.cat(alone)).abs().max()
    if apart > 1e-3 * together.abs().max():
        raise ModelError(
            "the features of one example change with the other examples of its batch, or by chance: no epsilon would "
            "cover them. Compute each example by itself, with numbers that are public"
        )


def _apply(extract: Extractor, x: Tensor) -> Tensor:
    with torch.no_grad():
        return extract(x).float()


def _fill(answers: Array, x: Tensor, extract: Extractor, told: _Counter) -> None:
    def work(start: int) -> int:
        batch = _apply(extract, x[start : start + _BATCH])
        answers[start : start + _BATCH] = batch.numpy()
        return len(batch)

    # Batches side by side scale better than threads inside each small transform; a user's own extractor may not be
    # safe to run twice at once.
    workers = torch.get_num_threads() if isinstance(extract, _OURS) else 1
    with threads_inside(1 if workers > 1 else torch.get_num_threads()), ThreadPoolExecutor(workers) as pool:
        for rows in pool.map(work, range(0, len(x), _BATCH)):
            told.add(rows)
