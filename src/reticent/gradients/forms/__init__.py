"""Forms: the ways to hold one parameter's gradient for every example, from written out to never written out."""

from __future__ import annotations

from reticent.gradients.forms.bag import Bag
from reticent.gradients.forms.dense import Dense, Form
from reticent.gradients.forms.lookup import Lookup
from reticent.gradients.forms.outer import Outer
from reticent.gradients.forms.patches import Patches
from reticent.gradients.forms.pulled import Pull, Pulled
from reticent.gradients.forms.rows import SharedRows
from reticent.gradients.forms.stacked import StackedForm

__all__ = ["Bag", "Dense", "Form", "Lookup", "Outer", "Patches", "Pull", "Pulled", "SharedRows", "StackedForm"]
