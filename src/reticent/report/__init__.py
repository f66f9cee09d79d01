"""Reports: tables, the privacy statement and one self-contained page, from results on disk."""

from reticent.report.page import render, write_page
from reticent.report.results import Results, read
from reticent.report.statement import Statement, make_statement
from reticent.report.summary import Row, Spread, summarise, to_csv

__all__ = [
    "Results",
    "Row",
    "Spread",
    "Statement",
    "make_statement",
    "read",
    "render",
    "summarise",
    "to_csv",
    "write_page",
]
