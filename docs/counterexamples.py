"""Recompute the counterexamples of docs/accounting.md: python docs/counterexamples.py

Every line is an instance of a published algorithm at its published settings: the epsilon its paper claims, an epsilon
that the instance certainly exceeds, and the epsilon that Reticent proves for the same run. delta = 1e-5 throughout.
"""

from __future__ import annotations

from reticent.accounting import AnnealedRelease, Gaussian, SelectiveRelease, Subsampled, epsilon
from reticent.accounting.claims.claimed import dpsur, sa_dpsgd
from reticent.accounting.claims.counterexamples import (
    annealed_instance,
    closed_form,
    lower_epsilon,
    sharp_instance,
    simple_instance,
)
from reticent.accounting.selective.corners import noisy_test

DELTA = 1e-5

SA_DPSGD = [  # name, rate, noise, rejections, accepted updates, threshold in deviations
    ("MNIST, simple", 512 / 60000, 1.23, 10, 4698, 2.0),
    ("MNIST, best", 512 / 60000, 1.23, 10, 4698, 1.7),
    ("Fashion-MNIST", 2048 / 60000, 2.15, 10, 1157, 1.6),
    ("CIFAR-10", 1024 / 50000, 1.54, 5, 1435, 1.4),
]
DPSUR = [  # name, rate, noise, test rate, test noise, accepted updates, edges in deviations
    ("CIFAR-10, simple", 8192 / 50000, 5.67, 128 / 50000, 1.1, 509, (-1.2, 1.34)),
    ("CIFAR-10, best", 8192 / 50000, 5.67, 256 / 50000, 1.1, 461, (-1.124, 0.207, 1.559)),
    ("Fashion-MNIST 3", 2048 / 60000, 2.15, 256 / 60000, 0.8, 1081, (-1.309, 0.167, 1.805)),
    ("Fashion-MNIST 4", 2048 / 60000, 2.15, 256 / 60000, 0.8, 1972, (-1.448, 0.184, 1.873)),
]


def annealing() -> None:
    """SA-DPSGD: candidates whose outcome lies above a threshold are accepted, others only by force."""
    for name, rate, noise, rejections, accepted, place in SA_DPSGD:
        claim = sa_dpsgd(Subsampled(rate, Gaussian(noise)), accepted, DELTA)
        found = lower_epsilon(annealed_instance(rate, noise, rejections, (place * noise,), (0.0, 1.0)), accepted, DELTA)
        line(
            f"SA-DPSGD {name}",
            claim.epsilon,
            found,
            epsilon({AnnealedRelease(rate, noise, rejections): accepted}, DELTA),
        )


def selecting() -> None:
    """DPSUR: two edges, the record has no part in the test; three edges, it turns the test when it is drawn for it."""
    for name, rate, noise, test_rate, test_noise, accepted, places in DPSUR:
        attempt = noisy_test(rate, noise, test_rate, test_noise, -1.0)
        claim = dpsur(
            Subsampled(rate, Gaussian(noise)),
            Subsampled(test_rate, Gaussian(test_noise)),
            accepted,
            DELTA,
            orders="code",
        )
        edges = tuple(place * noise for place in places)
        instance = sharp_instance(attempt, edges) if len(edges) == 3 else simple_instance(attempt, edges)
        found = lower_epsilon(instance, accepted, DELTA)
        line(f"DPSUR {name}", claim.epsilon, found, epsilon({SelectiveRelease(attempt): accepted}, DELTA))


def line(name: str, claimed: float, at_least: float, proved: float) -> None:
    """One instance; it must refute the claim and must not refute us."""
    assert claimed < at_least < proved
    print(f"{name:<28} claimed {claimed:6.3f}   at least {at_least:6.3f}   proved {proved:6.3f}")


def main() -> None:
    """Both papers, then the one step that needs no convolution."""
    annealing()
    selecting()
    once, never = closed_form(24.0389, 1.75, 1.0, DELTA), closed_form(1.0, 1.75, 1.0, DELTA)
    print(f"one step, full batch, weight 24.0389 above 1.75 (beta = -3.5): {once:.4f}; without selection: {never:.4f}")


if __name__ == "__main__":
    main()
