"""Tiny models of many kinds take the rules, and give what a loop over single examples gives."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from benchmarks import huggingface as models

from reticent.gradients import norms_and_sum

KINDS = {
    "eager masks, and a gradient written by hand": "bloom",
    "token types that are the same for all": "megatron-bert",
    "a bias for each pair of positions": "t5",
    "a bias for each pair, in windows": "swin",
    "positions by brackets": "whisper",
    "statistics at rest": "resnet",
    "depthwise convolutions": "convnext",
    "Fourier transforms": "fnet",
    "a layer that only zeros come to": "funnel",
    "places looked up by name": "m2m_100",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_takes_the_rules(kind, caplog):
    name = KINDS[kind]
    model, batch = models.build(name), models.examples(models.MODELS[name][0])
    few = {key: part[:4] for key, part in batch.items()}
    loss = models.head_loss(model)
    norms, sums = norms_and_sum(model, loss, few, models.clipped)
    truth, total = models.one_by_one(model, loss, few, rows=4)
    assert not [record for record in caplog.records if record.name == "reticent.gradients"]
    assert float(((norms - truth) / truth).abs().max()) < 1e-5
    ours = models.flat(sums)
    assert float((ours - total).norm() / total.norm()) < 1e-5
