"""Reports: tables, the privacy statement and one self-contained page, from results on disk."""

from reticent.report.choice import Picking, picking
from reticent.report.page import write, write_page
from reticent.report.results import Results, read
from reticent.report.summary import Row, Spread, summarise, to_csv

__all__ = [
    "Picking",
    "Results",
    "Row",
    "Spread",
    "picking",
    "read",
    "summarise",
    "to_csv",
    "write",
    "write_page",
]
