"""Helper: command lines in forks of one process that has imported everything: many builds, soon.

That process reads a list of commands a line, and writes their answers, both as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Answer", "Command", "Forked", "serve"]

_SERVER = "import sys; sys.path[:] = {path!r}; from tests.forked import serve; serve()"


@dataclass(frozen=True)
class Command:
    """A command line of htvm.

    Attributes:
        words: the verb and its arguments.
        environment: variables, ``None`` for one that is not set.
        file_bytes: size that no file may exceed; writing more fails as on a full disk.
        clock: seconds that are added to the clock, one after the other each time it is read.
        killed_s: when it is killed, if it has not ended before.
    """

    words: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    file_bytes: int | None = None
    clock: Sequence[float] = (0,)
    killed_s: float | None = None


@dataclass(frozen=True)
class Answer:
    """What became of it: the exit code, negative for a signal; and what it said on stderr."""

    code: int
    said: str


class Forked:
    """The process whose forks execute commands."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER.format(path=sys.path)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, *commands: Command) -> list[Answer]:
        """Execute commands at the same time."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([asdict(each) for each in commands]), file=self._process.stdin, flush=True)
        return [Answer(**each) for each in json.loads(self._process.stdout.readline())]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve() -> None:
    """Execute what comes on stdin."""
    from htvm.tools.cli.app import main

    with tempfile.TemporaryDirectory() as folder:  # imports all that a build needs
        os.environ["XDG_CACHE_HOME"] = os.environ["HOME"] = folder
        with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
            assert main(["compile", "zoo:toyadmos", "-t", "cortex_m4", "-o", f"{folder}/out"]) == 0
    for line in sys.stdin:
        commands = [Command(**each) for each in json.loads(line)]
        with tempfile.TemporaryDirectory() as folder:
            logs = [Path(folder) / str(number) for number in range(len(commands))]
            for log in logs:
                log.touch()
            begun = time.monotonic()
            forks = [_fork(each, log) for each, log in zip(commands, logs, strict=True)]
            for command, fork in zip(commands, forks, strict=True):
                if command.killed_s is not None:
                    time.sleep(max(0, begun + command.killed_s - time.monotonic()))
                    os.kill(fork, signal.SIGKILL)
            codes = [os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) for fork in forks]
            said = [log.read_text(encoding="utf-8") for log in logs]
        answers = [Answer(*each) for each in zip(codes, said, strict=True)]
        print(json.dumps([asdict(each) for each in answers]), flush=True)


def _fork(command: Command, log: Path) -> int:
    sys.stdout.flush()
    fork = os.fork()
    if fork:
        return fork
    try:
        _execute(command, log)
    finally:
        os._exit(99)


def _execute(command: Command, log: Path) -> None:
    import resource

    from htvm.tools.cli.app import main

    with log.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    for name, value in command.environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    tempfile.tempdir = None  # the environment's, which is read once
    if command.file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (command.file_bytes,) * 2)
    steps, real = [*command.clock], time.time

    def shifted() -> float:
        steps.append(steps.pop(0))
        return real() + steps[-1]

    time.time = shifted
    code = main(command.words)
    sys.stderr.flush()
    os._exit(code)
