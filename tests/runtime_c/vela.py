"""Helper: TFLite and TOSA files compiled by Vela for the Ethos-U, and run on the model."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.runtime_c.ethos_u import ACCELERATORS, EthosU, Result, aligned

Array = npt.NDArray[Any]

_SYSTEMS = {
    55: ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    65: ("Ethos_U65_High_End", "Dedicated_Sram"),
}
_ARCHITECTURE = """[architecture]
macs={macs}
cores=1
[vela]
system_config_name={system}
memory_mode_name={memory}
"""
_OPTIONS = """[compiler]
output_format=Raw
cop_format=COP1
[scheduler]
optimize={optimize}
arena_size_limit={arena}
"""


def vela(module: str = "ethosu.vela.api") -> Any:
    """A module of Vela, or a skipped test."""
    return pytest.importorskip(module, reason="ethos-u-vela is not installed")


def compiled(
    network: bytes,
    accelerator: str,
    *,
    kind: str = "TFLITE",
    optimize: str = "Performance",
    arena: int = 1 << 31,
) -> Any:
    """Compile a network, all of which must map.

    Args:
        network: the file.
        accelerator: name of the NPU, such as ``"ethos-u55-128"``.
        kind: ``"TFLITE"`` or ``"TOSA"``.
        optimize: ``"Performance"`` or ``"Size"``.
        arena: bytes that the scheduler may use.
    """
    regor = vela("ethosu.regor")
    product, macs = ACCELERATORS[accelerator]
    system, memory = _SYSTEMS[product]
    (config,) = Path(regor.__file__).parent.glob("config_files/Arm/vela.ini")
    architecture = _ARCHITECTURE.format(macs=macs, system=system, memory=memory)
    architecture += config.read_text()
    options = _OPTIONS.format(optimize=optimize, arena=arena)
    return regor.compile(f"EthosU{product}", network, kind, architecture, options=options)


class Program:
    """A compiled network and its memory on the model.

    Args:
        lib: the model's library.
        model: what Vela's compiler gave.
    """

    def __init__(self, lib: ctypes.CDLL, model: Any) -> None:
        self.model = model
        self.payload = bytes(model.command_stream)
        self.weights = int(model.read_only.region)
        regions = {self.weights: aligned(bytes(model.read_only.data))}
        for tensor in (model.scratch, model.scratch_fast):
            if tensor is not None and tensor.size:
                regions[int(tensor.region)] = aligned(int(tensor.size))
        self.npu = EthosU(lib, regions, constant=frozenset({self.weights}))
        for state in model.variables:
            kind = np.dtype(f"<i{int(state.element_size)}")
            zero = int(state.zero_point[0]) if len(state.zero_point) else 0
            self._part(state).view(kind)[:] = zero

    def _part(self, tensor: Any) -> Array:
        size = int(np.prod(tensor.shape)) * int(tensor.element_size)
        start = int(tensor.address)
        return self.npu.regions[int(tensor.region)][start : start + size]

    def run(self, inputs: Sequence[Array], **options: Any) -> tuple[Result, list[Array]]:
        """Run on inputs, in the file's order; returns how it ended and the outputs' bytes."""
        known = [(self.weights, 0, self.npu.regions[self.weights].size)]
        for tensor, data in zip(self.model.inputs, inputs, strict=True):
            part = self._part(tensor)
            part[:] = np.frombuffer(np.asarray(data).tobytes(), np.uint8)
            known.append((int(tensor.region), int(tensor.address), part.size))
        for state in self.model.variables:
            known.append((int(state.region), int(state.address), self._part(state).size))
        result = self.npu.run(self.payload, written=known, **options)
        return result, [self._part(tensor).copy() for tensor in self.model.outputs]
