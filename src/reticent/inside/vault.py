"""The vault: sole holder of examples, secret randomness and ledger; its `release` is the only way out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Allowance, Entry, Event, Ledger, Unbounded
from reticent.errors import BudgetSpent, SettingError
from reticent.inside.ahead import expect, foresees
from reticent.inside.careful import Watch, carefully
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Poisson, Restricted, Sampler
from reticent.inside.look_again import CHANCE, look_again
from reticent.inside.mechanisms import Mechanism
from reticent.inside.persons import Persons
from reticent.inside.probe import Opening, Probe
from reticent.inside.queries import Query
from reticent.inside.randomness import Randomness
from reticent.inside.rounding import slack
from reticent.inside.sealed import Sealed
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch, Device, Store, as_bytes, blank, leaves, moved

_SOME = 256  # examples: enough to notice another dataset, and a part of one that is looked at whole


class Vault:
    """Holds the examples; answers leave it only with noise, and only after the ledger has been written.

    Promise: for every value `release` hands out there is an entry in the ledger, on disk, that covers it.
    """

    def __init__(
        self,
        examples: Store,
        *,
        randomness: Randomness,
        ledger: Ledger,
        allowance: Allowance,
        device: Device = "cpu",
        guard: Watch = nullcontext,
    ):
        self._examples = examples
        self._randomness = randomness
        self._device = device
        self._guard = guard
        self._allowance = allowance
        self._round = self._draws = self._asks = self._noises = self._entries = 0
        self._bundle: _Bundle | None = None
        self._probe: Probe | None = None
        self.ledger = ledger
        self.memory: dict[str, Tensor] = {}
        """What samplers remember of each example; private, and part of a checkpoint."""
        for entry in ledger:
            allowance.spend(entry.event)

    def __len__(self) -> int:
        return len(self._examples)

    def blank(self, rows: int) -> Batch:
        """A made-up batch of the examples' shapes and types: what a model is checked with. Of persons, single rows."""
        single = self._examples.rows if isinstance(self._examples, Persons) else self._examples
        return moved(blank(single.take(np.zeros(1, np.int64)), rows), self._device)

    def fingerprint(self, *, every: bool = False) -> str:
        """A keyed fingerprint of all examples, or of up to 256, evenly spread; it says nothing without the key."""
        examples = self._examples.everything() if isinstance(self._examples, Persons) else self._examples
        size = len(examples)
        some = np.unique(np.linspace(0, size - 1, min(size, _SOME)).astype(np.int64))
        parts = np.array_split(np.arange(size), max(1, size // _SOME)) if every else [some]
        seals = [
            self._randomness.seal(str(size).encode(), *map(as_bytes, leaves(examples.take(part)))) for part in parts
        ]
        return seals[0] if len(seals) == 1 else self._randomness.seal(*(seal.encode() for seal in seals))

    @contextmanager
    def round(self, number: int) -> Iterator[None]:
        """Everything that happens inside belongs to this round; random streams and ledger lines are numbered by it."""
        self._round = number
        self._draws = self._asks = self._noises = self._entries = 0
        before = {name: part.clone() for name, part in self.memory.items()}
        try:
            yield
        except BaseException:
            self.memory.clear()
            self.memory.update(before)  # a replay must remember what this round remembered when it began
            raise

    @contextmanager
    def bundle(
        self, event: Event, covers: Sequence[Event], context: Sequence[bytes | memoryview] = ()
    ) -> Iterator[None]:
        """One act: `event` is written before the first noise, and pays for the releases in `covers`, in that order.

        Until the caller keeps the outcome, what was released inside is private. `context` is all that the later
        releases depend on beside the first: it is sealed with it, so that a replay asks just the same again.
        """
        if self._bundle is not None:
            raise SettingError("a bundle of releases is under way: it must end before the next one begins")
        self._bundle = _Bundle(event, list(covers), context)
        try:
            yield
        finally:
            self._bundle = None

    def draw(self, sampler: Sampler, settings: RoundSettings) -> Draw:
        """Choose who takes part; who it is stays in the vault."""
        draw = self._draw_of(self._round, sampler, settings)
        if isinstance(sampler, Poisson) and foresees(self._examples):
            later = self._draw_of(self._round + 1, sampler, settings)
            for number, one in ((self._round, draw), (self._round + 1, later)):
                seed = int(self._randomness.stream(number, "load", self._draws).integers(2**63))
                expect(self._examples, one._index, number, seed)
        self._draws += 1
        return draw

    def _draw_of(self, number: int, sampler: Sampler, settings: RoundSettings) -> Draw:
        """The draw of this or a later round that has as many before it as there were in this one."""
        rng = self._randomness.stream(number, "draw", self._draws)
        return sampler.draw(settings, len(self._examples), rng, self.memory)

    def ask(self, query: Query, draw: Draw) -> Sealed:
        """Answer a query for the examples drawn, sealed."""
        if isinstance(draw.sampler, Restricted) and not draw.sampler.serves(query):
            raise SettingError(f"{draw.sampler} is not charged for {type(query).__name__}: nothing was released")
        rng = self._randomness.stream(self._round, "ask", self._asks)
        self._asks += 1
        by_person = isinstance(self._examples, Persons)
        examples = self._examples.turned(self._round) if isinstance(self._examples, Persons) else self._examples
        drawn = Drawn(draw, rng, self.memory, examples, self._device)
        summed_in = getattr(query, "summed_in", torch.float64)
        room = 1.0 if summed_in is None else slack(draw.settings.batch_size, summed_in, by_person=by_person)
        sealed = Sealed(carefully(query, drawn, self._guard), query.sensitivity, draw, room, query)
        look = self._randomness.stream(self._round, "look", self._asks)
        if self._round == 0 or look.random() < CHANCE:
            look_again(query, drawn, look, self._guard)
        return sealed

    def release(self, sealed: Sealed, mechanism: Mechanism) -> Tensor:
        """The door: refuse if over budget, write the ledger, then add noise."""
        event = sealed.draw.amplify(mechanism.event())
        _refuse_unproved(sealed, mechanism, event)
        self._charge(event, sealed)
        place = self._randomness.at(self._round, "noise", self._noises)
        self._noises += 1
        released = mechanism._open(sealed, place)
        return released if self._probe is None else self._probe.saw(sealed, event, released)

    def watch(self, replay: Sequence[Opening] = ()) -> Probe:
        """A probe of what passes the door from now on, for audits: whoever asks for it states no guarantee."""

        def draw(sampler: Sampler, settings: RoundSettings) -> Draw:
            with self.round(settings.number):
                return self.draw(sampler, settings)

        self._probe = Probe(draw, replay)
        return self._probe

    def _charge(self, event: Event, sealed: Sealed) -> None:
        if self._bundle is None:
            self._write(event, sealed)
            return
        self._bundle.take(event)
        if not self._bundle.written:
            self._write(self._bundle.event, sealed)
            self._bundle.written = True

    def _write(self, event: Event, sealed: Sealed) -> None:
        context = self._bundle.context if self._bundle is not None else ()
        entry = Entry(self._round, self._entries, event, self._randomness.seal(as_bytes(sealed._value), *context))
        if not self.ledger.holds(entry) and not self._allowance.covers(event):
            raise BudgetSpent(
                f"round {self._round} would release {event}, which the plan of this run does not cover: "
                "nothing was released. Start a new run with a larger budget or more rounds."
            )
        self._entries += 1
        if self.ledger.record(entry):
            self._allowance.spend(event)


def _refuse_unproved(sealed: Sealed, mechanism: Mechanism, event: Event) -> None:
    """Refuse noise whose event does not hold for this answer."""
    if isinstance(mechanism, Restricted) and not mechanism.serves(sealed.query):
        raise SettingError(
            f"{type(mechanism).__name__} is not charged for {type(sealed.query).__name__}: nothing was released"
        )
    if not isinstance(event, Unbounded) and not 0 < sealed.sensitivity < math.inf:
        raise SettingError(
            f"{type(sealed.query).__name__} declares a sensitivity of {sealed.sensitivity}, for which no noise is "
            "proved: nothing was released"
        )


class _Bundle:
    """Several releases covered by one event."""

    def __init__(self, event: Event, covers: list[Event], context: Sequence[bytes | memoryview]):
        self.event = event
        self.context = context
        self.written = False
        self._left = covers

    def take(self, event: Event) -> None:
        """Tick off one covered release, or refuse what the event does not pay for."""
        if not self._left or self._left[0] != event:
            expected = self._left[0] if self._left else "nothing more"
            raise SettingError(f"the bundle covers {expected} next, not {event}: nothing was released")
        self._left.pop(0)
