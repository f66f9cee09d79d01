"""Opening: the examples are locked up, on every rank alike, before the first round of a run or before it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reticent.bill import Bill
from reticent.checkpoint import Folder, refuse_changes
from reticent.inside import Batch, Randomness, Store, Task, Vault
from reticent.inside.comparing import compared
from reticent.inside.guard import Guard
from reticent.inside.randomness import torch_seeded
from reticent.inside.ranks import Ranks
from reticent.inside.sharding import cut_up, whole_parts
from reticent.inside.shares import Shares
from reticent.resuming import common_ledger, refuse_other_ledger
from reticent.usable import Checked, refuse_other_call, refuse_other_model


@dataclass(frozen=True, eq=False)
class Opened:
    """The vault of a run, its key, and what it goes on from."""

    vault: Vault
    keys: Randomness
    stored: dict[str, Any] | None
    """The checkpoint, if there is one."""
    examples: str
    """A keyed fingerprint of the examples."""
    assumes: tuple[str, ...]
    """What could not be found out of the ranks."""
    checked: Checked
    """What to ask before every round: the model may have been put into another mode."""


def opened(
    examples: Store,
    shares: Shares,
    ranks: Ranks,
    task: Task,
    bill: Bill,
    description: dict[str, Any],
    folder: Folder | None,
    seed: int | Randomness | None,
    probes: Batch | None,
) -> Opened:
    """Lock the examples up and check the model; the first rank reads what is stored and makes the key, for all."""
    refuse_other_call({**description, "type of the weights": str(task.flat.vector.dtype)}, ranks)
    stored = ranks.share(lambda: None if folder is None else folder.read())
    with ranks.together():
        if stored is None:
            bill.meeting(task.model)
        elif ranks.leads:  # the others were asked for the same
            refuse_changes(stored["settings"], description)
    ledger = common_ledger(None if folder is None else folder.ledger, ranks)
    refuse_other_ledger(ledger, stored, bill.plan)
    made = Randomness.fresh() if seed is None else seed if isinstance(seed, Randomness) else Randomness.from_seed(seed)
    if stored is not None and not stored["over"]:
        made = Randomness.from_state(stored["randomness"])
    randomness = Randomness.from_state(ranks.share(made.state))
    vault = Vault(
        examples,
        randomness=randomness,
        ledger=ledger,
        allowance=bill.plan.allowance(),
        device=task.flat.vector.device,
        guard=(guard := Guard(task.model, task.loss, task.flat.vector)),
        ranks=ranks,
        shares=shares,
        divided=not cut_up(task.model),
        views=task.views,
    )
    kept, fingerprint = ranks.share(lambda: folder is not None), ""
    with torch_seeded(0):  # what is drawn anew in every look, such as masked words, is the same in this one
        if kept or ranks.world > 1:
            # Releases that share a ledger line are not sealed one by one: to repeat them takes all the same examples.
            fingerprint = vault.fingerprint(every=kept and bill.plan.bundles)
        left = compared(examples, randomness, ranks)
    for part in whole_parts({**dict(task.model.named_parameters()), **dict(task.model.named_buffers())}).values():
        ranks.alike(part)
    with ranks.together():
        checked = Checked(task, vault.blank(rows=4), probes, guard)
    refuse_other_model(task, vault.blank(rows=4) if probes is None else probes, ranks)
    return Opened(vault, randomness, stored, fingerprint, left, checked)
