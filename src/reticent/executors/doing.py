"""How a piece of work is done, wherever that is: by one thread, and a failure is an answer too."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import torch

from reticent.errors import ReticentError
from reticent.executors.executor import Tell, Work


@dataclass(frozen=True, eq=False)
class Answered:
    """What a process has to say when it is done."""

    answer: Any = None
    error: str | None = None


def done(work: Work, tell: Tell) -> bytes:
    """Do it, here and now; the answer is packed by plain copying, and so outlives the process.

    >>> pickle.loads(done(lambda tell: 3, print)), pickle.loads(done(lambda tell: 1 / 0, print)).error
    (Answered(answer=3, error=None), 'ZeroDivisionError: division by zero')
    """
    torch.set_num_threads(1)  # always: the last digits, and so a later resume, depend on how many there are
    try:
        return pickle.dumps(Answered(work(tell)))
    except ReticentError as error:
        return pickle.dumps(Answered(error=str(error)))
    except Exception as error:
        return pickle.dumps(Answered(error=f"{type(error).__name__}: {error}"))
