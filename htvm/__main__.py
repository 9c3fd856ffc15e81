"""``python -m htvm``: the command htvm."""

from __future__ import annotations

from htvm.tools.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
