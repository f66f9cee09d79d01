"""Tiny models, texts and a tokenizer, all made here: nothing is fetched."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WORDS, LENGTH = 40, 8


def bert(**settings: Any) -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(**_small(), num_labels=2, **settings))


def masked() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    return BertForMaskedLM(BertConfig(**_small()))


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    special = dict.fromkeys(("bos_token_id", "eos_token_id"), 1)
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_embd=16, n_layer=1, n_head=2, n_positions=16, **special))


def t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(vocab_size=WORDS, decoder_start_token_id=0, pad_token_id=0, **sizes))


def _small() -> dict[str, int]:
    return {
        "vocab_size": WORDS,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 16,
    }


def texts(count: int = 60) -> list[dict[str, Any]]:
    """Texts of 2 to 8 words; those of the second class have words of their own."""
    rng = torch.Generator().manual_seed(1)
    found = []
    for row in range(count):
        label, length = row % 2, 2 + row % (LENGTH - 1)
        words = torch.randint(5, 20, (length,), generator=rng) + 18 * label
        found.append({"input_ids": words.tolist(), "label": label})
    return found


def dataset(count: int = 60) -> Any:
    """The same as a `datasets.Dataset`, with a column that no model takes."""
    import datasets

    return datasets.Dataset.from_list([{**row, "text": "secret"} for row in texts(count)])


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {"[PAD]": 0, "[MASK]": 1, "[UNK]": 2, **{f"w{i}": i for i in range(3, WORDS)}}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    special = {"pad_token": "[PAD]", "mask_token": "[MASK]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=LENGTH, **special)
