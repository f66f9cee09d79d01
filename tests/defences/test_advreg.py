"""AdvReg: its two losses are the paper's, the adversary learns, and members stand out less."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector as flat

from reticent.data import Examples
from reticent.defences.advreg import advreg
from reticent.defences.game import AdversarialGame
from reticent.defences.inference import InferenceModel, gain
from reticent.defences.plain import Plain, fit
from reticent.errors import DataError, SettingError, UnknownName


def membership(inference: InferenceModel, model: nn.Module, x, y):
    """h(x, y, f(x)) as the paper writes it, by another route than the code: a chance in (0, 1), in float64."""
    prediction = torch.exp(model(x).log_softmax(1)).double()
    label = torch.eye(inference.classes, dtype=torch.float64)[y]
    parts = copy.deepcopy(inference).double()
    joined = parts.joined(torch.cat([parts.prediction(prediction), parts.label(label)], 1))
    return 1 / (1 + torch.exp(-joined[:, 0]))


@pytest.fixture
def game(small):
    torch.manual_seed(5)
    return AdversarialGame(small(), InferenceModel(2), penalty=1.7)


def test_the_adversary_maximises_the_papers_gain(game, points):
    members, others = points.take(torch.arange(60)), points.take(torch.arange(60, 90))
    h_members, h_others = (membership(game.inference, game.model, *part) for part in (members, others))
    expected = h_members.log().sum() / (2 * 60) + (1 - h_others).log().sum() / (2 * 30)
    assert game.adversary_loss(members, others).item() == pytest.approx(-expected.item(), rel=1e-5)


def test_the_classifier_minimises_its_loss_plus_lambda_log_h(game, points):
    x, y = points
    h = membership(game.inference, game.model, x, y)
    loss = -game.model(x).softmax(1)[torch.arange(200), y].log()
    expected = (loss + 1.7 * h.log()).mean()
    parameters = list(game.model.parameters())
    wanted = torch.autograd.grad(expected, parameters)
    found = torch.autograd.grad(game.classifier_loss(points), parameters)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_adversarys_step_leaves_the_classifier_alone(game, points):
    torch.autograd.backward(game.adversary_loss(points, points))
    assert all(p.grad is None for p in game.model.parameters())
    assert all(p.grad is not None for p in game.inference.parameters())


def test_the_gain_is_that_of_a_coin_or_of_certainty():
    assert gain(torch.zeros(7), torch.zeros(3)).item() == pytest.approx(math.log(0.5))
    assert gain(torch.full((7,), 50.0), torch.full((3,), -50.0)).item() == pytest.approx(0.0)
    assert torch.isfinite(gain(torch.tensor([-1e4]), torch.tensor([1e4])))


@pytest.mark.parametrize("inference_steps", [1, 4])
def test_without_penalty_it_is_plain_training_on_the_members_alone(points, small, inference_steps):
    start, plain = small(), Plain(epochs=2, batch_size=20)
    played, fitted = copy.deepcopy(start), copy.deepcopy(start)
    others = Examples(100 * torch.randn(30, 4), torch.ones(30, dtype=torch.long))
    game = AdversarialGame(played, InferenceModel(2), penalty=0.0, inference_steps=inference_steps)
    game.play(points, others, plain, rounds=20, seed=4, tell=lambda _: None)
    fit(fitted, *points, torch.arange(200), plain, rounds=20, seed=4, tell=lambda _: None)
    assert torch.equal(flat(played.parameters()), flat(fitted.parameters()))


def test_the_adversary_learns_to_recognise_the_members_of_an_over_fitted_model(task):
    settings = task.settings | {"epochs": 40}
    trained = advreg(task.start(), task.members, reference=task.reference, penalty=0.0, seed=0, **settings)
    game = AdversarialGame(trained.model, trained.inference, penalty=0.0)
    assert -game.adversary_loss(task.members, task.reference).item() > math.log(0.5) + 0.05
    assert -game.adversary_loss(task.members, task.outsiders).item() > math.log(0.5) + 0.02  # not only by heart


@pytest.fixture(scope="module")
def defended(task):
    torch.set_num_threads(1)
    return advreg(task.start(), task.members, reference=task.reference, penalty=2.0, seed=0, **task.settings)


def test_members_stand_out_less_at_nearly_the_same_accuracy(task, undefended, defended):
    before, after = task.leak(undefended), task.leak(defended.model)
    assert before.auc > 0.68  # it does over-fit
    assert after.auc < before.auc - 0.01
    assert after.gap < 0.9 * before.gap
    assert task.accuracy(defended.model) > task.accuracy(undefended) - 0.12  # sums differ from processor to processor


def test_the_reference_is_set_aside_and_never_trained_on(points, small):
    trained = advreg(small(), points, reference_share=0.25, epochs=1, seed=3)
    assert len(trained.reference) == 50
    assert sorted([*trained.members.tolist(), *trained.reference.tolist()]) == list(range(200))


def test_the_seed_decides_everything(points, small):
    start = small()
    one, again, other = (advreg(copy.deepcopy(start), points, epochs=2, seed=seed) for seed in (7, 7, 8))
    assert torch.equal(flat(one.model.parameters()), flat(again.model.parameters()))
    assert torch.equal(one.members, again.members)
    assert not torch.equal(flat(one.model.parameters()), flat(other.model.parameters()))


def test_it_trains_the_callers_module_and_claims_nothing(points, small):
    model = small()
    trained = advreg(model, points, epochs=1)
    assert trained.model is model
    assert trained.guarantee.status == "none"
    assert math.isinf(trained.guarantee.epsilon)
    assert str(trained.guarantee).startswith("no differential privacy: ")


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"penalty": -1.0}, SettingError, "help the attacker"),
        ({"reference_share": 1.0}, SettingError, "between 0 and 1"),
        ({"inference_steps": 0}, SettingError, "at least 1"),
        ({"penalti": 1.0}, UnknownName, "did you mean 'penalty'"),
        ({"reference_share": 0.001}, DataError, "too few"),
        ({"reference": (torch.zeros(0, 4), torch.zeros(0).long())}, DataError, "no examples"),
    ],
    ids=str,
)
def test_errors_name_the_thing(points, small, settings, error, says):
    with pytest.raises(error, match=says):
        advreg(small(), points, **settings)


@pytest.mark.parametrize(
    "labels", [torch.full((5,), 2), torch.full((5,), -1), torch.zeros(5), torch.zeros(5, 2).long()]
)
def test_labels_the_model_cannot_give_are_refused(small, labels):
    with pytest.raises(DataError, match="labels must be"):
        advreg(small(), (torch.zeros(5, 4), labels))
