"""What is refused before it meets private examples, with the module and the remedy named."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from reticent.errors import ModelError
from reticent.gradients import check


def total(model, x):
    return model(x).flatten(1).square().sum(1)


class Plain(nn.Module):
    """A model from a function of its one layer and the input."""

    def __init__(self, forward):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self._forward = forward

    def forward(self, x):
        return self._forward(self.layer, x)


class Counting(nn.Module):
    """Keeps a mean of what it sees, under a name nobody would guess."""

    def __init__(self):
        super().__init__()
        self.register_buffer("impression", torch.zeros(3))

    def forward(self, x):
        if self.training:
            self.impression += 0.1 * (x.detach().mean(0) - self.impression)
        return x


class HomeMadeNorm(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1)


GOOD = {
    "linear": nn.Linear(3, 2),
    "dropout": nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)),
    "group norm": nn.Sequential(nn.Linear(3, 4), nn.GroupNorm(2, 4)),
    "weight norm": nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_models_whose_examples_are_apart_pass(name, rows):
    check(GOOD[name], total, torch.randn(rows, 3))


def test_recurrent_and_attending_models_pass():
    check(nn.GRU(3, 4, batch_first=True), lambda m, x: m(x)[0].sum((1, 2)), torch.randn(4, 5, 3))
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    check(layer, lambda m, x: m(x).square().sum((1, 2)), torch.randn(4, 5, 4))


BAD = {
    "batch norm": (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), r"module '1' \(BatchNorm1d\).*GroupNorm"),
    "batch norm, deep": (
        nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, track_running_stats=False)), nn.Linear(3, 2)),
        r"module '0.1' \(BatchNorm1d\)",
    ),
    "batch norm over processes": (nn.Sequential(nn.SyncBatchNorm(3)), r"module '0' \(SyncBatchNorm\)"),
    "instance norm with memory": (
        nn.Sequential(nn.Unflatten(1, (3, 1)), nn.InstanceNorm1d(3, affine=True, track_running_stats=True)),
        r"module '1' \(InstanceNorm1d\).*track_running_stats=False",
    ),
    "own statistics": (nn.Sequential(nn.Linear(3, 3), Counting()), r"module '1' \(Counting\).*'impression'"),
    "own batch norm": (nn.Sequential(nn.Linear(3, 3), HomeMadeNorm()), r"module '1' \(HomeMadeNorm\) mixes"),
    "between modules": (
        nn.Sequential(Plain(lambda layer, x: layer(x) - layer(x).max(0).values), nn.Tanh()),
        r"something before module '1'|module '0'",
    ),
    "sorted by value": (Plain(lambda layer, x: layer(x).sort(0).values), "mixes examples"),
    "nothing to train": (nn.Linear(3, 2).requires_grad_(False), "no trainable parameter"),
}


@pytest.mark.parametrize("name", BAD)
def test_models_that_mix_or_keep_examples_are_refused(name):
    model, says = BAD[name]
    with pytest.raises(ModelError, match=says):
        check(model, total, torch.randn(4, 3))


@pytest.mark.parametrize("setting", ["max_norm", "scale_grad_by_freq"])
def test_tables_that_look_at_the_whole_batch_are_refused(setting):
    model = nn.Sequential(nn.Embedding(5, 3, **{setting: 1}))
    with pytest.raises(ModelError, match=rf"module '0' \(Embedding\).*without {setting}"):
        check(model, total, torch.randint(5, (4, 6)))


def contrastive(model, x):
    y = functional.normalize(model(x), dim=1)
    return functional.cross_entropy(y @ y.T, torch.arange(len(x)), reduction="none")


def centred(model, x):
    losses = total(model, x)
    return losses / losses.sum()


@pytest.mark.parametrize("loss", [contrastive, centred])
def test_losses_that_mix_examples_are_refused(loss):
    with pytest.raises(ModelError, match="the loss mixes examples"):
        check(nn.Linear(3, 2), loss, torch.randn(4, 3))


@pytest.mark.parametrize(
    ("loss", "shape"),
    [
        (lambda m, x: total(m, x).mean(), r"\(\)"),
        (lambda m, x: m(x), r"\(4, 2\)"),
        (lambda m, x: total(m, x)[:3], r"\(3,\)"),
        (lambda m, x: float(total(m, x).sum()), "float"),
    ],
)
def test_losses_that_are_not_one_number_per_example_are_refused(loss, shape):
    with pytest.raises(ModelError, match=rf"shape \(4,\), got {shape}.*reduction='none'"):
        check(nn.Linear(3, 2), loss, torch.randn(4, 3))


def test_a_loss_without_gradient_is_refused():
    with pytest.raises(ModelError, match="no trainable parameter"):
        check(nn.Linear(3, 2), lambda m, x: total(m, x).detach(), torch.randn(4, 3))


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), Counting(), nn.BatchNorm1d(3)).train(training)
    model[0].weight.grad = torch.ones(3, 3)
    before = copy.deepcopy(model.state_dict())
    rng = torch.get_rng_state()
    for kept in (4, 3, 2):
        some = model[:kept]
        try:
            check(some, total, torch.randn(4, 3, generator=torch.Generator().manual_seed(1)))
        except ModelError:
            assert kept > 2
    assert torch.equal(rng, torch.get_rng_state())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(module.training is training for module in model)
    assert torch.equal(model[0].weight.grad, torch.ones(3, 3))
    assert model[0].bias.grad is None
    assert not any(module._forward_hooks for module in model.modules())


def test_batch_norm_that_a_model_holds_in_eval_mode_passes():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    check(nn.Sequential(nn.Linear(3, 3), Frozen(3)).train(), total, torch.randn(4, 3))


def per_example_mean(model, x):
    return total(model, x) / len(x)


def hardest(model, x):
    losses = total(model, x)
    return losses * (losses >= losses.topk(min(4, len(losses))).values[-1])


def batch_norm_in_large_batches(model, x):
    y = model(x)
    y = (y - y.mean(0)) / (y.std(0) + 1) if len(y) > 8 else y
    return y.square().sum(1)


def by_position(model, x):
    return total(model, x) * (1 + torch.arange(len(x)))


def weighted_by_detached_others(model, x):
    losses = total(model, x)
    return losses + 0.5 * (losses.mean() - losses.mean().detach())


def cut_at_the_batch(model, x):
    losses = total(model, x)
    return losses if len(x) < 60 else losses.clamp(max=losses.detach().median())


@pytest.mark.parametrize(
    "loss",
    [
        per_example_mean,
        hardest,
        batch_norm_in_large_batches,
        by_position,
        weighted_by_detached_others,
        cut_at_the_batch,
    ],
)
def test_mixing_that_few_equal_rows_do_not_show_is_refused(loss):
    with pytest.raises(ModelError, match="mixes examples"):
        check(nn.Linear(3, 2), loss, torch.rand(4, 3))


def test_mixing_from_a_size_on_is_found_if_that_size_is_asked_for():
    def late(model, x):
        return total(model, x) / (1 if len(x) < 100 else 2)

    check(nn.Linear(3, 2), late, torch.rand(4, 3))
    with pytest.raises(ModelError, match="the loss mixes examples"):
        check(nn.Linear(3, 2), late, torch.rand(4, 3), most=128)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 4), nn.Linear(4, 5)

    def forward(self, tokens):
        return self.out(self.words(tokens))


def token_losses(model, batch):
    tokens, labels = batch
    logits = model(tokens).flatten(0, 1)
    losses = functional.cross_entropy(logits, labels.flatten(), reduction="none", ignore_index=-100)
    return losses.view(labels.shape).sum(1)


def mean_over_all_tokens(model, batch):
    """As large libraries have it."""
    return token_losses(model, batch) / (batch[1] != -100).sum()


def mean_over_all_tokens_for_each_row(model, batch):
    """The same times the number of rows, which hides it where all rows are full."""
    return token_losses(model, batch) * len(batch[0]) / (batch[1] != -100).sum()


def mean_over_words_of_the_batch(model, batch):
    """Padding is 0 here."""
    return token_losses(model, batch) * len(batch[0]) / (batch[0] != 0).sum().clamp(min=1)


def mean_over_own_tokens(model, batch):
    return token_losses(model, batch) / (batch[1] != -100).sum(1).clamp(min=1)


TOKENS = torch.ones(4, 7, dtype=torch.int64), torch.zeros(4, 7, dtype=torch.int64)


@pytest.mark.parametrize(
    "loss", [mean_over_all_tokens, mean_over_all_tokens_for_each_row, mean_over_words_of_the_batch]
)
def test_losses_divided_by_a_count_over_the_batch_are_refused(loss):
    with pytest.raises(ModelError, match="the loss mixes examples"):
        check(Tagger(), loss, TOKENS)


def test_losses_divided_by_an_examples_own_count_pass():
    check(Tagger(), mean_over_own_tokens, TOKENS)


def rare_words_share(model, batch):
    """Only words from the middle of the table are counted over the batch."""
    counted = ((batch[0] > 20) & (batch[0] < 40)).sum()
    return token_losses(model, batch) / (1 + counted)


def test_whole_numbers_are_tried_over_the_range_a_model_takes():
    with pytest.raises(ModelError, match="the loss mixes examples"):
        check(Tagger(), rare_words_share, TOKENS)


class Ended(nn.Module):
    """Needs an end token in every row, as made-up rows do not have."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 4), nn.Linear(4, 2)

    def forward(self, tokens):
        if not (tokens == 49).any(1).all():
            raise ValueError("a row without an end token")
        return self.out(self.words(tokens).mean(1))


def test_public_rows_serve_where_made_up_ones_do_not():
    public = torch.randint(49, (5, 6))
    public[:, -1] = 49
    made = torch.ones(4, 6, dtype=torch.int64)
    with pytest.raises(ValueError, match="end token") as refused:
        check(Ended(), total, made)
    assert "probes" in refused.value.__notes__[0]
    check(Ended(), total, made, probes=public)
    with pytest.raises(ModelError, match="the loss mixes examples"):
        check(Ended(), per_example_mean, made, probes=public)


def test_lengths_of_zero_are_not_needed():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = nn.GRU(3, 2, batch_first=True)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return self.read(packed)[1][0]

    batch = torch.rand(4, 5, 3), torch.tensor([0, 1, 0, 1])
    check(Reader(), lambda model, batch: model(*batch).sum(1), batch)
    with pytest.raises(ModelError, match="the loss mixes examples"):
        check(Reader(), lambda model, batch: model(*batch).sum(1) / batch[1].float().mean(), batch)
