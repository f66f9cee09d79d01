"""Results: what came of runs, typed, and the JSON that they are stored as."""

from reticent.results.files import ANSWER, RECORD, RESULTS, name_of, read_record, read_result, read_results, to_line
from reticent.results.parts import ClassAccuracy, Effort, Learning, LedgerFacts, Machine, PlainSettings, read_guarantee
from reticent.results.result import Kind, Result
from reticent.results.version import VERSION

__all__ = [
    "ANSWER",
    "RECORD",
    "RESULTS",
    "VERSION",
    "ClassAccuracy",
    "Effort",
    "Kind",
    "Learning",
    "LedgerFacts",
    "Machine",
    "PlainSettings",
    "Result",
    "name_of",
    "read_guarantee",
    "read_record",
    "read_result",
    "read_results",
    "to_line",
]
