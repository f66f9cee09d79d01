"""The documentation site: what mkdocs is told besides the pages in `docs/`."""
