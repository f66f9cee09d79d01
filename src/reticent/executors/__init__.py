"""Executors: where many pieces of work are done at a time, on this machine or on a cluster."""

from reticent.executors.choosing import executor_for
from reticent.executors.executor import Ended, Executor, Tell, Work, each

__all__ = ["Ended", "Executor", "Tell", "Work", "each", "executor_for"]
