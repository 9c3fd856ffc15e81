"""The Ethos-U's model runs what Vela's compiler makes of TFLite files: equal to TFLite Micro."""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models import MODELS, golden, model_path
from tests.runtime_c.ethos_u import ACCELERATORS, BAD_STREAM, DONE, library
from tests.runtime_c.vela import Program, compiled, vela

CASES = [
    pytest.param(
        accelerator, name, marks=[] if accelerator == "ethos-u55-128" else pytest.mark.slow
    )
    for accelerator in ACCELERATORS
    for name in MODELS
]


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    return library()


@pytest.mark.parametrize(("accelerator", "name"), CASES)
def test_the_tiny_benchmark(lib: ctypes.CDLL, accelerator: str, name: str) -> None:
    """Every element of every golden, with all checks and without."""
    known = golden(name)
    program = Program(lib, compiled(known.path.read_bytes(), accelerator))
    for data, output in zip(known.inputs, known.outputs, strict=True):
        for checked in (True, False):
            result, (found,) = program.run([data], checked=checked, accelerator=accelerator)
            assert (result.status, result.complaint) == (DONE, "")
            assert (found.view(output.dtype) == output.ravel()).all()


@pytest.mark.slow
@pytest.mark.parametrize(("optimize", "arena"), [("Size", 1 << 31), ("Performance", 20_000)])
@pytest.mark.parametrize("name", MODELS)
def test_little_memory(lib: ctypes.CDLL, name: str, optimize: str, arena: int) -> None:
    """Cascades of layers with buffers that wrap around."""
    known = golden(name)
    model = compiled(known.path.read_bytes(), "ethos-u55-128", optimize=optimize, arena=arena)
    program = Program(lib, model)
    for data, output in zip(known.inputs, known.outputs, strict=True):
        result, (found,) = program.run([data])
        assert (result.status, result.complaint) == (DONE, "")
        assert (found.view(output.dtype) == output.ravel()).all()


# Files whose every operator Vela maps, beside the benchmark's.
WHOLE = (
    "exporters/keras_dynamic_batch_densenet/densenet.tflite",
    "exporters/keras_squeezenet_u8io/model.tflite",
    "exporters/tensors_without_names/mut_nonames.tflite",
    "field/keras_gru_unrolled/model.tflite",
    "field/keras_gru_unrolled_int16/model.tflite",
    "field/keras_lstm_unrolled/model.tflite",
    "streams/micro_speech_lstm/model.tflite",
    "streams/trained_lstm_int8/model.tflite",
)


def compare(lib: ctypes.CDLL, path: Path, accelerator: str, sender: Any) -> None:
    """Run a file on random inputs; send what differs, at last an empty text."""
    package = importlib.import_module("tflite_micro")
    network, rng = path.read_bytes(), np.random.default_rng(0)
    program = Program(lib, compiled(network, accelerator))
    interpreter = package.runtime.Interpreter.from_bytes(network, arena_size=1 << 24)
    for _ in range(3):
        inputs = []
        for at in range(len(program.model.inputs)):
            known = interpreter.get_input_details(at)
            limits = np.iinfo(known["dtype"])
            data = rng.integers(limits.min, limits.max + 1, known["shape"]).astype(known["dtype"])
            interpreter.set_input(data, at)
            inputs.append(data)
        interpreter.invoke()
        result, outputs = program.run(inputs)
        if result.status != DONE:
            sender.send(result.complaint)
        for at, found in enumerate(outputs):
            wanted = interpreter.get_output(at)
            if not (found.view(wanted.dtype) == wanted.ravel()).all():
                sender.send(f"output {at} differs")
    sender.send("")


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("file", WHOLE)
def test_other_files(lib: ctypes.CDLL, file: str, accelerator: str) -> None:
    """Three random inputs, states kept between them; in a process that Vela may end."""
    vela("ethosu.regor")
    pytest.importorskip("tflite_micro", reason="tflite-micro has no wheel for this machine")
    path = model_path(MODELS[0]).parents[2] / file
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=compare, args=(lib, path, accelerator, sender))
    process.start()
    sender.close()
    assert receiver.recv() == ""
    process.join()


def without(payload: bytes, word: int) -> bytes:
    """A payload with a NOP-like write in a word's place: BLOCKDEP once more, as it is."""
    words = list(struct.unpack(f"<{len(payload) // 4}I", payload))
    held = [w for w in words[:word] if w & 0xFFFF == 0x12F]
    words[word] = held[-1] if held else 0x12F
    return struct.pack(f"<{len(words)}I", *words)


@pytest.mark.parametrize(("accelerator", "name"), [("ethos-u65-256", "kws_ref_model")])
def test_every_wait_is_needed(lib: ctypes.CDLL, accelerator: str, name: str) -> None:
    """Without any one of the waits that Vela's compiler wrote, the model complains."""
    known = golden(name)
    program = Program(lib, compiled(known.path.read_bytes(), accelerator))
    words = struct.unpack(f"<{len(program.payload) // 4}I", program.payload)
    waits = [at for at, word in enumerate(words) if word & 0xFFFF in (0x11, 0x12) and at > 8]
    assert len(waits) > 5
    right = program.payload
    for at in waits:
        program.payload = without(right, at)
        result, _ = program.run([known.inputs[0]])
        assert result.status == BAD_STREAM, (at, hex(words[at]))
        assert "_WAIT is missing" in result.complaint
