"""Errors that name the thing and the remedy; every room may raise them."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "BudgetSpent",
    "DataError",
    "FileWarning",
    "ModelError",
    "PrivacyWarning",
    "RankError",
    "ResumeError",
    "ReticentError",
    "SettingError",
    "UnknownName",
]


class ReticentError(Exception):
    """Anything Reticent refuses to do; its text says what to do instead."""


class ModelError(ReticentError):
    """The model cannot be trained privately as it is."""


class DataError(ReticentError):
    """The examples cannot be used as they are."""


class SettingError(ReticentError, ValueError):
    """A setting is outside what is possible or sound."""


class PrivacyWarning(UserWarning):
    """A setting that is allowed, but promises less than it seems to."""


class FileWarning(UserWarning):
    """A stored file was mended, or is too old to be checked; the text says what was done."""


class BudgetSpent(ReticentError):  # noqa: N818 - it is a state of affairs, not a mistake
    """A release would pass the privacy budget; nothing was released."""


class ResumeError(ReticentError):
    """A stored run cannot be continued as asked."""


class RankError(ReticentError):
    """Another process of the same run has failed, ended or fallen silent."""


def unwritable(path: Path, error: OSError) -> ResumeError:
    """The error for a file or folder that cannot be written; what was there before is still there.

    >>> print(unwritable(Path("runs/a"), OSError(errno.ENOSPC, "")))
    cannot write runs/a: the disk is full. Free space or give another folder (--out), then resume.
    """
    reason = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror or error)
    return ResumeError(f"cannot write {path}: {reason}. Free space or give another folder (--out), then resume.")


class UnknownName(ReticentError, LookupError):  # noqa: N818 - reads better where it is raised
    """A name that is not known, with the nearest ones that are.

    >>> raise UnknownName("method", "dpsgdd", ["dpsgd", "dpis"])
    Traceback (most recent call last):
    reticent.errors.UnknownName: unknown method 'dpsgdd': did you mean 'dpsgd'? (known: dpis, dpsgd)
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, more: str | None = None):
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        where = f"`{more}` lists them all" if more is not None else f"(known: {', '.join(names)})"
        super().__init__(f"unknown {kind} {name!r}: {hint}{where}")


def require(holds: bool, says: str) -> None:
    """Refuse a setting for which this does not hold; not a number never holds.

    >>> require(0.5 < 0, "stability must be above 0")
    Traceback (most recent call last):
    reticent.errors.SettingError: stability must be above 0
    """
    if not holds:
        raise SettingError(says)
