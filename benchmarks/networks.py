"""Networks of Hugging Face as cases: 16 examples of 64 words or 32 x 32 pixels, width 128, two layers, random weights.

`python -m benchmarks --networks` runs them; with `+lora` in the name only small factors of the projections are trained.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.models import CASES, Case

WORDS, WIDTH, LENGTH, ROWS, CLASSES = 1000, 128, 64, 16, 3
TEXT: dict[str, Any] = {
    "vocab_size": WORDS + 1,
    "pad_token_id": WORDS,  # no text has it
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 4 * WIDTH,
    "max_position_embeddings": 80,
    "num_labels": CLASSES,
}
PICTURE = {name: TEXT[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_labels")} | {
    "intermediate_size": 4 * WIDTH,
    "image_size": 32,
    "patch_size": 4,
}
STAGES = {"num_labels": CLASSES, "hidden_sizes": [32, 64, 128], "depths": [2, 2, 2], "num_stages": 3, "patch_size": 2}
SWIN = {"num_labels": CLASSES, "embed_dim": 64, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
OWN: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": WIDTH, "hidden_dim": 4 * WIDTH, "n_layers": 2, "n_heads": 4},
    "gpt2": {"n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": 80},
    "roberta": {"max_position_embeddings": WORDS + 80},  # they begin after the number of the padding
    "opt": {"ffn_dim": 4 * WIDTH, "word_embed_proj_dim": WIDTH},
    "mixtral": {"num_local_experts": 4},
    "t5": {
        "d_model": WIDTH,
        "d_ff": 4 * WIDTH,
        "d_kv": 32,
        "num_layers": 2,
        "num_heads": 4,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    },
    "whisper": {
        "d_model": WIDTH,
        "encoder_layers": 2,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 4 * WIDTH,
        "num_mel_bins": 16,
        "max_source_positions": LENGTH,
    },
    "vit": PICTURE,
    "convnext": STAGES,
    "swin": SWIN | {"image_size": 32, "patch_size": 2},
}
LORA = {"bert": ["query", "value"], "gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"]}
PLACED = {"bert": ["token_type_ids"], "roberta": ["token_type_ids"], "gpt2": []}
PICTURES = ("vit", "convnext", "swin")
TEXTS = (
    "bert", "roberta", "gpt2", "llama", "qwen2", "distilbert", "opt", "t5", "mixtral", "deberta", "deberta-v2",
)  # fmt: skip


class Logits(nn.Module):
    """A network of Hugging Face that takes one tensor and gives what it says of each class."""

    def __init__(self, network: nn.Module, kind: str):
        super().__init__()
        self.network, self.kind = network, kind

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "t5":
            return self.network(x, decoder_input_ids=x).logits[:, -1, :CLASSES]  # type: ignore[no-any-return]
        own = {}
        if self.kind in PLACED:  # Opacus needs them of every example
            own = {name: torch.zeros_like(x) for name in PLACED[self.kind]}
            own["position_ids"] = torch.arange(LENGTH).expand_as(x)
        return self.network(x, **own).logits  # type: ignore[no-any-return]


def network(name: str) -> nn.Module:
    """The network without dropout, in training, since Opacus sees no other."""
    import transformers

    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    kind, _, adapter = name.partition("+")
    own = {} if kind in PICTURES else TEXT
    config = transformers.AutoConfig.for_model(kind, **{**own, **OWN.get(kind, {})})
    for setting, value in config.to_dict().items():
        if isinstance(value, float) and "drop" in setting:
            setattr(config, setting, 0.0)
    if kind == "whisper":
        model: nn.Module = transformers.WhisperForAudioClassification(config)
    elif kind == "t5":
        model = transformers.T5ForConditionalGeneration(config)
    else:
        task = "Image" if kind in PICTURES else "Sequence"
        model = getattr(transformers, f"AutoModelFor{task}Classification").from_config(config)
    if adapter:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=8, target_modules=LORA[kind], task_type="SEQ_CLS"))
    return Logits(model.float().train(), kind)


def _case(name: str) -> Case:
    build: Callable[[], nn.Module] = partial(network, name)
    if name in PICTURES:
        return Case(build, (3, 32, 32), ROWS, classes=CLASSES)
    if name == "whisper":
        return Case(build, (16, 2 * LENGTH), ROWS, classes=CLASSES)
    return Case(build, (LENGTH,), ROWS, classes=CLASSES, words=WORDS)


NETWORKS = {name: _case(name) for name in (*TEXTS, "whisper", *PICTURES, *(f"{kind}+lora" for kind in LORA))}
CASES |= NETWORKS
