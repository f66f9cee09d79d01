"""Reports: tables, the privacy statement and one self-contained page, from results on disk."""

from reticent.report.page import render, write_page
from reticent.report.results import Results, read
from reticent.report.statement import Statement, statement
from reticent.report.summary import Row, Spread, summarise, to_csv

__all__ = [
    "Results",
    "Row",
    "Spread",
    "Statement",
    "read",
    "render",
    "statement",
    "summarise",
    "to_csv",
    "write_page",
]
