"""What the entry promises, whatever the model: micro-batches, odd batches, bad examples, nothing left behind."""

from __future__ import annotations

import copy
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from gradient_oracle import assert_exact, clip, each_row, error, loop, loss_of
from torch import nn
from torch.nn import functional

from reticent.errors import ModelError
from reticent.gradients import norms, norms_and_sum


def network():
    images = [nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Softplus()]
    return nn.Sequential(*images, nn.Flatten(), nn.Linear(64, 3), nn.LayerNorm(3))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(9, 4), nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, tokens):
        return self.out(self.lstm(self.words(tokens))[0])


CASES = {"images": (network, lambda n: torch.randn(n, 2, 4, 4)), "words": (Reader, lambda n: torch.randint(9, (n, 5)))}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_micro_batches_change_nothing_but_memory(name, limit):
    build, examples = CASES[name]
    model, x = build().double(), examples(7)
    x = x.double() if x.is_floating_point() else x
    whole = norms_and_sum(model, loss_of, x, clip)
    cut = norms_and_sum(model, loss_of, x, clip, max_physical_batch_size=limit)
    torch.testing.assert_close(whole, cut, rtol=1e-11, atol=1e-12)


def test_weigh_sees_every_norm_once_and_in_order():
    seen = []

    def weigh(found):
        seen.append(found)
        return clip(found)

    found, _ = norms_and_sum(network(), loss_of, torch.randn(7, 2, 4, 4), weigh, max_physical_batch_size=3)
    assert [len(part) for part in seen] == [3, 2, 2]
    assert torch.equal(torch.cat(seen), found)


def test_an_empty_batch_gives_no_norm_and_a_zero_sum():
    found, sums = norms_and_sum(network(), loss_of, torch.empty(0, 2, 4, 4), clip)
    assert found.shape == (0,)
    assert all((value == 0).all() for value in sums.values())


def test_one_example_alone_is_exact():
    assert_exact(network(), torch.randn(1, 2, 4, 4))


def test_the_sum_is_added_to_the_tensors_given():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    _, sums = norms_and_sum(model, loss_of, x, clip)
    flat = torch.ones(8)
    into = {"weight": flat[:6].view(2, 3), "bias": flat[6:]}
    _, given = norms_and_sum(model, loss_of, x, clip, into=into)
    assert given["bias"] is into["bias"]
    torch.testing.assert_close(flat, torch.cat([sums["weight"].flatten(), sums["bias"]]) + 1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 1e38])
def test_an_example_without_a_finite_norm_touches_no_other(name, limit, poison):
    build, examples = CASES[name]
    model, x = build(), examples(6)
    scale = torch.ones(6)

    def loss(model, batch):
        return loss_of(model, batch[0]) * batch[1]

    good = torch.tensor([0, 1, 2, 4, 5])
    _, clean = norms_and_sum(model, loss, (x[good], scale[good]), clip)
    scale[3] = poison
    found, sums = norms_and_sum(model, loss, (x, scale), clip, max_physical_batch_size=limit)
    assert not found[3].isfinite()
    assert found[good].isfinite().all()
    for key, value in clean.items():
        torch.testing.assert_close(sums[key], value)


def test_a_bad_first_example_does_not_spoil_the_plan(caplog):
    model, x = network(), torch.randn(6, 2, 4, 4)
    x[:3] = float("nan")
    norms(model, loss_of, x)
    x = torch.randn(6, 2, 4, 4)
    assert error(norms_and_sum(model, loss_of, x, clip), each_row(model, loss_of, x)) < 1e-5
    assert not caplog.records


def test_batches_may_be_nested():
    model, x, y = nn.Linear(3, 2), torch.randn(4, 3), torch.randint(2, (4,))

    def nested(model, batch):
        return functional.cross_entropy(model(batch["in"][0]), batch["label"], reduction="none")

    flat = norms(model, lambda m, b: functional.cross_entropy(m(b[0]), b[1], reduction="none"), (x, y))
    torch.testing.assert_close(norms(model, nested, {"in": [x], "label": y}), flat)


def test_rows_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match=r"first axis.*\(4, 3\), \(5,\)"):
        norms(nn.Linear(3, 2), loss_of, (torch.randn(4, 3), torch.zeros(5)))


def test_a_model_without_trainable_parameters_is_refused():
    with pytest.raises(ModelError, match="no trainable parameter"):
        norms(nn.Linear(3, 2).requires_grad_(False), loss_of, torch.randn(4, 3))


@pytest.mark.parametrize("frozen", range(8))
def test_frozen_parameters_are_neither_counted_nor_returned(frozen):
    model = network()
    names = [name for name, _ in model.named_parameters()]
    for i, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(i % 3 == frozen % 3 or i == frozen)
    assert_exact(model, torch.randn(4, 2, 4, 4))
    _, sums = norms_and_sum(model, loss_of, torch.randn(4, 2, 4, 4), clip)
    assert list(sums) == [name for i, name in enumerate(names) if i % 3 == frozen % 3 or i == frozen]


def test_thawing_a_parameter_is_noticed():
    model, x = network(), torch.randn(4, 2, 4, 4)
    model[0].requires_grad_(False)
    norms(model, loss_of, x)
    model[0].requires_grad_(True)
    assert error(norms_and_sum(model, loss_of, x, clip), loop(model, loss_of, x)) < 1e-5


def test_a_parameter_that_is_not_used_gets_zero():
    model = nn.ModuleDict({"used": nn.Linear(3, 2), "idle": nn.Linear(3, 2)})
    _, sums = norms_and_sum(model, lambda m, x: loss_of(m["used"], x), torch.randn(4, 3), clip)
    assert (sums["idle.weight"] == 0).all()
    assert (sums["used.weight"] != 0).any()


def state(model):
    return [
        (set(vars(m)), m.training, len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))
        for m in model.modules()
    ] + [(p.requires_grad, None if p.grad is None else p.grad.clone(), p._backward_hooks) for p in model.parameters()]


@pytest.mark.parametrize("training", [True, False])
def test_nothing_is_left_on_the_model(training):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 1)).train(training)
    model[2].weight.grad = torch.ones(1, 3)
    weights = copy.deepcopy(model.state_dict())
    before = state(model)
    norms_and_sum(model, loss_of, torch.randn(4, 3), clip)
    assert str(state(model)) == str(before)
    assert all(torch.equal(weights[key], value) for key, value in model.state_dict().items())


def test_no_tensor_outlives_the_call():
    model, x = Reader(), torch.randint(9, (6, 5))

    def alive():
        gc.collect()
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects() if type(thing) is torch.Tensor)

    into = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    for _ in range(2):
        norms_and_sum(model, loss_of, x, clip, into=into)
    before = alive()
    for _ in range(3):
        norms_and_sum(model, loss_of, x, clip, into=into)
    assert alive() <= before


def test_dropout_is_exact_for_the_masks_it_draws():
    model, x = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)), torch.randn(6, 3)
    norms(model, loss_of, x)
    torch.manual_seed(3)
    expected = each_row(model, loss_of, x)
    torch.manual_seed(3)
    assert error(norms_and_sum(model, loss_of, x, clip), expected) < 1e-5


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_dropout_between_recurrent_layers_is_exact_for_the_masks_it_draws(cell, caplog):
    model, x = cell(3, 4, 3, batch_first=True, dropout=0.5), torch.randn(6, 5, 3)
    norms(model, loss_of, x)
    assert not caplog.records
    torch.manual_seed(3)
    expected = each_row(model, loss_of, x)
    torch.manual_seed(3)
    assert error(norms_and_sum(model, loss_of, x, clip), expected) < 1e-5


def test_random_numbers_are_used_the_same_whether_or_not_the_plan_is_known():
    batch = torch.randn(6, 3)

    def run(model):
        torch.manual_seed(3)
        return norms(model, loss_of, batch), torch.rand(1)

    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    first, again, fresh = run(model), run(model), run(copy.deepcopy(model))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[0], fresh[0])
    assert first[1] == again[1] == fresh[1]


def test_it_works_where_gradients_are_switched_off():
    model, x = network(), torch.randn(4, 2, 4, 4)
    expected = each_row(model, loss_of, x)
    with torch.no_grad():
        assert error(norms_and_sum(model, loss_of, x, clip), expected) < 1e-5


def test_parameters_may_be_views_of_one_buffer():
    model, x = network(), torch.randn(4, 2, 4, 4)
    expected = each_row(model, loss_of, x)
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    start = 0
    for parameter in model.parameters():
        parameter.data = flat[start : start + parameter.numel()].view_as(parameter)
        start += parameter.numel()
    assert error(norms_and_sum(model, loss_of, x, clip), expected) < 1e-5


class Viewing(nn.Module):
    """Takes views that images with their channels last do not allow."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(2, 4, 3), nn.Linear(16, 2)

    def forward(self, x):
        y = self.conv(x)
        return self.out(y.view(len(y), -1))


def test_a_model_that_views_its_images_keeps_the_usual_order(caplog):
    assert_exact(Viewing(), torch.randn(4, 2, 4, 4))
    assert not caplog.records


def test_sequences_of_another_length_need_no_new_plan():
    model = Reader()
    for length in (5, 3, 8):
        x = torch.randint(9, (4, length))
        assert error(norms_and_sum(model, loss_of, x, clip), each_row(model, loss_of, x)) < 1e-5


class Moody(nn.Module):
    """Uses another parameter once its mood changes."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 2), nn.Linear(3, 2)
        self.mood = False

    def forward(self, x):
        return self.two(x) if self.mood else self.one(x)


def test_a_model_that_changes_its_ways_is_planned_again():
    model, x = Moody(), torch.randn(4, 3)
    for mood in (False, True, False):
        model.mood = mood
        assert error(norms_and_sum(model, loss_of, x, clip), each_row(model, loss_of, x)) < 1e-5


class Turning(nn.Module):
    """Puts its time axis first or second, as it likes."""

    def __init__(self):
        super().__init__()
        self.layer, self.time_first = nn.Linear(3, 2), False

    def forward(self, x):
        return self.layer(x.transpose(0, 1)).transpose(0, 1) if self.time_first else self.layer(x)


def test_a_model_that_turns_its_axes_is_planned_again():
    model, x = Turning(), torch.randn(4, 5, 3)
    for turned in (False, True, False):
        model.time_first = turned
        assert error(norms_and_sum(model, loss_of, x, clip), each_row(model, loss_of, x)) < 1e-5


def test_models_may_be_used_from_several_threads():
    model, x = Reader(), torch.randint(9, (6, 5))
    expected = each_row(model, loss_of, x)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: norms_and_sum(model, loss_of, x, clip), range(12)))
    assert max(error(one, expected) for one in found) < 1e-5
