"""The console command ``htvm``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, *, supervised: bool = False) -> int:
    """Run the console command; arguments as of `htvm.tools.cli.app.exit_code`."""
    if argv is None:
        # The process ends soon, and most of its objects are modules that stay: searching them for
        # garbage takes a tenth of its time.
        gc.set_threshold(100_000, 50, 50)
    try:
        # Imported here, so that an interrupt during these imports is handled.
        from htvm.tools.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("htvm: interrupted\n")
        return 130
    return run(argv, supervised=supervised)
