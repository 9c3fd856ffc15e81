"""The C of a network on machines of another byte order or word size, by QEMU's user mode.

Programs are those of the host platform, compiled for Linux on the other machine.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from htvm.compiled import Compiled
from htvm.firmware.build import build_host
from htvm.firmware.toolchain import Compiler

__all__ = ["MACHINES", "UserMachine", "computed"]

_LIMIT_SECONDS = 600


@dataclass(frozen=True)
class UserMachine:
    """A machine that QEMU's user mode emulates.

    Attributes:
        name: as in ``qemu-<name>``.
        target: the compiler's name of Linux on it.
        order: byte order, as numpy writes it.
        flags: further flags of the compiler.
    """

    name: str
    target: str
    order: str
    flags: tuple[str, ...] = ()

    @property
    def program(self) -> str | None:
        """Path of the emulator; ``None`` if it is not installed."""
        return shutil.which(f"qemu-{self.name}")


MACHINES = {
    machine.name: machine
    for machine in (
        # With the vector facility, one network's C gave wrong results that are right with -O0,
        # without vectorization, and on this core without vectors: not a matter of byte order.
        UserMachine("s390x", "s390x-linux-musl", ">", ("-mcpu=arch8",)),
        UserMachine("ppc", "powerpc-linux-musleabi", ">"),
        UserMachine("aarch64", "aarch64-linux-musl", "<"),
        UserMachine("riscv64", "riscv64-linux-musl", "<", ("-mcpu=generic_rv64+m+a+f+d+c",)),
    )
}
"""Big-endian with 64 bits and with 32, and two little-endian ones with 64."""


def computed(compiled: Compiled, machine: UserMachine, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of a network, computed by its C on another machine.

    Args:
        compiled: the network, for a target whose C this machine can run.
        machine: the machine.
        inputs: arrays in the network's order.

    Raises:
        RuntimeError: the emulator is not installed, or the program failed.
        ToolchainError: the program cannot be compiled.
    """
    if machine.program is None:
        raise RuntimeError(f"qemu-{machine.name} is not installed")
    zig = Compiler.zig()
    command = (*zig.host, "-target", machine.target, *machine.flags, "-static", "-fno-sanitize=all")
    built = build_host(compiled.program, compiled.target.soc, replace(zig, host=command))
    with tempfile.TemporaryDirectory(prefix="htvm-user-") as folder:
        names = [f"{folder}/input_{i}" for i in range(len(inputs))]
        results = [f"{folder}/output_{i}" for i in range(len(compiled.program.outputs))]
        for name, array in zip(names, inputs, strict=True):
            data = np.asarray(array, order="C")
            Path(name).write_bytes(data.astype(data.dtype.newbyteorder(machine.order)).tobytes())
        done = subprocess.run(
            [machine.program, str(built.path), *names, "--", *results],
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise RuntimeError(f"on {machine.name} the program ended: {done.stderr[-300:]}")
        return [
            np.frombuffer(Path(name).read_bytes(), np.dtype(info.dtype).newbyteorder(machine.order))
            .reshape(tuple(info.shape))
            .astype(info.dtype)
            for name, info in zip(results, compiled.program.outputs, strict=True)
        ]
