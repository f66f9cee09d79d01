"""The optimizer as a loop calls it: its step is a round of the run, after which the user's own optimizer has moved."""

from __future__ import annotations

from collections.abc import Callable

from torch.optim import Optimizer

from reticent.errors import SettingError
from reticent.integrations.opacus.listening import Value
from reticent.integrations.opacus.own_loop import OwnLoop


class Around(Optimizer):
    """An optimizer around the user's own: schedulers and checkpoints see the latter's groups and state."""

    def __init__(self, optimizer: Optimizer):
        self.original_optimizer = optimizer
        self._optimizer_step_pre_hooks = optimizer._optimizer_step_pre_hooks
        self._optimizer_step_post_hooks = optimizer._optimizer_step_post_hooks

    @property
    def param_groups(self) -> list[dict[str, Value]]:
        """The groups of the user's optimizer."""
        return self.original_optimizer.param_groups

    @param_groups.setter
    def param_groups(self, value: list[dict[str, Value]]) -> None:
        self.original_optimizer.param_groups = value

    @property
    def state(self) -> Value:
        """The state of the user's optimizer."""
        return self.original_optimizer.state

    @state.setter
    def state(self, value: Value) -> None:
        self.original_optimizer.state = value

    @property
    def defaults(self) -> dict[str, Value]:
        """What the user's optimizer was told."""
        return self.original_optimizer.defaults

    @defaults.setter
    def defaults(self, value: dict[str, Value]) -> None:
        self.original_optimizer.defaults = value

    def state_dict(self) -> dict[str, Value]:
        """That of the user's optimizer."""
        return self.original_optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Value]) -> None:
        """Into the user's optimizer."""
        self.original_optimizer.load_state_dict(state_dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.original_optimizer!r})"


class DPOptimizer(Around):
    """An optimizer of Opacus' shape: its step is a private one, for the batch that was shown."""

    def __init__(self, optimizer: Optimizer, loop: OwnLoop):
        super().__init__(optimizer)
        self._loop = loop
        self._hooks: list[Callable[[DPOptimizer], None]] = []

    @property
    def noise_multiplier(self) -> float:
        """That of every step, fixed before the first."""
        return self._loop.terms.settings.noise_multiplier

    @property
    def max_grad_norm(self) -> float:
        """The bound of one example's gradient: of all tensors together, where each has its own."""
        return self._loop.terms.settings.max_grad_norm

    @property
    def expected_batch_size(self) -> float:
        """What sums are divided by, whatever was drawn."""
        return self._loop.terms.settings.batch_size

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, but none of those that the plan of the run has fixed."""
        if name in ("noise_multiplier", "max_grad_norm", "max_grad_norms", "expected_batch_size"):
            raise SettingError(f"{name} is fixed before the first step: schedules of it are not supported here")
        super().__setattr__(name, value)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One private step for the batch that the loader gave; after the last part of it, under BatchMemoryManager."""
        loss = closure() if closure is not None else None
        if self._loop.step():
            for hook in self._hooks:
                hook(self)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the loss that was heard, and the gradient of the step before, which was released."""
        self._loop.forget()
        self.original_optimizer.zero_grad(set_to_none)

    def attach_step_hook(self, hook: Callable[[DPOptimizer], None]) -> None:
        """Call something after every private step."""
        self._hooks.append(hook)

    def add_param_group(self, param_group: dict[str, Value]) -> None:  # noqa: ARG002 - whatever is in it
        """Refused: the plan is for the parameters that there were."""
        raise SettingError("make_private with all parameters: a group cannot be added to a run that is planned")
