"""The private loop: one draw, one loss, one step; what cannot be accounted for is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import BudgetSpent, DataError, ModelError, PrivacyWarning, ReticentError, SettingError, UnknownName
from reticent.integrations.opacus import BatchMemoryManager, ModuleValidator, PrivacyEngine
from reticent.integrations.opacus.own_loop import OWN_LOOP

RNG = torch.Generator().manual_seed(3)
X, Y = torch.randn(60, 4, generator=RNG), torch.arange(60) % 3
CLIP, LR = 0.5, 0.7


def private(
    model: nn.Module | None = None, *, batch: int = 15, engine: PrivacyEngine | None = None, **settings: Any
) -> tuple[Any, Any, Any]:
    model = nn.Linear(4, 3) if model is None else model
    loader = DataLoader(TensorDataset(X, Y), batch_size=batch, shuffle=True)
    said = {"noise_multiplier": 1e-7, "max_grad_norm": CLIP, **settings}
    sgd = torch.optim.SGD(model.parameters(), lr=LR)
    return (engine or PrivacyEngine()).make_private(module=model, optimizer=sgd, data_loader=loader, **said)


Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def plain(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


def expected(model: nn.Module, x: Tensor, y: Tensor, divisor: float, loss: Loss) -> Tensor:
    """Where one step goes by hand: clipped gradients of single examples, added up."""
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    total = torch.zeros_like(before)
    for row in range(len(x)):
        parts = torch.autograd.grad(loss(model, x[row : row + 1], y[row : row + 1]), list(model.parameters()))
        gradient = torch.cat([part.flatten() for part in parts])
        total += gradient * min(1.0, CLIP / float(gradient.norm()))
    return before - LR * total / divisor


LOSSES: dict[str, Loss] = {
    "function": plain,
    "module": lambda m, x, y: nn.CrossEntropyLoss(label_smoothing=0.1)(m(x), y),
    "log_softmax": lambda m, x, y: functional.nll_loss(functional.log_softmax(m(x), dim=1), y),
    "by hand": lambda m, x, y: (m(x).logsumexp(1) - m(x).gather(1, y[:, None])[:, 0]).mean() / 2,
    "reshaped": lambda m, x, y: functional.mse_loss(m(x.view(x.size(0), -1))[:, :1].view(len(x)), y.float()),
    "two": lambda m, x, y: plain(m, x, y) + 0.5 * m(x * 2).abs().mean(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_is_that_of_the_examples_shown(name: str) -> None:
    loss = LOSSES[name]
    model, optimizer, loader = private()
    for x, y in loader:
        optimizer.zero_grad()
        loss(model, x, y).backward()
        shown = torch.tensor(x.tolist()), torch.tensor(y.tolist())
        wanted = expected(model.to_standard_module(), *shown, divisor=60 / 4, loss=loss)
        optimizer.step()
        found = torch.cat([p.detach().flatten() for p in model.parameters()])
        assert torch.allclose(found, wanted, atol=1e-4)
        break


def test_a_batch_edited_in_the_loop_does_not_reach_the_vault() -> None:
    model, optimizer, loader = private()
    for x, y in loader:
        shown = torch.tensor(x.tolist()), torch.tensor(y.tolist())
        wanted = expected(model.to_standard_module(), *shown, divisor=15, loss=plain)
        loss = plain(model, x, y)
        x.numpy()[:] = 1e6
        loss.backward()
        optimizer.step()
        assert torch.allclose(torch.cat([p.detach().flatten() for p in model.parameters()]), wanted, atol=1e-4)
        break


def test_parts_of_a_draw_make_one_step() -> None:
    model, optimizer, loader = private()
    before, rows, steps = [p.detach().clone() for p in model.parameters()], 0, []
    optimizer.attach_step_hook(lambda one: steps.append(one))
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as parts:
        shown: list[tuple[Tensor, Tensor]] = []
        for x, y in parts:
            assert len(x) <= 4
            rows += len(x)
            shown.append((torch.tensor(x.tolist()), torch.tensor(y.tolist())))
            assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
            wanted = expected(
                model.to_standard_module(), *map(torch.cat, zip(*shown, strict=True)), divisor=15, loss=plain
            )  # type: ignore[arg-type,misc]
            optimizer.zero_grad()
            plain(model, x, y).backward()
            optimizer.step()
            if steps:
                break
    assert rows > 4
    assert torch.allclose(torch.cat([p.detach().flatten() for p in model.parameters()]), wanted, atol=1e-4)


def test_an_empty_draw_is_noised_stepped_and_charged() -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = private(batch=1, engine=engine, noise_multiplier=1.0)
    met = 0
    for x, y in loader:
        before = model.to_standard_module().weight.detach().clone()
        optimizer.zero_grad()
        plain(model, x, y).backward()
        optimizer.step()
        if len(x) == 0:
            met += 1
            assert not torch.equal(model.to_standard_module().weight, before)
    assert met  # of 60 draws, each empty with chance 0.36
    assert engine.accountant.history == [(1.0, 1 / 60, 60)]


def one_turn(loop: Callable[[Any, Any, Tensor, Tensor], object], **settings: Any) -> None:
    model, optimizer, loader = private(**settings)
    for x, y in loader:
        loop(model, optimizer, x, y)


def left_out(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    plain(model, x, y).backward()


def twice(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    for _ in range(2):
        plain(model, x, y).backward()


def unheard(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    functional.cross_entropy(model(torch.randn(5, 4)), torch.zeros(5, dtype=torch.long)).backward()
    optimizer.step()


def forgotten(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    plain(model, x, y).backward()
    optimizer.zero_grad()
    optimizer.step()


def other_model(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    plain(model.to_standard_module(), x, y).backward()


def mixed(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    output = model(x)
    functional.cross_entropy(output - output.mean(), y).backward()


def mixed_rows(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    output = model(x)
    functional.cross_entropy(output - output.mean(0), y).backward()
    optimizer.step()


def some_rows(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    functional.cross_entropy(model(x[:5]), y[:5]).backward()
    optimizer.step()


def against_each_other(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    functional.cross_entropy(model(x) @ model(x).T, torch.arange(len(x))).backward()
    optimizer.step()


def edited(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    x -= x.mean(0)
    plain(model, x, y).backward()


def constant(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    (plain(model, x, y) * float(x.mean())).backward()


def penalised(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    (plain(model, x, y) + model.weight.square().sum()).backward()


def summed(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    functional.cross_entropy(model(x), y, reduction="sum").backward()


def detached(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
    functional.cross_entropy(model(x).detach(), y).backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("loop", "says"),
    [
        (left_out, "left without optimizer.step"),
        (twice, "called twice"),
        (unheard, "no loss of this batch was heard"),
        (forgotten, "no loss of this batch was heard"),
        (other_model, "beside the model|does not come from the model"),
        (mixed, "one number of the whole batch goes into sub"),
        (mixed_rows, "mixes examples"),
        (some_rows, "some rows of the batch, by their place"),
        (against_each_other, "cannot be made of other rows"),
        (edited, "was edited in place"),
        (constant, "read values after backward"),
        (penalised, "weight_decay"),
        (summed, "loss_reduction='sum'"),
        (detached, "depends on no trainable parameter"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_not_one_loss_for_one_draw_is_refused(loop: Callable[..., object], says: str) -> None:
    with pytest.raises(ReticentError, match=says):
        one_turn(loop)


def test_a_loss_that_changes_is_refused() -> None:
    scale = iter([1.0, 1.0, 2.0])

    def scaled(model: Any, optimizer: Any, x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        (plain(model, x, y) * next(scale)).backward()
        optimizer.step()

    with pytest.raises(ModelError, match="in another way, or with other numbers"):
        one_turn(scaled)


def test_a_criterion_stands_for_a_loss_that_is_not_understood() -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = private(engine=engine, criterion=nn.CrossEntropyLoss())
    for x, y in loader:
        optimizer.zero_grad()
        torch.stack([plain(model, x, y)]).max().backward()
        optimizer.step()
    assert len(engine.accountant) == 4


def test_ghost_returns_the_criterion_too(capsys: pytest.CaptureFixture[str]) -> None:
    criterion = nn.CrossEntropyLoss()
    assert private(grad_sample_mode="ghost", criterion=criterion)[2] is criterion  # type: ignore[misc]
    said = capsys.readouterr().err
    assert "makes no difference" in said
    assert "become Poisson draws" in said
    assert said.count("\n") == 2


def test_a_plan_is_not_passed_and_its_guarantee_says_what_it_rests_on() -> None:
    engine, model = PrivacyEngine(accountant="rdp"), nn.Linear(4, 3)
    loader = DataLoader(TensorDataset(X, Y), batch_size=15)
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader,
        target_epsilon=2.0,
        target_delta=1e-3,
        epochs=1,
        max_grad_norm=1.0,
        size=60,
    )
    for x, y in loader:
        optimizer.zero_grad()
        plain(model, x, y).backward()
        optimizer.step()
    with pytest.raises(BudgetSpent, match="all 4 planned steps are done"):
        next(iter(loader))
    assert 1.99 < engine.get_epsilon(1e-3) <= 2.0
    promised = engine.guarantee(1e-3)
    assert promised.epsilon <= 2.0
    assert promised.adjacency == "add-or-remove"
    assert OWN_LOOP in promised.assumptions


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"poisson_sampling": False}, "no proof covers shuffled batches"),
        ({"clipping": "adaptive"}, "there are 'flat' and 'per_layer'"),
        ({"batch_first": False}, "first axis"),
        ({"grad_sample_mode": "other"}, "not known"),
        ({"noise_scheduler": object()}, "noise_scheduler is not supported"),
    ],
)
def test_what_is_not_there_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        private(**settings)


def test_draws_of_its_own_are_refused() -> None:
    data = TensorDataset(X, Y)
    samplers = WeightedRandomSampler([1.0] * 60, 60), RandomSampler(data, replacement=True)
    ragged = [(torch.zeros(3 + row % 2), 0) for row in range(60)]
    loaders = [DataLoader(data, batch_size=15, sampler=one) for one in samplers]
    loaders.append(DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(samplers[0], 15, drop_last=False)))
    loaders.append(DataLoader(ragged, batch_size=2, collate_fn=lambda rows: (torch.stack([row[0] for row in rows]), 0)))  # type: ignore[arg-type]
    for loader in loaders:
        model = nn.Linear(4, 3)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises((SettingError, DataError)):
            PrivacyEngine().make_private(
                module=model, optimizer=sgd, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
            )


def test_gdp_is_answered_by_what_is_proved() -> None:
    with pytest.warns(PrivacyWarning, match="central limit"):
        assert PrivacyEngine(accountant="gdp").accountant.mechanism() == "prv"
    with pytest.raises(UnknownName):
        PrivacyEngine(accountant="moments")


def test_batch_norm_is_refused_and_fixed_with_its_weights() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.Flatten(), nn.InstanceNorm1d(6, track_running_stats=True)
    )
    nn.init.uniform_(model[1].weight)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="mixes the examples of a batch"):
        private(model)
    fixed = ModuleValidator.fix(model)
    assert ModuleValidator.is_valid(fixed)
    assert len(ModuleValidator.validate(model)) == 2
    assert torch.equal(fixed[1].weight, model[1].weight)  # type: ignore[index]
    assert fixed[1].num_groups == 2  # type: ignore[index]
    assert isinstance(model[1], nn.BatchNorm2d)
    assert ModuleValidator.is_valid(model.eval()[:2])  # frozen statistics tell nothing


def test_a_checkpoint_brings_its_history(tmp_path: Path) -> None:
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = private(engine=engine, noise_multiplier=2.0)
    for x, y in loader:
        plain(model, x, y).backward()
        optimizer.step()
    engine.save_checkpoint(tmp_path / "one.pt", module=model, optimizer=optimizer, checkpoint_dict={"epoch": 3})
    later = PrivacyEngine(accountant="rdp")
    again, optimizer, loader = private(engine=later, noise_multiplier=3.0)
    told = later.load_checkpoint(tmp_path / "one.pt", module=again, optimizer=optimizer)
    assert told["epoch"] == 3
    assert torch.equal(again.weight, model.weight)
    for x, y in loader:
        plain(again, x, y).backward()
        optimizer.step()
    assert later.accountant.history == [(2.0, 0.25, 4), (3.0, 0.25, 4)]
    assert later.get_epsilon(1e-3) > engine.get_epsilon(1e-3)
    plain_weights = {name.removeprefix("_module."): part for name, part in model.state_dict().items()}
    again.load_state_dict(plain_weights)


@pytest.mark.parametrize("steps", [(1.1, 0.01, 1000), (0.6, 1 / 938, 938), (2.0, 0.1, 50), (1.0, 1.0, 3)])
def test_the_epsilon_of_opacus(steps: tuple[float, float, int]) -> None:
    accountants = pytest.importorskip("opacus.accountants", reason="opacus is not installed")
    theirs = accountants.RDPAccountant()
    theirs.history = [steps]
    ours = PrivacyEngine(accountant="rdp").accountant
    ours.load_state_dict(theirs.state_dict())
    assert ours.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), abs=1e-6)


def test_a_second_engine_step_composes_with_the_first() -> None:
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = private(engine=engine, noise_multiplier=2.0)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            plain(model, x, y).backward()
            optimizer.step()
        model, optimizer, loader = private(model.to_standard_module(), engine=engine, noise_multiplier=4.0)
    assert engine.accountant.history == [(2.0, 0.25, 4), (4.0, 0.25, 4)]
    assert engine.guarantee(1e-3).epsilon <= engine.get_epsilon(1e-3)


def test_the_history_of_somebody_else(tmp_path: Path) -> None:
    from reticent.accounting import Gaussian, Subsampled, epsilon
    from reticent.integrations.opacus.foreign import guarantee_of

    (tmp_path / "history.json").write_text("[[1.0, 0.1, 40]]")
    state = {"history": [(1.0, 0.1, 40)], "mechanism": "gdp"}
    torch.save({"privacy_accountant_state_dict": state, "module_state_dict": {}}, tmp_path / "run.pt")
    for name in ("history.json", "run.pt"):
        promised, numbers = guarantee_of(tmp_path / name, 1e-5)
        assert promised.epsilon == epsilon({Subsampled(0.1, Gaussian(1.0)): 40}, 1e-5)
        assert numbers["epsilon_if_shuffled"] == epsilon({Gaussian(1.0): 4}, 1e-5) > promised.epsilon
        assert any("GDP" in said for said in promised.assumptions) == (name == "run.pt")
    words = ["account", "--from-opacus", str(tmp_path / "run.pt"), "--delta", "1e-5", "--json"]
    told = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert (told["epsilon"], told["steps"], told["status"]) == (promised.epsilon, 40, "proved")


@pytest.mark.parametrize("text", ["", "{}", "[[1, 2]]", "[[1.0, 7.0, 1]]", "[[0.0, 0.1, 1]]", '[["a", 0.1, 1]]', "[]"])
def test_a_damaged_history_is_refused(text: str, tmp_path: Path) -> None:
    from reticent.integrations.opacus.foreign import guarantee_of

    (tmp_path / "history.json").write_text(text)
    with pytest.raises(DataError):
        guarantee_of(tmp_path / "history.json", 1e-5)


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("touched"),))


def test_nothing_in_a_checkpoint_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reticent.integrations.opacus.foreign import guarantee_of

    monkeypatch.chdir(tmp_path)
    torch.save({"privacy_accountant_state_dict": Hostile()}, tmp_path / "run.pt")
    with pytest.raises(DataError, match=r"cannot read run\.pt"):
        guarantee_of(tmp_path / "run.pt", 1e-5)
    with pytest.raises(DataError, match="Weights only load failed"):
        PrivacyEngine().load_checkpoint(tmp_path / "run.pt", module=nn.Linear(1, 1))
    assert not (tmp_path / "touched").exists()


def test_a_guarantee_counts_what_was_before_and_what_may_still_come() -> None:
    from reticent.accounting import Gaussian, Subsampled, epsilon

    engine = PrivacyEngine()
    engine.accountant.load_state_dict({"history": [(2.0, 0.25, 6)]})
    model, optimizer, loader = private(engine=engine, noise_multiplier=2.0, epochs=2)
    for x, y in loader:
        plain(model, x, y).backward()
        optimizer.step()
        break
    assert engine.get_epsilon(1e-3) == epsilon({Subsampled(0.25, Gaussian(2.0)): 7}, 1e-3, accountant="pld")
    assert engine.guarantee(1e-3).epsilon == epsilon({Subsampled(0.25, Gaussian(2.0)): 14}, 1e-3)
