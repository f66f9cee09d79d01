"""Mutants beyond the planted bugs: each is a small patch of one piece, named after the mistake it repeats."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import broken_checks as checks
import numpy as np
import torch

import reticent.accounting.renyi.conversions as conversions
import reticent.audits.claims as claims
import reticent.audits.one_run as one_run
import reticent.data.tables.schema as tables
import reticent.inside.bounds as bounds
import reticent.inside.queries as queries
import reticent.inside.store as store
import reticent.inside.vault as vault
import reticent.run as train
from reticent import beforehand, bill, fitting, usable
from reticent.accounting import Gaussian, Ledger, Planned, Subsampled, calibrate
from reticent.attacks import apart, intervals, learned, lira, signals, suite
from reticent.attacks.learned import make_learner
from reticent.audits.counts import Evidence
from reticent.audits.gaussian import gdp_epsilon
from reticent.data.features import second_moments
from reticent.data.features.second_moments import SecondMoments
from reticent.data.features.statistics import FeatureSum, PresenceSum
from reticent.experiments import request
from reticent.gradients import company, crowds
from reticent.gradients.following import Whose, indexing
from reticent.holding import Hold
from reticent.inside import ByNorm, Flat, GradientSum, Poisson, Randomness, Vault
from reticent.inside.guard import Guard
from reticent.inside.persons import features_of, weighted_rows
from reticent.loop import Loop
from reticent.methods import solving
from reticent.methods.planning import Plan
from reticent.outside import Selective, Trial


def _failed(verb: Callable[[str], object], given: str) -> Exception | None:
    try:
        verb(given)
    except ValueError as error:
        return error
    return None


@dataclass(frozen=True)
class Mutant:
    """A wrong piece and the check that must notice it."""

    name: str
    owner: Any
    attribute: str
    broken: Callable[[Any], Any]
    caught_by: Callable[[], None]

    @contextmanager
    def planted(self) -> Iterator[None]:
        right = vars(self.owner)[self.attribute]
        callable_right = right.__func__ if isinstance(right, staticmethod | classmethod) else right
        setattr(self.owner, self.attribute, self.broken(callable_right))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, right)


MUTANTS: list[Mutant] = []


def mutant(
    owner: Any, attribute: str, caught_by: Callable[[], None], among: list[Mutant] = MUTANTS
) -> Callable[[Any], Any]:
    def note(broken: Callable[[Any], Any]) -> Callable[[Any], Any]:
        among.append(Mutant(broken.__name__.replace("_", "-"), owner, attribute, broken, caught_by))
        return broken

    return note


# -- gradients ---------------------------------------------------------------------------------------------------


def with_norms(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    """The same sum, weighed by norms that are a little wrong."""

    def broken(right: Any) -> Any:
        def wrapped(model: Any, loss: Any, batch: Any, weigh: Any, **rest: Any) -> Any:
            return right(model, loss, batch, lambda norms: weigh(change(norms)), **rest)

        return wrapped

    return broken


@mutant(queries, "norms_and_sum", checks.probes)
def ghost_norm_too_small(right: Any) -> Any:
    return with_norms(lambda norms: 0.9 * norms)(right)


@mutant(queries, "norms_and_sum", checks.probes)
def norm_in_half_precision(right: Any) -> Any:
    return with_norms(lambda norms: norms.bfloat16().float())(right)


@mutant(queries, "norms_and_sum", checks.micro_batches)
def physical_batches_averaged_apart(right: Any) -> Any:
    def wrapped(*args: Any, max_physical_batch_size: int | None = None, into: Any, **rest: Any) -> Any:
        before = {name: part.clone() for name, part in into.items()}
        found = right(*args, max_physical_batch_size=max_physical_batch_size, into=into, **rest)
        if max_physical_batch_size is not None:
            for name, part in into.items():
                part.copy_(before[name] + (part - before[name]) / max_physical_batch_size)
        return found

    return wrapped


@mutant(GradientSum, "answer", checks.probes)
def bias_goes_round_the_clip(right: Any) -> Any:
    def answer(self: GradientSum, drawn: Any) -> torch.Tensor:
        total = right(self, drawn)
        for batch in drawn.batches():
            if len(batch[0]):
                self.task.flat.views(total)["second.bias"] += batch[1].sum()
        return total

    return answer


@mutant(GradientSum, "answer", checks.known_gradients)
def an_example_is_dropped_from_every_batch(right: Any) -> Any:
    def answer(self: GradientSum, drawn: Any) -> torch.Tensor:
        fewer = dataclasses.replace(drawn.draw, _index=drawn.draw._index[:-1])
        return right(self, dataclasses.replace(drawn, draw=fewer))

    return answer


@mutant(bounds, "finite", checks.not_a_number)
def not_a_number_passes(_right: Any) -> Any:
    return lambda weights, norms: weights


@mutant(usable, "check", checks.batch_norm_refused)
def batch_norm_accepted(_right: Any) -> Any:
    return lambda *args, **rest: None


# -- the loop, the trial, the ledger -----------------------------------------------------------------------------


@mutant(Trial, "__exit__", checks.rejection_restores)
def momentum_survives_a_rejection(right: Any) -> Any:
    def leave(self: Trial, *error: Any) -> None:
        state = dict(self._optimizer.state)
        right(self, *error)
        self._optimizer.state.update(state)

    return leave


@mutant(train.Run, "step", checks.selective_ledger)
def rejected_rounds_not_charged(right: Any) -> Any:
    def step(self: train.Run) -> Any:
        done = right(self)
        if not done.kept:
            for place in [place for place in self.ledger._entries if place[0] == done.number - 1]:
                event = self.ledger._entries.pop(place).event
                self.ledger._tally[event] -= 1
        return done

    return step


@mutant(Vault, "_write", checks.selective_ledger)
def validation_answers_not_charged(right: Any) -> Any:
    return lambda self, event, sealed: right(self, event, sealed) if sealed._value.ndim else None


@mutant(Vault, "_write", checks.probes)
def every_tenth_round_not_charged(right: Any) -> Any:
    return lambda self, event, sealed: right(self, event, sealed) if self._round % 10 else None


@mutant(Ledger, "_open", checks.resume_keeps_the_ledger)
def resume_forgets_the_ledger(right: Any) -> Any:
    def opened(self: Ledger, path: Any) -> None:
        path.unlink(missing_ok=True)
        right(self, path)

    return opened


@mutant(Ledger, "_same_or_refuse", checks.replay_is_refused_on_other_data)
def replay_not_compared(_right: Any) -> Any:
    return staticmethod(lambda before, now: None)


@mutant(Plan, "bundles", checks.hidden_attempts_are_bound_to_their_examples)
def some_examples_stand_for_all(_right: Any) -> Any:
    return property(lambda self: False)


@mutant(ByNorm, "serves", checks.draws_serve_their_queries)
def candidates_taken_for_participants(_right: Any) -> Any:
    return lambda self, query: True


@mutant(Planned, "covers", checks.no_round_past_the_plan)
def one_round_past_the_budget(_right: Any) -> Any:
    return lambda self, event: True


@mutant(train, "warn_of_weak_promise", checks.weak_promises_are_warned_of)
def weak_promises_not_mentioned(_right: Any) -> Any:
    return lambda price, size, ranks: None


@mutant(Selective, "_in_full", checks.remembered_rejections_are_charged_in_full)
def remembered_rejections_cost_no_more_than_hidden_ones(_right: Any) -> Any:
    return property(lambda self: self.seen_attempts)


@mutant(Poisson, "draw", checks.declared_size_is_kept)
def rate_from_the_examples_there_are(right: Any) -> Any:
    """A size is declared and printed, but the draw still takes so many of those there really are."""

    def draw(self: Poisson, settings: Any, population: int, *rest: Any) -> Any:
        return right(self, dataclasses.replace(settings, size=population), population, *rest)

    return draw


@mutant(bill, "plan", checks.declared_size_is_kept)
def plan_from_the_examples_there_are(right: Any) -> Any:
    """A size is declared and printed, but rate and rounds are planned with the length of the data: 30 in the check."""
    return lambda method, *, size, **rest: right(method, size=30, **rest)


@mutant(Randomness, "fresh", checks.secret_coins_differ)
def every_run_has_the_same_key(_right: Any) -> Any:
    return classmethod(lambda cls: cls(bytes(32), seeded=False))


@mutant(request, "charges", checks.normalising_is_paid_for)
def mean_not_charged(_right: Any) -> Any:
    return lambda recipe: ()


@mutant(request, "charges", checks.normalising_is_paid_for)
def deviations_not_charged(right: Any) -> Any:
    """The means are charged; the mean squares, a second look at everybody, are not."""
    return lambda recipe: right(recipe)[:1]


@mutant(fitting, "prepared", checks.private_statistics_are_paid_for)
def statistics_of_fit_not_charged(right: Any) -> Any:
    return lambda *given: dataclasses.replace(right(*given), already=())


@mutant(fitting, "prepared", checks.private_statistics_are_paid_for)
def only_the_means_of_fit_are_charged(right: Any) -> Any:
    return lambda *given: dataclasses.replace(ready := right(*given), already=ready.already[:1])


@mutant(tables, "_which", checks.errors_keep_cells_to_themselves)
def an_error_shows_the_cell(_right: Any) -> Any:
    """As a cell's own error would, if it were passed on."""
    return lambda _origin: str(_failed(float, "s3cret"))


@mutant(FeatureSum, "_add_up", checks.normalising_is_paid_for)
def features_not_cut(_right: Any) -> Any:
    return lambda self, batch: features_of(self.features, batch).sum(0)


@mutant(SecondMoments, "_rows", checks.normalising_is_paid_for)
def moments_of_rows_as_long_as_they_are(_right: Any) -> Any:
    return lambda self, x: self.before(x).flatten(1).double()


@mutant(second_moments, "folded", checks.normalising_is_paid_for)
def half_of_the_moments_is_written_twice_as_long(right: Any) -> Any:
    """Off the diagonal the sum of both halves, where the noise is for one of them times the root of 2."""
    return lambda gram: right(gram * torch.where(torch.eye(len(gram)).bool(), 1.0, 2**0.5))


@mutant(PresenceSum, "answer", checks.normalising_is_paid_for)
def a_word_counts_as_often_as_it_is_named(_right: Any) -> Any:
    def answer(self: PresenceSum, taken: Any) -> torch.Tensor:
        total = torch.zeros(self.places + 1, dtype=torch.float64)
        for batch in taken.batches():
            x, weights = weighted_rows(batch)
            each = weights / (x > 0).sum(1).double().sqrt().clamp(min=1)
            total.index_add_(0, x.flatten(), each[:, None].expand(x.shape).flatten())
        return total

    return answer


@mutant(beforehand, "BEFORE_THE_FIRST", checks.normalising_is_paid_for)
def mean_has_the_noise_of_the_first_round(right: Any) -> Any:
    return {**right, "centre": 0}


@mutant(beforehand, "BEFORE_THE_FIRST", checks.normalising_is_paid_for)
def statistics_have_the_noise_of_the_mean(right: Any) -> Any:
    return {**right, "statistics": right["centre"]}


@mutant(beforehand, "BEFORE_THE_FIRST", checks.normalising_is_paid_for)
def moments_have_the_noise_of_the_mean(right: Any) -> Any:
    return {**right, "whiten": right["centre"]}


@mutant(indexing, "reordered", checks.sorted_examples_keep_their_gradients)
def sorting_moves_nobody(_right: Any) -> Any:
    """Rows picked by an index are taken to be in their own places still."""
    return lambda *_: None


@mutant(Whose, "of", checks.unseen_tensors_are_nobodys)
def what_was_not_seen_is_the_same_for_all(right: Any) -> Any:
    def of(self: Whose, tensor: torch.Tensor) -> Any:
        self.ambient.setdefault(id(tensor), tensor)
        return right(self, tensor)

    return of


@mutant(company, "losses_differ", checks.mixing_is_refused)
def a_row_alone_is_not_compared(_right: Any) -> Any:
    return lambda *_: False


@mutant(company, "crowds", checks.mixing_is_refused)
def only_a_few_rows_are_looked_at(right: Any) -> Any:
    return lambda base, _most, runs: right(base, 4, runs)


@mutant(crowds, "_with_ignored", checks.mixing_is_refused)
def no_label_is_ever_ignored(_right: Any) -> Any:
    return lambda part: part


@mutant(sys.modules["reticent.gradients.second_look"], "books_of", checks.a_second_look_finds_mixing)
def the_second_look_leaves_nobody_out(right: Any) -> Any:
    return lambda task, batch, plan, _counted: right(task, batch, plan)


@mutant(sys.modules["reticent.gradients.second_look"], "losses_differ", checks.a_second_look_finds_mixing)
def the_second_look_sees_no_difference(_right: Any) -> Any:
    return lambda *_: False


# -- accounting --------------------------------------------------------------------------------------------------


@mutant(sys.modules["reticent.accounting.pricing"], "to_epsilon", checks.accountants_agree)
def conversion_without_the_logarithm(right: Any) -> Any:
    """As printed in equation 4 of SA-DPSGD."""
    return lambda orders, rdp, delta, *rest: right(orders, rdp, math.exp(-delta), *rest)


@mutant(conversions, "overhead", checks.accountants_agree)
def conversion_too_kind(right: Any) -> Any:
    return lambda orders, delta, *rest: right(orders, math.sqrt(delta), *rest)


@mutant(checks, "price", checks.accountants_agree)
def central_limit_as_a_certificate(right: Any) -> Any:
    """Opacus' GDP accountant: mu = rate sqrt(T (e^(1/s^2) - 1)) as if it were exact."""

    def priced(events: Any, delta: float, **rest: Any) -> Any:
        ((event, count),) = events.items()
        if not isinstance(event, Subsampled):
            return right(events, delta, **rest)
        noise = event.inner.noise_multiplier
        mu = event.rate * math.sqrt(count * math.expm1(noise**-2))
        return dataclasses.replace(right({Gaussian(1.0): 1}, delta), epsilon=gdp_epsilon(mu, delta))

    return priced


@mutant(calibrate, "noise_multiplier", checks.calibration_stays_within)
def noise_rounded_down(right: Any) -> Any:
    return lambda *args, **rest: math.floor(100 * right(*args, **rest)) / 100


@mutant(checks, "sa_charge", checks.accepted_only_refuted)
def accepted_updates_only(_right: Any) -> Any:
    return lambda accepted, most_attempts: {Subsampled(0.05, Gaussian(2.0)): accepted}


# -- attacks and audits ------------------------------------------------------------------------------------------


@mutant(intervals, "rate_between", checks.interval_is_exact)
def interval_with_alpha_on_each_side(right: Any) -> Any:
    return lambda hits, trials, alpha=0.05: right(hits, trials, 2 * alpha)


@mutant(Evidence, "split", checks.auditor_covers)
def thresholds_from_the_certifying_runs(_right: Any) -> Any:
    return lambda self, share=0.5: (self, self)


@mutant(claims, "rates_at_most", checks.true_claims_survive)
def rates_without_a_margin(_right: Any) -> Any:
    return lambda hits, trials, alpha: np.asarray(hits) / trials


@mutant(one_run, "p_value", checks.one_run_reference)
def one_run_without_delta(right: Any) -> Any:
    return lambda guesses, epsilon, delta: right(guesses, epsilon, 0.0)


@mutant(signals.Signals, "round", checks.target_is_no_shadow)
def target_among_its_shadows(right: Any) -> Any:
    def view(self: Any, target: int) -> Any:
        found = right(self, target)
        return dataclasses.replace(found, shadows=self.phi, seen=self.keep, unseen=~self.keep)

    return view


@mutant(signals.Signals, "round", checks.nothing_found_in_nothing)
def balanced_design_counted_out(right: Any) -> Any:
    """All other models are used: how many saw a record then tells whether the target did."""

    def view(self: Any, target: int) -> Any:
        others = np.arange(len(self.phi)) != target
        return dataclasses.replace(right(self, target), seen=self.keep[others], unseen=~self.keep[others])

    return view


@mutant(suite.Target, "signals", checks.membership_is_not_used)
def attack_tuned_on_the_target(right: Any) -> Any:
    def signals_with_it(self: Any) -> Any:
        found, own = right(self), self.round()
        rows = [(own.phi, found.phi), (self.members, found.keep), (own.population, found.population)]
        return signals.Signals(*(np.concatenate([mine[None], theirs]) for mine, theirs in rows))

    return signals_with_it


@mutant(apart, "unseen_of", checks.shadows_never_see_the_target)
def shadows_from_the_targets_own_examples(_right: Any) -> Any:
    return lambda dataset: dataset.train


@mutant(apart, "attack_split", checks.shadows_never_see_the_target)
def parts_that_overlap(right: Any) -> Any:
    def split(examples: Any, *, seed: int) -> Any:
        parts = right(examples, seed=seed)
        return dataclasses.replace(parts, shadow_train=parts.target_train)

    return split


@mutant(lira, "_fit", checks.lira_spreads)
def spread_of_the_other_side(right: Any) -> Any:
    def fit(phi: Any, chosen: Any, variance: Any, side: str) -> Any:
        mean, _ = right(phi, chosen, variance, side)
        return mean, right(phi, ~chosen, variance, side)[1]

    return fit


@mutant(lira, "_fit", checks.lira_spreads)
def spread_of_values_that_are_not_centred(right: Any) -> Any:
    def fit(phi: Any, chosen: Any, variance: Any, side: str) -> Any:
        mean, _ = right(phi, chosen, variance, side)
        return mean, np.full_like(mean, phi[chosen].std())

    return fit


@mutant(learned, "cross_fitted", checks.cross_fitting_is_honest)
def classifier_scores_what_it_was_fitted_on(_right: Any) -> Any:
    def fitted(features: Any, keep: Any, kind: Any = "forest", *, seed: int = 0, **rest: Any) -> Any:
        return make_learner(kind, seed).fit(features, keep).predict_proba(features)[:, 1]

    return fitted


@mutant(checks, "draw_records", checks.blind_sees_nothing)
def outsiders_from_another_distribution(right: Any) -> Any:
    def drawn(rng: Any) -> Any:
        records, keep = right(rng)
        return records + keep[:, None], keep

    return drawn


@mutant(signals, "paired_design", checks.shadows_have_the_targets_size)
def shadows_of_another_size(right: Any) -> Any:
    return lambda models, records, seed: right(models, records, seed=seed) & (np.arange(records) % 3 > 0)


@mutant(Guard, "_undo", checks.nothing_outlives_a_query)
def forward_may_write(_right: Any) -> Any:
    return lambda self, values: None


@mutant(Flat, "refuse_moved", checks.moved_models_are_refused)
def moved_parameters_are_not_missed(_right: Any) -> Any:
    return lambda self: None


@mutant(queries, "enforced", checks.bounds_are_cut_to_their_promise)
def bounds_are_believed(_right: Any) -> Any:
    return lambda bound, norms, settings: bound.weights(norms, settings)


@mutant(solving, "refuse_unserved", checks.noise_serves_its_queries)
def any_noise_for_any_query(_right: Any) -> Any:
    return lambda method: None


@mutant(usable, "refuse_witnesses", checks.hidden_candidates_have_no_witness)
def hooks_see_candidates(_right: Any) -> Any:
    return lambda optimizer: None


@mutant(checks, "round_up", checks.printed_numbers_are_never_too_small)
def epsilon_rounded_to_the_nearest(_right: Any) -> Any:
    return lambda epsilon: f"{epsilon:.2f}"


@mutant(checks, "delta_up", checks.printed_numbers_are_never_too_small)
def delta_rounded_to_the_nearest(_right: Any) -> Any:
    return lambda delta: f"{delta:.4g}"


@mutant(vault, "carefully", checks.bad_records_tell_nothing)
def errors_name_the_record(_right: Any) -> Any:
    return lambda query, drawn, guard: query.answer(drawn)


@mutant(vault, "look_again", checks.real_rows_are_looked_at_again)
def nobody_looks_again(_right: Any) -> Any:
    return lambda *_: None


@mutant(store, "fitted", checks.odd_records_change_no_other)
def records_are_put_together_as_they_come(_right: Any) -> Any:
    return lambda row, form: row


@mutant(Loop, "_optimizer_bits", checks.replays_ask_the_same)
def replays_with_another_step(_right: Any) -> Any:
    return lambda self: iter(())


@mutant(Hold, "refuse_if_lost", checks.one_run_in_a_folder)
def two_runs_in_a_folder(_right: Any) -> Any:
    return lambda self: None
