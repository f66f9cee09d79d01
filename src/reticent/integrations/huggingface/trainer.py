"""The private Trainer: a `transformers.Trainer` whose every step is a round of `rt.Run`."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import Trainer
from transformers.trainer_utils import TrainOutput, speed_metrics

from reticent.accounting import Guarantee
from reticent.budgets import DatasetBudget
from reticent.checkpoint import checkpoint_of
from reticent.errors import ResumeError, SettingError
from reticent.inside import Batch
from reticent.integrations.huggingface.card import save_pretrained
from reticent.integrations.huggingface.planning import PrivateTerms, opened
from reticent.integrations.huggingface.reading import Collated
from reticent.integrations.huggingface.refusing import refuse_leaks
from reticent.losses import LossLike, about_loss
from reticent.methods import Method
from reticent.origins import Initial
from reticent.run import Run
from reticent.trained import Trained

RUN = "run"
"""The run's own folder, inside the output folder: with its ledger, and in private/ its secret key."""
_PRIVATE = ("loss", "train_loss", "grad_norm")
"""What a Trainer logs of the examples drawn, which nothing pays for."""


class ReticentTrainer(Trainer):  # type: ignore[misc]
    """A `transformers.Trainer` that trains privately: the same arguments, callbacks, evaluation and checkpoints.

    `epsilon` (or `noise_multiplier`), `delta`, `method`, `size`, `adjacency`, `loss`, `initial`, `dataset`, `probes`
    and `seed` are those of `rt.fit`. The batch drawn is per_device_train_batch_size x gradient_accumulation_steps x
    processes on average, of which the first number are computed at once; `max_grad_norm` bounds each example's
    gradient. Every record is padded or cut to `max_length`. Evaluation needs `public_eval=True`: nobody in
    `eval_dataset` is protected. No training loss is known or logged. What would leak is refused with the reason.
    """

    data_collator: Any
    control: Any

    def __init__(
        self,
        *args: object,
        epsilon: float | None = None,
        delta: float | None = None,
        noise_multiplier: float | None = None,
        method: str | Method = "dpsgd",
        size: int | None = None,
        adjacency: str | None = None,
        max_length: int | Mapping[str, int] | None = None,
        loss: LossLike = None,
        public_eval: bool = False,
        probes: Batch | None = None,
        initial: Initial = None,
        dataset: DatasetBudget | None = None,
        seed: int | None = None,
        **settings: object,
    ):
        self.run: Run | None = None
        self.public_eval, self.own_loss, self._resuming = public_eval, loss, False
        self._asked = PrivateTerms(
            epsilon, delta, noise_multiplier, method, size, adjacency, max_length, loss, probes, initial, dataset, seed
        )
        super().__init__(*args, **settings)
        self.collator_of_one = self.data_collator
        if max_length is not None:
            self.data_collator = Collated(self.processing_class, max_length, self.data_collator)
        refuse_leaks(self)

    # -- training ------------------------------------------------------------------------------------------------

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,
        trial: object = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> TrainOutput:
        """Train; resumed, the run goes on exactly where its own folder stands, whichever checkpoint is named."""
        refuse_leaks(self)
        if trial is not None:
            raise SettingError(
                "a search trains on the same data many times, all of which must be paid for: use rt.tune"
            )
        self._resuming = bool(resume_from_checkpoint)
        where = self._folder
        if self._resuming and self.is_world_process_zero() and not checkpoint_of(where).exists():
            raise ResumeError(f"there is no run to resume in {where}: train without resume_from_checkpoint")
        if (
            isinstance(resume_from_checkpoint, str)
            and Path(resume_from_checkpoint).resolve().parent != where.parent.resolve()
        ):
            raise ResumeError(f"{resume_from_checkpoint} is not a checkpoint of this run: those are in {where.parent}")
        return super().train(ignore_keys_for_eval=ignore_keys_for_eval)

    @property
    def _folder(self) -> Path:
        return Path(str(self.args.output_dir)) / RUN

    def _inner_training_loop(
        self,
        _batch_size: int | None = None,
        ignore_keys_for_eval: list[str] | None = None,
        **_said: object,
    ) -> TrainOutput:
        """The one loop of Reticent in the place of the Trainer's own."""
        if not self.model.training:
            self.model.train()  # as the Trainer does; a part that its owner keeps in eval mode stays there
        modes = [(module, module.training) for module in self.model.modules()]
        self.run = run = opened(self, self._asked, self._folder, resume=self._resuming)
        each = max(1, math.ceil(run.plan.settings.size / run.plan.settings.batch_size))
        self._begun(run, each)
        began, args = time.time(), self.args
        self.control = self.callback_handler.on_train_begin(args, self.state, self.control)
        if args.eval_on_start and run.number == 0:
            self._evaluate(None, ignore_keys_for_eval, skip_scheduler=True)
        rounds, self.control.should_training_stop = iter(run), run.over
        while not self.control.should_training_stop:
            if run.number % each == 0:
                self.control = self.callback_handler.on_epoch_begin(args, self.state, self.control)
            self.control = self.callback_handler.on_step_begin(args, self.state, self.control)
            for module, mode in modes:  # evaluation has changed them
                module.training = mode
            if next(rounds, None) is None:
                break
            self.state.global_step, self.state.epoch = run.number, run.number / each
            self.control = self.callback_handler.on_optimizer_step(args, self.state, self.control)
            self.control = self.callback_handler.on_step_end(args, self.state, self.control)
            self._tell(ignore_keys_for_eval, began)
            if run.number % each == 0 or run.over:
                self.control = self.callback_handler.on_epoch_end(args, self.state, self.control)
                self._tell(ignore_keys_for_eval, began)
        return self._ended(run, began)

    def _begun(self, run: Run, each: int) -> None:
        """The Trainer's own record of a run, as far as the run has come."""
        epochs = math.ceil(run.plan.rounds / each)
        found = self._newest(run.number) if self._resuming else None
        self._init_training_state(run.plan.rounds, each, epochs, None if found is None else str(found), None)
        self.state.log_history = [line for line in self.state.log_history if line.get("step", 0) <= run.number]
        self.state.global_step, self.state.epoch = run.number, run.number / each
        self._globalstep_last_logged = self._initial_global_step = run.number
        self._initial_num_input_tokens_seen = 0
        handler = self.callback_handler
        handler.model, handler.optimizer, handler.lr_scheduler = self.model, self.optimizer, self.lr_scheduler

    def _newest(self, number: int) -> Path | None:
        """The newest checkpoint that tells of no round to come."""
        found = {}
        for path in self._folder.parent.glob("checkpoint-*/trainer_state.json"):
            step = re.fullmatch(r"checkpoint-(\d+)", path.parent.name)
            if step is not None and int(step[1]) <= number:
                found[int(step[1])] = path.parent
        return found[max(found)] if found else None

    def _tell(self, ignored: list[str] | None, began: float) -> None:
        """Log, evaluate and save, where the callbacks ask for it."""
        if self.control.should_log and self.state.global_step > self._globalstep_last_logged:
            self._globalstep_last_logged = self.state.global_step
            self.log({"learning_rate": self._get_learning_rate()}, began)
        self.control.should_log = False
        if self.control.should_evaluate:
            metrics = self._evaluate(None, ignored)
            better = self._determine_best_metric(metrics=metrics, trial=None)
            if str(getattr(self.args.save_strategy, "value", "")) == "best":
                self.control.should_save = better
            self.control.should_evaluate = False
        if self.control.should_save:
            self._save_checkpoint(self.model, None)
            self.control = self.callback_handler.on_save(self.args, self.state, self.control)
            self.control.should_save = False

    def _ended(self, run: Run, began: float) -> TrainOutput:
        done = run.number - self._initial_global_step
        timed = {} if self.guarantee.time_is_private else speed_metrics("train", began, num_steps=done)
        metrics = {**timed, "epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta}
        self.log(dict(metrics))
        if self.args.load_best_model_at_end and self.state.best_model_checkpoint is not None:
            self._load_best_model()
        self.control = self.callback_handler.on_train_end(self.args, self.state, self.control)
        self.is_in_train = False
        return TrainOutput(self.state.global_step, math.nan, metrics)

    # -- what it promises ----------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for all that was released: that of the plan, from the first round on."""
        return self._run_made().guarantee()

    @property
    def trained(self) -> Trained:
        """The model with its guarantee, as `rt.fit` gives it."""
        run = self._run_made()
        return Trained.of(run, {"loss": about_loss(run.loss)})

    def _run_made(self) -> Run:
        if self.run is None:
            raise SettingError("nothing was trained yet: call train() first")
        return self.run

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write a folder for the Hub: model or adapter, tokenizer, README.md with the guarantee, card and ledger."""
        return save_pretrained(self.trained, folder, self.processing_class, ledger=self._folder / "ledger.jsonl")

    # -- what a Trainer does beside, kept from telling more ------------------------------------------------------

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log public numbers only; while training, with the epsilon of the rounds so far."""
        public = {name: value for name, value in logs.items() if name not in _PRIVATE}
        if "learning_rate" in public and self.run is not None:
            public["epsilon_so_far"] = self.run.spent()
        super().log(public, start_time)

    def evaluate(self, eval_dataset: object = None, *args: object, **settings: object) -> dict[str, float]:
        """Evaluate on data that is public; of the training data nothing is told."""
        self._refuse_private(self.eval_dataset if eval_dataset is None else eval_dataset)
        found: dict[str, float] = super().evaluate(eval_dataset, *args, **settings)
        return found

    def predict(self, test_dataset: object, *args: object, **settings: object) -> object:
        """The model's answers for data that is public."""
        self._refuse_private(test_dataset)
        return super().predict(test_dataset, *args, **settings)

    def _refuse_private(self, data: object) -> None:
        several = data.values() if isinstance(data, dict) else [data]
        if any(one is self.train_dataset for one in several):
            raise SettingError("the training data are private: what the model says of them is not covered by epsilon")
        if not self.public_eval:
            raise SettingError("say public_eval=True if nobody in the data to evaluate on is to be protected")

    def push_to_hub(self, *_args: object, **_settings: object) -> None:
        """Refused: the output folder holds the run's secret key."""
        raise SettingError(
            "the output folder holds the run's secret key: trainer.save_pretrained(folder) makes a folder for the Hub, "
            "and huggingface_hub.upload_folder(folder_path=folder, repo_id=...) sends it"
        )

    def _save_checkpoint(self, model: object, trial: object) -> None:
        super()._save_checkpoint(model, trial)
        if self.run is not None:
            self.run.save()

    def _save_optimizer_and_scheduler(self, _output_dir: str) -> None:
        """They are in the run's own checkpoint, which is the one to go on from."""

    def _save_rng_state(self, _output_dir: str) -> None:
        """Chance comes from the run's key."""
