"""A module whose training steps are rounds of a private run, under the trainer's own loop."""

from __future__ import annotations

import copy
from collections.abc import Callable

from pytorch_lightning import LightningModule
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader

from reticent.accounting import Budget, Guarantee
from reticent.accounting.adjacency import adjacency_of
from reticent.errors import ResumeError, ReticentError, SettingError
from reticent.inside import readable
from reticent.integrations.lightning.counting import NOTE, counted, lineage_of, refuse_other_run
from reticent.integrations.lightning.rehearsing import rehearsed
from reticent.integrations.lightning.schedules import Schedules, Timed, single
from reticent.integrations.opacus.listening import Value
from reticent.integrations.opacus.loader import refuse_other_draws, store_of
from reticent.integrations.opacus.optimizer import Around
from reticent.integrations.opacus.own_loop import HeardLoss
from reticent.losses import LossLike
from reticent.methods import Method, get
from reticent.methods.planning import default_delta
from reticent.origins import MARK, mark, marked
from reticent.run import Run


class PrivateTraining(LightningModule):
    """Put it before your own module, `class Private(PrivateTraining, Net)`, and call `protect` before the trainer.

    `training_step` of your module is asked once, on made-up rows, how its loss is made; examples meet it only inside
    the vault. What it would log of them is not logged.
    """

    _protected: Callable[[Optimizer], Run] | None = None
    _resumes = False
    _from: dict[str, Value] | None = None
    """What the trainer's checkpoint says of the run, where it was given one."""
    private_run: Run | None = None
    """The run, from the first step on."""

    def protect(
        self,
        examples: Value,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        epochs: float,
        batch_size: float | None = None,
        size: int | None = None,
        method: str | Method = "dpsgd",
        loss: LossLike = None,
        **settings: Value,
    ) -> None:
        """Say what is trained on, and for how much: examples as `rt.fit` takes them, or a DataLoader."""
        if type(self).training_step is not PrivateTraining.training_step:
            raise SettingError(
                f"training_step of {type(self).__name__} stands before the private one, and would train without it: "
                "put PrivateTraining first, class Private(PrivateTraining, Net), and training_step into Net"
            )
        if "scheduler" in settings:
            raise SettingError("scheduler: the schedules are those that configure_optimizers gives; leave it out")
        if isinstance(examples, DataLoader):
            refuse_other_draws(examples, poisson=True)
            batch_size = batch_size or examples.batch_size
            examples = store_of(examples)
        if batch_size is None:
            raise SettingError("batch_size was not given: say how many examples a step draws on average")
        store, rows, _ = readable(examples, self)
        public = len(store) if size is None else size
        bound = default_delta(public) if delta is None else delta
        budget = None if epsilon is None else Budget(epsilon, bound, adjacency=adjacency_of(size, None))
        chosen = get(method) if isinstance(method, str) else method
        heard = loss if loss is not None else HeardLoss(rehearsed(self, super().training_step, rows))
        self._rounds_an_epoch = max(1, round(public / batch_size))
        self.automatic_optimization = False

        def made(optimizer: Optimizer) -> Run:
            # A copy that shares parameters and parts, without the trainer: that is none of the model's business.
            said = {"batch_size": batch_size, "size": size, "epochs": epochs, **settings}
            model = copy.copy(self).train()
            said["scheduler"] = (
                Schedules(optimizer, self._schedules, self._rounds_an_epoch) if self._schedules else None
            )
            return Run(model, optimizer, examples, method=chosen, loss=heard, budget=budget, delta=bound, **said)

        self._protected, self._resumes = made, bool(settings.get("folder") and settings.get("resume"))
        object.__setattr__(self, "private_run", None)  # what is asked for now is a run of its own
        self._from = None

    def guarantee(self) -> Guarantee:
        """What is proved of the model, whatever the trainer has done with it since."""
        if self.private_run is None:
            raise SettingError("nothing was trained yet: call protect, and the trainer's fit")
        return self.private_run.guarantee()

    # -- what the trainer calls ------------------------------------------------------------------------------------

    def train_dataloader(self) -> DataLoader[int]:
        """As many steps as an epoch has; the examples are in the vault."""
        if self._protected is None:
            raise SettingError("call protect(examples, epsilon=..., epochs=...) before the trainer's fit")
        return DataLoader(range(self._rounds_an_epoch), batch_size=None)  # type: ignore[arg-type]

    def configure_optimizers(self) -> Value:
        """The optimizer of your module, whose steps are rounds; its schedules are stepped as it says."""
        found = super().configure_optimizers()
        self._schedules: list[Timed] = []
        optimizer = single(found, self._schedules)
        for schedule, _, _ in self._schedules:
            if isinstance(schedule, ReduceLROnPlateau):
                raise SettingError(
                    "ReduceLROnPlateau asks for a loss, which is private: use a schedule fixed in advance"
                )
        return RoundOptimizer(optimizer, self)

    def on_train_start(self) -> None:
        """Make the run, or go on with it: the trainer counts from where it stands."""
        super().on_train_start()
        self._begun()

    def training_step(self, batch: Value, batch_idx: int) -> None:  # noqa: ARG002 - the vault draws by itself
        """One round; after the last one the trainer is told to stop."""
        if not isinstance(batch, int):
            raise SettingError(
                "the trainer's fit was given examples to train on, which hooks and callbacks would see: leave them "
                "out, protect was told of them"
            )
        optimizer: Value = self.optimizers()
        done = 0 if self.private_run is None else self.private_run.number
        if self.private_run is None or not self.private_run.over:
            optimizer.step()
            if self.private_run is None or self.private_run.number != done + 1:
                raise ReticentError("the trainer did not take the private step: use one optimizer, and no plugin of it")
        self.trainer.should_stop = self.trainer.should_stop or self.private_run.over

    def on_save_checkpoint(self, checkpoint: dict[str, Value]) -> None:
        """Note which run a checkpoint is of, and what its weights cost; what a run goes on from is in its folder."""
        super().on_save_checkpoint(checkpoint)
        told = marked(self)
        if told.runs or told.others:
            checkpoint[NOTE] = {"lineage": told.to_json()}
        if self.private_run is not None:
            self.private_run.save()
            said = {"run": self.private_run.bill.run, "round": self.private_run.number}
            checkpoint[NOTE] = {**checkpoint.get(NOTE, {}), **said}

    def on_load_checkpoint(self, checkpoint: dict[str, Value]) -> None:
        """Refuse to train on from a checkpoint without the folder of its run, which knows of all releases."""
        if self._protected is not None and self.trainer.state.fn == "fit":
            if not self._resumes:
                raise SettingError(
                    "a checkpoint of Lightning does not hold the ledger and the key of a private run: give protect the "
                    "folder of the run, and resume=True, beside ckpt_path"
                )
            if not isinstance(checkpoint.get(NOTE), dict):
                raise ResumeError("the checkpoint is of no private run: leave out ckpt_path; the folder has it all")
            self._from = checkpoint[NOTE]
        elif isinstance(checkpoint.get(NOTE), dict):
            mark(self, lineage_of(checkpoint[NOTE]), everything=True)  # who trains them on must say what they are
        super().on_load_checkpoint(checkpoint)

    def on_fit_end(self) -> None:
        """A checkpoint of a run that was over leaves the trainer nothing to do: the run is here all the same."""
        super().on_fit_end()
        if self._from is not None:
            self._begun()

    def _begun(self) -> Run:
        if self.private_run is None:
            if self._protected is None:
                raise SettingError("call protect(examples, epsilon=..., epochs=...) before the trainer's fit")
            if self.trainer.world_size > 1:
                raise SettingError(
                    "several devices: under Lightning a run is on one; rt.Run goes on many (docs/ranks.md)"
                )
            held: Value = self.optimizers()
            run = self._protected(held.optimizer.original_optimizer)
            refuse_other_run(self._from, run)
            object.__setattr__(self, "private_run", run)
            counted(self.trainer, run.number, self._rounds_an_epoch, self._from)
        assert self.private_run is not None
        return self.private_run

    def _round(self, optimizer: Optimizer) -> None:
        run = self._begun()
        if run.optimizer is not optimizer:
            raise SettingError(
                "the trainer's fit was called again within one run, whose optimizer is that of the first time: let one "
                "fit do all epochs, or give protect a folder, and go on with resume=True"
            )
        run.step()
        vars(self)[MARK] = vars(run.model)[MARK]  # the copy that is trained shares all but this


class RoundOptimizer(Around):
    """An optimizer whose step is a round, so that the trainer counts it; the user's own is moved by the run."""

    def __init__(self, optimizer: Optimizer, module: PrivateTraining):
        super().__init__(optimizer)
        self._module = module

    def step(self, closure: Callable[[], Value] | None = None) -> None:  # type: ignore[override]
        """One private round."""
        if closure is not None:
            closure()
        self._module._round(self.original_optimizer)

    def load_state_dict(self, state_dict: dict[str, Value]) -> None:
        """Nothing: what the optimizer remembers is in the folder of the run, which may be further than a checkpoint."""
