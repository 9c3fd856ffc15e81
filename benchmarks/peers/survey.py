"""Asking a peer: install it, give each file to its probe, and note the answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.peers import on_core
from benchmarks.peers.answer import Answer, Case, Peer, Survey
from benchmarks.peers.environments import InstallError, python_of
from htvm.errors import HtvmError

__all__ = ["surveyed"]

PROBES = Path(__file__).parent / "probes"
ROOT = PROBES.parents[2]
_LIMIT_SECONDS = 900
_VERSION = re.compile(r"\b(?:\d+\.\d[\w.]*|[0-9a-f]{7,})\b")


def surveyed(
    peer: Peer, cases: Sequence[Case], environments: Path, say: Callable[[str], None]
) -> Survey:
    """Return what a peer answers; what goes wrong is part of the answer.

    Args:
        peer: whom to ask.
        cases: the files.
        environments: folder of the peers' virtual environments.
        say: receives a line for each step.
    """
    say(f"{peer.title}: installing")
    try:
        python = python_of(peer, environments)
    except InstallError as error:
        return Survey(peer.name, failure=str(error))
    answers = {}
    for case in cases:
        say(f"{peer.title}: {case.name}")
        answers[case.name] = _answer(peer, case, python)
    return Survey(peer.name, _versions(peer, python), answers=answers)


def _answer(peer: Peer, case: Case, python: Path) -> Answer:
    if case.kind not in peer.takes:
        names = {"tflite": "TFLite", "onnx": "ONNX"}
        kinds = " or ".join(names[kind] for kind in peer.takes) or "neither TFLite nor ONNX"
        return Answer(False, f"reads {kinds}")
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "case.json"
        described.write_text(json.dumps(asdict(case) | {"compiler": json.dumps(_compiler())}))
        probe = PROBES / f"{peer.name}_probe.py"
        # The peers without packages of their own find this project; the others find themselves.
        environment = dict(os.environ) | ({} if peer.packages else {"PYTHONPATH": str(ROOT)})
        try:
            done = subprocess.run(
                [str(python), str(probe), str(described)], capture_output=True, text=True,
                timeout=_LIMIT_SECONDS, cwd=folder, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(False, f"no end after {_LIMIT_SECONDS} s")
        lines = done.stdout.strip().splitlines()
        try:
            answer = Answer(**json.loads(lines[-1]))
        except (IndexError, ValueError, TypeError):
            return Answer(False, f"ended with {done.returncode}: {done.stderr.strip()[-120:]}")
        return _with_core(answer, peer, case, Path(folder))


def _with_core(answer: Answer, peer: Peer, case: Case, folder: Path) -> Answer:
    """Return an answer with what its program takes on a core, if it has one for any."""
    if not (answer.entry or (peer.name == "htvm" and answer.reads)):
        return answer
    try:
        source = folder / "network.c"
        found = (
            on_core.of_source(source, answer.entry, case) if answer.entry else on_core.ours(case)
        )
    except HtvmError as error:
        said = f"not run on the M4: {error.what}"
        return replace(answer, reason="; ".join(filter(None, (answer.reason, said))))
    differs = "" if found.equal else "its output on the M4 differs"
    return replace(
        answer,
        core_instructions=found.instructions,
        core_flash=found.flash,
        core_ram=found.ram,
        reason="; ".join(filter(None, (answer.reason, differs))),
    )


def _compiler() -> list[str]:
    """Return the C compiler of this project, for peers that make C."""
    return [sys.executable, "-m", "ziglang", "cc"]


def _versions(peer: Peer, python: Path) -> tuple[str, ...]:
    """Return name and version of what was installed, or of what this process uses."""
    if peer.program:
        said = subprocess.run([peer.program, "--version"], capture_output=True, text=True).stdout
        return tuple(f"{peer.program} {found}" for found in _VERSION.findall(said)[:1])
    names = [package.split("==")[0] for package in peer.packages]
    names = [name for name in names if name not in ("numpy", "onnx", "pyelftools", "six")]
    names = names or {"htvm": ["htvm"], "tvm": ["apache-tvm"]}.get(peer.name, [])
    program = (
        "import sys, importlib.metadata as m\n"
        "print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep='\\n')"
    )
    done = subprocess.run([str(python), "-c", program, *names], capture_output=True, text=True)
    return tuple(done.stdout.split("\n")[: len(names)])
