"""``python -m htvm.cli``: the console command without its script."""

from __future__ import annotations

import sys

from htvm.cli import main

if __name__ == "__main__":
    sys.exit(main())
