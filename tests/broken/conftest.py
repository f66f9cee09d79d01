"""The checks and mutants beside this file are modules of their own: let the tests import them by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
