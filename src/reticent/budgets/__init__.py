"""Budgets of datasets: every run is charged to one database before its first release, and never beyond a cap."""

from reticent.budgets.budget import DatasetBudget, DatasetCharge
from reticent.budgets.ledger import DatasetLedger

__all__ = ["DatasetBudget", "DatasetCharge", "DatasetLedger"]
