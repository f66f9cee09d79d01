"""PD-SGD: apply a noisy batch gradient only if enough other batches could plausibly have produced it. Not DP."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from reticent.about import About
from reticent.errors import UnknownName
from reticent.inside import AsItIs, BatchGradient, FixedNoise, Mechanism, Partition, RoundSettings
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import Gate, PlausibleDeniability, RandomRejection


@dataclass(frozen=True)
class AsReleased:
    """The released mean gradient itself."""

    def apply(self, released: Tensor, settings: RoundSettings) -> Tensor:  # noqa: ARG002 - it is a mean already
        """The same vector."""
        return released


@dataclass(frozen=True)
class Silent:
    """No noise on the gradient, whatever the settings say."""

    def __call__(self, noise_multiplier: float) -> Mechanism:  # noqa: ARG002
        """The gradient as it is."""
        return AsItIs()


def pd_sgd(
    *,
    noise_std: float = 0.1,
    gamma: float = 4.0,
    needed: int = 2,
    ablation: str = "none",
    rejection: float = 0.3,
    poison: float = 0.0,
) -> Method:
    """Plausibly deniable SGD (algorithm 1): noise of `noise_std`, a test of `needed` batches within e^gamma.

    `ablation` is one of the paper's: "only-noise", "only-test", "random-rejection" (a coin at the rate `rejection`), or
    "sgd" (neither noise nor test). `poison` is its Figure 3: this share of a batch, the first examples, stay together.

    >>> pd_sgd(noise_std=0.1, gamma=4.0, needed=2).gate
    PlausibleDeniability(std=0.1, band=4.0, needed=2, noisy=True)
    """
    gates: dict[str, Gate] = {
        "none": PlausibleDeniability(noise_std, gamma, needed),
        "only-noise": PlausibleDeniability(noise_std, gamma, 1),
        "only-test": PlausibleDeniability(noise_std, gamma, needed, noisy=False),
        "random-rejection": RandomRejection(rejection),
        "sgd": RandomRejection(0.0),
    }
    if ablation not in gates:
        raise UnknownName("ablation", ablation, gates)
    base = replace(dpsgd(noise_multiplier=noise_std), name="pd_sgd", sampler=Partition(poison), query=BatchGradient)
    noise = Silent() if ablation in ("only-test", "sgd") else FixedNoise
    return replace(base, noise=noise, direction=AsReleased(), gate=gates[ablation])


ABOUT = About(
    name="pd_sgd",
    make=pd_sgd,
    title="PD-SGD",
    paper="plausibly deniable SGD (2025 preprint)",
    changes="draw (partition), bound (none), noise (fixed), gate (deniability test)",
    guarantee="none: plausible deniability is not differential privacy",
    equations={
        "definition 1, eq. 2": "inside/pd_sgd.py Deniable",
        "algorithm 1": "methods/papers/pd_sgd.py",
        "lemma 1": "accounting/claims/pd_sgd.py pass_chance",
    },
    options={
        "noise_std": "standard deviation of the noise on the mean gradient (sigma)",
        "gamma": "how far two explanations may differ, as a logarithm",
        "needed": "batches that must explain the update, the seed included (T)",
        "ablation": "none, only-noise, only-test, random-rejection or sgd",
        "rejection": "share dropped by the ablation random-rejection",
        "poison": "share of a batch that stays together, its labels flipped by `reticent train` (figure 3)",
    },
)
