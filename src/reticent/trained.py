"""What comes of training: a plain model with its guarantee, what it answers, and the folder it is kept in."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from reticent.accounting import Guarantee, Spending
from reticent.accounting.ledger import read_ledger
from reticent.accounting.lineage import UNKNOWN_LINEAGE, Lineage
from reticent.call import Call
from reticent.certificate import CARD, WEIGHTS, Card, Charged, read_card
from reticent.certificate.card import LEDGERS, digest_of
from reticent.data import Preprocessing
from reticent.data.features.extractors import are_of_texts, features_of, text_features
from reticent.data.loading.npz import ArraySchema
from reticent.data.loading.opening import STORED, read_stored
from reticent.data.preprocessing import in_units, said_by
from reticent.data.tables.frames import DataFrame
from reticent.data.tables.schema import Schema
from reticent.data.texts import is_texts, texts_in
from reticent.errors import DataError, FileWarning, ResumeError
from reticent.evaluating import evaluate, in_rows, predict
from reticent.files import make_folder, replace_file
from reticent.inside.sharding import whole_parts
from reticent.models import Blueprint
from reticent.normalised import built_around
from reticent.origins import mark, refuse_trained_on
from reticent.results.fields import Fields
from reticent.run import Run
from reticent.tensors import write_tensors

if TYPE_CHECKING:
    from reticent.audits.verdict import RunReport
    from reticent.experiments.attacking import AttackReport


FROZEN = "frozen, not stored"
"""Parameters of which every rank had a part only: whoever loads the model brings them along."""


@dataclass(frozen=True, eq=False, repr=False)
class Trained:
    """A trained model, still the user's own module, and what is proved about it."""

    model: nn.Module
    guarantee: Guarantee
    rounds: int
    kept: int
    about: dict[str, Any] = field(default_factory=dict)
    charged: Charged | None = None
    """What the guarantee was priced by; it goes on the card, so that anybody can price it again."""
    preprocessing: Preprocessing | None = None
    """How the examples were read from files or data frames, kept so that new ones are read alike."""
    lineage: Lineage = UNKNOWN_LINEAGE
    """Every run that made these weights, and what it released, for whoever trains them on (`initial`)."""
    call: Call | None = field(default=None, repr=False)
    """How `fit` made it, the private examples included: in memory only."""
    folder: Path | None = None
    """Where it was loaded from."""

    def __repr__(self) -> str:
        return f"Trained({type(self.model).__name__}, {self.guarantee})"

    @property
    def spending(self) -> Spending:
        """What these weights have cost the examples."""
        return self.lineage.spending

    @overload
    def predict(self, x: str | Path | list[str] | DataFrame, *, batch_size: int = 1024) -> list[str]: ...
    @overload
    def predict(self, x: Any, *, batch_size: int = 1024) -> Tensor: ...
    def predict(self, x: Any, *, batch_size: int = 1024) -> Tensor | list[str]:
        """The model's answers for `x`, in evaluation mode; for texts, a file or a data frame, the names of the classes.

        A model of features of texts takes a list of them, or a .txt file with one in each line. Of tensors, a list has
        one for each example, a tuple one for each input.
        """
        texts = self._takes_texts() and (is_texts(x) or isinstance(x, str | Path))
        if not texts and (self.preprocessing is None or not self.preprocessing.accepts(x)):
            return predict(self.model, in_rows(x), batch_size=batch_size)
        answers = predict(self.model, self.inputs(x), batch_size=batch_size)
        return answers if self.preprocessing is None else said_by(self.preprocessing, answers)

    def _takes_texts(self) -> bool:
        """Whether inputs are features of whole texts, which no table or image says how to read."""
        features = self.about.get("network", {}).get("features")
        own = self.preprocessing is None or isinstance(self.preprocessing, ArraySchema)
        return own and features is not None and are_of_texts(str(features))

    def inputs(self, source: Any) -> Tensor:
        """What the model is given for texts, a file or a data frame, read as the training examples were."""
        if self._takes_texts():
            return text_features(texts_in(source), str(self.about["network"]["features"]))
        if self.preprocessing is None:
            raise DataError(
                "this model does not know how its examples were read: give the inputs themselves, or train it with "
                "examples read by a schema (data.table)"
            )
        x, network = self.preprocessing.apply(source), self.about.get("network", {})
        return features_of(x, network["features"], network.get("made_of")) if network.get("features") else x

    def evaluate(self, x: Any, y: Any = None, *, task: str | None = None) -> dict[str, Any]:
        """Metrics such as `["accuracy"]`, `["auc"]` or `["r2"]`, beside those of the majority or the mean.

        A file or a data frame with the label among its columns is read as the training examples were, and errors of a
        number are in its own units then. Say on which examples when you quote them: on those that the model was
        trained on they are private.
        """
        known, units = self.about.get("loss", {}), None
        if y is None and isinstance(self.preprocessing, Schema) and self.preprocessing.accepts(x):
            units = self.preprocessing
            x, y = self.inputs(x), units.examples(x).y
        if self._takes_texts() and is_texts(x):
            x = self.inputs(x)
        found = evaluate(self.model, x, y, task=task or known.get("task"), outputs=known.get("answers"))
        return in_units(units, found)

    def report(self, page: str | Path | None = None, *, without_privacy: float | None = None) -> Path:
        """Write the model's page, one HTML file (report.html in its folder, if not said), and say where it is.

        `without_privacy` is the accuracy of the same model trained plainly, if you know it: no guarantee covers it.
        """
        from reticent.experiments.own import report

        return report(self, None if page is None else Path(page), without_privacy=without_privacy)

    def attack(
        self,
        *,
        shadows: int = 8,
        attacks: Sequence[str] | None = None,
        records: int | None = None,
        canaries: int = 0,
        jobs: int | None = None,
        cluster: str | None = None,
        seed: int = 0,
    ) -> AttackReport:
        """Attack the model with so many shadows of its own training; the settings are those of `attack_run`.

        It needs the `test` examples of `fit`: records that the model has not seen. What it finds out is private.
        """
        from reticent.experiments.attacking import Attacking
        from reticent.experiments.own import attack

        asked = Attacking(
            attacks=None if attacks is None else tuple(attacks),
            models=shadows,
            records=records,
            canaries=canaries,
            jobs=jobs,
            cluster=cluster,
            seed=seed,
        )
        return attack(self, asked)

    def audit(
        self, *, canaries: int | None = None, runs: int = 2000, alpha: float = 0.05, seed: int | None = None
    ) -> RunReport:
        """Look for anything that contradicts the model's guarantee; the settings are those of `audit_run`."""
        from reticent.experiments.auditing import Auditing
        from reticent.experiments.own import audit

        return audit(self, Auditing(canaries=canaries, runs=runs, alpha=alpha, seed=seed))

    def __getstate__(self) -> dict[str, object]:
        """What a pickle holds: not the examples it was trained on."""
        return self.__dict__ | {"call": None}

    @staticmethod
    def of(run: Run, about: Mapping[str, object] | None = None, preprocessing: Preprocessing | None = None) -> Trained:
        """What came of a run, with all that its guarantee was priced by."""
        plan, bill = run.plan, run.bill
        charged = Charged(
            planned=None if plan.adaptive else plan.tally(),
            released=run.ledger.tally(),
            already=bill.before.events,
            past=None if bill.beginning.apart is not None else bill.beginning.past.events,
            ledger=run.ledger.mark(),
            over=run.over,
            accountant=plan.accountant,
            filter_order=plan.filter_order,
        )
        known, lineage = dict(about or {}), run.lineage
        return Trained(run.model, run.guarantee(), run.number, run.kept, known, charged, preprocessing, lineage)

    def save(self, folder: str | Path, beside: Mapping[str, bytes] | None = None) -> None:
        """Write weights and card into a folder; the weights load in plain PyTorch, and `reticent verify` checks both.

        The card holds the checksums of the weights, of what is written `beside` them, and of the ledgers found there.
        """
        path = Path(folder)
        refuse_trained_on(self.model, self.lineage)
        make_folder(path)
        ledgers = self._ledgers(path)
        files = dict(self._told(path) if beside is None else beside)
        if self.preprocessing is not None:
            files[STORED] = json.dumps(self.preprocessing.to_json(), indent=2).encode()
        for name, data in files.items():
            replace_file(path / name, data)
        state = self.model.state_dict()
        weights = whole_parts(state)
        sums = {WEIGHTS: write_tensors(path / WEIGHTS, weights, {})} | ledgers
        sums |= {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        card = Card(
            guarantee=self.guarantee,
            rounds=self.rounds,
            kept=self.kept,
            about=self.about | ({FROZEN: sorted(state.keys() - weights.keys())} if len(weights) < len(state) else {}),
            charged=self.charged,
            lineage=self.lineage,
            files=sums,
        )
        replace_file(path / CARD, card.to_bytes())

    def _told(self, path: Path) -> dict[str, bytes]:
        """What came of the call that made it, as `reticent train` leaves it of a run."""
        if self.call is None:
            return {}
        from reticent.experiments.own import told

        return told(self, path)

    def _ledgers(self, path: Path) -> dict[str, str]:
        """The checksums of the ledgers in a folder; refuses to save beside the ledger of another run."""
        first = path / LEDGERS[0]
        mine = None if self.charged is None else self.charged.ledger
        if first.exists() and read_ledger(first).mark != mine:
            raise ResumeError(f"{path} holds the ledger of another run: save the model in another folder")
        return {name: digest_of(path / name) for name in LEDGERS if (path / name).exists()}


def load(folder: str | Path, model: nn.Module | None = None) -> Trained:
    """Read back what `Trained.save` wrote, into a module of the same shape; one of ours is built as it was.

    What was changed since is refused.
    """
    path = Path(folder)
    card = read_card(path)
    about = Fields(dict(card.about), str(path / CARD))
    model = _network(about, model, path)
    try:
        data = (path / WEIGHTS).read_bytes()
    except OSError as error:
        raise ResumeError(f"cannot read {path / WEIGHTS}: {error.strerror or error}. Bring it back.") from error
    if card.version < 2:
        warnings.warn(
            f"{path} was saved by an older version, without checksums: it is taken as it is", FileWarning, stacklevel=2
        )
    elif hashlib.sha256(data).hexdigest() != card.files.get(WEIGHTS):
        raise _changed(path / WEIGHTS)
    if STORED in card.files and not ((path / STORED).exists() and digest_of(path / STORED) == card.files[STORED]):
        raise _changed(path / STORED)
    try:
        apart = about.data.get(FROZEN, [])
        left = {name: part for name, part in model.state_dict().items() if isinstance(apart, list) and name in apart}
        model.load_state_dict({**left, **load_tensors(data)})
    except RuntimeError as error:
        raise ResumeError(f"the weights in {path} belong to another model: {error}") from error
    except SafetensorError as error:
        raise ResumeError(f"{path / WEIGHTS} is damaged: {error}. Bring it back as it was.") from error
    known, reading = dict(card.about), _reading(about, path)
    mark(model, card.lineage, everything=True)
    return Trained(
        model, card.guarantee, card.rounds, card.kept, known, card.charged, reading, card.lineage, folder=path
    )


def _changed(path: Path) -> ResumeError:
    return ResumeError(
        f"{path} is damaged, or not what the guarantee beside it is for: its checksum is not that of the card. Bring "
        "it back as it was, or train and save again."
    )


def _reading(about: Fields, path: Path) -> Preprocessing | None:
    """How the examples were read; those of our own datasets are arrays with numbered classes."""
    network = about.part("network")
    return read_stored(path) or (None if network is None else ArraySchema.numbered(network.need("classes", int)))


def _network(about: Fields, model: nn.Module | None, path: Path) -> nn.Module:
    """The module that the weights belong to, with what was put in front of it."""
    network = about.part("network")
    if model is None and network is None:
        raise ResumeError(f"{path} does not say how to build its model: give the module, rt.load(folder, model)")
    if model is None:
        assert network is not None
        return Blueprint.from_json(network.data).build()
    return built_around(model, about.data)
