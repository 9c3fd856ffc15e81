"""The networks that come with HTVM, where users import them: see `htvm.tools.zoo`."""

from __future__ import annotations

from htvm.tools.zoo import *  # noqa: F403  # all of its public names
from htvm.tools.zoo import __all__ as __all__
