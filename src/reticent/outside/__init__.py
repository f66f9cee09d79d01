"""The outer room: code here sees released numbers only, and may do anything with them."""

from reticent.outside.controls import Control, Steady
from reticent.outside.directions import Direction, Unchanged
from reticent.outside.gates import Charge, Gate, Open, Proposal
from reticent.outside.trial import Trial

__all__ = ["Charge", "Control", "Direction", "Gate", "Open", "Proposal", "Steady", "Trial", "Unchanged"]
