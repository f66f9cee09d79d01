"""Every network by name: its size to the last parameter, its shapes, and that no example sees another."""

import pytest
import torch
from torch import nn

from reticent import data, fit, models
from reticent.errors import ModelError, UnknownName
from reticent.experiments.parts import model_of
from reticent.experiments.recipe import Recipe
from reticent.gradients import norms
from reticent.losses import cross_entropy
from reticent.models.residual import DE_ET_AL, PLAIN, PLAIN_WITH_BIAS, StandardisedConv2d

# Shape of one input, classes, parameters: the papers' tables, counted.
PUBLISHED = [
    ("cnn", (1, 28, 28), 10, 26_010),
    ("cnn", (3, 32, 32), 10, 550_570),
    ("scattering-linear", (81, 7, 7), 10, 39_700),
    ("scattering-linear", (243, 8, 8), 10, 155_530),
    ("scattering-cnn", (81, 7, 7), 10, 33_066),
    ("scattering-cnn", (243, 8, 8), 10, 187_210),
    ("rnn", (80,), 2, 2_021_202),
    ("glove-rnn", (80,), 2, 2_021_202),
    ("linear", (600,), 100, 60_100),
    ("head", (768,), 100, 76_900),
    ("wrn-16-4", (3, 32, 32), 10, 2_753_818),
    ("wrn-28-2", (3, 32, 32), 100, 1_483_508),
]
SMALL = [(name, (1, 8, 8), 10) for name in ("linear", "mlp", "cnn", "head")]
EVERY = [case[:3] for case in PUBLISHED] + SMALL


def size(model: nn.Module, *, trainable: bool = False) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trainable)


def batch(name: str, inputs: tuple[int, ...], rows: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    if name.endswith("rnn"):
        return torch.randint(0, 20_000, (rows, *inputs), generator=generator)
    return torch.rand(rows, *inputs, generator=generator)


def rejects_batch_norm(model: nn.Module) -> bool:
    return not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())


@pytest.mark.parametrize(("name", "inputs", "classes", "parameters"), PUBLISHED)
def test_size_is_the_published_one(name, inputs, classes, parameters):
    assert size(models.build(name, inputs=inputs, classes=classes)) == parameters


@pytest.mark.parametrize(("name", "inputs", "classes"), EVERY)
def test_each_row_depends_on_its_own_example_only(name, inputs, classes):
    torch.manual_seed(0)
    model = models.build(name, inputs=inputs, classes=classes)
    if name == "head":
        nn.init.normal_(model[-1].weight)
    if name == "glove-rnn":
        nn.init.normal_(model.embedding.weight)
    assert rejects_batch_norm(model)
    x = batch(name, inputs)
    with torch.no_grad():
        together = model(x)
        others_changed = model(torch.cat([x[:1], x[1:].flip(-1)]))
    assert together.shape == (3, classes)
    torch.testing.assert_close(others_changed[0], together[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(others_changed[1], together[1])


def test_all_names_are_covered():
    assert {case[0] for case in EVERY} == set(models.names())


@pytest.mark.parametrize(
    ("style", "wrn_16_4", "wrn_28_2"),
    [(DE_ET_AL, 2_753_818, 1_483_508), (PLAIN, 2_748_890, 1_479_220), (PLAIN_WITH_BIAS, 2_751_146, 1_481_252)],
)
def test_wide_residual_networks_in_each_style(style, wrn_16_4, wrn_28_2):
    assert size(models.WideResNet(16, 4, classes=10, style=style)) == wrn_16_4
    assert size(models.WideResNet(28, 2, classes=100, style=style)) == wrn_28_2


def test_the_large_network_of_de_et_al():
    with torch.device("meta"):
        assert size(models.WideResNet(40, 4, classes=10)) == 8_961_306


def test_plain_wide_residual_network_runs():
    model = models.WideResNet(10, 1, classes=5, channels=1, style=PLAIN)
    assert model(torch.rand(2, 1, 12, 12)).shape == (2, 5)


def test_a_wide_residual_network_has_a_sensible_depth():
    with pytest.raises(ModelError, match="6n \\+ 4"):
        models.WideResNet(17, 4, classes=10)


def test_standardised_kernels_have_mean_zero_and_variance_one_over_fan_in():
    torch.manual_seed(0)
    kernels = StandardisedConv2d(8, 4, 3).standardised().flatten(1)
    torch.testing.assert_close(kernels.mean(1), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(kernels.var(1, correction=0) * 72, torch.ones(4), atol=1e-3, rtol=0)


def test_frozen_vectors_leave_the_network_of_dpis():
    vectors = torch.randn(20_000, 100)
    model = models.ReviewRnn(vectors=vectors)
    assert size(model, trainable=True) == 21_202
    assert torch.equal(model.embedding.weight, vectors)
    assert size(models.ReviewRnn(vectors=vectors, single_bias=True), trainable=True) == 20_946


def test_the_network_of_dpis_begins_as_keras_does_and_reads_to_the_end():
    model = models.build("glove-rnn", inputs=(80,), classes=2)
    assert size(model, trainable=True) == 20_946
    assert all(bias.tolist() == [0.0] * 32 + [1.0] * 32 + [0.0] * 64 for bias in (model.lstm.bias_ih_l0,))
    nn.init.normal_(model.embedding.weight)
    words = batch("rnn", (80,), rows=1)
    _, (last, _) = model.lstm(model.project(model.embedding(words)))
    torch.testing.assert_close(model(words), model.classify(torch.cat([last[0], last[1]], dim=1)))


def test_a_single_bias_is_one_bias():
    model = models.ReviewRnn(single_bias=True)
    assert all(not p.any() and not p.requires_grad for n, p in model.lstm.named_parameters() if n.startswith("bias_hh"))


def test_tempered_sigmoid_is_tanh_at_2_2_1():
    x = torch.linspace(-20, 20, 4001, dtype=torch.float64)
    torch.testing.assert_close(models.TemperedSigmoid(2, 2, 1)(x), torch.tanh(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["relu", "tanh", "tempered(2,2,1)"])
def test_activations_reach_the_network(name):
    model = models.build("cnn", inputs=(1, 28, 28), classes=10, activation=name)
    kind = type(models.activation(name))
    assert sum(isinstance(module, kind) for module in model.modules()) == 3


@pytest.mark.parametrize("name", ["gelo", "tempered(1,2)", "tempered(a,b,c)"])
def test_unknown_activations_are_refused(name):
    with pytest.raises(UnknownName, match="tanh"):
        models.activation(name)


def test_unknown_models_are_refused_with_a_hint():
    with pytest.raises(UnknownName, match="did you mean 'cnn'"):
        models.build("cn", inputs=(1, 28, 28), classes=10)


@pytest.mark.parametrize(
    ("name", "inputs"), [("cnn", (446,)), ("scattering-cnn", (1, 28, 28)), ("scattering-linear", (5,))]
)
def test_wrong_inputs_are_refused_with_the_remedy(name, inputs):
    with pytest.raises(ModelError, match=r"mlp|scattering"):
        models.build(name, inputs=inputs, classes=10)


def test_group_norm_makes_features_scale_free():
    torch.manual_seed(0)
    model = models.scattering_linear((81, 7, 7), 10)
    x = torch.rand(2, 81, 7, 7)
    torch.testing.assert_close(model(x), model(3 * x), rtol=1e-3, atol=1e-3)


def test_vit_features_are_per_example_and_frozen():
    pytest.importorskip("transformers", reason="ViT features need the package transformers")
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    extract = models.vit(**small, image_size=32, patch_size=8)
    images = torch.rand(4, 1, 28, 28)
    features = extract(images)
    assert features.shape == (4, 32)
    assert not features.requires_grad
    torch.testing.assert_close(extract(images[:1]), features[:1], rtol=1e-4, atol=1e-5)


def test_vit_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ModelError, match="reticent\\[vit\\]"):
        models.vit()


PRIVATE = [case for case in EVERY if not case[0].startswith("wrn") and case[1] != (3, 32, 32)]


def trained(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


@pytest.mark.parametrize(("name", "inputs", "classes"), PRIVATE)
def test_every_small_network_trains_privately(name, inputs, classes):
    torch.manual_seed(0)
    model = models.build(name, inputs=inputs, classes=classes)
    before = [parameter.clone() for parameter in trained(model)]
    labels = torch.arange(6) % classes
    fit(model, (batch(name, inputs, rows=6), labels), noise_multiplier=1.0, epochs=1, batch_size=6, lr=0.1, delta=0.01)
    assert all(not torch.equal(old, new) for old, new in zip(before, trained(model), strict=True))


@pytest.mark.parametrize("style", [DE_ET_AL, PLAIN])
def test_gradients_of_residual_networks_are_per_example(style):
    """Standardised kernels are a convolution with a forward of its own: no shortcut for plain ones may take them."""
    torch.manual_seed(0)
    model = models.WideResNet(10, 1, classes=5, style=style)
    x, y = torch.rand(3, 3, 12, 12), torch.tensor([0, 3, 4])
    one_by_one = []
    for row in range(3):
        loss = nn.functional.cross_entropy(model(x[row : row + 1]), y[row : row + 1])
        one_by_one.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]).norm())
    torch.testing.assert_close(norms(model, cross_entropy, (x, y)), torch.stack(one_by_one), rtol=1e-4, atol=1e-5)


def test_a_recipe_puts_the_word_vectors_in(monkeypatch: pytest.MonkeyPatch):
    vectors = torch.randn(20_000, 100)
    monkeypatch.setattr(data, "glove", lambda size=100, *, folder=None: (vectors, vectors[:, 0] != 0))
    reviews = data.Examples(batch("rnn", (80,), rows=4), torch.arange(4) % 2)
    model = model_of(Recipe(data="imdb", model="glove-rnn", seed=0), data.Dataset("imdb", reviews, None, 2, ""))
    assert torch.equal(model.embedding.weight, vectors)
    assert not model.embedding.weight.requires_grad
