"""The vault: sole holder of examples, secret randomness and ledger; its `release` is the only way out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Allowance, Entry, Event, Ledger, Unbounded
from reticent.errors import BudgetSpent, ResumeError, SettingError
from reticent.gradients.precision import own_precision
from reticent.inside.ahead import expect, foresees
from reticent.inside.bundle import Bundle
from reticent.inside.careful import Watch, carefully
from reticent.inside.comparing import ORDER
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Memory, Poisson, Restricted, Sampler
from reticent.inside.kinds import fits
from reticent.inside.look_again import CHANCE, look_again
from reticent.inside.mechanisms import Mechanism
from reticent.inside.persons import Persons
from reticent.inside.probe import Opening, Probe
from reticent.inside.queries import Parted, Query, Undivided, weights_of
from reticent.inside.randomness import Randomness, torch_seeded
from reticent.inside.ranks import ALONE, Ranks
from reticent.inside.rounding import slack
from reticent.inside.sealed import Sealed
from reticent.inside.seals import Seals
from reticent.inside.settings import RoundSettings
from reticent.inside.shares import Shard, Shares, everyones
from reticent.inside.store import Batch, Device, Store, as_bytes, blank, moved
from reticent.inside.views import Views

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
        ranks: Ranks = ALONE,
        shares: Shares | None = None,
        divided: bool = True,
        views: Views | None = None,
    ):
        self._examples, self._views = examples, views
        self._ranks, self._shares = ranks, Shares(ranks.world) if shares is None else shares
        self._divided = divided
        """Whether ranks look at shares of a draw; all at the whole, where they must pass the model together."""
        self._repeated, self._until = self._shares, 0
        self._randomness, self._seals = randomness, Seals(randomness, ranks)
        self._device, self._guard = device, guard
        self._allowance = allowance
        self._round = self._draws = self._asks = self._noises = self._entries = 0
        self._bundle: Bundle | None = None
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
        first = single.held.start if isinstance(single, Shard) else 0
        return moved(blank(single.take(np.array([first])), rows), self._device)

    def fingerprint(self, *, every: bool = False) -> str:
        """A keyed fingerprint of all examples, or of up to 256, evenly spread; it says nothing without the key.

        It is the same however ranks hold the examples; where each holds all, all must hold the same.
        """
        examples = self._examples.everything() if isinstance(self._examples, Persons) else self._examples
        size = len(examples)
        some = np.unique(np.linspace(0, size - 1, min(size, _SOME)).astype(np.int64))
        parts = np.array_split(np.arange(size), max(1, size // _SOME)) if every else [some]
        with torch_seeded(0):  # chance in a dataset
            rows = (everyones(examples, part, self._ranks) for part in parts)
            seals = [self._randomness.seal(str(size).encode(), *map(as_bytes, part)) for part in rows]
        found = seals[0] if len(seals) == 1 else self._randomness.seal(*(seal.encode() for seal in seals))
        self._ranks.refuse_other(found, "what the examples are", ORDER)
        return found

    def repeats(self, shares: Shares, rounds: int) -> None:
        """Rounds before this number may be in the ledger already: they are divided as they were then.

        Then every sum is the same again to the last digit, on any number of ranks.
        """
        if (isinstance(self._examples, Shard) or not self._divided) and shares != self._shares and rounds > 0:
            raise ResumeError(
                "the rounds since the last checkpoint cannot be repeated with other shards than they were made with: "
                "resume with the same number of ranks and the same shards, or let every rank hold all examples"
            )
        self._repeated, self._until = shares, rounds

    def agreed(self, value: float) -> float:
        """A public number that each rank has worked out, as the first has it: others might round otherwise."""
        return self._ranks.share(lambda: value)

    def shares(self, number: int) -> Shares:
        """How the draws of a round are divided."""
        return self._repeated if number < self._until else self._shares

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
        self._bundle = Bundle(event, list(covers), context)
        try:
            yield
        finally:
            self._bundle = None

    def draw(self, sampler: Sampler, settings: RoundSettings) -> Draw:
        """Choose who takes part; who it is stays in the vault."""
        draw = self._draw_of(self._round, sampler, settings)
        if isinstance(sampler, Poisson) and foresees(self._examples):
            self._foresee(self._round, draw)
            self._foresee(self._round + 1, self._draw_of(self._round + 1, sampler, settings))
        self._draws += 1
        return draw

    def _foresee(self, number: int, draw: Draw) -> None:
        """Let those of a draw be fetched whom this rank will look at; chance in them belongs to the share."""
        shares = self.shares(number)
        index, places = shares.of(draw)._index, shares.places(shares.of(draw)._index)
        for share in self._own(places):
            at = (share,) if shares.count > 1 else ()
            seed = self._randomness.whole(number, "load", self._draws, *at)
            expect(self._examples, index[places[share]], number, seed)

    def _own(self, places: Sequence[slice]) -> range:
        """Which shares of a draw this rank looks at."""
        return self._ranks.shares(len(places)) if self._divided else range(1)

    def _draw_of(self, number: int, sampler: Sampler, settings: RoundSettings) -> Draw:
        """The draw of this or a later round that has as many before it as there were in this one."""
        rng = self._randomness.stream(number, "draw", self._draws)
        return sampler.draw(settings, len(self._examples), rng, self.memory)

    def ask(self, query: Query, draw: Draw) -> Sealed:
        """Answer a query for the examples drawn, sealed."""
        if fits(draw.sampler, Restricted) and not draw.sampler.serves(query):
            raise SettingError(f"{draw.sampler} is not charged for {type(query).__name__}: nothing was released")
        summed_in = getattr(query, "summed_in", torch.float64)
        by_person = isinstance(self._examples, Persons) or self._views is not None  # several rows are one example
        room = 1.0 if summed_in is None else slack(draw.settings.batch_size, summed_in, by_person=by_person)
        shares = Shares() if fits(query, Undivided) else self.shares(self._round)
        value = self._asked(query, shares.of(draw), shares)
        self._asks += 1
        return Sealed(value, query.sensitivity, draw, room, query)

    def _asked(self, query: Query, draw: Draw, shares: Shares) -> Tensor:
        """The answer for a draw, each share of it looked at by one rank."""
        places = shares.places(draw._index)
        mine = {share: self._drawn(draw, places[share]) for share in self._own(places)}
        nobody = replace(draw, _index=draw._index[:0], _others=())
        asked = mine or {-1: self._drawn(nobody, slice(None))}  # whoever has no share must know what form an answer has
        same = self._ranks.together(lambda: [as_bytes(torch.from_numpy(draw._index)), *weights_of(query)])
        with same, own_precision():
            parts = [self._part(query, drawn, share, shares) for share, drawn in asked.items()]
        if next(iter(asked.values())).notes:
            self._remember(draw, places, {share: drawn.notes for share, drawn in mine.items()})
        total = self._ranks.added(parts, len(places))
        return query.whole(self._ranks.whole(total)) if fits(query, Parted) else total

    def _drawn(self, draw: Draw, place: slice) -> Drawn:
        """What a query sees of one share of a draw."""
        examples = self._examples.turned(self._round) if isinstance(self._examples, Persons) else self._examples
        rng, share = partial(self._randomness.stream, self._round, "ask", self._asks), draw.only(place)
        drawn = Drawn(share, rng, self.memory, examples, self._device, {}, place, len(draw._index))
        secret = 0 if self._views is None else self._randomness.whole(self._round, "views")
        return drawn if self._views is None else replace(drawn, _views=self._views, _secret=secret)

    def _part(self, query: Query, drawn: Drawn, share: int, shares: Shares) -> Tensor:
        """The answer for one share; where there are several, chance in the model belongs to the share, not the rank."""
        at = self._round, "model", self._asks, share
        with nullcontext() if shares.count == 1 else torch_seeded(self._randomness.whole(*at)):
            answer = carefully(query, drawn, self._guard)
            look = self._round, "look", self._asks + 1
            if self._round == 0 or self._randomness.number(*look) < CHANCE:
                look_again(query, drawn, self._randomness.stream(*look, "at"), self._guard)
        return answer

    def _remember(self, draw: Draw, places: Sequence[slice], noted: dict[int, Memory]) -> None:
        """Put what was noted of the examples drawn into the memory, which is the same on all ranks."""
        for share, notes in chain.from_iterable(said.items() for said in self._ranks.told(noted)):
            index = torch.from_numpy(draw._index[places[share]])
            for name, values in notes.items():
                self.memory[name][index] = values

    def release(self, sealed: Sealed, mechanism: Mechanism) -> Tensor:
        """The door: refuse if over budget, write the ledger, then add noise."""
        event = sealed.draw.amplify(mechanism.event())
        _refuse_unproved(sealed, mechanism, event)
        self._charge(event, sealed)
        place = self._randomness.at(self._round, "noise", self._noises, ranks=self._ranks)
        self._noises += 1
        if not getattr(mechanism, "by_block", False):
            sealed = replace(sealed, _value=self._ranks.whole(sealed._value))
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
        entry = Entry(
            self._round,
            self._entries,
            event,
            self._seals.of(sealed._value, () if self._bundle is None else self._bundle.context),
        )
        new = self._ranks.in_turn(lambda: self._recorded(entry))  # on disk before any rank makes noise
        self._entries += 1
        if new:
            self._allowance.spend(event)

    def _recorded(self, entry: Entry) -> bool:
        """Write an entry that the plan covers, and say whether it is new: only the first rank's ledger is a file."""
        if not self.ledger.holds(entry) and not self._allowance.covers(entry.event):
            raise BudgetSpent(
                f"round {self._round} would release {entry.event}, which the plan of this run does not cover: "
                "nothing was released. Start a new run with a larger budget or more rounds."
            )
        return self.ledger.record(entry)


def _refuse_unproved(sealed: Sealed, mechanism: Mechanism, event: Event) -> None:
    """Refuse noise whose event does not hold for this answer."""
    if fits(mechanism, Restricted) and not mechanism.serves(sealed.query):
        raise SettingError(
            f"{type(mechanism).__name__} is not charged for {type(sealed.query).__name__}: nothing was released"
        )
    if not isinstance(event, Unbounded) and not 0 < sealed.sensitivity < math.inf:
        raise SettingError(
            f"{type(sealed.query).__name__} declares a sensitivity of {sealed.sensitivity}, for which no noise is "
            "proved: nothing was released"
        )
