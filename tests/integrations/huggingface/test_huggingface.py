"""Hugging Face: each example's own loss, a public length, a Trainer that refuses to leak, adapters in their format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import reticent as rt
from reticent.certificate import verify
from reticent.errors import ModelError, SettingError
from reticent.gradients import check, norms_and_sum
from reticent.gradients.planning import _plans
from reticent.inside import as_store
from reticent.losses import head_loss, per_example

transformers = pytest.importorskip("transformers", reason="the extra reticent[hf] is not installed")
peft = pytest.importorskip("peft", reason="the extra reticent[hf] is not installed")
pytest.importorskip("datasets", reason="the extra reticent[hf] is not installed")

from tests.integrations.huggingface import tiny  # noqa: E402

from reticent.integrations import huggingface as hf  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*loss_type.*"),
]
ALL = np.arange(6)


def words(kind: str) -> dict[str, Tensor]:
    """Six padded texts, with labels of the kind that a head learns."""
    batch = hf.examples(tiny.texts(6), max_length=tiny.LENGTH).take(ALL)
    if kind != "classes":
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return batch


HEADS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "classes": (tiny.bert, "classes"),
    "tokens": (tiny.masked, "words"),
    "next token": (tiny.gpt2, "words"),
    "sequence to sequence": (tiny.t5, "words"),
}


@pytest.mark.parametrize("head", HEADS)
def test_each_example_has_the_loss_it_has_alone(head: str) -> None:
    """And that is the library's own of a batch of one, whose tokens are all the batch has."""
    make, kind = HEADS[head]
    model, batch = make().eval(), words(kind)
    loss = head_loss(model)
    assert loss is not None
    assert loss.head == head
    together = loss(model, batch)
    rows = [{name: part[row : row + 1] for name, part in batch.items()} for row in range(6)]
    theirs = torch.stack([model(**row).loss for row in rows])
    torch.testing.assert_close(together, theirs)
    torch.testing.assert_close(torch.cat([loss(model, row) for row in rows]), theirs)


def test_labels_are_smoothed_for_each_example_as_the_library_does_for_one() -> None:
    model, batch = tiny.gpt2().eval(), words("words")
    row = {name: part[:1] for name, part in batch.items()}
    smoother = transformers.trainer_pt_utils.LabelSmoother(epsilon=0.1)
    wanted = smoother(model(**row), row["labels"], shift_labels=True)
    smoothed = head_loss(model, label_smoothing=0.1)
    assert smoothed is not None
    torch.testing.assert_close(smoothed(model, batch)[0], wanted)


def over_all_words(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The library's loss as one number for each example: each sum over the words of the whole batch."""
    logits = model(input_ids=batch["input_ids"]).logits[:, :-1]
    labels = batch["labels"][:, 1:]
    each = functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return each.sum(1) / (labels != -100).sum() * len(labels)


def test_a_loss_over_the_words_of_the_batch_is_caught() -> None:
    model, batch = tiny.gpt2(), words("words")
    with pytest.raises(ModelError, match="mixes examples"):
        check(model, over_all_words, batch, probes=batch)


def test_the_head_of_a_model_is_its_loss_where_none_is_given() -> None:
    model, batch = tiny.gpt2(), words("words")
    found = per_example(None, model, batch)
    assert isinstance(found, hf.HeadLoss)
    assert found.head == "next token"


def test_padded_texts_take_the_fast_path_and_give_the_same_as_a_loop() -> None:
    """A mask that the library leaves out where nobody is padded would be a branch by all examples together."""
    model, batch = tiny.bert().eval(), words("classes")
    loss = head_loss(model)
    assert loss is not None
    norms, _ = norms_and_sum(model, loss, batch, torch.ones_like)
    assert all(entry.plan is not None for entry in _plans[model].values())
    for row in range(6):
        one = loss(model, {name: part[row : row + 1] for name, part in batch.items()}).sum()
        parts = torch.autograd.grad(one, list(model.parameters()), allow_unused=True)
        torch.testing.assert_close(norms[row], torch.stack([p.norm() for p in parts if p is not None]).norm())


def test_examples_in_every_form_are_the_same() -> None:
    rows = [{"input_ids": row["input_ids"][:2], "label": row["label"]} for row in tiny.texts(6)]
    import datasets

    wanted = torch.tensor([row["input_ids"] for row in rows])
    columns = {"input_ids": wanted, "label": torch.tensor([row["label"] for row in rows])}
    listed = datasets.Dataset.from_list(rows)
    for form in (rows, listed, listed.with_format("torch"), columns, transformers.BatchEncoding(columns)):
        store = as_store(form)
        assert len(store) == 6
        assert torch.equal(store.take(ALL)["input_ids"], wanted)
    model = tiny.bert()
    assert rt.evaluating.predict(model, listed).shape == (6, 2)
    assert rt.evaluating.evaluate(model, listed) == rt.evaluating.evaluate(model, columns)


@pytest.mark.parametrize("collated", ["plainly", "by the tokenizer"])
def test_every_record_has_the_public_length_whoever_it_is_drawn_with(collated: str) -> None:
    made = tiny.tokenizer()
    collator = None if collated == "plainly" else transformers.DataCollatorWithPadding(made)
    store = hf.examples(tiny.texts(20), made, max_length=6, collator=collator)
    alone = [store.take(np.array([row])) for row in range(20)]
    together = store.take(np.arange(20))
    for name, part in together.items():
        assert torch.equal(part, torch.cat([row[name] for row in alone])), name
    assert together["input_ids"].shape == together["attention_mask"].shape == (20, 6)
    assert together["attention_mask"].sum(1).tolist() == [min(6, 2 + row % 7) for row in range(20)]


def test_a_record_that_cannot_be_read_teaches_nothing() -> None:
    store = hf.examples([*tiny.texts(3), {"input_ids": ["?"], "label": 0}], max_length=4)
    batch, model = store.take(np.arange(4)), tiny.bert()
    loss = head_loss(model)
    assert loss is not None
    assert batch["labels"].tolist() == [0, 1, 0, -100]
    assert loss(model, batch)[3] == 0


def test_a_length_must_be_public() -> None:
    with pytest.raises(SettingError, match="max_length"):
        hf.examples(tiny.dataset().remove_columns("text"))
    assert hf.examples(tiny.texts(), tiny.tokenizer()).take(ALL)["input_ids"].shape == (6, tiny.LENGTH)


def arguments(folder: Path, **settings: Any) -> Any:
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
    sizes = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2, "max_steps": 3, "learning_rate": 0.01}
    return transformers.TrainingArguments(str(folder), **{**quiet, **sizes, **settings})


def trainer(folder: Path, model: nn.Module | None = None, said: Any = None, **settings: Any) -> hf.ReticentTrainer:
    private = {"noise_multiplier": 1.0, "delta": 1e-4, "max_length": tiny.LENGTH, "seed": 0}
    made = arguments(folder, **(said or {}))
    model = tiny.bert() if model is None else model
    return hf.ReticentTrainer(model=model, args=made, train_dataset=tiny.dataset(), **{**private, **settings})


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"train_sampling_strategy": "group_by_length"}, "group_by_length"),
        ({"auto_find_batch_size": True}, "auto_find_batch_size"),
        ({"include_num_input_tokens_seen": "all"}, "how many words were drawn"),
        ({"gradient_checkpointing": True}, "per_device_train_batch_size"),
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"neftune_noise_alpha": 5.0}, "neftune"),
        ({"eval_strategy": "steps", "eval_steps": 1}, "public_eval=True"),
        ({"eval_on_start": True}, "public_eval=True"),
        (
            {"load_best_model_at_end": True, "eval_strategy": "steps", "save_steps": 1, "eval_steps": 1},
            "load_best_model_at_end",
        ),
    ],
)
def test_what_would_leak_is_refused_before_the_start(tmp_path: Path, said: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        trainer(tmp_path, said=said, eval_dataset=tiny.dataset(4))
    assert not (tmp_path / "run").exists()


def test_a_loss_of_a_batch_and_the_training_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="one number for each example"):
        trainer(tmp_path, compute_loss_func=lambda *_: torch.zeros(()))

    class Own(hf.ReticentTrainer):
        def compute_loss(self, *args: Any, **settings: Any) -> Any:
            return super().compute_loss(*args, **settings)

    with pytest.raises(SettingError, match="one number for each example"):
        Own(model=tiny.bert(), args=arguments(tmp_path), train_dataset=tiny.dataset(), epsilon=1.0)

    class Steps(hf.ReticentTrainer):
        def training_step(self, *args: Any, **settings: Any) -> Any:
            return super().training_step(*args, **settings)

    with pytest.raises(SettingError, match="training_step of Steps"):
        Steps(model=tiny.bert(), args=arguments(tmp_path), train_dataset=tiny.dataset(), epsilon=1.0)
    mine = trainer(tmp_path, public_eval=True)
    for ask in (mine.evaluate, mine.predict):
        with pytest.raises(SettingError, match="training data are private"):
            ask(mine.train_dataset)
    with pytest.raises(SettingError, match="secret key"):
        mine.push_to_hub()
    with pytest.raises(SettingError, match="nothing was trained"):
        _ = mine.guarantee


def test_a_model_that_computes_parts_again_is_refused(tmp_path: Path) -> None:
    model = tiny.bert()
    model.gradient_checkpointing_enable()
    with pytest.raises(ModelError, match="gradient checkpointing is on"):
        trainer(tmp_path, model).train()


class Seen(transformers.TrainerCallback):
    def __init__(self) -> None:
        self.events: list[str] = []

    def on_step_begin(self, *_args: Any, **_more: Any) -> None:
        self.events.append("begin")

    def on_step_end(self, *_args: Any, **_more: Any) -> None:
        self.events.append("end")


def test_an_adapter_is_trained_privately_and_saved_in_its_own_format(tmp_path: Path) -> None:
    model = peft.get_peft_model(
        tiny.bert(), peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"], lora_dropout=0.0)
    )
    before = {name: part.detach().clone() for name, part in model.named_parameters()}
    said = {"save_steps": 2, "eval_strategy": "steps", "eval_steps": 2}
    public = {"eval_dataset": tiny.dataset(8), "public_eval": True}
    mine = trainer(tmp_path / "out", model, said, callbacks=[seen := Seen()], **public)
    told = mine.train()
    moved = {name for name, part in model.named_parameters() if not torch.equal(part, before[name])}
    assert moved == {name for name, part in model.named_parameters() if part.requires_grad}
    assert 0 < len(moved) < len(before)
    assert seen.events == ["begin", "end"] * 3
    assert told.global_step == 3
    assert np.isnan(told.training_loss)
    assert mine.run is not None
    assert mine.run.plan.settings.batch_size == 16
    assert mine.guarantee.status == "proved"
    keys = {name for line in mine.state.log_history for name in line}
    assert {"eval_loss", "epsilon_so_far", "learning_rate"} <= keys
    assert not keys & {"loss", "train_loss", "grad_norm"}, "nothing pays for them"
    assert (tmp_path / "out" / "checkpoint-3" / "adapter_model.safetensors").exists()

    for holding in (tmp_path / "out", tmp_path / "out" / "run"):
        with pytest.raises(SettingError, match="secret key"):
            mine.save_pretrained(holding)
    folder = mine.save_pretrained(tmp_path / "hub")
    assert not list(folder.rglob("*private*"))
    assert not (folder / "training_args.bin").exists()
    front = (folder / "README.md").read_text().split("---")[1]
    stated = {line.split(": ", 1)[0]: json.loads(line.split(": ", 1)[1]) for line in front.strip().splitlines()}
    assert stated["library_name"] == "peft"
    assert stated["differential_privacy"]["epsilon"] == mine.guarantee.epsilon
    assert str(mine.guarantee) in (folder / "README.md").read_text()
    assert verify(folder).wrong == []
    with open(folder / "adapter_model.safetensors", "ab") as weights:
        weights.write(b"0")
    assert verify(folder).wrong == ["weights"]
    mine.save_pretrained(folder)
    again = peft.PeftModel.from_pretrained(tiny.bert(), folder)
    batch = {name: part for name, part in words("classes").items() if name != "labels"}
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(**batch).logits, model.eval()(**batch).logits)
