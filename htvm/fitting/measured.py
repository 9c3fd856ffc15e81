"""Sizes of a program as a C compiler makes it, also where it does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.errors import L2OverflowError
from htvm.firmware.build import build_arm, build_rv32

if TYPE_CHECKING:
    from htvm.compiled import Compiled
    from htvm.firmware.sizes import Sizes
    from htvm.firmware.toolchain import Compiler

__all__ = ["measured_sizes"]

_ROOMY = 1 << 26
"""Bytes of each memory where the program exceeds its own."""


def measured_sizes(compiled: Compiled, compiler: Compiler) -> Sizes:
    """Compile and link a program, in larger memories than the target's if need be.

    Raises:
        ToolchainError: the compiler failed.
    """
    soc = compiled.target.soc
    build = build_rv32 if soc.host.arm is None else build_arm
    try:
        return build(compiled.program, soc, compiler).sizes
    except L2OverflowError:
        memories = tuple(
            replace(memory, size=max(memory.size, _ROOMY))
            if memory.name in ("L2", soc.code_memory)
            else memory
            for memory in soc.memories
        )
        return build(compiled.program, replace(soc, memories=memories), compiler).sizes
