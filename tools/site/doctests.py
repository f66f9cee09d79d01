"""Examples in docstrings, shown as code."""

from __future__ import annotations

import re

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n\n(?!>>> )|\Z)", re.MULTILINE | re.DOTALL)


def fenced(text: str) -> str:
    """A docstring with its examples between fences.

    >>> print(fenced("One.\\n\\n>>> 1 + 1\\n2").replace("`", "'"))
    One.
    <BLANKLINE>
    '''pycon
    >>> 1 + 1
    2
    '''
    """
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


class Examples(griffe.Extension):
    """Told of every object that has been read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Put its examples between fences."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
