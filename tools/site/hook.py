"""What mkdocs is told: pages that lie outside `docs/`, pages that are written from the code, links, notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from tools.site import links, notebooks, reference

WRITTEN = {"settings.md": reference.settings, "command-line.md": reference.command_line}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what is not there; a line that ends with "/" is all else that is in the folder."""
    there = {links.place(page) for page in links.pages()} | set(WRITTEN) | set(reference.reference())
    config.nav = _kept(config.nav, sorted(there), set(_leaves(config.nav)))
    return config


def _leaves(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from _leaves(part)


def _kept(entry: object, there: list[str], named: set[str]) -> object:
    if isinstance(entry, dict):
        return {name: kept for name, part in entry.items() if (kept := _kept(part, there, named))}
    if isinstance(entry, list):
        parts = (
            _rest(part, there, named) if str(part).endswith("/") else [_kept(part, there, named)] for part in entry
        )
        return [part for some in parts for part in some if part]
    return entry if entry in there else None


def _rest(folder: str, there: list[str], named: set[str]) -> list[object]:
    return [page for page in there if page.startswith(folder) and page not in named]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the site shows besides the files in `docs/`."""
    for file in list(files):
        if file.src_uri.endswith(".py"):
            files.remove(file)
    for page in links.pages():
        if not page.is_relative_to(links.ROOT / "docs"):
            files.append(File.generated(config, links.place(page), abs_src_path=str(page)))
    for path in links.linked():
        aside = {"inclusion": InclusionLevel.NOT_IN_NAV}
        if path.suffix in links.LANGUAGES:
            files.append(File.generated(config, links.place(path), content=links.as_a_page(path), **aside))
        else:
            files.append(File.generated(config, links.place(path), abs_src_path=str(path), **aside))
    for place, write in WRITTEN.items():
        files.append(File.generated(config, place, content=write()))
    for place, text in reference.reference().items():
        files.append(File.generated(config, place, content=text))
    for page in notebooks.PAGES:
        files.append(File.generated(config, notebooks.place(page), content=notebooks.executed(page)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """The page with the site's links, and one to its notebook."""
    written = {links.place(path): path for path in links.pages()}.get(page.file.src_uri)
    if written is None:
        return markdown
    text = links.for_the_site(markdown, written)
    return notebooks.announced(text, written)
