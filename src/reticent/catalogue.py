"""Everything that can be trained by name: the methods of the pipeline, and the defences outside it."""

from __future__ import annotations

from reticent import defences, methods
from reticent.about import About, MethodRow, row
from reticent.errors import UnknownName


def abouts() -> dict[str, About]:
    """What is known about each of them, by name.

    >>> list(abouts())[0], list(abouts())[-1]
    ('dpsgd', 'selena')
    """
    return {**methods.abouts(), **defences.abouts()}


def find(name: str) -> About:
    """One of them, or an error that tells the names there are."""
    known = abouts()
    if name not in known:
        raise UnknownName("method", name, known)
    return known[name]


def names() -> list[str]:
    """Every name that `--method` takes."""
    return list(abouts())


def options(name: str) -> dict[str, object]:
    """The options of a method or a defence, with their defaults."""
    return defences.options(name) if find(name).kind == "defence" else methods.options(name)


def promises_nothing(name: str) -> bool:
    """Whether no epsilon is proved for it, so that a budget means nothing to it.

    >>> promises_nothing("pd_sgd"), promises_nothing("dpsgd")
    (True, False)
    """
    return find(name).guarantee.startswith("none")


def markdown(docs: str) -> str:
    """The table of all of them as pages show it, with links relative to a page that lies in or beside `docs`.

    >>> markdown("docs/").splitlines()[2]
    '| [`dpsgd`](docs/methods/dpsgd.md) | nothing: this is the base | proved (PLD or RDP of the planned rounds) |'
    """
    rows = (
        f"| [`{about.name}`]({about.page.replace('docs/', docs, 1)}) | {about.changes} | {about.guarantee} |"
        for about in abouts().values()
    )
    return "\n".join(["| name | changes | what is proved |", "|---|---|---|", *rows])


def listing() -> list[MethodRow]:
    """The table of all of them.

    >>> {"dpsur", "dpis", "selena"} <= {row["name"] for row in listing()}
    True
    """
    return [row(about, options(name)) for name, about in abouts().items()]
