"""Losses alone run in the layout in which gradients are made: the same numbers, and images with their channels last."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from reticent.gradients import losses_are_own, losses_of
from reticent.gradients.images import ChannelsLast


class Seen(nn.Module):
    """A network that notes how its images lie, and may take a view of them."""

    def __init__(self, *, views: bool):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3)
        self.out = nn.Linear(5 * 16, 3)
        self.views, self.last = views, []

    def forward(self, x):
        x = torch.relu(self.second(functional.max_pool2d(self.first(x), 2, stride=1)))
        self.last.append(x.is_contiguous(memory_format=torch.channels_last))
        x = functional.adaptive_avg_pool2d(x, 4)
        return self.out(x.view(len(x), -1) if self.views else x.flatten(1))


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y, reduction="none")


@pytest.mark.parametrize("views", [False, True])
def test_losses_are_those_of_the_usual_layout_and_views_get_it(views):
    model, batch = Seen(views=views), (torch.randn(5, 3, 9, 9), torch.tensor([0, 1, 2, 0, 1]))
    usual = loss(model, batch)
    with torch.no_grad():
        found = losses_of(model, loss, batch)
    assert model.last[-1] is not views, "a model that takes views of its images has them as usual"
    torch.testing.assert_close(found, usual, rtol=0, atol=1e-5)


@pytest.mark.parametrize("trained", [False, True])
def test_a_view_of_what_is_not_trained_is_taken_as_usual(trained):
    """In gradients such a convolution stays as it was: only a pass without them tells that its images are viewed."""
    first, last = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3, stride=2)

    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last, self.out = first.requires_grad_(False), last.requires_grad_(trained), nn.Linear(9, 3)

        def forward(self, x):
            x = self.first(x)
            return self.out(self.last(x.view(len(x), -1).view(x.shape)).mean(1).flatten(1))

    model, batch = Frozen(), (torch.randn(5, 3, 9, 9), torch.tensor([0, 1, 2, 0, 1]))
    usual = loss(model, batch)
    with torch.no_grad():
        torch.testing.assert_close(losses_of(model, loss, batch), usual, rtol=0, atol=1e-5)


def test_a_second_look_is_at_losses_as_they_are_answered():
    model, batch = Seen(views=False), (torch.randn(5, 3, 9, 9), torch.tensor([0, 1, 2, 0, 1]))
    losses_of(model, loss, batch)  # planned
    model.last.clear()
    assert losses_are_own(model, loss, batch, torch.tensor([0, 3]))
    assert model.last == [True] * 3


def test_gradients_pass_through_convolutions_with_channels_last():
    x, weight = torch.randn(2, 1, 5, 5, requires_grad=True), torch.randn(4, 1, 3, 3, requires_grad=True)
    [*usual] = torch.autograd.grad(functional.conv2d(x, weight).square().sum(), (x, weight))
    with ChannelsLast():
        [*found] = torch.autograd.grad(functional.conv2d(x, weight, padding=0).square().sum(), (x, weight))
    for one, other in zip(usual, found, strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_no_batch_of_images_is_left_as_it_is():
    image, weight = torch.randn(3, 5, 5), torch.randn(4, 3, 3, 3)
    with ChannelsLast():
        assert functional.conv2d(image, weight).shape == (4, 3, 3)
        assert functional.conv2d(input=image[None], weight=weight).shape == (1, 4, 3, 3)


def test_no_rows_have_no_losses_and_no_plan():
    model = Seen(views=False)
    assert losses_of(
        model, lambda model, batch: batch[0].new_empty(0), (torch.empty(0, 3, 9, 9), torch.empty(0))
    ).shape == (0,)
    assert not model.last
