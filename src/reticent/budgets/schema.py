"""Two tables: datasets with their caps, and what was charged to each."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Integer, MetaData, String, Table, Text

VERSION = 2
"""Of the layout, and of what it means; every dataset says which one it was made with. The first had no `unit`."""

metadata = MetaData()

datasets = Table(
    "reticent_datasets",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("delta", Double, nullable=False),
    Column("adjacency", String(20), nullable=False),
    Column("unit", String(20), nullable=False),
    Column("renyi_order", Double, nullable=False),
    Column("who", String(200), nullable=False),
    Column("at", String(40), nullable=False),
)

charges = Table(
    "reticent_charges",
    metadata,
    Column("run", String(64), primary_key=True),
    Column("dataset", ForeignKey(datasets.c.name), nullable=False, index=True),
    Column("state", String(10), nullable=False),
    Column("method", String(200), nullable=False),
    Column("who", String(200), nullable=False),
    Column("at", String(40), nullable=False),
    Column("note", Text, nullable=False),
    # What is released before the run's own ledger begins, what its plan may release, and what it is known to have.
    Column("before", Text, nullable=False),
    Column("planned", Text, nullable=False),
    Column("used", Text),
)
