"""Tables, pages, figures, JSON, CSV and traces of the results of a build, a run or a comparison.

Everything is drawn from plain frozen values; nothing here depends on the compiler or the simulator.
"""

from __future__ import annotations

from htvm.report.difference import difference_of
from htvm.report.loading import load, load_exploration, schema
from htvm.report.save import save

__all__ = ["difference_of", "load", "load_exploration", "save", "schema"]
