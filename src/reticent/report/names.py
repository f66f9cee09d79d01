"""What methods are called in print."""

from __future__ import annotations

from reticent import catalogue
from reticent.results import Result

WITHOUT = {"plain": "Without privacy"}


def printed(label: str) -> str:
    """A label as the papers write it; a variant keeps what distinguishes it.

    >>> printed("dpsgd"), printed("dpsur-smooth"), printed("dpsgd-2x-gradients")
    ('DP-SGD', 'DPSUR smooth', 'DP-SGD 2x gradients')
    """
    method, _, variant = label.partition("-")
    titles = WITHOUT | {name: about.title for name, about in catalogue.abouts().items()}
    return " ".join([titles.get(method, method), *variant.split("-")]).strip()


def class_name(run: Result, number: int) -> str:
    """What a class is called: its name, or else its number.

    >>> class_name(Result(run="a", label="a", recipe={}, class_names=("cat", "dog")), 1)
    'dog'
    """
    names = run.class_names or ()
    return names[number] if number < len(names) else str(number)
