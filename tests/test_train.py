"""The loop: what a run promises, releases and leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

import reticent as rt
from reticent.accounting import Gaussian, Subsampled
from reticent.errors import BudgetSpent, DataError, ModelError, PrivacyWarning, ResumeError, SettingError, UnknownName
from reticent.outside import Averaged, Open, Outcome, Proposal

Pair = tuple[Tensor, Tensor]


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def make(examples: Any, model: nn.Module | None = None, *, lr: float = 0.5, **settings: Any) -> rt.Run:
    model = model or net()
    settings = {"method": rt.methods.dpsgd(noise_multiplier=1.0), "batch_size": 50, "rounds": 5, "seed": 0} | settings
    return rt.Run(model, torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9), examples, **settings)


def vector(run: rt.Run) -> Tensor:
    return torch.cat([p.detach().flatten() for p in run.model.parameters()])


def test_learns_what_there_is_to_learn(blobs: Pair) -> None:
    trained = rt.fit(net(), blobs, epsilon=3.0, epochs=20, batch_size=50, lr=0.2, seed=0)
    assert trained.evaluate(*blobs)["accuracy"] > 0.9
    assert trained.guarantee.status == "proved"
    assert trained.guarantee.epsilon <= 3.0


@pytest.mark.parametrize("kind", ["tensors", "arrays", "dataset", "own"])
def test_takes_tensors_arrays_and_datasets_alike(blobs: Pair, kind: str) -> None:
    class Own(Dataset[Pair]):
        def __len__(self) -> int:
            return len(blobs[1])

        def __getitem__(self, i: int) -> Pair:
            return blobs[0][i], blobs[1][i]

    as_kind: dict[str, Callable[[], Any]] = {
        "tensors": lambda: blobs,
        "arrays": lambda: tuple(part.numpy() for part in blobs),
        "dataset": lambda: TensorDataset(*blobs),
        "own": Own,
    }
    run = make(as_kind[kind]())
    list(run)
    reference = make(blobs)
    list(reference)
    assert torch.allclose(vector(run), vector(reference), atol=1e-6)


def test_same_seed_same_result_and_no_seed_never(blobs: Pair) -> None:
    one, same, other, free, freer = (make(blobs, seed=s) for s in (0, 0, 1, None, None))
    for run in (one, same, other, free, freer):
        list(run)
    assert torch.equal(vector(one), vector(same))
    assert not torch.equal(vector(one), vector(other))
    assert not torch.equal(vector(free), vector(freer))
    assert "seeded" in str(one.guarantee())
    assert "seeded" not in str(free.guarantee())


def test_plan_equals_ledger(blobs: Pair) -> None:
    run = make(blobs, rounds=7)
    list(run)
    assert run.ledger.tally() == run.plan.tally() == {Subsampled(0.25, Gaussian(1.0)): 7}


def test_stops_before_the_step_that_would_pass_the_budget(blobs: Pair) -> None:
    budget = rt.Budget(2.0, 1e-5)
    run = make(blobs, budget=budget, rounds=None, method=rt.methods.dpsgd(noise_multiplier=4.0))
    list(run)
    assert run.guarantee().epsilon <= 2.0
    assert rt.accounting.epsilon(run.plan.tally(len(run) + 1), 1e-5) > 2.0
    with pytest.raises(BudgetSpent, match="planned"):
        run.step()


def test_the_guarantee_is_that_of_the_plan_also_if_left_early(blobs: Pair) -> None:
    run = make(blobs, rounds=10)
    before = run.guarantee()
    for step in run:
        if step.number == 3:
            break
    assert run.guarantee() == before
    assert run.spent() < before.epsilon


def test_divides_by_the_declared_batch_size_and_steps_on_an_empty_draw(blobs: Pair) -> None:
    """With no noise and hardly a chance to be drawn, nothing moves; with noise, the noise is the step."""
    tiny = {"batch_size": 1e-9, "rounds": 1, "delta": 1e-6}
    quiet = make(blobs, method=rt.methods.dpsgd(noise_multiplier=0.0), **tiny)
    before = vector(quiet).clone()
    list(quiet)
    assert torch.equal(vector(quiet), before)
    assert quiet.guarantee().status == "none"
    loud = make(blobs, method=rt.methods.dpsgd(noise_multiplier=1.0), lr=1e-9, **tiny)
    before = vector(loud).clone()
    list(loud)
    assert (vector(loud) - before).std().item() == pytest.approx(1.0, rel=0.4)
    assert len(loud.ledger) == 1


def test_divisor_does_not_follow_the_realised_size(blobs: Pair) -> None:
    """One example of clipped gradient C must move the mean by C / declared, whoever else takes part."""
    x, y = blobs
    run = make(
        (x[:1], y[:1]),
        nn.Linear(4, 2),
        lr=1.0,
        method=rt.methods.dpsgd(noise_multiplier=0.0, max_grad_norm=1e-3),
        batch_size=1,
        rounds=1,
    )
    before = vector(run).clone()
    list(run)
    assert (vector(run) - before).norm().item() == pytest.approx(1e-3, rel=1e-4)


def test_micro_batches_change_nothing_but_memory(blobs: Pair) -> None:
    double = (blobs[0].double(), blobs[1])
    runs = [make(double, net().double(), max_physical_batch_size=size) for size in (None, 1, 7, 64)]
    for run in runs:
        list(run)
    for run in runs[1:]:
        assert torch.allclose(vector(run), vector(runs[0]), rtol=1e-12, atol=1e-14)


def test_a_schedule_by_name_is_refused(blobs: Pair) -> None:
    with pytest.raises(SettingError, match="scheduler makes a schedule of an optimizer"):
        rt.fit(nn.Linear(4, 2), blobs, epsilon=3.0, seed=0, scheduler="cosine")  # type: ignore[arg-type]


def test_schedulers_and_adam_are_the_users_own(blobs: Pair) -> None:
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    run = rt.Run(
        model,
        optimizer,
        blobs,
        method=rt.methods.dpsgd(noise_multiplier=1.0),
        batch_size=20,
        rounds=4,
        scheduler=scheduler,
        seed=0,
    )
    list(run)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)
    assert set(model.state_dict()) == set(net().state_dict())
    assert all(p.grad is None for p in model.parameters())


def test_frozen_parameters_stay(blobs: Pair) -> None:
    model = net()
    model[0].weight.requires_grad_(False)
    before = model[0].weight.clone()
    list(make(blobs, model))
    assert torch.equal(model[0].weight, before)


def test_nan_in_one_example_is_no_error_and_does_not_spread(blobs: Pair) -> None:
    x, y = blobs[0].clone(), blobs[1]
    x[3] = float("nan")
    run = make((x, y), batch_size=200, private_diagnostics=True)
    list(run)
    assert torch.isfinite(vector(run)).all()
    records = run.private_diagnostics()
    assert all(record["not_finite"] == 1 and record["private"] for record in records)


def test_diagnostics_need_a_word(blobs: Pair) -> None:
    with pytest.raises(SettingError, match="private_diagnostics=True"):
        make(blobs).private_diagnostics()


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"batch_size": 500}, SettingError, "200 examples"),
        ({"rounds": None}, SettingError, "rounds, epochs or a budget"),
        ({"rounds": 0}, SettingError, "at least one round"),
        ({"rounds": 3, "epochs": 2}, SettingError, "not both"),
        ({"method": rt.methods.dpsgd()}, SettingError, "noise_multiplier"),
        ({"budget": rt.Budget(0.01, 1e-5)}, SettingError, "not even one round"),
    ],
)
def test_bad_settings_say_what_to_do(blobs: Pair, settings: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make(blobs, **settings)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"size": 0}, "at least 1"),
        ({"lr": -1.0}, "lr must be"),
        ({"lr": float("nan")}, "lr must be"),
        ({"momentum": 2.0}, "momentum must be"),
        ({"groups": [{"ann": 1}] * 200}, "by a name or a number"),
        ({"dataset": "patients"}, "give the budget itself"),
    ],
)
def test_ordinary_mistakes_are_told_in_a_sentence(blobs: Pair, said: dict[str, Any], says: str) -> None:
    with pytest.raises((SettingError, DataError), match=says):
        rt.fit(nn.Linear(4, 2), blobs, epsilon=3.0, epochs=1, loss="cross_entropy", **said)


@pytest.mark.parametrize("form", ["by name", "single numbers"])
def test_only_columns_are_normalised(blobs: Pair, form: str) -> None:
    x, y = blobs
    single = nn.Sequential(nn.Unflatten(0, (-1, 1)), nn.Linear(1, 2))
    net, examples = (nn.Linear(4, 2), {"x": x, "labels": y}) if form == "by name" else (single, (x[:, 0], y))
    with pytest.raises(SettingError, match="give the examples as"):
        rt.fit(net, rt.normalise(examples, budget_share=0.1), epsilon=3.0, epochs=1, loss="cross_entropy")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(SettingError, match="epsilon"):
        rt.Budget(epsilon, 1e-5)


def test_large_delta_is_warned_of(blobs: Pair) -> None:
    with pytest.warns(PrivacyWarning, match="1/200"):
        make(blobs, delta=0.01)


def test_bad_models_and_data_are_named(blobs: Pair) -> None:
    x, y = blobs
    with pytest.raises(ModelError, match="BatchNorm"):
        make(blobs, nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)))
    with pytest.raises(ModelError, match=r"per example|one number"):
        make(blobs, loss=lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]))
    with pytest.raises(DataError, match="empty"):
        make((x[:0], y[:0]))
    with pytest.raises(DataError, match="different lengths"):
        make((x, y[:10]))
    with pytest.raises(DataError, match="DataLoader"):
        make(iter([x]))
    with pytest.raises(DataError, match="from 0 to 1"):
        rt.fit(net(), (x, y + 1), epsilon=1.0, check_data=True)
    with pytest.raises(UnknownName, match="did you mean 'dpsgd'"):
        rt.fit(net(), blobs, method="dpsdg", epsilon=1.0)
    with pytest.raises(UnknownName, match="max_grad_norm"):
        rt.fit(net(), blobs, max_grad_nrom=1.0, epsilon=1.0)


def test_optimizers_that_would_peek_are_refused(blobs: Pair) -> None:
    model = net()
    with pytest.raises(SettingError, match="LBFGS"):
        rt.Run(
            model,
            torch.optim.LBFGS(model.parameters()),
            blobs,
            method=rt.methods.dpsgd(noise_multiplier=1.0),
            batch_size=20,
            rounds=1,
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(SettingError, match="ReduceLROnPlateau"):
        rt.Run(
            model,
            optimizer,
            blobs,
            method=rt.methods.dpsgd(noise_multiplier=1.0),
            batch_size=20,
            rounds=1,
            scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
        )


def test_saved_model_loads_in_plain_pytorch_and_here(blobs: Pair, tmp_path: Any) -> None:
    from safetensors.torch import load_file

    trained = rt.fit(net(), blobs, epsilon=2.0, epochs=1, batch_size=50, seed=0)
    trained.save(tmp_path / "model")
    plain = net()
    plain.load_state_dict(load_file(tmp_path / "model" / "model.safetensors"))
    assert torch.equal(plain[0].weight, trained.model.get_parameter("0.weight"))
    again = rt.load(tmp_path / "model", net())
    assert again.guarantee == trained.guarantee
    with pytest.raises(ResumeError, match="another model"):
        rt.load(tmp_path / "model", nn.Linear(4, 2))
    with pytest.raises(ResumeError, match="no trained model"):
        rt.load(tmp_path, net())


def test_one_example_moves_a_released_sum_by_at_most_the_clip_norm(blobs: Pair) -> None:
    """The sensitivity probe on the real loop: everybody in, no noise, one example drawn out."""
    x, y = blobs
    moves = []
    quiet = rt.methods.dpsgd(noise_multiplier=0.0, max_grad_norm=0.3)

    def step_without(out: int | None) -> Tensor:
        rows = np.array([i for i in range(20) if i != out])
        run = make((x[rows], y[rows]), lr=1.0, method=quiet, batch_size=len(rows), rounds=1)
        before = vector(run).clone()
        list(run)
        return (vector(run) - before) * len(rows)

    everyone = step_without(None)
    moves = [(everyone - step_without(out)).norm().item() for out in range(20)]
    assert max(moves) <= 0.3 * (1 + 1e-4)
    assert max(moves) > 0.1


def test_what_was_released_before_is_part_of_the_guarantee(blobs: Pair) -> None:
    plain, after = make(blobs), make(blobs, already=[Gaussian(8.0), Gaussian(8.0)])
    assert after.guarantee().epsilon > plain.guarantee().epsilon + 0.05
    within = make(blobs, already=[Gaussian(8.0)], method=rt.methods.dpsgd(), budget=rt.Budget(3.0, 1e-5))
    assert within.guarantee().epsilon <= 3.0
    assert (
        within.plan.settings.noise_multiplier
        > make(blobs, method=rt.methods.dpsgd(), budget=rt.Budget(3.0, 1e-5)).plan.settings.noise_multiplier
    )
    list(within)
    assert within.ledger.tally() == within.plan.tally()


def test_the_guarantee_names_the_generator_and_what_is_covered_by_test(blobs: Pair) -> None:
    said = make(blobs).guarantee()
    assert any("AES-128" in text and "BLAKE2b" in text for text in said.assumptions)
    assert any("lattice" in text for text in said.assumptions)
    assert any("float32" in text and "not by proof" in text for text in said.assumptions)
    assert not any("floating" in text for text in said.excludes)
    assert any("timing" in text for text in said.excludes)


@dataclass(frozen=True)
class OutOfPlace(Averaged):
    """The same direction, in memory of its own."""


@dataclass(frozen=True)
class Looking(Open):
    """Keeps everything, and looks at what was released."""

    def settle(self, proposal: Proposal) -> Outcome:
        gradients = torch.cat([p.grad.flatten() for p in proposal.task.flat.parameters() if p.grad is not None])
        assert torch.equal(proposal.released / proposal.settings.batch_size, gradients)
        return super().settle(proposal)


def test_a_direction_in_the_place_of_what_was_released_is_the_same(blobs: Pair) -> None:
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    runs = [make(blobs, method=one) for one in (method, replace(method, direction=OutOfPlace()))]
    for run in runs:
        list(run)
    assert torch.equal(*map(vector, runs))


def test_a_gate_that_looks_sees_what_was_released(blobs: Pair) -> None:
    list(make(blobs, method=replace(rt.methods.dpsgd(noise_multiplier=1.0), gate=Looking())))
