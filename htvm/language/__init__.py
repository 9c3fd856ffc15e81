"""Language models, where users import them: see `htvm.tools.language`."""

from __future__ import annotations

from htvm.tools.language import *  # noqa: F403  # all of its public names
from htvm.tools.language import __all__ as __all__
from htvm.tools.language import sampling as sampling
