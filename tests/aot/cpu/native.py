"""Helper: run CPU code natively: compiled into a shared library, called kernel by kernel."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from htvm.aot.cpu import CpuCode, compile_cpu
from htvm.aot.entry import render
from htvm.aot.steps import Alias
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

STRICT = ("-Wall", "-Wextra", "-Werror")
FOLDERS = (runtime_c() / "include", runtime_c() / "simd")
GUARD = 64
"""Bytes around every tensor that no kernel may touch."""


class Guarded:
    """A tensor between bytes that must keep their values."""

    def __init__(self, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.bytes = np.full(size + 2 * GUARD, 0xA5, "uint8")
        self.tensor = self.bytes[GUARD : GUARD + size].view(dtype).reshape(shape)

    def check(self):
        assert (self.bytes[:GUARD] == 0xA5).all() and (self.bytes[-GUARD:] == 0xA5).all()


MODES = ("scheduled", "default", "simd")
"""Ways to compile kernels: for a scalar core, unscheduled, and for a core with SIMD.

Three more are for Cortex-M cores: "dsp" with the DSP extension, "mve" with Helium, and "thumb"
without either; "rvv" is for RISC-V cores with vectors; all where memory is scarce."""


def compiled(module, prefix: str, mode: str) -> CpuCode:
    """The kernels of a module in one of the modes."""
    if mode == "simd":
        return compile_cpu(module, prefix, simd="corev")
    if mode in ("dsp", "dsp_dual", "mve", "thumb", "rvv"):
        return compile_cpu(module, prefix, simd=mode, scarce=True)
    return compile_cpu(module, prefix, kernels=mode)


def source_of(*codes: CpuCode) -> str:
    headers = dict.fromkeys(h for code in codes for kernel in code.kernels for h in kernel.headers)
    included = "".join(f'#include "{header}"\n' for header in headers)
    return (
        "#include <stdint.h>\n"
        + included
        + render("unroll.c.jinja")
        + "\n".join(
            f"{kernel.prototype};\n{kernel.source}" for code in codes for kernel in code.kernels
        )
    )


def trapping(compiler: Compiler) -> Compiler:
    """The compiler with traps at undefined behaviour."""
    flags = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
    return replace(compiler, host=(*compiler.host, *flags))


def in_child(action) -> None:
    """Run in a process of its own, so that a trap ends the test and not all tests."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except AssertionError as error:
            print(error)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), f"undefined behaviour: signal {os.WTERMSIG(status)}"
    assert status == 0


def library(codes, folder: Path, compiler: Compiler) -> ctypes.CDLL:
    """Compile the kernels of some codes, whose prefixes must differ, into one library."""
    # The loader knows libraries by their path, so each needs one of its own.
    path = folder / f"kernels{len(list(folder.iterdir()))}.c"
    path.write_text(source_of(*codes), encoding="utf-8")
    library = path.with_suffix(".so")
    out = compiler.compile_host([path], library, FOLDERS, STRICT, shared=True)
    return ctypes.CDLL(str(out))


def run(code: CpuCode, loaded: ctypes.CDLL, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    tensors = {name: np.asarray(value, order="C") for name, value in inputs.items()}
    tensors |= {name: constant.data for name, constant in code.constants.items()}
    kernels = {kernel.symbol: kernel for kernel in code.kernels}
    guards = []

    def fresh(shape, dtype):
        guards.append(Guarded(shape, dtype))
        return guards[-1].tensor

    for call in code.calls:
        if isinstance(call, Alias):
            tensors[call.output.name] = tensors[call.source].reshape(call.output.shape)
            continue
        for value in call.outputs:
            tensors[value.name] = fresh(value.shape, value.dtype)
        spaces = [fresh((size,), "uint8") for size in kernels[call.target].workspaces]
        arguments = [tensors[name] for name in call.inputs]
        arguments += [tensors[value.name] for value in call.outputs]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arguments, *spaces)]
        function = getattr(loaded, call.target)
        function.restype = None
        function(*pointers)
        for guard in guards:
            guard.check()
    return [tensors[name] for name in code.results]
