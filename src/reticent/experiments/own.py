"""One's own model: what `rt.fit` made is kept, shown, attacked and audited as any stored run is."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from reticent.attacks import AttackReport
from reticent.audits import RunReport
from reticent.audits.by_name import method_for
from reticent.audits.findings import Finding
from reticent.audits.stored import check_events, check_stored
from reticent.call import Call, Start, pair
from reticent.data import Dataset, Examples
from reticent.errors import DataError, SettingError
from reticent.experiments.asking import Asking, asking
from reticent.experiments.attacking import Attacked, Attacking, attack_again, attack_folder
from reticent.experiments.auditing import Audited, Auditing, audit_again, keep_audit
from reticent.experiments.repeat import NO_CLASSES, NotRepeatable
from reticent.experiments.telling import UNNAMED, result_of, settings_of
from reticent.fitting import fit
from reticent.inside.several import refuse_several
from reticent.methods import Method
from reticent.normalised import Normalised
from reticent.report import Results, read, write
from reticent.results import ANSWER
from reticent.results.sealing import seal
from reticent.trained import Trained


@dataclass(frozen=True, eq=False)
class OwnRun:
    """A fit that can be done again: from the same first weights, with the same settings, on other examples."""

    model: nn.Module
    start: Start
    settings: Mapping[str, Any]
    dataset: Dataset
    normalising: Normalised | None
    asked: Asking
    spare: None = None

    def train(self, train: Examples, *, seed: int) -> Trained:
        """The same call on other examples."""
        learned = Examples(train.x, self.asked.targets(train.y), train.preprocessing)
        given = learned if self.normalising is None else replace(self.normalising, examples=learned)
        trained = fit(self.start.on(self.model), given, **{**self.settings, "seed": seed})
        return replace(trained, model=self.asked.of(trained.model))

    def design(self) -> dict[str, object]:
        """Its folder is its own: the settings tell enough."""
        return {}


def told(trained: Trained, folder: Path) -> dict[str, bytes]:
    """What came of a fit, as the file that `reticent train` leaves of a run."""
    return {ANSWER: seal(result_of(trained, _call(trained), folder).stored(), indent=2)}


def report(trained: Trained, page: Path | None, *, without_privacy: float | None = None) -> Path:
    """Write the page of a model from its folder, or from what is known of it in memory."""
    folder = _folder(trained)
    if folder is not None:
        found = read(folder)
    else:
        call = _call(trained)
        found = Results.of(result_of(trained, call, None), call.found)
    return write(found, page or (folder or Path()) / "report.html", without_privacy=without_privacy)


def attack(trained: Trained, asked: Attacking) -> AttackReport:
    """Attack a model with shadows that `fit` trains as it trained the model."""
    refuse_several("an attack")
    call, folder = _call(trained), _folder(trained)
    again = own_run(trained, call)
    model = again.asked.of(copy.deepcopy(trained.model).cpu())
    target = Attacked(model, trained.guarantee, _name(folder), settings_of(trained, call))
    found = attack_again(again, target, asked, None if folder is None else attack_folder(folder))
    call.found["attack"] = _as_read(found.to_json())
    return found


def audit(trained: Trained, asked: Auditing) -> RunReport:
    """Audit a model's ledger, its method with its own numbers, and one more fit with canaries."""
    refuse_several("an audit")
    call, folder = _call(trained), _folder(trained)

    def ledger() -> Finding:
        if folder is not None:
            return check_stored(folder, trained.guarantee)
        events = Counter(entry.event for entry in call.entries) + Counter(call.plan.already)
        return check_events(events, trained.guarantee, "the ledger")

    audited = Audited(_name(folder), lambda: _method(call), ledger, lambda: own_run(trained, call))
    found = audit_again(audited, asked)
    call.found["audit"] = _as_read(found.to_json())
    if folder is not None:
        keep_audit(found, folder)
    return found


def own_run(trained: Trained, call: Call) -> OwnRun:
    """The fit of a model, ready to be repeated; only classifiers are attacked, and have canaries."""
    if call.asked["groups"] is not None:
        raise NotRepeatable(
            "attacks and canaries of rt.fit tell one row from another, but this run promises for whole persons: audit "
            "without canaries (canaries=0), or with `reticent train --groups` and `reticent audit`"
        )
    if trained.guarantee.unit != "example":
        raise NotRepeatable(
            "attacks and canaries are about single rows, and this model promises for persons with all their rows: "
            "audit it without canaries (canaries=0)"
        )
    learned, public, name = pair(call.asked["examples"], call.model), call.asked["test"], call.asked["name"] or UNNAMED
    others = None if public is None else pair(public, call.model)
    if learned is None:
        raise NotRepeatable(NO_CLASSES)
    asked = asking(trained.about.get("loss", {}), trained.model, learned)
    read = getattr(call.asked["examples"], "preprocessing", None)
    try:
        train = Examples(learned[0], asked.labels(learned[1]), preprocessing=read)
        test = None if others is None else Examples(others[0], asked.labels(others[1]))
        dataset = Dataset(str(name), train, test, asked.classes, "given to rt.fit")
    except DataError as error:
        raise SettingError(f"these examples cannot be attacked: {error}") from error
    return OwnRun(call.model, call.start, call.settings, dataset, call.normalising, asked)


def _method(call: Call) -> Method:
    """The method with the numbers of the run; one that was asked for by name is audited as its name makes it."""
    noise, clip, asked = call.plan.settings.noise_multiplier, call.plan.method.max_grad_norm, call.asked["method"]
    if not isinstance(asked, str):
        return replace(call.plan.method, noise_multiplier=noise)
    plain = {name: value for name, value in call.options.items() if isinstance(value, bool | int | float | str)}
    return method_for(asked, noise, clip, {name: plain[name] for name in plain.keys() - {"noise_multiplier"}})


def _call(trained: Trained) -> Call:
    if trained.call is None:
        raise SettingError(
            "how this model was made is not in memory: only what rt.fit returns can do this. Of a run in a folder, use "
            "`reticent report`, `reticent attack` or `reticent audit`."
        )
    return trained.call


def _folder(trained: Trained) -> Path | None:
    """Where the model's run lies, if it does."""
    return trained.folder if trained.call is None else trained.call.folder


def _as_read(answer: dict[str, object]) -> dict[str, object]:
    """An answer as it would be read from a file."""
    return dict(json.loads(json.dumps(answer)))


def _name(folder: Path | None) -> str:
    return "model" if folder is None else str(folder)
