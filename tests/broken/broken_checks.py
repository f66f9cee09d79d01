"""Fast checks that a right build passes; each mutant must make at least one of them fail."""

from __future__ import annotations

import dataclasses
import math
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from scipy import stats
from scipy.special import ndtri
from torch import nn

import reticent.audits.claims as claims
import reticent.audits.one_run as one_run
from reticent import beforehand
from reticent.accounting import Budget, Entry, Gaussian, Ledger, Subsampled, calibrate, price
from reticent.accounting.guarantee import delta_up, round_up
from reticent.attacks import intervals, learned, lira, signals
from reticent.attacks.game import Game
from reticent.attacks.games import deal_cards
from reticent.attacks.metrics import Scores, auc, auc_standard_error
from reticent.attacks.suite import ATTACKS, Target
from reticent.attacks.thresholds import each_round
from reticent.audits.bounds import mu_lower
from reticent.audits.counts import Evidence
from reticent.audits.findings import attempted
from reticent.audits.gaussian import gdp_epsilon
from reticent.audits.selective import annealing_toy
from reticent.audits.stored import check_stored, read_events
from reticent.audits.toy import SIZE, examples, make_run
from reticent.audits.verdict import PROBES
from reticent.data import Dataset, Examples, load
from reticent.data.features.second_moments import SecondMoments
from reticent.data.features.statistics import FeatureSum, PresenceSum
from reticent.data.tables.schema import Schema
from reticent.errors import BudgetSpent, DataError, ModelError, PrivacyWarning, ResumeError, SettingError
from reticent.experiments import normalising, training
from reticent.experiments.recipe import Recipe
from reticent.fitting import fit
from reticent.gradients import check, gradients_are_own, losses_are_own, norms
from reticent.gradients.planning import plan_of
from reticent.gradients.task import LossTask
from reticent.inside import BestOf, Clip, GradientSum, Poisson, Randomness, RoundSettings
from reticent.inside.lattice import Lattice
from reticent.losses import squared_error
from reticent.methods import Method, dpis, dpsgd, dpsur, plan, sa_dpsgd
from reticent.models import with_centre, with_statistics
from reticent.models.normalising import Centre, split_at, statistics_of
from reticent.normalised import normalise
from reticent.run import Run

PLAIN = dpsgd(noise_multiplier=1.0)


def probes(method=PLAIN, names=tuple(PROBES)) -> None:
    """No deterministic probe of the audit contradicts the method."""
    for name in names:
        finding = attempted(name, lambda name=name: PROBES[name](method))
        assert finding.holds, f"{name}: {finding.says}"


def selective_ledger() -> None:
    """Every attempt is in the ledger, kept or not; every validation answer too."""
    probes(dpsur(noise_multiplier=1.0), ("ledger",))
    probes(sa_dpsgd(noise_multiplier=1.0), ("ledger",))


def rejection_restores() -> None:
    """A rejected round leaves parameters and momentum as they were."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    pair = torch.randn(20, 2), torch.randn(20, 1)
    method = dpsur(noise_multiplier=1.0, beta=-2.0, validation_batch_size=4)
    run = Run(model, optimizer, pair, method=method, batch_size=5, loss=squared_error, rounds=12, seed=0)

    def state() -> list[torch.Tensor]:
        momenta = [one["momentum_buffer"] for one in optimizer.state.values() if one.get("momentum_buffer") is not None]
        return [part.detach().clone() for part in (*model.parameters(), *momenta)]

    kept = 0
    for _ in range(12):
        before = state()
        if run.step().kept:
            kept += 1
            continue
        after = state()
        assert len(after) == len(before)
        assert all(torch.equal(now, then) for now, then in zip(after, before, strict=True))
    assert 0 < kept < 12


def micro_batches() -> None:
    """How many examples are held in memory at once changes no answer."""
    sealed = []
    for limit in (None, 3):
        run = make_run(PLAIN, examples(2.0), batch_size=SIZE, rounds=1, seed=0)
        task = dataclasses.replace(run._task, max_physical_batch_size=limit)
        run._loop = dataclasses.replace(run._loop, task=task)
        probe = run.watch()
        run.step()
        sealed.append(probe.openings[0].sealed)
    torch.testing.assert_close(*sealed)


def not_a_number() -> None:
    """A gradient that is not finite counts for nothing."""
    weights = Clip().weights(torch.tensor([1.0, math.nan, math.inf]), RoundSettings(10, 5, 1.0, 1.0))
    assert weights.tolist() == [1.0, 0.0, 0.0]


def batch_norm_refused() -> None:
    """A layer that mixes examples is refused before the run."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False))
    pair = torch.randn(8, 2), torch.zeros(8, dtype=torch.long)
    try:
        Run(model, torch.optim.SGD(model.parameters(), lr=1.0), pair, method=PLAIN, batch_size=4, rounds=1, delta=1e-5)
    except ModelError:
        return
    raise AssertionError("BatchNorm was accepted")


def resume_keeps_the_ledger() -> None:
    """After a crash the ledger still holds what was released before it."""
    with tempfile.TemporaryDirectory() as folder:
        for start in (0, 2):
            assert sum(Ledger(Path(folder) / "ledger.jsonl").tally().values()) == start
            model = nn.Linear(2, 2)
            run = Run(
                model,
                torch.optim.SGD(model.parameters(), lr=1.0),
                (torch.ones(30, 2), torch.zeros(30, dtype=torch.long)),
                method=PLAIN,
                batch_size=3,
                rounds=4,
                seed=0,
                folder=Path(folder),
                resume=start > 0,
                checkpoint_seconds=0.0,
            )
            for _ in range(2):
                run.step()
        assert run.number == 4
        assert sum(run.ledger.tally().values()) == 4


def replay_is_refused_on_other_data() -> None:
    """The same round, with the same noise, on other data is not released."""
    ledger = Ledger()
    ledger.record(Entry(0, 0, Gaussian(1.0), "a"))
    try:
        ledger.record(Entry(0, 0, Gaussian(1.0), "b"))
    except ResumeError:
        return
    raise AssertionError("a second answer with the same noise came out")


def hidden_attempts_are_bound_to_their_examples() -> None:
    """Of several releases on one ledger line only the first is sealed: all examples must be the same in a replay."""
    x, y = torch.randn(600, 2), torch.zeros(600).long()
    method = dpsur(noise_multiplier=4.0, validation_batch_size=20, hidden_attempts=True)

    def made(y: torch.Tensor, folder: str, resume: bool) -> Run:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return Run(
            model, optimizer, (x, y), method=method, batch_size=60, rounds=2, seed=0, folder=folder, resume=resume
        )

    with tempfile.TemporaryDirectory() as folder:
        made(y, folder, resume=False)
        other = y.clone()
        other[1] = 1  # not among the 256 that are evenly spread
        try:
            made(other, folder, resume=True)
        except ResumeError:
            return
    raise AssertionError("the run went on with other examples")


def draws_serve_their_queries() -> None:
    """The draw of DPIS is charged for a sum with a second coin, and refused to one without."""
    mixed = dataclasses.replace(dpis(), query=GradientSum, bound=Clip())
    try:
        plan(mixed, size=1000, batch_size=100, rounds=20, budget=Budget(3.0, 1e-5))
    except SettingError:
        return
    raise AssertionError("candidates were drawn more often than was charged for")


def no_round_past_the_plan() -> None:
    """The vault lets nothing out that was not planned, whoever asks."""
    run = make_run(PLAIN, examples(1.0), batch_size=SIZE, rounds=1, seed=0)
    run.step()
    try:
        run._loop.round(run._standing)
    except BudgetSpent:
        return
    raise AssertionError("a round past the plan came out")


def remembered_rejections_are_charged_in_full() -> None:
    """Where the optimizer remembers rejected gradients, gradient and test of every attempt are in the charge."""
    settings, gradient = RoundSettings(100, 10, 2.0, 1.0), Subsampled(0.1, Gaussian(2.0))
    gate = dpsur(noise_multiplier=2.0, validation_batch_size=10, keep_state=True).gate
    assert gate.charge(gradient, settings).events == (gradient, Subsampled(0.1, Gaussian(1.3)))
    hidden = dpsur(noise_multiplier=2.0, validation_batch_size=10, keep_state=True, hidden_attempts=True).gate
    assert math.isinf(price(hidden.charge(gradient, settings).events, 1e-5).epsilon)


def weak_promises_are_warned_of() -> None:
    """A delta of one in the number of examples is warned of, and so is an epsilon beyond all odds."""
    for noise, delta, word in ((1.0, 0.2, "delta"), (0.1, 1e-6, "epsilon")):
        model = nn.Linear(2, 2)
        pair = torch.randn(8, 2), torch.zeros(8, dtype=torch.long)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            Run(model, optimizer, pair, method=dpsgd(noise_multiplier=noise), batch_size=4, rounds=1, delta=delta)
        said = [str(warning.message) for warning in raised if issubclass(warning.category, PrivacyWarning)]
        assert len(said) == 1
        assert said[0].startswith(word)


def declared_size_is_kept() -> None:
    """Of 30 examples where 40 are declared, each is drawn at the declared rate, and the plan does not know of them."""
    net = nn.Linear(2, 2)
    pair = torch.randn(30, 2), torch.zeros(30, dtype=torch.long)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    run = Run(net, optimizer, pair, method=PLAIN, batch_size=20, size=40, rounds=1, delta=1e-5, seed=0)
    assert run.guarantee().adjacency == "add-or-remove"
    assert set(run.plan.tally()) == {Subsampled(0.5, Gaussian(1.0))}
    drawn = sum(len(index) for index in run.watch().draws(Poisson(), run.plan.settings, 1000))
    assert stats.binomtest(drawn, 30 * 1000, 0.5).pvalue > 1e-3


def secret_coins_differ() -> None:
    """Two runs without a seed share no randomness."""
    assert Randomness.fresh().stream(0, "noise").random() != Randomness.fresh().stream(0, "noise").random()


def accountants_agree() -> None:
    """exact <= RDP <= 1.3 exact for Gaussians; a hard case costs the 7.43 that three other accountants agree on."""
    prices = sys.modules["reticent.accounting.pricing"]._price
    prices.cache_clear()
    try:
        for noise in (0.5, 1.0, 3.0):
            exact = gdp_epsilon(1 / noise, 1e-5)
            assert exact * (1 - 1e-6) <= price({Gaussian(noise): 1}, 1e-5, accountant="rdp").epsilon <= 1.3 * exact
        assert 7.42 < price({Subsampled(0.01, Gaussian(0.6)): 1000}, 1e-5).epsilon < 7.45
    finally:
        prices.cache_clear()


def calibration_stays_within() -> None:
    """The noise found for a budget keeps to it."""
    noise = calibrate.noise_multiplier(2.0, 1e-5, sample_rate=0.05, steps=100)
    assert price({Subsampled(0.05, Gaussian(noise)): 100}, 1e-5).epsilon <= 2.0


def accepted_only_refuted() -> None:
    """What the ledger of an annealing run claims is not contradicted by its accepted updates."""
    events = sa_charge(accepted=100, most_attempts=1100)
    evidence = annealing_toy(rate=0.05, noise_multiplier=2.0, max_rejections=10, steps=100, high=3.0).evidence(
        5000, seed=0
    )
    claim = claims.ledger_claim(events)
    tried, rest = evidence.split(0.3)
    assert claims.contradiction(rest, claim, claims.promising_thresholds(tried, claim)) is None


def sa_charge(accepted: int, most_attempts: int) -> dict:
    """Charge every attempt there can be."""
    return {Subsampled(0.05, Gaussian(2.0)): most_attempts}


# -- attacks and audits ------------------------------------------------------------------------------------------


def interval_is_exact() -> None:
    """Each end of a Clopper-Pearson interval has half of alpha."""
    theirs = stats.binomtest(7, 20).proportion_ci(0.95, method="exact")
    assert np.allclose(intervals.rate_between(7, 20), (theirs.low, theirs.high))


def auditor_covers() -> None:
    """The bound on mu of an exact Gaussian is too high in at most one audit of twenty."""
    rng, runs, wrong = np.random.default_rng(5), 5000, 0
    bound = ndtri(intervals.rates_at_most(np.arange(runs + 1), runs, 0.025))
    for _ in range(300):
        tried, rest = Evidence(rng.normal(0, 1, 2 * runs), rng.normal(1, 1, 2 * runs)).split()
        absent, present = (np.sort(side[:runs]) for side in (tried.absent, tried.present))
        cuts = np.r_[absent, present]
        with np.errstate(invalid="ignore"):
            mus = -bound[runs - np.searchsorted(absent, cuts)] - bound[np.searchsorted(present, cuts)]
        best = cuts[np.argmax(np.nan_to_num(mus, nan=-np.inf))]
        wrong += mu_lower(Evidence(rest.absent[:runs], rest.present[:runs]).count(best)) > 1.0
    assert stats.binomtest(wrong, 300, 0.05, alternative="greater").pvalue > 1e-3


def true_claims_survive() -> None:
    """True claims are contradicted in at most one audit of twenty."""
    rng, claim, wrong = np.random.default_rng(1), claims.gaussian_claim(1.0), 0
    for _ in range(100):
        tried, rest = Evidence(rng.normal(0, 1, 1000), rng.normal(1, 1, 1000)).split(0.3)
        wrong += claims.contradiction(rest, claim, claims.promising_thresholds(tried, claim)) is not None
    assert stats.binomtest(wrong, 100, 0.05, alternative="greater").pvalue > 1e-3


def one_run_reference() -> None:
    """A published value, with a delta."""
    assert abs(one_run.epsilon_one_run(one_run.Guesses(1000, 100, 100), 1e-5) - 3.4654) < 1e-4


def target_is_no_shadow() -> None:
    """The target's own confidence never enters the statistics it is judged by."""
    keep = signals.balanced_design(6, 40, seed=0)
    found = signals.Signals.of(np.random.default_rng(0).normal(size=keep.shape), keep)
    assert all(not (view.shadows == view.phi).all(axis=1).any() for view in found.rounds())


def membership_is_not_used() -> None:
    """Flipping the target's membership changes none of its scores."""
    rng, keep = np.random.default_rng(0), signals.balanced_design(8, 100, seed=0)
    logits = rng.normal(size=(8, 150, 3))
    x, y, members = torch.randn(150, 4, generator=torch.Generator().manual_seed(0)), torch.arange(150) % 3, keep[0]
    logits[:, :100] += 2 * np.eye(3)[y[:100].numpy()] * keep[:, :, None]
    model = torch.nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.copy_(torch.randn(3, 4, generator=torch.Generator().manual_seed(1)))
    made = (Target(model, x[:100], y[:100], side, (x[100:], y[100:]), logits, keep) for side in (members, ~members))
    assert np.array_equal(*(ATTACKS["rmia"](target) for target in made))


def shadows_never_see_the_target() -> None:
    """In the games of Shokri and Salem the target's examples and those of the shadows have nothing in common."""
    parts = [Examples(torch.arange(a, b)[:, None].float(), torch.arange(a, b) % 3) for a, b in ((0, 120), (120, 300))]
    dataset = Dataset("numbers", parts[0], parts[1], 3, "made up")
    for kind, models in (("shadow", 4), ("salem", 1)):
        cards = deal_cards(Game(records=20, models=models, kind=kind), dataset)
        own = dataset.train if cards.anew is None else cards.anew
        members = set(own.x.flatten().tolist())
        assert set(cards.guessed.x[:20].flatten().tolist()) <= members
        others = [cards.guessed.x[20:], cards.population.x, *(cards.train(number).x for number in range(models))]
        assert not members & set(torch.cat(others).flatten().tolist())


def nothing_found_in_nothing() -> None:
    """Where membership changes nothing, no attack is better or worse than chance."""
    keep = signals.balanced_design(8, 400, seed=2)
    nothing = signals.Signals.of(np.random.default_rng(0).normal(size=keep.shape), keep)
    for attack in (lira.lira_online, lira.lira_offline):
        scores = Scores.of(each_round(nothing, lambda view, attack=attack: attack(view, variance="record")), keep)
        assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)


def lira_spreads() -> None:
    """The global spread pools centred values of its own side."""
    rng = np.random.default_rng(0)
    keep = signals.balanced_design(8, 2000, seed=3)
    noise = rng.normal(size=keep.shape)
    phi = rng.normal(0, 5, 2000) + np.where(keep, 2 + 0.3 * noise, noise)
    view = signals.Signals.of(phi, keep).round(0)
    mean_in, mean_out = (np.where(side, view.shadows, 0).sum(0) / side.sum(0) for side in (view.seen, view.unseen))
    exact = stats.norm.logpdf(view.phi, mean_in, 0.3) - stats.norm.logpdf(view.phi, mean_out, 1.0)
    found = lira.lira_online(view, variance="global")
    assert np.corrcoef(found, exact)[0, 1] > 0.99


def blind_sees_nothing() -> None:
    """Members and non-members of one distribution cannot be told apart without the model."""
    rng = np.random.default_rng(0)
    records, keep = draw_records(rng)
    scores = learned.blind(records, keep)
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)


def draw_records(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Records, and which of them are members."""
    return rng.normal(size=(300, 6)), rng.random(300) < 0.5


def shadows_have_the_targets_size() -> None:
    """Every shadow is trained on as many records as the target."""
    assert (signals.paired_design(8, 60, seed=0).sum(axis=1) == 30).all()


def cross_fitting_is_honest() -> None:
    """A record's score comes from a classifier that was not fitted on it."""
    rng, keep = np.random.default_rng(0), np.arange(200) < 100
    scores = Scores.of(learned.cross_fitted(rng.normal(size=(200, 5)), keep, trees=50), keep)
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)


def known_gradients() -> None:
    """The toy's step is exactly the clipped sum that paper and pencil give."""
    run = make_run(PLAIN, examples(3.0), batch_size=SIZE, rounds=1, seed=0)
    probe = run.watch()
    run.step()
    x, _ = examples(3.0)
    base = x[1:, :4] * (1 / x[1:, :4].norm(dim=1, keepdim=True)).clamp(max=1.0)
    expected = torch.zeros(9)
    expected[:4] = base.sum(0)
    expected[[0, 4, 8]] += 1 / math.sqrt(3)
    torch.testing.assert_close(probe.openings[0].sealed, expected, atol=1e-5, rtol=1e-5)


def normalising_is_paid_for() -> None:
    """A released mean and statistics are in the guarantee, move by no more than their limits, and have own noise."""
    recipe = Recipe(data="digits", noise_multiplier=2.0, epochs=1, seed=0).filled()
    dataset = load("digits")

    def spent(**what: float) -> float:
        return training.prepare(dataclasses.replace(recipe, **what), dataset).guarantee().epsilon

    assert spent(centre=20.0) > spent()
    assert spent(statistics_noise=20.0) > spent(centre=20.0)
    assert spent(whiten=20.0) > spent()
    long = FeatureSum(nn.Identity(), 1.0)._add_up(torch.tensor([[30.0, 40.0]]))
    assert float(long.norm()) <= 1.0 + 1e-9
    words = PresenceSum(9).answer(SimpleNamespace(batches=lambda: [torch.tensor([[7, 7, 7, 7]])]))
    assert float(words.norm()) <= 1.0 + 1e-9, "a word that is named four times"
    row = SecondMoments(nn.Identity(), 2).answer(SimpleNamespace(batches=lambda: [torch.tensor([[30.0, 40.0]])]))
    assert float(row.norm()) <= 1.0 + 1e-6
    places = dict(beforehand.BEFORE_THE_FIRST)
    assert places.pop("whiten", -9) not in {*places.values(), 0}, "noise belongs to a place"
    empty = Examples(torch.zeros(10, 4), torch.zeros(10).long())
    model = with_centre(nn.Sequential(nn.Linear(4, 2)), (4,))
    normalising.centre(model, empty, 1.0, seed=0, folder=None)
    another = with_statistics(nn.Sequential(nn.Linear(4, 2)), (4,))
    normalising.standardise(another, empty, 1.0, 4, seed=0, folder=None)
    mean = split_at(Centre, model)[1].mean.double() * 10 / 2
    statistics = statistics_of(another).mean.double() * 10
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=4)
    first = lattice.noised(torch.zeros(4, dtype=torch.float64), Randomness.from_seed(0).at(0, "noise", 0))
    for one, other in ((mean, first), (statistics, first), (mean, statistics)):
        assert not torch.allclose(one, other, atol=0.15)


def private_statistics_are_paid_for() -> None:
    """What `rt.normalise` releases is in its ledger, and the guarantee covers all that the ledgers hold."""
    asked = normalise((torch.rand(60, 3), torch.arange(60) % 2), noise_multiplier=1.0)
    with tempfile.TemporaryDirectory() as folder:
        trained = fit(nn.Linear(3, 2), asked, noise_multiplier=5.0, epochs=1, folder=folder, seed=0)
        assert read_events(Path(folder))[Gaussian(1.0)] == 2
        assert check_stored(Path(folder), trained.guarantee).holds


def errors_keep_cells_to_themselves() -> None:
    """An error about a cell is kept in files that others may see: it names the column alone."""
    schema = Schema.from_json({"label": "y", "classes": ["a", "b"], "columns": {"age": {"low": 0, "high": 9}}})
    secret, told = f"s{3}cret", ""
    try:
        schema.examples({"age": [secret], "y": ["a"]})
    except DataError:
        told = traceback.format_exc()
    assert "'age'" in told
    assert secret not in told


def hidden_examples_are_found() -> None:
    """Behind a head that starts at zero, each gradient is still clipped by its own norm when the head has moved."""
    layer, head = nn.Linear(4, 4), nn.Linear(4, 1)
    nn.init.zeros_(head.weight)
    model = nn.Sequential(TimeFirst(layer), head)
    x = torch.randn(5, 6, 4)

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return model(x)[:, 0]

    norms(model, loss, x)
    nn.init.ones_(head.weight)
    found = norms(model, loss, x)
    alone = torch.cat([norms(model, loss, x[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(found, alone)


class SortedReader(nn.Module):
    """Sorts by length, packs, reads, and puts the examples back."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        order = lengths.argsort(descending=True)
        packed = nn.utils.rnn.pack_padded_sequence(x[order], lengths[order], batch_first=True)
        return self.out(self.read(packed)[1][0][order.argsort()])


def _read(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return model(*batch)[:, 0]


def sorted_examples_keep_their_gradients() -> None:
    """A model that sorts its rows has each gradient clipped by its own norm, and a second look finds nothing."""
    model, batch = SortedReader(), (torch.randn(6, 5, 3), torch.tensor([1, 3, 5, 2, 4, 1]))
    alone = torch.cat([norms(model, _read, (batch[0][i : i + 1], batch[1][i : i + 1])) for i in range(6)])
    torch.testing.assert_close(norms(model, _read, batch), alone)
    assert gradients_are_own(model, _read, batch, torch.arange(6) < 3)


def unseen_tensors_are_nobodys() -> None:
    """What compiled code makes of the examples takes the general path."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        turn = torch.jit.trace(lambda x: x.flip(0), torch.zeros(2, 3))
    head = nn.Linear(3, 2)

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return model(x).sum(1) + 0.1 * turn(turn(x)).sum(1)

    norms(head, loss, torch.randn(4, 3))
    assert plan_of(LossTask.of(head, loss), torch.randn(4, 3)) is None


def mixing_is_refused() -> None:
    """Losses that depend on the size of the batch, or on a count over it, are refused before any example is seen."""
    x = torch.rand(4, 6)
    batch = x, torch.zeros(4, 6, dtype=torch.int64)

    def shared(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return model(batch[0]).sum(1) / len(batch[0])

    def large(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        y = model(batch[0])
        return (y - y.mean(0) if len(y) > 8 else y).square().sum(1)

    def counted(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return model(batch[0]).sum(1) * len(batch[0]) / (batch[1] != -100).sum()

    for loss in (shared, large, counted):
        try:
            check(nn.Linear(6, 2), loss, batch)
        except ModelError:
            continue
        raise AssertionError(f"{loss.__name__} is accepted")


def a_second_look_finds_mixing() -> None:
    """Losses and gradients that depend on others are found, those of a clean model are not."""
    x, half = torch.randn(6, 3), torch.arange(6) % 2 == 0

    def clean(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return model(x).sum(1)

    def shared(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return model(x).sum(1) / len(x)

    assert gradients_are_own(nn.Linear(3, 2), clean, x, half)
    assert losses_are_own(nn.Linear(3, 2), clean, x, torch.arange(2))
    assert not losses_are_own(nn.Linear(3, 2), shared, x, torch.arange(2))


class TimeFirst(nn.Module):
    """A layer on [time * examples, width], as recurrent code calls it."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.transpose(0, 1).flatten(0, 1)).relu().unflatten(0, (x.shape[1], -1)).mean(0)


class KeepsTheLargest(nn.Module):
    """Writes an example's value into a buffer, once it is larger than any made-up one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("largest", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 2:
            self.largest.copy_(x.max())
        return self.layer(x)


def _one_step(model: nn.Module, method: Method = PLAIN) -> Run:
    pair = 3 * torch.rand(8, 2) + 1, torch.arange(8) % 2
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        run = Run(model, sgd, pair, method=method, batch_size=8, rounds=3, delta=1e-5, seed=0)
        run.step()
    return run


def nothing_outlives_a_query() -> None:
    """A buffer that a forward pass writes is put back, and the run ends."""
    model = KeepsTheLargest()
    try:
        _one_step(model)
    except ModelError:
        assert model.largest == 1.0
        return
    raise AssertionError("a private value stayed in the model")


def moved_models_are_refused() -> None:
    """Parameters that have left the flat vector are not rolled back: the run must not go on."""
    run = _one_step(nn.Linear(2, 2))
    run.model.weight.data = run.model.weight.data.clone()
    try:
        run.step()
    except ModelError:
        return
    raise AssertionError("a rejected candidate would stay in the model")


def bounds_are_cut_to_their_promise() -> None:
    """Whoever wrote a bound, no example weighs more than is charged."""

    class Careless(Clip):
        def weights(self, norms: torch.Tensor, settings: RoundSettings) -> torch.Tensor:
            return 10 * torch.ones_like(norms)

    method = dataclasses.replace(PLAIN, bound=Careless(), noise_multiplier=1e-6)
    run = make_run(method, examples(2.0), batch_size=SIZE, rounds=1, seed=0)
    probe = run.watch()
    run.step()
    (opening,) = probe.openings
    quiet = make_run(method, examples(0.0), batch_size=SIZE, rounds=1, seed=0)
    without = quiet.watch()
    quiet.step()
    moved = (opening.sealed - without.openings[0].sealed).norm()
    assert moved <= opening.sensitivity * (1 + 1e-4)


def noise_serves_its_queries() -> None:
    """A noisy maximum is proved for scores that move together, not for the coordinates of a gradient."""
    mixed = dataclasses.replace(PLAIN, noise=BestOf)
    try:
        plan(mixed, size=1000, batch_size=100, rounds=20, budget=Budget(3.0, 1e-5))
    except SettingError:
        return
    raise AssertionError("a choice was charged as if one example moved all scores the same way")


def hidden_candidates_have_no_witness() -> None:
    """A hook of the optimizer would see what a selective gate drops and hides."""
    model = nn.Linear(2, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    sgd.register_step_post_hook(lambda *_: None)
    pair = torch.randn(100, 2), torch.arange(100) % 2
    try:
        Run(model, sgd, pair, method=dpsur(noise_multiplier=2.0), batch_size=8, rounds=3, delta=1e-5)
    except SettingError:
        return
    raise AssertionError("a hidden candidate was seen")


def printed_numbers_are_never_too_small() -> None:
    """An epsilon or a delta in print is at least the true one."""
    for epsilon in (3.0000000049, 2.991, 0.00123, 1.005):
        assert float(round_up(epsilon)) >= epsilon
    assert float(delta_up(1.00049e-5)) >= 1.00049e-5


def bad_records_tell_nothing() -> None:
    """A label that the model does not know stops no round: the error would tell that it was drawn."""
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    pair = torch.randn(100, 2), torch.cat([torch.zeros(99, dtype=torch.long), torch.tensor([5])])
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    run = Run(model, sgd, pair, method=PLAIN, batch_size=100, rounds=1, delta=1e-5, seed=0)
    try:
        run.step()
    except IndexError as error:
        raise AssertionError("a round failed where the record was drawn") from error


def real_rows_are_looked_at_again() -> None:
    """A loss that mixes examples only where the real ones carry a mark is found in the first round."""

    def shared(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        marked = (batch[0][:, 0] == 1234.5).sum()
        return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none") / (1 + marked)

    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    x = torch.randn(100, 2)
    x[::2, 0] = 1234.5
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    pair = x, torch.arange(100) % 2
    run = Run(model, sgd, pair, loss=shared, method=PLAIN, batch_size=100, rounds=1, delta=1e-5, seed=0)
    try:
        run.step()
    except ModelError:
        return
    raise AssertionError("a model was trained on losses that depend on other examples")


class OneOddRecord(torch.utils.data.Dataset[tuple[torch.Tensor, object]]):
    """Labels are whole numbers, but one is not."""

    def __init__(self, odd: object):
        self.odd = odd

    def __len__(self) -> int:
        return 8

    def __getitem__(self, number: int) -> tuple[torch.Tensor, object]:
        return torch.full((2,), 1.0 + number), self.odd if number == 3 else number % 2


def odd_records_change_no_other() -> None:
    """A label that is no whole number does not turn those that are drawn with it into something else."""
    sums = []
    for odd in (0, math.nan):
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        sgd = torch.optim.SGD(model.parameters(), lr=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            run = Run(model, sgd, OneOddRecord(odd), method=PLAIN, batch_size=8, rounds=1, delta=1e-5, seed=0)
        probe = run.watch()
        run.step()
        sums.append(probe.openings[0].sealed)
    assert (sums[0] - sums[1]).norm() <= 1.0 + 1e-4, "one record changed what the others count for"


def replays_ask_the_same() -> None:
    """A round whose candidate is judged again goes to the same place, or is refused."""
    pair = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)), torch.arange(100) % 2
    with tempfile.TemporaryDirectory() as folder:
        for lr, resume in ((0.1, False), (5.0, True)):
            torch.manual_seed(0)
            model = nn.Linear(2, 2)
            sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            method = dpsur(noise_multiplier=2.0, validation_batch_size=20)
            settings = {"batch_size": 20, "rounds": 3, "delta": 1e-5, "seed": 0, "checkpoint_seconds": 1e9}
            run = Run(model, sgd, pair, method=method, folder=folder, resume=resume, **settings)
            sgd.param_groups[0]["lr"] = lr
            try:
                run.step()
            except ResumeError:
                return
    raise AssertionError("another candidate was judged by the same noise, unpaid")


def one_run_in_a_folder() -> None:
    """A run whose folder another one has taken over does not go on."""
    pair = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)), torch.arange(100) % 2
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for resume in (False, True):
            torch.manual_seed(0)
            model = nn.Linear(2, 2)
            sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            settings = {"batch_size": 20, "rounds": 3, "delta": 1e-5, "seed": 0}
            runs.append(Run(model, sgd, pair, method=PLAIN, folder=folder, resume=resume, **settings))
            runs[-1].step()
        try:
            runs[0].step()
        except ResumeError:
            return
    raise AssertionError("two runs went on with the same randomness")


CHECKS: list[Callable[[], None]] = [
    probes,
    selective_ledger,
    rejection_restores,
    micro_batches,
    not_a_number,
    batch_norm_refused,
    resume_keeps_the_ledger,
    replay_is_refused_on_other_data,
    hidden_attempts_are_bound_to_their_examples,
    draws_serve_their_queries,
    no_round_past_the_plan,
    weak_promises_are_warned_of,
    remembered_rejections_are_charged_in_full,
    declared_size_is_kept,
    secret_coins_differ,
    accountants_agree,
    calibration_stays_within,
    accepted_only_refuted,
    interval_is_exact,
    auditor_covers,
    true_claims_survive,
    one_run_reference,
    target_is_no_shadow,
    membership_is_not_used,
    nothing_found_in_nothing,
    lira_spreads,
    blind_sees_nothing,
    shadows_have_the_targets_size,
    cross_fitting_is_honest,
    known_gradients,
    normalising_is_paid_for,
    private_statistics_are_paid_for,
    errors_keep_cells_to_themselves,
    hidden_examples_are_found,
    nothing_outlives_a_query,
    moved_models_are_refused,
    bounds_are_cut_to_their_promise,
    noise_serves_its_queries,
    hidden_candidates_have_no_witness,
    printed_numbers_are_never_too_small,
    bad_records_tell_nothing,
    real_rows_are_looked_at_again,
    odd_records_change_no_other,
    replays_ask_the_same,
    one_run_in_a_folder,
    sorted_examples_keep_their_gradients,
    unseen_tensors_are_nobodys,
    mixing_is_refused,
    a_second_look_finds_mixing,
]
