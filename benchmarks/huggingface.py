"""`python -m benchmarks.huggingface`: tiny Hugging Face models, the path each takes, its error, its time beside SGD.

Every model is made from a configuration, with weights by chance; nothing is fetched. `--only bert,t5` does some.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from reticent.gradients import engine, general, norms_and_sum
from reticent.inside import Loss
from reticent.losses import head_loss

LOG = logging.getLogger("reticent.gradients")
Made = Callable[[str], tuple[nn.Module, Loss, dict[str, Tensor]]]
"""A name -> a model, its loss and rows."""
OUT = Path(__file__).parent / "results" / "huggingface"
ROWS, WORDS, WIDTH, VOCABULARY, CLASSES, TURNS = 16, 32, 64, 128, 3, 5

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 2 * WIDTH,
    "max_position_embeddings": 2 * WORDS,
    "num_labels": CLASSES,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
GPT = {"n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": 2 * WORDS, "n_ctx": 2 * WORDS, "rotary_dim": 8}
BART = {
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 2 * WIDTH,
    "decoder_ffn_dim": 2 * WIDTH,
}
T5 = {"d_model": WIDTH, "d_kv": 16, "d_ff": 2 * WIDTH, "num_layers": 2, "num_heads": 4}
PICTURE = {"image_size": 32, "patch_size": 8}
STAGES = {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}
LEFT_OUT = None
"""A setting that this configuration does not take."""
HEADS = {"num_attention_heads": LEFT_OUT, "num_hidden_layers": LEFT_OUT, "hidden_size": LEFT_OUT}
SWIN = {
    **HEADS,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 2,
    "image_size": 32,
    "patch_size": 4,
}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "albert": ("classes", {"embedding_size": 32}),
    "bert": ("classes", {}),
    "camembert": ("classes", {}),
    "convbert": ("classes", {"embedding_size": WIDTH}),
    "data2vec-text": ("classes", {}),
    "deberta": ("classes", {}),
    "deberta-v2": ("classes", {}),
    "distilbert": ("classes", {"dim": WIDTH, "hidden_dim": 128, "n_layers": 2, "n_heads": 4}),
    "electra": ("classes", {"embedding_size": 32}),
    "ernie": ("classes", {}),
    "esm": ("classes", {"position_embedding_type": "rotary"}),
    "flaubert": ("classes", {"emb_dim": WIDTH, "n_layers": 2, "n_heads": 4}),
    "fnet": ("classes", {"type_vocab_size": 2}),
    "funnel": (
        "classes",
        {
            "block_sizes": [1, 1],
            "d_model": WIDTH,
            "n_head": 4,
            "d_head": 16,
            "d_inner": 128,
            "num_decoder_layers": 1,
            "num_hidden_layers": LEFT_OUT,
        },
    ),
    "ibert": ("classes", {}),
    "layoutlm": ("classes", {}),
    "longformer": ("classes", {"attention_window": 8}),
    "megatron-bert": ("classes", {}),
    "mobilebert": ("classes", {"embedding_size": 32, "intra_bottleneck_size": 32}),
    "modernbert": ("classes", {"cls_token_id": 1, "sep_token_id": 2}),
    "mpnet": ("classes", {}),
    "nystromformer": ("classes", {"num_landmarks": 32, "segment_means_seq_len": 32}),
    "rembert": ("classes", {"input_embedding_size": 32, "output_embedding_size": 32}),
    "roberta": ("classes", {}),
    "roformer": ("classes", {"embedding_size": WIDTH}),
    "squeezebert": ("classes", {"embedding_size": WIDTH}),
    "xlm": ("classes", {"emb_dim": WIDTH, "n_layers": 2, "n_heads": 4}),
    "xlm-roberta": ("classes", {}),
    "xlnet": (
        "classes",
        {"d_model": WIDTH, "n_layer": 2, "n_head": 4, "d_inner": 128, "max_position_embeddings": LEFT_OUT},
    ),
    "bert (masked words)": ("masked", {}),
    "roberta (masked words)": ("masked", {}),
    "bert (every word)": ("words", {}),
    "bert (span)": ("span", {"num_labels": 2}),
    "biogpt": ("next", {}),
    "bloom": ("next", {"n_layer": 2, "n_head": 4}),
    "codegen": ("next", GPT),
    "cohere": ("next", {}),
    "falcon": ("next", {}),
    "gemma": ("next", {"head_dim": 16}),
    "gemma2": ("next", {"head_dim": 16}),
    "glm": ("next", {"head_dim": 16}),
    "gpt2": ("next", GPT),
    "gpt_bigcode": ("next", GPT),
    "gpt_neo": (
        "next",
        {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 8},
    ),
    "gpt_neox": ("next", {}),
    "gptj": ("next", GPT),
    "granite": ("next", {}),
    "helium": ("next", {"head_dim": 16}),
    "llama": ("next", {}),
    "mistral": ("next", {}),
    "mixtral": ("next", {"num_local_experts": 4}),
    "mpt": ("next", {"d_model": WIDTH, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    "nemotron": ("next", {}),
    "olmo": ("next", {}),
    "olmo2": ("next", {}),
    "openai-gpt": ("next", GPT),
    "opt": ("next", {"ffn_dim": 128, "word_embed_proj_dim": WIDTH}),
    "persimmon": ("next", {}),
    "phi": ("next", {}),
    "phi3": ("next", {}),
    "qwen2": ("next", {}),
    "qwen2_moe": ("next", {"num_experts": 4, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}),
    "qwen3": ("next", {"head_dim": 16}),
    "smollm3": ("next", {}),
    "stablelm": ("next", {}),
    "starcoder2": ("next", {}),
    "xglm": ("next", {"d_model": WIDTH, "ffn_dim": 128, "num_layers": 2, "attention_heads": 4}),
    "bart": ("sequences", BART),
    "blenderbot-small": ("sequences", BART),
    "m2m_100": ("sequences", BART),
    "marian": ("sequences", BART),
    "mt5": ("sequences", T5),
    "pegasus": ("sequences", BART),
    "t5": ("sequences", T5),
    "whisper": ("sound", {**BART, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64}),
    "beit": ("picture", PICTURE),
    "convnext": ("picture", STAGES),
    "convnextv2": ("picture", STAGES),
    "data2vec-vision": ("picture", PICTURE),
    "deit": ("picture", {**PICTURE, "architectures": ["DeiTForImageClassification"]}),
    "dinov2": ("picture", PICTURE),
    "focalnet": (
        "picture",
        {
            "embed_dim": 16,
            "depths": [1, 1],
            "hidden_sizes": [16, 32],
            "focal_levels": [1, 1],
            "focal_windows": [3, 3],
            "image_size": 32,
        },
    ),
    "mobilenet_v2": ("picture", {"depth_multiplier": 0.25}),
    "poolformer": (
        "picture",
        {**STAGES, "num_encoder_blocks": 2, "patch_sizes": [3, 3], "strides": [2, 2], "padding": [1, 1]},
    ),
    "pvt": (
        "picture",
        {
            "image_size": 32,
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "hidden_sizes": [16, 32],
            "sequence_reduction_ratios": [2, 1],
            "patch_sizes": [4, 2],
            "strides": [4, 2],
            "num_attention_heads": [1, 2],
            "mlp_ratios": [2, 2],
        },
    ),
    "regnet": (
        "picture",
        {
            "hidden_sizes": [16, 32],
            "depths": [1, 1],
            "embedding_size": 16,
            "groups_width": 8,
            "layer_type": "x",
            **HEADS,
        },
    ),
    "resnet": ("picture", {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16, **HEADS}),
    "segformer": (
        "picture",
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [16, 32],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "num_attention_heads": [1, 2],
            "mlp_ratios": [2, 2],
        },
    ),
    "swin": ("picture", SWIN),
    "swinv2": ("picture", SWIN),
    "vit": ("picture", PICTURE),
    "vit_msn": ("picture", PICTURE),
}

AUTO = {
    "classes": "AutoModelForSequenceClassification",
    "masked": "AutoModelForMaskedLM",
    "next": "AutoModelForCausalLM",
    "words": "AutoModelForTokenClassification",
    "span": "AutoModelForQuestionAnswering",
    "sequences": "AutoModelForSeq2SeqLM",
    "sound": "AutoModelForSpeechSeq2Seq",
    "picture": "AutoModelForImageClassification",
}


def build(name: str) -> nn.Module:
    """The model, its dropout at rest."""
    import transformers

    task, settings = MODELS[name]
    own = {} if task == "picture" else SMALL
    if task == "picture":
        own = {
            key: SMALL[key]
            for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "num_labels")
        }
    config = transformers.AutoConfig.for_model(
        name.split(" ")[0], **{key: value for key, value in {**own, **settings}.items() if value is not LEFT_OUT}
    )
    torch.manual_seed(0)
    model: nn.Module = getattr(transformers, AUTO[task]).from_config(config)
    return model.float().eval()


def examples(task: str) -> dict[str, Tensor]:
    """Made-up rows; every other text is shorter than the rest, and padded."""
    rng = torch.Generator().manual_seed(1)

    def whole(high: int, *shape: int) -> Tensor:
        return torch.randint(3, high, shape, generator=rng)

    if task == "picture":
        return {"pixel_values": torch.randn(ROWS, 3, 32, 32, generator=rng), "labels": whole(6, ROWS) - 3}
    if task == "sound":
        return {"input_features": torch.randn(ROWS, 8, 32, generator=rng), "labels": whole(VOCABULARY, ROWS, 16)}
    mask = torch.ones(ROWS, WORDS, dtype=torch.int64)
    mask[1::2, WORDS // 2 :] = 0
    ids = whole(VOCABULARY, ROWS, WORDS) * mask
    batch = {"input_ids": ids, "attention_mask": mask}
    if task == "span":
        return batch | {"start_positions": whole(8, ROWS), "end_positions": whole(12, ROWS)}
    if task == "classes":
        return batch | {"labels": whole(6, ROWS) - 3}
    high = 6 if task == "words" else VOCABULARY
    labels = (whole(high, ROWS, WORDS) - 3 * (task == "words")).masked_fill(mask == 0, -100)
    return batch | {"labels": labels}


def flat(parts: Mapping[str, Tensor]) -> Tensor:
    """All numbers of a sum in one row."""
    return torch.cat([part.flatten() for part in parts.values()]).double()


def one_by_one(model: nn.Module, loss: Loss, batch: dict[str, Tensor], rows: int = ROWS) -> tuple[Tensor, Tensor]:
    """The norm of every gradient and the sum of all, each cut to length one: by a plain loop over the examples."""
    trained = [p for p in model.parameters() if p.requires_grad]
    found = []
    for row in range(rows):
        one = loss(model, {name: part[row : row + 1] for name, part in batch.items()}).sum()
        gradients = torch.autograd.grad(one, trained, allow_unused=True)
        pairs = zip(gradients, trained, strict=True)
        found.append(torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs]).double())
    written = torch.stack(found)
    norms = written.norm(dim=1)
    return norms, (written * (1 / norms).clamp(max=1)[:, None]).sum(0)


def clipped(norms: Tensor) -> Tensor:
    return (1 / norms).clamp(max=1)


def medians(*steps: Callable[[], object]) -> list[float]:
    """The median processor time of each step in seconds, the steps taking turns."""
    times: list[list[float]] = [[] for _ in steps]
    for turn in range(TURNS + 1):
        for step, taken in zip(steps, times, strict=True):
            start = time.process_time()
            step()
            if turn:
                taken.append(time.process_time() - start)
    return [median(taken) for taken in times]


class Heard(logging.Handler):
    """Keeps why a model takes the general path."""

    def __init__(self) -> None:
        super().__init__()
        self.said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said = record.getMessage().partition("slower: ")[2] or self.said


def known(name: str) -> tuple[nn.Module, Loss, dict[str, Tensor]]:
    """A model with the loss of its head, and rows."""
    model = build(name)
    loss = head_loss(model)
    assert loss is not None, "no head is known of this class"
    return model, loss, examples(MODELS[name][0])


def measured(model: nn.Module, loss: Loss, batch: dict[str, Tensor]) -> dict[str, Any]:
    """One row of the table."""
    fallen: list[bool] = []
    before = general.written_out

    def noted(*args: Any) -> Any:
        fallen.append(general.path(*args) is general.by_vmap)
        return before(*args)

    engine.general.written_out, heard = noted, Heard()
    LOG.addHandler(heard)
    try:
        norms, sums = norms_and_sum(model, loss, batch, clipped)
    finally:
        engine.general.written_out = before
        LOG.removeHandler(heard)
    truth, total = one_by_one(model, loss, batch)
    ours = flat(sums)
    error = max(float((ours - total).norm() / total.norm()), float(((norms - truth) / truth).abs().max()))

    def plain() -> None:
        model.zero_grad()
        loss(model, batch).mean().backward()

    def private() -> None:
        norms_and_sum(model, loss, batch, clipped)

    sgd, mine = medians(plain, private)
    path = "rules" if not fallen else "vmap" if fallen[0] else "loop"
    parameters = sum(p.numel() for p in model.parameters())
    return {
        "class": type(model).__name__,
        "parameters": parameters,
        "path": path,
        "why": heard.said.splitlines()[0] if heard.said else "",
        "error": error,
        "sgd": sgd,
        "ours": mine,
    }


def rows_of(names: list[str], make: Made = known) -> Iterator[dict[str, Any]]:
    for name in names:
        try:
            found = measured(*make(name))
        except Exception as reason:  # named in the table
            found = {"failed": f"{type(reason).__name__}: {reason}".splitlines()[0][:160]}
        yield {"model": name, **found}


SIZES = (
    f"{ROWS} examples, {WORDS} words (half of the texts padded) or 32 x 32 pixels, width {WIDTH}, two layers or stages"
)


def table(rows: list[dict[str, Any]], made_by: str, title: str = "Tiny Hugging Face models", sizes: str = SIZES) -> str:
    good = [row for row in rows if "failed" not in row]
    paths = {path: sum(row["path"] == path for row in good) for path in ("rules", "vmap", "loop")}
    said = ", ".join(f"{count} by {path}" for path, count in paths.items())
    lines = [
        f"# {title}",
        "",
        made_by,
        "",
        f"{sizes}, dropout at rest, one thread. `error`: the largest of the relative errors of all norms and of the "
        "clipped sum against a loop over single examples, in float32. `ratio`: processor time of norms and clipped sum "
        f"over that of a plain forward and backward pass, medians of {TURNS} turns in turn; noise and optimizer are in "
        "neither. Models this small show the cost of each call more than that of arithmetic.",
        "",
        f"{len(good)} of {len(rows)} models ran: {said}; largest error {max(row['error'] for row in good):.1e}.",
        "",
        "| model | class | parameters | path | error | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "failed" in row:
            lines.append(f"| {row['model']} | did not run: {row['failed'].replace('|', '/')} | | | | |")
            continue
        ratio = row["ours"] / row["sgd"]
        cells = [f"`{row['class']}`", row["parameters"], row["path"], f"{row['error']:.1e}", f"{ratio:.2f}"]
        lines.append(f"| {' | '.join(map(str, [row['model'], *cells]))} |")
    others = [row for row in good if row["path"] != "rules"]
    if others:
        lines += ["", "Why some do not take the rules:", ""]
        lines += [f"- {row['model']}: {row['why']}" for row in others]
    return "\n".join(lines) + "\n"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--only", default="", help="names of models, with commas")
    only = [name for name in asked.parse_args().only.split(",") if name]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    LOG.propagate = False
    import transformers

    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    told(
        only or list(MODELS), OUT, f"torch {torch.__version__}, transformers {transformers.__version__}", whole=not only
    )


def told(names: list[str], out: Path, versions: str, *, whole: bool, make: Made = known, **said: str) -> None:
    """Measure and print; the whole list is written down beside `out`, as lines of JSON and as a table."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    rows = []
    for row in rows_of(names, make):
        rows.append({**row, "commit": commit})
        print(json.dumps(row), flush=True)
    if whole:
        out.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        out.with_suffix(".md").write_text(
            table(rows, f"`python -m benchmarks.{out.name}` at commit {commit}, {versions}.", **said)
        )


if __name__ == "__main__":
    main()
