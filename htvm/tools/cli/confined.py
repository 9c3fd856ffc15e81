"""What the process of a confined command does; see `htvm.tools.confinement`."""

from __future__ import annotations

import json
import signal
import sys

from htvm.processes import EXIT_CODES
from htvm.tools.cli import main as run
from htvm.tools.confinement import Confinement, confine


def main() -> None:
    """Execute the command line after the first argument, the limits, and end the process."""
    limits = Confinement(**json.loads(sys.argv[1]))
    sys.argv = ["htvm", *sys.argv[2:]]
    spent = False

    def stop(*_: object) -> None:
        nonlocal spent
        spent = True
        signal.raise_signal(signal.SIGINT)  # ends the verb, which removes unfinished files

    signal.signal(signal.SIGXCPU, stop)
    confine(limits)
    code = run(supervised=True)
    sys.exit(EXIT_CODES["cpu_seconds"] if spent else code)
