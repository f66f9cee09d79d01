"""Which executor is meant: the processes of this machine, or a cluster that is named."""

from __future__ import annotations

from reticent.errors import SettingError, require
from reticent.executors.executor import Executor
from reticent.executors.on_ray import OnRay
from reticent.executors.processes import Processes

RAY = "ray"


def executor_for(cluster: str | None = None, jobs: int | None = None) -> Executor:
    """So many processes of this machine (one, if nothing is said), or a cluster: all of it, if nothing is said.

    `ray` is the cluster that Ray finds by itself ($RAY_ADDRESS, or one on this machine, which is started if there is
    none), `ray:ADDRESS` and `ray://HOST:PORT` another, in the words of `ray.init`.

    >>> executor_for(jobs=3).at_once
    3
    >>> executor_for("slurm")
    Traceback (most recent call last):
    reticent.errors.SettingError: there is no cluster of the kind 'slurm': say ray, ray:ADDRESS or ray://HOST:PORT
    """
    require(jobs is None or jobs >= 1, f"at least one process is needed, not {jobs}")
    if cluster is None:
        return Processes(jobs or 1)
    kind, _, place = cluster.partition(":")
    if kind != RAY or (not place and cluster != RAY):
        raise SettingError(f"there is no cluster of the kind {cluster!r}: say ray, ray:ADDRESS or ray://HOST:PORT")
    return OnRay(cluster if place.startswith("//") else place or None, jobs)
