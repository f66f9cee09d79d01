"""A cluster of Ray: work goes where there is room for it, and is sent again where a machine or a process is lost."""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent.errors import SettingError
from reticent.executors.doing import Answered, done
from reticent.executors.executor import Advanced, Ended, Tell, Work

RETRIES = 3
"""So often a piece of work is begun again whose process or machine was lost: it goes on from what it has stored."""
OURS = "RETICENT_"
"""What the environment says of us goes with the work: where data and caches are."""


class OnRay:
    """Each piece of work is one task of Ray, on one core; nobody hears how far it is until it is over.

    What is sent and what is answered passes through Ray: never a key. Workers must see the same files, where work says
    a path, and have Reticent installed.
    """

    def __init__(self, address: str | None, at_once: int | None):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray = _ray()
        self._at_work: dict[Any, str] = {}
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address)
        self._task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(_serve)
        self.at_once = at_once or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _connect(self, address: str | None) -> None:
        quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
        if address in (None, "local") and "RAY_ADDRESS" not in os.environ:
            quiet["_node_ip_address"] = "127.0.0.1"  # a cluster of this machine alone is nobody else's business
        try:
            self._ray.init(address, **({} if (address or "").startswith("ray://") else quiet))
        except Exception as error:  # Ray has no kind of its own for this
            raise SettingError(
                f"no cluster of Ray answers at {address or os.environ.get('RAY_ADDRESS', 'this machine')}: start one "
                f"(`ray start --head`) or give its address ({error})"
            ) from error

    def begin(self, name: str, work: Work) -> None:
        """Hand it to Ray, which finds a place for it."""
        about = {name: value for name, value in os.environ.items() if name.startswith(OURS)}
        sent = Sent(self._ray.cloudpickle.dumps(work), os.getcwd(), tuple(filter(os.path.exists, sys.path)), about)
        self._at_work[self._task.remote(sent)] = name

    def ended(self, advanced: Advanced) -> list[Ended]:  # noqa: ARG002 - nothing is heard before the end
        """Wait for the next that is over."""
        [ready], _ = self._ray.wait(list(self._at_work), num_returns=1)
        name = self._at_work.pop(ready)
        try:
            answered: Answered = pickle.loads(self._ray.get(ready))
        except self._ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0]
            return [Ended(name, error=f"lost on the cluster {RETRIES + 1} times ({type(error).__name__}: {first})")]
        return [Ended(name, answered.answer, answered.error)]

    def stop(self) -> None:
        """Cancel what is at work, and leave the cluster as it was found."""
        for task in self._at_work:
            self._ray.cancel(task, force=True)
        self._at_work.clear()
        if self._ours:
            self._ray.shutdown()


@dataclass(frozen=True, eq=False)
class Sent:
    """A piece of work, and where the command was given that it belongs to."""

    work: bytes
    folder: str
    path: tuple[str, ...]
    about: Mapping[str, str]

    def __call__(self, tell: Tell) -> object:
        """Do it as if it were done there: modules are found where they were, and relative paths mean the same."""
        os.environ.update(self.about)
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        sys.path += [place for place in self.path if place not in sys.path]
        work: Work = pickle.loads(self.work)
        return work(tell)


def _serve(sent: Sent) -> bytes:
    """Do it on the cluster; arrays that Ray packs would go with its memory, so the answer comes packed."""
    return done(sent, lambda _done, _total: None)


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise SettingError("a cluster of Ray needs Ray: pip install 'reticent[ray]'") from error
