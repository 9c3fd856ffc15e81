"""N-EUREKA's device model against public kernels with golden outputs: Deeploy's convolutions."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_core import Mode
from byoc_dory.soc.siracusa.neureka_tiles import pack_weights, smallest_bits
from tests.models_onnx import onnx_path
from tests.reference import neureka as reference
from tests.reference.neureka import Array, Job, Kind, Places
from tests.runtime_c.neureka_jobs import L1, place
from tests.runtime_c.siracusa import Engine, library

KERNELS: dict[str, Kind] = {
    "PW_2D": "1x1",
    "Regular_3x3": "3x3",
    "Regular_3x3_RQ": "3x3",
    "DW_2D_RQ": "depthwise",
    "DW_3x3_RQ": "depthwise",
}


@pytest.fixture(scope="module")
def models() -> ctypes.CDLL:
    return library()


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes by name; those that are tensors hold one integer."""
    found = {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
    for name, value in found.items():
        if isinstance(value, onnx.TensorProto):
            found[name] = int(numpy_helper.to_array(value).item())
    return found


def first_array(path: Path) -> Array:
    with np.load(path) as arrays:
        return np.asarray(arrays[arrays.files[0]])[0].transpose(1, 2, 0)


def job_of(path: Path, kind: Kind) -> Job:
    """The file's convolution and requantization as one job."""
    graph = onnx.load(path).graph
    values = {entry.name: numpy_helper.to_array(entry) for entry in graph.initializer}
    nodes = {node.op_type: node for node in graph.node if node.op_type != "Constant"}
    convolution = nodes["Conv"]
    weights = values[convolution.input[1]].astype(np.int64)
    top, left, bottom, right = attributes(convolution)["pads"]
    x = first_array(path.parent / "inputs.npz")
    scaling: dict[str, Any] = {}
    if "RequantShift" in nodes:
        requant = nodes["RequantShift"]
        shift = attributes(requant)["div"].bit_length() - 1
        scale, bias = (values[name].astype(np.int64).ravel() for name in requant.input[1:])
        scaling = {
            "scale": scale % 2**32,
            "wide_scale": True,
            "bias": bias + 2 ** (shift - 1),  # the files round half up, the engine down
            "shift": shift,
            "signed_output": attributes(requant)["signed"] != 0,
        }
    return Job(
        kind=kind,
        x=x.astype(np.int8 if x.min() < 0 else np.uint8),
        weights=weights,
        bits=smallest_bits(weights, NEUREKA),
        padding=(top, right, bottom, left),
        **scaling,
    )


def output_of(engine: Engine, job: Job, at: Places) -> Array:
    """The output [rows, columns, K] in L1."""
    kind = np.dtype("<i4" if job.scale is None else "i1" if job.signed_output else "u1")
    rows, columns, outputs = job.shape
    data = np.lib.stride_tricks.as_strided(
        engine.l1[at.output - L1 :],
        (rows, columns, outputs * kind.itemsize),
        (at.output_row, at.output_pixel, 1),
    )
    return data.copy().view(kind)


@pytest.mark.parametrize(("name", "kind"), KERNELS.items())
def test_golden_outputs(models: ctypes.CDLL, name: str, kind: Kind) -> None:
    path = onnx_path(f"deeploy_kernels/Integer/Conv/{name}")
    job = job_of(path, kind)
    packed = pack_weights(job.weights, Mode(reference.CODE[kind]), NEUREKA, job.bits)
    placed = place(np.random.default_rng(0), job, packed.data.tobytes())
    assert placed is not None
    engine = Engine(models)
    try:
        engine.l1[: placed.l1.size] = placed.l1
        engine.start(reference.registers(job, placed.places))
        engine.drain()
        assert engine.error is None
        wanted = first_array(path.parent / "outputs.npz")
        np.testing.assert_array_equal(output_of(engine, job, placed.places), wanted)
    finally:
        engine.close()
