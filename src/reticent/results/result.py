"""A result: everything about one run that tables, pages and readers may want; one line of JSON, or an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Literal

from reticent.accounting import Guarantee
from reticent.results.fields import Fields
from reticent.results.parts import ClassAccuracy, Effort, Learning, LedgerFacts, Machine, PlainSettings, read_guarantee
from reticent.results.version import VERSION, refuse_newer

Kind = Literal["private", "plain"]
"""Whether a run was private or plain."""
Ending = Literal["done", "failed"]
KINDS: tuple[Kind, ...] = ("private", "plain")
ENDINGS: tuple[Ending, ...] = ("done", "failed")
NOTHING = Guarantee("none", math.inf, 0.0, why="the run did not get to its end")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of one run, well or not.

    >>> Result(run="a", label="dpsgd", recipe={"data": "digits", "method": "dpsgd", "epsilon": 3.0}).target_epsilon
    3.0
    """

    version: ClassVar[int] = VERSION

    run: str
    """The name of its folder."""
    label: str
    """What tables call it."""
    recipe: Mapping[str, object]
    """The settings as they are stored; `experiments` makes a recipe of them again."""
    by_rule: tuple[str, ...] = ()
    """The settings that nobody had said."""
    kind: Kind = "private"
    status: Ending = "done"
    error: str | None = None
    accuracy: float | None = None
    accuracy_on: str = ""
    guarantee: Guarantee = NOTHING
    rounds: int = 0
    kept: int = 0
    noise_multiplier: float = 0.0
    optimizer: PlainSettings | None = None
    """Of plain training only."""
    seconds: float | None = None
    out: str | None = None
    examples: int | None = None
    """How many were learned from."""
    dataset: str | None = None
    """What the data are called, where that is not how a recipe finds them."""
    class_names: tuple[str, ...] | None = None
    classes: tuple[ClassAccuracy, ...] | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    """Of the test examples of each class (rows), how many were given each answer."""
    metrics: Mapping[str, float] | None = None
    """What `evaluate` measured on the test examples, where more than accuracy was."""
    learning: Learning | None = None
    attacks: Mapping[str, float] | None = None
    """What attacks on the run, or its private diagnostics, measured, such as lira.auc; None: nothing of that kind."""
    beyond: tuple[str, ...] | None = None
    """What no recipe says of a run that was made in Python; None for a run made by a recipe."""
    stages: str | None = None
    """The method as it prints itself."""
    ledger: LedgerFacts | None = None
    epsilon_by_round: tuple[tuple[int, float], ...] | None = None
    effort: Effort | None = None
    machine: Machine | None = None
    command: str | None = None
    """What made it, where results were collected for publication."""

    def __post_init__(self) -> None:
        """A time that must stay private is not told; nor that of a run that did not get to say whether it must."""
        if self.guarantee.time_is_private or not self.done:
            object.__setattr__(self, "seconds", None)
            if self.effort is not None:
                object.__setattr__(self, "effort", replace(self.effort, wall_seconds=None, cpu_seconds=None))

    @property
    def done(self) -> bool:
        """Whether the run got to its end."""
        return self.status == "done"

    @property
    def settings(self) -> Fields:
        """The recipe, to be read setting by setting."""
        return Fields(self.recipe, f"the recipe of {self.run}")

    @property
    def data(self) -> str:
        """The name of the dataset."""
        return self.settings.need("data", str)

    @property
    def title(self) -> str:
        """What the data are called in print."""
        return self.dataset or self.data

    @property
    def commonest(self) -> float | None:
        """The accuracy of always naming the commonest class of the test examples: what any model must beat."""
        counts = [one.examples for one in self.classes or ()]
        return max(counts) / sum(counts) if counts else None

    @property
    def model(self) -> str | None:
        """The name of the network."""
        return self.settings.get("model", str)

    @property
    def method(self) -> str:
        """The name of the method; plain training has none."""
        return "plain" if self.kind == "plain" else self.settings.need("method", str)

    @property
    def seed(self) -> int | None:
        """The seed; None if it was secret."""
        return self.settings.get("seed", int)

    @property
    def target_epsilon(self) -> float | None:
        """The budget that was asked for."""
        return self.settings.get("epsilon", float)

    @property
    def epsilon(self) -> float | None:
        """The epsilon of the guarantee; None if it has none."""
        return self.guarantee.epsilon if math.isfinite(self.guarantee.epsilon) else None

    @property
    def delta(self) -> float | None:
        """The delta of the guarantee; None if the run did not get to its end."""
        return self.guarantee.delta if self.done else None

    @property
    def claimed_epsilon(self) -> float | None:
        """What the paper's rule gives for the run, where it has one: no guarantee."""
        return Fields(self.guarantee.as_claimed or {}, f"the claim of {self.run}").get("epsilon", float)

    @property
    def wall_seconds(self) -> float | None:
        """How long it took by the clock."""
        return self.effort.wall_seconds if self.effort is not None else self.seconds

    @property
    def cpu_seconds(self) -> float | None:
        """How long it kept the processor busy."""
        return self.effort.cpu_seconds if self.effort is not None else None

    # -- JSON ----------------------------------------------------------------------------------------------------------

    def answer(self) -> dict[str, object]:
        """The short form: what `reticent train` answers."""
        optimizer = {} if self.optimizer is None else {"optimizer": self.optimizer.to_json()}
        return {
            "version": VERSION,
            "accuracy": self.accuracy,
            "accuracy_on": self.accuracy_on,
            "metrics": None if self.metrics is None else dict(self.metrics),
            "guarantee": self.guarantee.to_json(),
            "rounds": self.rounds,
            "kept": self.kept,
            "seconds": self.seconds,
            "recipe": dict(self.recipe),
            "by_rule": list(self.by_rule),
            "out": self.out,
            "noise_multiplier": self.noise_multiplier,
            **optimizer,
        }

    def stored(self) -> dict[str, object]:
        """Both forms in one: what training leaves as result.json."""
        return self.to_json() | self.answer()

    def to_json(self) -> dict[str, object]:
        """The long form: record.json, and one line of results.jsonl."""
        return {
            **({} if self.command is None else {"command": self.command}),
            "version": VERSION,
            "run": self.run,
            "label": self.label,
            "kind": self.kind,
            "data": self.data,
            "method": self.method,
            "seed": self.seed,
            "target_epsilon": self.target_epsilon,
            "status": self.status,
            "error": self.error,
            **(self._found() if self.done else {"accuracy": None, "epsilon": None, "guarantee": None}),
            "recipe": dict(self.recipe),
            "by_rule": list(self.by_rule),
            **({} if self.effort is None else self.effort.to_json()),
            **({} if self.machine is None else self.machine.to_json()),
        }

    def _found(self) -> dict[str, object]:
        points = self.epsilon_by_round
        return {
            "examples": self.examples,
            "model": self.model,
            "accuracy": self.accuracy,
            "accuracy_on": self.accuracy_on,
            "dataset": self.dataset,
            "class_names": None if self.class_names is None else list(self.class_names),
            "confusion": None if self.confusion is None else [list(row) for row in self.confusion],
            "metrics": None if self.metrics is None else dict(self.metrics),
            "learning": None if self.learning is None else self.learning.to_json(),
            "attacks": None if self.attacks is None else dict(self.attacks),
            "beyond": None if self.beyond is None else list(self.beyond),
            "classes": None if self.classes is None else [one.to_json() for one in self.classes],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "claimed_epsilon": self.claimed_epsilon,
            "guarantee": self.guarantee.to_json(),
            "rounds": self.rounds,
            "kept": self.kept,
            "noise_multiplier": self.noise_multiplier,
            "seconds": self.seconds,
            "optimizer": None if self.optimizer is None else self.optimizer.to_json(),
            "stages": self.stages,
            "ledger": None if self.ledger is None else self.ledger.to_json(),
            "epsilon_by_round": None if points is None else [list(point) for point in points],
        }

    @staticmethod
    def from_json(data: object, where: str = "a result", *, name: str = "") -> Result:
        """A result from either form, also of an older version: what that did not tell yet is left at its default.

        Errors say `where` it stands; `name` is for a run that does not tell its own.
        """
        told = Fields(data, where)
        refuse_newer(told, _known())
        optimizer, recipe = told.part("optimizer"), told.need_part("recipe")
        status = told.choice("status", ENDINGS) or "done"
        # Older answers do not say it, but no other training than the plain one tells of an optimizer.
        kind = told.choice("kind", KINDS) or ("private" if optimizer is None else "plain")
        guarantee = read_guarantee(told.need_part("guarantee")) if status == "done" else NOTHING
        ledger, classes, points = told.part("ledger"), told.parts("classes"), told.pairs("epsilon_by_round")
        learning = told.part("learning")
        found = Result(
            run=told.get("run", str) or name,
            label=told.get("label", str) or ("plain" if kind == "plain" else recipe.need("method", str)),
            recipe=recipe.data,
            by_rule=told.many("by_rule", str) or (),
            kind=kind,
            status=status,
            error=told.get("error", str),
            accuracy=told.get("accuracy", float),
            accuracy_on=told.get("accuracy_on", str) or "",
            guarantee=guarantee,
            rounds=told.get("rounds", int) or 0,
            kept=told.get("kept", int) or 0,
            noise_multiplier=told.get("noise_multiplier", float) or 0.0,
            optimizer=None if optimizer is None else PlainSettings.from_json(optimizer),
            seconds=told.get("seconds", float),
            out=told.get("out", str),
            examples=told.get("examples", int),
            classes=None if classes is None else tuple(ClassAccuracy.from_json(one) for one in classes),
            dataset=told.get("dataset", str),
            class_names=told.many("class_names", str),
            confusion=told.rows("confusion"),
            metrics=told.numbers("metrics"),
            attacks=told.numbers("attacks"),
            learning=None if learning is None else Learning.from_json(learning),
            beyond=told.many("beyond", str),
            stages=told.get("stages", str),
            ledger=None if ledger is None else LedgerFacts.from_json(ledger),
            epsilon_by_round=None if points is None else tuple((int(number), at) for number, at in points),
            effort=Effort.from_json(told),
            machine=Machine.from_json(told),
            command=told.get("command", str),
        )
        found.to_json()  # reads every setting that has a name here: a wrong one is told now, not in mid-page
        return found


@cache
def _known() -> frozenset[str]:
    """Every field that a result has in either form."""
    full = Result(
        run="",
        label="",
        recipe={"data": "", "method": ""},
        optimizer=PlainSettings(name="", lr=0.0),
        effort=Effort(),
        machine=Machine(),
        command="",
    )
    return frozenset({**full.answer(), **full.to_json(), "attack": None})  # how, beside published runs of papers
