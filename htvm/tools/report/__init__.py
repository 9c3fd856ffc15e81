"""Tables, pages, figures, JSON, CSV and traces of the results of a build, a run or a comparison.

Everything is drawn from plain frozen values; nothing here depends on the compiler or the simulator.
"""

from __future__ import annotations

from htvm.tools.report.difference import difference_of
from htvm.tools.report.loading import load, load_exploration, schema
from htvm.tools.report.save import save

__all__ = ["difference_of", "load", "load_exploration", "save", "schema"]
