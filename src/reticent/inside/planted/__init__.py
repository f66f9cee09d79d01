"""Planted bugs: real mistakes of real libraries, for audits to find; each breaks one piece while it is planted."""

from reticent.inside.planted import charging, clipping, drawing, noise
from reticent.inside.planted.bug import Bug, bugs, find

__all__ = ["Bug", "bugs", "charging", "clipping", "drawing", "find", "noise"]
