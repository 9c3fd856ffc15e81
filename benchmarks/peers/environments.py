"""One virtual environment for each peer, because their requirements contradict each other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.answer import Peer

__all__ = ["InstallError", "python_of"]

_LIMIT_SECONDS = 1800


class InstallError(Exception):
    """A peer cannot be installed here; the text says why."""


def python_of(peer: Peer, folder: Path) -> Path:
    """Return the interpreter with a peer's packages; they are installed if they are not yet.

    Args:
        peer: the peer; one without packages has this process's interpreter.
        folder: holds all environments.

    Raises:
        InstallError: an installation failed, or a program is not there.
    """
    if peer.program and shutil.which(peer.program) is None:
        raise InstallError(f"there is no program {peer.program}")
    if not peer.packages:
        return Path(sys.executable)
    home = folder / peer.name
    python, done = home / "bin" / "python", home / "installed"
    wanted = "\n".join(peer.packages)
    if done.is_file() and done.read_text() == wanted:
        return python
    _run([sys.executable, "-m", "venv", "--clear", str(home)])
    options = ["--pre"] * peer.pre + ["--no-deps"] * (not peer.dependencies)
    _run([str(python), "-m", "pip", "install", "--quiet", *options, *peer.packages])
    done.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"no end after {_LIMIT_SECONDS} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise InstallError(lines[-1] if lines else done.stderr.strip()[-200:])
