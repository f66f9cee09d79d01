"""Reports: tables, the privacy statement and one self-contained page, from results on disk."""

from reticent.report.page import write_page
from reticent.report.results import Results, read
from reticent.report.summary import Row, Spread, summarise, to_csv

__all__ = [
    "Results",
    "Row",
    "Spread",
    "read",
    "summarise",
    "to_csv",
    "write_page",
]
