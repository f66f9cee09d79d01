"""Reading: a tokenised dataset as examples of one public length, each record collated by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import default_data_collator

from reticent.data.loading.padding import Padded, padded
from reticent.errors import DataError, SettingError

UNLIMITED = 100_000
"""A tokenizer without a limit says a number beyond all lengths."""


def examples(
    dataset: object,
    tokenizer: object = None,
    *,
    max_length: int | Mapping[str, int] | None = None,
    collator: Callable[[list[Any]], Any] | None = None,
) -> Padded:
    """A tokenised dataset for `rt.fit` or `rt.Run`: every record padded, or cut, to a length that is public.

    `max_length` is that length (or one for each field, by name); if it is not said, it is the tokenizer's own. Labels
    of words are padded by -100, which no loss counts. The collator sees one record at a time: what it pads to the
    longest of a batch is padded to the same length for all.

    >>> rows = [{"input_ids": [5, 6, 7], "label": 1}, {"input_ids": [8], "label": 0}]
    >>> batch = examples(rows, max_length=4).take(torch.arange(2).numpy())
    >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist(), batch["labels"].tolist()
    ([[5, 6, 7, 0], [8, 0, 0, 0]], [[1, 1, 1, 0], [1, 0, 0, 0]], [1, 0])
    """
    token = getattr(tokenizer, "pad_token_id", None) or 0
    pad = {
        "input_ids": token,
        "decoder_input_ids": token,
        "labels": -100,
        "token_type_ids": getattr(tokenizer, "pad_token_type_id", 0),
        "special_tokens_mask": 1,
    }
    length = public_length(dataset, tokenizer) if max_length is None else max_length
    return padded(dataset, length, collate_fn=_Alone(collator or default_data_collator), pad=pad)


def public_length(dataset: object, tokenizer: object) -> int | Mapping[str, int]:
    """The length that the tokenizer declares; none is needed where no field is said to be of many lengths."""
    limit = getattr(tokenizer, "model_max_length", None)
    if isinstance(limit, int) and limit < UNLIMITED:
        return limit
    if tokenizer is not None or any(_open(feature) for feature in _features(dataset).values()):
        raise SettingError(
            "how long may a text be? Say it with max_length=: every record is padded or cut to it. The longest record "
            "of the data would tell its length"
        )
    return {}


def _features(dataset: object) -> Mapping[str, object]:
    found = getattr(dataset, "features", None)
    return found if isinstance(found, Mapping) else {}


def _open(feature: object) -> bool:
    """Whether a column of lists is not of one length, as its schema has it."""
    return hasattr(feature, "feature") and getattr(feature, "length", -1) == -1


@dataclass(frozen=True, eq=False)
class Collated:
    """A collator of public records, by which these get the same length as those that are trained on."""

    tokenizer: object
    max_length: int | Mapping[str, int]
    collator: Callable[[list[Any]], Any]

    def __call__(self, records: list[Any]) -> object:
        """The records as one batch."""
        found = examples(records, self.tokenizer, max_length=self.max_length, collator=self.collator)
        return found.take(np.arange(len(records)))


@dataclass(frozen=True, eq=False)
class _Alone:
    """A collator, asked for one record; where it tells no words from padding, all of the record's are words."""

    collator: Callable[[list[Any]], Any]

    def __call__(self, records: list[Any]) -> dict[str, Tensor]:
        batch = self.collator(records)
        if not isinstance(batch, Mapping):
            raise DataError("the collator must give a dict of tensors by name")
        found = {str(name): part for name, part in batch.items() if isinstance(part, Tensor)}
        ids = found.get("input_ids")
        if ids is not None and "attention_mask" not in found:
            found["attention_mask"] = torch.ones_like(ids)
        return found
