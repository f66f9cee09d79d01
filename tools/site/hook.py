"""What mkdocs is told: pages that lie outside `docs/`, pages that are written from the code, links, notebooks."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from tools.site import links, notebooks, reference

WRITTEN = {"settings.md": reference.settings, "command-line.md": reference.command_line}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what is not there, and put in a page for each room of the reference."""
    rooms = reference.reference()
    there = {links.place(page) for page in links.pages()} | set(WRITTEN) | set(rooms)
    front = "reference/index.md"
    config.nav = _kept(config.nav, there, [front, *sorted(set(rooms) - {front})])
    return config


def _kept(entry: object, there: set[str], rooms: list[str]) -> object:
    if isinstance(entry, list):
        return [kept for kept in (_kept(part, there, rooms) for part in entry) if kept]
    if isinstance(entry, dict):
        return {name: kept for name, part in entry.items() if (kept := _kept(part, there, rooms))}
    if entry == "reference/":
        return [{"reticent" if "index" in room else Path(room).stem: room} for room in rooms]
    return entry if entry in there else None


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
