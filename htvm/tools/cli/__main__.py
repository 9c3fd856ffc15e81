"""``python -m htvm.tools.cli``: the console command without its script."""

from __future__ import annotations

import sys

from htvm.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
